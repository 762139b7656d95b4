"""The judge of the fault battery is judged: each invariant is broken once."""

from __future__ import annotations

import pytest

from ottla.records.batch import RecordBatch
from support.batches import batch
from support.faults.events import Reading, Sent
from support.faults.judge import History, Verdict, Written, judge

SECOND_NS = 1_000_000_000


def sent(number: int, *, offset: int, at: float = 0.0, until: float | None = None) -> Sent:
    end = at + 0.5 if until is None else until
    return Sent(0, number, int(at * SECOND_NS), int(end * SECOND_NS), offset)


def a_history(
    *acknowledged: Sent, log: list[str], read: list[tuple[int, str]] | None = None, **more: object
) -> History:
    written = Written("p", acknowledged, sent={0: 10})
    return History(
        written=[written],
        logs={0: list(enumerate(log))},
        read=[Reading(0, {0: read or []})],
        **more,  # type: ignore[arg-type]
    )


def found_in(history: History) -> Verdict:
    verdict = judge(history)
    assert verdict.problems, "the judge saw nothing"
    return verdict


def test_a_good_history_has_no_problems_and_its_numbers() -> None:
    verdict = judge(
        a_history(
            sent(0, offset=0),
            sent(1, offset=1, at=1, until=4.5),
            log=["p 0", "p 1", "p 2"],
            read=[(0, "p 0"), (1, "p 1")],
            replicas={0: {0: b"abc", 1: b"abc", 2: b"abc"}},
            healed_ns=2 * SECOND_NS,
        )
    )
    assert verdict == Verdict(2, 0, 0, 0, 4.0, ())


def test_a_record_without_a_known_offset_must_stand_somewhere() -> None:
    assert not judge(a_history(sent(1, offset=-1), log=["p 0", "p 1"])).problems
    assert found_in(a_history(sent(3, offset=-1), log=["p 0", "p 1"])).lost == 1


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        (a_history(sent(0, offset=0), sent(1, offset=1), log=["p 0"]), "lost: 'p 1'"),
        (a_history(sent(0, offset=1), log=["p 0", "p 1"]), "where 'p 1' stands"),
        (a_history(log=["p 0"], read=[(0, "p 5")]), "two values at one place: 0:0"),
        (a_history(log=[], read=[(0, "p 5"), (0, "p 6")]), "two values at one place: 0:0"),
        (a_history(log=["p 1", "p 0"]), "out of order: 'p 0' after 'p 1'"),
        (a_history(log=["p 0", "p 0"]), "duplicated: 'p 0'"),
        (a_history(log=["p 10"]), "never sent: 'p 10'"),
        (a_history(log=["q 1"]), "never sent: somebody called 'q'"),
        (
            a_history(sent(1, offset=1), sent(0, offset=0, at=1), log=["p 0", "p 1"]),
            "acknowledged at an older place: 'p 0' of partition 0 at 0, sent after 1",
        ),
        (
            a_history(log=[], replicas={0: {0: b"abc", 1: b"abd"}}),
            "replicas differ: partition 0 has 3 bytes on broker 0 and 3 on 1, equal up to 2",
        ),
        (a_history(log=[], replicas={0: {0: b"abc", 1: b"ab"}}), "equal up to 2"),
        (a_history(log=["p 0"], healed_ns=1), "nothing was acknowledged in partition 0"),
        (
            a_history(sent(0, offset=0, until=32), log=["p 0"], healed_ns=SECOND_NS),
            "no progress: partition 0 took 31.0 s",
        ),
    ],
)
def test_each_broken_invariant_is_named(history: History, expected: str) -> None:
    assert expected in "\n".join(found_in(history).problems)


def test_a_committed_position_does_not_go_back() -> None:
    commits = [Reading(0, committed={0: 5}), Reading(1, committed={0: 9}, uncertain={0: 7})]

    def problems(at: int) -> tuple[str, ...]:
        return judge(History([], {0: []}, commits, committed={0: at})).problems

    assert problems(9) == problems(12) == ()
    assert problems(7) == (), "a commit whose answer was lost may come late"
    assert problems(5) == ("a commit went back: partition 0 was committed at 9 and is at 5",)


def test_records_under_way_at_the_same_time_may_overtake_each_other() -> None:
    history = a_history(sent(0, offset=1), sent(1, offset=0, at=0.4), log=["p 1", "p 0"])
    assert not any("older place" in problem for problem in judge(history).problems)


def test_many_of_a_kind_are_counted_and_some_are_shown() -> None:
    verdict = found_in(a_history(*(sent(number, offset=number) for number in range(9)), log=[]))
    assert verdict.lost == 9
    assert verdict.problems[-1] == "lost: and 4 more"


def test_what_only_the_leader_acknowledged_may_be_lost_but_not_invented() -> None:
    hasty = Written("p", [sent(1, offset=5)], sent={0: 2}, is_durable=False, is_once=False)
    assert not judge(History([hasty], {0: [(0, "p 0"), (1, "p 0")]})).problems
    verdict = found_in(History([hasty], {0: [(0, "p 2")]}))
    assert verdict.problems == ("never sent: 'p 2' of partition 0",)


def test_where_losing_is_allowed_it_is_counted() -> None:
    verdict = judge(a_history(sent(1, offset=0), log=["p 0"], read=[(0, "p 1")], may_lose=True))
    assert (verdict.lost, verdict.problems) == (1, ())


def test_an_epoch_does_not_go_back_along_a_log() -> None:
    def a_log(*epochs: int) -> bytes:
        batches = []
        for offset, epoch in enumerate(epochs):
            data = bytearray(batch([b"p 0"]))
            RecordBatch(memoryview(data)).assign(offset, epoch)
            batches.append(bytes(data))
        return b"".join(batches)

    assert not judge(History([], {}, replicas={0: {1: a_log(3, 3, 4)}})).problems
    verdict = found_in(History([], {}, replicas={0: {1: a_log(3, 4, 3)}}))
    expected = "an epoch went back: 4 is followed by 3 at offset 2 of partition 0 on broker 1"
    assert verdict.problems == (expected,)
