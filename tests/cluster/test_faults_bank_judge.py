"""The judge of transfers under faults is judged: each invariant is broken once."""

from __future__ import annotations

import pytest

from support.faults.bank_judge import BankHistory, judge_bank
from support.faults.events import Note, Reading

SECOND_NS = 1_000_000_000
GIVE, TAKE = "t 0 -5", "t 1 5"


def a_history(
    *words: str, values: list[str], read: list[tuple[int, str]] | None = None, **more: object
) -> BankHistory:
    """One transfer, of which these words were noted, a second apart."""
    return BankHistory(
        notes=[Note(word, "t", at * SECOND_NS) for at, word in enumerate(words)],
        values={0: values},
        read=[Reading(0, {0: read or []})],
        **more,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    "history",
    [
        a_history("begun", "committed", values=[GIVE, TAKE], read=[(0, GIVE), (2, TAKE)]),
        a_history("begun", "aborted", values=[]),
        a_history("begun", values=[]),
        a_history("begun", values=[GIVE, TAKE]),
    ],
)
def test_a_transfer_is_there_whole_or_not_at_all(history: BankHistory) -> None:
    assert judge_bank(history).problems == ()


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        (a_history("begun", "committed", values=[]), "lost: t"),
        (a_history("begun", "committed", values=[GIVE]), "money was made or lost: -5"),
        (a_history("begun", values=[GIVE]), "half there: t"),
        (a_history("begun", "committed", values=[GIVE, TAKE, TAKE]), "duplicated: t"),
        (a_history("begun", "aborted", values=[GIVE, TAKE]), "aborted and read: t"),
        (a_history("begun", "aborted", values=[], read=[(0, GIVE)]), "aborted and read: t"),
        (a_history(values=[GIVE, TAKE]), "never begun: t"),
        (a_history("begun", values=[], read=[(0, GIVE), (0, TAKE)]), "two values at one place"),
        (a_history(values=[], replicas={0: {0: b"a", 1: b"b"}}), "replicas differ: partition 0"),
        (a_history("begun", values=[], healed_ns=1), "nothing was committed after healing"),
    ],
)
def test_each_broken_invariant_is_named(history: BankHistory, expected: str) -> None:
    assert expected in "\n".join(judge_bank(history).problems)


def test_what_was_committed_is_counted_in_records() -> None:
    verdict = judge_bank(a_history("begun", "committed", values=[GIVE, TAKE]))
    assert (verdict.acknowledged, verdict.lost, verdict.duplicated) == (2, 0, 0)
