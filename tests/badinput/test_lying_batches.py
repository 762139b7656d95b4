"""Batches that lie about themselves: each kind gets the answer that docs/lying-batches.md gives.

A lie that was taken would stop every consumer at its offset, or move the partition's end far away.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from ottla.errors import ErrorCode
from ottla.records.speed import IS_ACCELERATED
from support.lying_batches import HONEST, LIES, Lie
from support.requests import LATEST, FetchPlace, a_topic, fetch_one, list_offset, produce
from support.wire import Connection

PAGE = Path(__file__).resolve().parents[2] / "docs" / "lying-batches.md"
KINDS = {**HONEST, **LIES}
TAKEN = "taken"


def answers_of(check: str) -> dict[str, str]:
    """The table of the page: what Ottla says to each kind of lie under this `records.check`."""
    answers = {}
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 4 and cells[0] in KINDS:
            kind, _, ours, with_all = cells
            answers[kind] = with_all or ours if check == "all" else ours
    return answers


def test_the_table_has_every_kind_of_lie() -> None:
    assert answers_of("all").keys() == KINDS.keys()


@pytest.mark.parametrize("check", ["uncompressed", "all"])
def test_a_lying_batch_is_answered_as_the_table_says_and_moves_nothing(
    connection: Connection, bootstrap: str, new_name: Callable[[], str], check: str
) -> None:
    expected = answers_of(check)
    topic = a_topic(connection, new_name(), partitions=len(KINDS), records_check=check)
    wrong = []
    for partition, (kind, lie) in enumerate(KINDS.items()):
        code, end_offset = sent(bootstrap, (topic, partition), lie)
        answer = TAKEN if code == 0 else ErrorCode.of(code).name
        moved = {TAKEN: lie.count}.get(answer, 0)
        if (answer, end_offset) != (expected[kind], moved):
            wrong.append((kind, answer, end_offset))
    assert not wrong


def test_the_default_checks_uncompressed_batches_where_the_walk_is_compiled(
    connection: Connection, bootstrap: str, new_name: Callable[[], str]
) -> None:
    topic = a_topic(connection, new_name())
    code, _ = sent(bootstrap, (topic, 0), LIES["record length one too large"])
    assert code == (ErrorCode.INVALID_RECORD if IS_ACCELERATED else 0)


def test_a_latest_time_that_the_records_do_not_bear_out_is_corrected(
    connection: Connection, bootstrap: str, new_name: Callable[[], str]
) -> None:
    topic = a_topic(connection, new_name(), records_check="uncompressed")
    for kind in ("maximum timestamp below the records'", "maximum timestamp two days ahead"):
        assert sent(bootstrap, (topic, 0), LIES[kind])[0] == 0
    header = stored(bootstrap, topic)
    base_ms, latest_ms = (int.from_bytes(header[at : at + 8], "big") for at in (27, 35))
    assert base_ms == latest_ms


def sent(bootstrap: str, place: tuple[str, int], lie: Lie) -> tuple[int, int]:
    """The error code, and where the partition ends then."""
    with Connection(bootstrap) as connection:
        answer = produce(connection, {place: lie.encode()})[place]
        return answer.error_code, list_offset(connection, place, LATEST).offset


def stored(bootstrap: str, topic: str) -> bytes:
    with Connection(bootstrap) as connection:
        return fetch_one(connection, FetchPlace(topic, 0, 0)).records
