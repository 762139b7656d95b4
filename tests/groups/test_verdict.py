"""The judge of the journals is judged: each rule is broken once, and the storm's good case kept."""

from pathlib import Path

from support.groups.fleet import Fleet, Member
from support.groups.journal import (
    ASSIGNED,
    COMMITTED,
    RECORDS,
    REVOKED,
    Event,
)
from support.groups.membership import MemberOptions
from support.groups.verdict import Chronicle, missing
from support.journal import JournalReader


def a_member(name: str, *events: Event, disturbed_ns: int | None = None) -> Member:
    journal = JournalReader(Path("nowhere"), Event)
    journal.events = list(events)
    disturbed = [] if disturbed_ns is None else [disturbed_ns]
    return Member(name, None, journal, disturbed_ns=disturbed)


def a_fleet(folder: Path, *members: Member) -> Fleet:
    fleet = Fleet(folder, MemberOptions("", "", "", "", "", ""), 1)
    fleet.members = list(members)
    return fleet


def assigned(at_ns: int, generation: int) -> Event:
    return Event(ASSIGNED, at_ns, generation, [0])


def revoked(at_ns: int) -> Event:
    return Event(REVOKED, at_ns, partitions=[0])


def read(at_ns: int, *offsets: int) -> Event:
    return Event(RECORDS, at_ns, offsets={0: list(offsets)})


def committed(at_ns: int, generation: int, position: int) -> Event:
    return Event(COMMITTED, at_ns, generation, positions={0: position}, since_ns=at_ns - 1)


def the_problem(folder: Path, *members: Member) -> str:
    (problem,) = Chronicle(a_fleet(folder, *members)).problems()
    return problem


def test_a_partition_that_changes_hands_in_order_is_no_problem(tmp_path: Path) -> None:
    first = a_member("a", assigned(1, 1), read(2, 0, 1), committed(4, 1, 2), revoked(5))
    second = a_member("b", assigned(7, 2), read(8, 2), committed(10, 2, 3))
    fleet = a_fleet(tmp_path, first, second)
    assert Chronicle(fleet).problems() == []
    assert missing(fleet, {0: {0, 1, 2}}) == {}


def test_two_owners_at_one_moment_are_found(tmp_path: Path) -> None:
    first, second = a_member("a", assigned(1, 1), revoked(9)), a_member("b", assigned(5, 2))
    assert "two owners" in the_problem(tmp_path, first, second)


def test_a_paused_owner_may_believe_that_it_still_owns(tmp_path: Path) -> None:
    first = a_member("a", assigned(1, 1), revoked(9), disturbed_ns=3)
    assert Chronicle(a_fleet(tmp_path, first, a_member("b", assigned(5, 2)))).problems() == []


def test_two_assignments_in_one_generation_are_found_even_of_a_paused_owner(
    tmp_path: Path,
) -> None:
    first = a_member("a", assigned(1, 1), revoked(9), disturbed_ns=3)
    second = a_member("b", assigned(5, 1))
    assert "assigned twice" in the_problem(tmp_path, first, second)


def test_an_accepted_commit_of_the_past_is_found(tmp_path: Path) -> None:
    first = a_member("a", assigned(1, 1), committed(8, 1, 4), revoked(9), disturbed_ns=3)
    second = a_member("b", assigned(5, 2))
    assert "committed 4 in generation 1" in the_problem(tmp_path, first, second)


def test_a_position_that_goes_back_is_found(tmp_path: Path) -> None:
    first = a_member("a", assigned(1, 1), committed(3, 1, 7), revoked(4))
    second = a_member("b", assigned(5, 2), read(6, 6))
    assert "began at 6, committed was 7" in the_problem(tmp_path, first, second)


def test_a_repeat_without_an_excuse_is_found(tmp_path: Path) -> None:
    first = a_member("a", assigned(1, 1), read(2, 0), revoked(4))
    second = a_member("b", assigned(5, 2), read(6, 0))
    assert "read twice" in the_problem(tmp_path, first, second)


def test_a_record_nobody_read_is_missing(tmp_path: Path) -> None:
    fleet = a_fleet(tmp_path, a_member("a", assigned(1, 1), read(2, 0)))
    assert missing(fleet, {0: {0, 1}}) == {0: {1}}


def test_a_record_of_a_partition_not_owned_is_found(tmp_path: Path) -> None:
    assert "without owning" in the_problem(tmp_path, a_member("a", read(2, 0)))
