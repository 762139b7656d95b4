"""What is said of a replica that is not in sync, from what its leader told."""

from dataclasses import replace

import pytest

from ottla.cli.absence_report import Missing, text_of
from ottla.clients.absences import Absence
from ottla.model.ids import BrokerId
from ottla.protocol.messages.describe_topic_partitions import AbsenceCause

NOON_MS = 1_700_000_000_123
TWO = BrokerId(2)
GONE = Missing(TWO, is_there=False)
LEFT = Absence(TWO, AbsenceCause.SILENT, NOON_MS, 10_240, 12_000, 37)
ASKING = replace(LEFT, silent_now_ms=20, lag_records_now=1_234)


def test_a_broker_that_is_gone_is_told_with_why_it_left() -> None:
    assert GONE.text == "broker 2 is not there"
    assert replace(GONE, absence=LEFT).text == (
        "broker 2 is not there; it left at 2023-11-14T22:13:20Z, when it had not asked its leader"
        " for 10.2 s and was 37 records behind"
    )


@pytest.mark.parametrize(
    ("cause", "expected"),
    [
        (AbsenceCause.SESSION_ENDED, "its session with the metadata ended"),
        (AbsenceCause.STOPPED, "it was being stopped"),
        (AbsenceCause.BEHIND, "it had not caught up for 12.0 s and was 37 records behind"),
    ],
)
def test_every_cause_is_a_sentence(cause: AbsenceCause, expected: str) -> None:
    text = replace(GONE, absence=replace(LEFT, cause=cause)).text
    assert text.endswith(f"it left at 2023-11-14T22:13:20Z, when {expected}")


def test_a_cause_that_nobody_knows_is_not_made_up() -> None:
    text = replace(GONE, absence=Absence(TWO, AbsenceCause.UNKNOWN)).text
    assert text == "broker 2 is not there; why it left is not known, its leader was not yet there"


@pytest.mark.parametrize(
    ("absence", "expected"),
    [
        (ASKING, "is there and 1,234 records behind its leader;"),
        (replace(ASKING, lag_records_now=0), "has as much as its leader, and will be in sync soon"),
        (replace(ASKING, silent_now_ms=-1), "is there and has not asked its leader for anything"),
        (replace(ASKING, silent_now_ms=9_000), "has not asked its leader for 9.0 s and is 1,234"),
    ],
)
def test_a_broker_that_is_there_is_told_as_its_leader_sees_it(
    absence: Absence, expected: str
) -> None:
    assert expected in Missing(TWO, is_there=True, absence=absence).text


def test_many_are_told_by_the_worst_of_them() -> None:
    group = [
        replace(GONE, absence=replace(LEFT, left_ms=NOON_MS + number * 1_000, lag_records=number))
        for number in range(3)
    ]
    assert text_of(group) == (
        "broker 2 is not there; it left from 2023-11-14T22:13:20Z to 2023-11-14T22:13:22Z, when it"
        " had not asked its leader for 10.2 s and was up to 2 records behind"
    )


def test_what_happened_differently_is_of_another_kind() -> None:
    behind = Missing(TWO, is_there=True, absence=ASKING)
    more = replace(behind, absence=replace(ASKING, lag_records_now=7))
    soon = replace(behind, absence=replace(ASKING, lag_records_now=0))
    stopped = replace(behind, absence=replace(ASKING, cause=AbsenceCause.STOPPED))
    assert behind.kind == more.kind
    assert len({behind.kind, soon.kind, stopped.kind, GONE.kind}) == 4
