"""Reading whole topics, and parts of them, as Arrow tables, against a real broker."""

import asyncio
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

import ottla
import ottla.aio
from ottla.clients.arrow.bounds import Bound
from ottla.clients.arrow.columns import read_schema
from ottla.clients.failures import NoBrokerReachable, RecordsGone, TopicNotFound, WrongUse

pyarrow = pytest.importorskip("pyarrow")

PARTITIONS = 6
EACH = 50
COLUMNS = ["offset", "partition"]
NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
NewName = Callable[[], str]


@pytest.fixture
def topic(bootstrap: str, new_name: NewName) -> str:
    """A topic with a record every second from noon on in each partition."""
    name = new_name()
    with ottla.Admin(bootstrap) as admin:
        (made,) = admin.create_topics(ottla.NewTopic(name, PARTITIONS))
        assert made.error is None, made.error
    stamps = pyarrow.array([NOON + timedelta(seconds=n) for n in range(EACH)])
    values = [f"{number}" for number in range(EACH)]
    table = pyarrow.table({"value": values, "timestamp": stamps})
    with ottla.Producer(bootstrap, batch_size=400) as producer:
        for partition in range(PARTITIONS):
            producer.send_arrow(name, table, partition=partition)
    return name


def offsets(table: "pyarrow.Table") -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for row in table.select(["partition", "offset"]).to_pylist():
        found.setdefault(row["partition"], []).append(row["offset"])
    return found


def test_a_topic_is_a_table_in_the_order_of_partitions_and_offsets(
    bootstrap: str, topic: str
) -> None:
    table = ottla.read_topic(topic, bootstrap_servers=bootstrap)
    assert table.schema == read_schema()
    table.validate(full=True)
    assert list(offsets(table)) == list(range(PARTITIONS))
    assert set(map(tuple, offsets(table).values())) == {tuple(range(EACH))}
    assert table["value"].to_pylist() == [b"%d" % n for n in range(EACH)] * PARTITIONS
    assert table["topic"].unique().to_pylist() == [topic]
    assert table["timestamp"][3].as_py() == NOON + timedelta(seconds=3)


@pytest.mark.parametrize(
    ("start", "end", "wanted"),
    [
        ("earliest", "latest", {0: range(50), 1: range(50)}),
        ("latest", "latest", {}),
        (7, 11, {0: range(7, 11), 1: range(7, 11)}),
        (40, 4000, {0: range(40, 50), 1: range(40, 50)}),
        (60, "latest", {}),
        (30, 20, {}),
        ({0: 45}, {1: 3}, {0: range(45, 50), 1: range(3)}),
        ({0: "latest", 1: NOON}, {1: 2}, {1: range(2)}),
        (NOON + timedelta(seconds=48), "latest", {0: range(48, 50), 1: range(48, 50)}),
        (NOON - timedelta(days=30_000), 1, {0: range(1), 1: range(1)}),
        ("earliest", NOON + timedelta(seconds=1.5), {0: range(2), 1: range(2)}),
        ("earliest", NOON + timedelta(days=1), {0: range(50), 1: range(50)}),
        (NOON + timedelta(days=1), "latest", {}),
        ((NOON + timedelta(seconds=49)).astimezone().replace(tzinfo=None), 50, {0: [49], 1: [49]}),
    ],
)
def test_bounds_are_names_offsets_times_or_all_of_them(
    bootstrap: str, topic: str, start: Bound, end: Bound, wanted: dict
) -> None:
    table = ottla.read_topic(
        topic, start, end, bootstrap_servers=bootstrap, partitions=[0, 1], columns=COLUMNS
    )
    assert offsets(table) == {place: list(numbers) for place, numbers in wanted.items()}


def test_a_stream_of_batches_holds_the_same_in_small_answers(bootstrap: str, topic: str) -> None:
    before = threading.active_count()
    batches = list(
        ottla.iter_topic(topic, 5, bootstrap_servers=bootstrap, max_partition_fetch_bytes=500)
    )
    assert len(batches) > PARTITIONS
    table = pyarrow.Table.from_batches(batches)
    assert table.equals(ottla.read_topic(topic, 5, bootstrap_servers=bootstrap))
    stopped = ottla.iter_topic(topic, bootstrap_servers=bootstrap)
    next(stopped)
    stopped.close()
    assert threading.active_count() == before


def test_only_committed_records_are_read_when_that_is_asked_for(
    bootstrap: str, topic: str, new_name: NewName
) -> None:
    with ottla.Producer(bootstrap, transactional_id=new_name()) as producer:
        for word in ("aborted", "committed", "open"):
            producer.begin_transaction()
            producer.send_arrow(topic, pyarrow.table({"value": [word]}), partition=0)
            if word == "aborted":
                producer.abort_transaction()
            elif word == "committed":
                producer.commit_transaction()
        how = {"bootstrap_servers": bootstrap, "partitions": [0]}
        committed = ottla.read_topic(topic, EACH, **how, read_committed=True)
        assert committed["value"].to_pylist() == [b"committed"]
        everything = ottla.read_topic(topic, EACH, **how)
        assert everything["value"].to_pylist() == [b"aborted", b"committed", b"open"]
        producer.abort_transaction()


def test_wrong_questions_are_answered_in_words(bootstrap: str, topic: str) -> None:
    with pytest.raises(WrongUse, match="'noon'"):
        ottla.read_topic(topic, "noon", bootstrap_servers=bootstrap)
    with pytest.raises(WrongUse, match="-5"):
        ottla.read_topic(topic, -5, bootstrap_servers=bootstrap)
    with pytest.raises(WrongUse, match="not a float"):
        ottla.read_topic(topic, 0.5, bootstrap_servers=bootstrap)  # type: ignore[arg-type]
    with pytest.raises(WrongUse, match="no column 'colour'"):
        ottla.iter_topic(topic, columns=["colour"], bootstrap_servers=bootstrap)
    with pytest.raises(TopicNotFound, match="partition 9"):
        ottla.read_topic(topic, {9: 0}, bootstrap_servers=bootstrap)
    with pytest.raises(TopicNotFound, match="partition 9"):
        ottla.read_topic(topic, partitions=[9], bootstrap_servers=bootstrap)
    with pytest.raises(TopicNotFound):
        ottla.read_topic(f"{topic}-not", bootstrap_servers=bootstrap)
    with pytest.raises(NoBrokerReachable):
        ottla.read_topic(topic, bootstrap_servers="127.0.0.1:1")
    with ottla.Admin(bootstrap) as admin:
        admin.delete_records(topic, {3: 10})
    with pytest.raises(RecordsGone, match=f"{topic}-3"):
        ottla.read_topic(topic, 5, bootstrap_servers=bootstrap)


def test_the_asynchronous_face_does_the_same(bootstrap: str, topic: str) -> None:
    async def read() -> tuple["pyarrow.Table", int]:
        table = await ottla.aio.read_topic(topic, 1, 9, bootstrap_servers=bootstrap)
        count = 0
        async for batch in ottla.aio.iter_topic(topic, bootstrap_servers=bootstrap):
            count += batch.num_rows
        return table, count

    table, count = asyncio.run(read())
    assert offsets(table) == {place: list(range(1, 9)) for place in range(PARTITIONS)}
    assert count == PARTITIONS * EACH


def test_a_table_goes_to_pandas(bootstrap: str, topic: str) -> None:
    pytest.importorskip("pandas")
    frame = ottla.read_topic(topic, bootstrap_servers=bootstrap).to_pandas()
    assert len(frame) == PARTITIONS * EACH
    assert frame["topic"].unique().tolist() == [topic]
