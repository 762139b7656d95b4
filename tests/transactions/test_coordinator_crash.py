"""The broker ends without warning at each state of a transaction, and takes it up again.

A crash between two steps is made without luck: the step after it is taken out of the broker, and
the files as they are then are given to another broker, as kill -9 would leave them.
"""

import shutil
from asyncio import Future
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from ottla.broker.marker_delivery import MarkerDelivery
from ottla.broker.transaction_coordinator import Ending
from ottla.broker.transaction_markers import MarkerWriter
from ottla.coordination.transaction.decision import WriteMarkers
from ottla.errors import ErrorCode, RequestFailed
from ottla.model.ids import TopicPartition
from ottla.protocol.messages.end_txn import EndTxnResponse
from ottla.protocol.messages.produce import ProduceResponse
from ottla.testing import Broker
from support.broker_process import BrokerProcess
from support.eventually import eventually
from support.requests import Place, a_topic
from support.wire import Connection
from transactions.committed_reads import CommittedReader
from transactions.conftest import FEW_SHARDS, Stage
from transactions.raw_producer import FIRST, SECOND, Dialect, RawProducer

GROUP = "tellers"
KILLS = 4
COMMITS_BETWEEN_KILLS_MAX = 20
NEVER_FLUSHED = str(2**63 - 1)
"""What log.flush.interval.messages is by default."""

Patch = pytest.MonkeyPatch
both_versions = pytest.mark.parametrize("dialect", [FIRST, SECOND], ids=lambda one: one.name)


def before_any_marker(patch: Patch) -> None:
    patch.setattr(MarkerDelivery, "begin", lambda *_: None)


def after_the_first_marker(patch: Patch) -> None:
    begin = MarkerWriter.begin

    def begin_first(
        self: MarkerWriter, name: TopicPartition, markers: WriteMarkers
    ) -> Future[None] | None:
        if (name.topic, name.partition) != ("ledger", 0):
            raise RequestFailed(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return begin(self, name, markers)

    patch.setattr(MarkerWriter, "begin", begin_first)


def before_the_completion(patch: Patch) -> None:
    patch.setattr(Ending, "written", lambda *_: None)


@contextmanager
def after_a_crash(broker: Broker, data: Path) -> Iterator[Broker]:
    """Another broker, on the files of this one as they are at this moment."""
    shutil.copytree(broker.data, data)
    with Broker(data=data, settings=FEW_SHARDS) as successor:
        yield successor


def prepared(producer: RawProducer, places: list[Place], *, committed: bool) -> None:
    """Fill a transaction and have its end decided."""
    for place in places:
        producer.write(place, b"of the transaction")
    producer.send_offsets(GROUP, {places[0]: 5})
    request = producer.end_request(committed=committed)
    answer = producer.connection.exchange(request, producer.dialect.end, EndTxnResponse)
    assert answer.error_code == ErrorCode.NONE


@both_versions
@pytest.mark.parametrize("committed", [True, False], ids=["commit", "abort"])
@pytest.mark.parametrize(
    "crash",
    [before_any_marker, after_the_first_marker, before_the_completion],
    ids=lambda one: one.__name__,
)
def test_what_was_decided_is_finished_by_the_next_broker(
    stage: Stage, tmp_path: Path, dialect: Dialect, committed: bool, crash: Callable[[Patch], None]
) -> None:
    producer = stage.producer(dialect)
    with pytest.MonkeyPatch.context() as patch:
        crash(patch)
        prepared(producer, stage.places, committed=committed)
        if crash is not before_any_marker:
            reader = CommittedReader(stage.broker.bootstrap_servers)
            reader.wait_stable(stage.places[0])
            reader.close()
        assert producer.state() == ("PrepareCommit" if committed else "PrepareAbort")
        shutil.copytree(stage.broker.data, tmp_path / "data")
    with Broker(data=tmp_path / "data", settings=FEW_SHARDS) as successor:
        check_finished(successor, producer, stage.places, committed=committed)


def check_finished(
    broker: Broker, producer: RawProducer, places: list[Place], *, committed: bool
) -> None:
    reader = CommittedReader(broker.bootstrap_servers)
    reader.wait_stable(*places)
    again = replace(producer, bootstrap=broker.bootstrap_servers)
    eventually(lambda: again.state().startswith("Complete"), "the completion")
    assert again.state() == ("CompleteCommit" if committed else "CompleteAbort")
    expected = [b"of the transaction"] if committed else []
    assert [reader.read(place).values for place in places] == [expected, expected]
    assert reader.group_offset(GROUP, places[0]) == (5 if committed else -1)
    if producer.dialect is SECOND:  # its client did not get the answer, and asks again
        again.commit() if committed else again.abort()
        assert again.epoch == producer.epoch + 1
        again.write(places[0], b"next")
        again.commit()
        reader.wait_stable(*places)
        assert reader.read(places[0]).values == [*expected, b"next"]
    again.close()
    reader.close()


@both_versions
def test_an_open_transaction_goes_on_after_a_crash(
    stage: Stage, tmp_path: Path, dialect: Dialect
) -> None:
    producer = stage.producer(dialect)
    producer.write(stage.places[0], b"before")
    request = producer.produce_request(stage.places[0], [(None, b"perhaps")])
    offset = producer.write(stage.places[0], b"perhaps")
    with after_a_crash(stage.broker, tmp_path / "data") as successor:
        reader = CommittedReader(successor.bootstrap_servers)
        again = replace(producer, bootstrap=successor.bootstrap_servers)
        assert reader.ends(stage.places[0]) == (0, 2)
        answer = again.connection.exchange(request, dialect.produce, ProduceResponse)
        repeated = answer.responses[0].partition_responses[0]
        assert (repeated.error_code, repeated.base_offset) == (0, offset), "known from before"
        again.write(stage.places[0], b"after")
        again.write(stage.places[1], b"after")
        again.commit()
        reader.wait_stable(*stage.places)
        assert reader.read(stage.places[0]).values == [b"before", b"perhaps", b"after"]
        assert reader.read(stage.places[1]).values == [b"after"]
        again.close()
        reader.close()


def test_an_open_transaction_still_times_out_after_a_crash(stage: Stage, tmp_path: Path) -> None:
    stage.producer(SECOND).write(stage.places[0], b"left alone")
    with after_a_crash(stage.broker, tmp_path / "data") as successor:
        reader = CommittedReader(successor.bootstrap_servers)
        successor.clock.advance(seconds=71)
        reader.wait_stable(*stage.places)
        assert reader.read(stage.places[0]).values == []
        reader.close()


def test_a_producer_before_its_first_transaction_survives_a_crash(
    stage: Stage, tmp_path: Path
) -> None:
    producer = stage.producer(SECOND)
    with after_a_crash(stage.broker, tmp_path / "data") as successor:
        again = replace(producer, bootstrap=successor.bootstrap_servers)
        assert again.state() == "Empty"
        again.write(stage.places[0], b"first")
        again.commit()
        reader = CommittedReader(successor.bootstrap_servers)
        reader.wait_stable(*stage.places)
        assert reader.read(stage.places[0]).values == [b"first"]
        again.close()
        reader.close()


@both_versions
def test_offsets_decided_before_a_crash_are_not_lost_while_the_group_loads(
    stage: Stage, tmp_path: Path, dialect: Dialect
) -> None:
    """The group's log takes several turns to read; the marker is written meanwhile."""
    filler = stage.producer(FIRST, name="filler")
    with Connection(stage.broker.bootstrap_servers) as connection:
        topic = a_topic(connection, "filler" * 40, partitions=20)
    for number in range(250):
        filler.send_offsets(GROUP, {(topic, partition): number for partition in range(20)})
    filler.commit()
    producer = stage.producer(dialect)
    with pytest.MonkeyPatch.context() as patch:
        before_any_marker(patch)
        prepared(producer, stage.places, committed=True)
        shutil.copytree(stage.broker.data, tmp_path / "data")
    with Broker(data=tmp_path / "data", settings=FEW_SHARDS) as successor:
        reader = CommittedReader(successor.bootstrap_servers)
        reader.wait_stable(*stage.places)
        eventually(
            lambda: reader.group_offset(GROUP, stage.places[0]) == 5,
            "the group's offset of before",
        )
        reader.close()


def test_what_was_synced_before_a_crash_is_committed_from_the_first_moment_after_it(
    tmp_path: Path,
) -> None:
    """The notes of how far a log is synced are older than the acknowledgements."""
    settings = {**FEW_SHARDS, "log.flush.interval.messages": "1"}
    with Broker(settings=settings) as broker:
        with Connection(broker.bootstrap_servers) as connection:
            place = (a_topic(connection, "ledger"), 0)
        producer = RawProducer(broker.bootstrap_servers, "teller")
        producer.init()
        producer.write(place, b"synced")
        producer.commit()
        reader = CommittedReader(broker.bootstrap_servers)
        eventually(lambda: reader.ends(place) == (2, 2), "the marker's commit")
        producer.close()
        reader.close()
        shutil.copytree(broker.data, tmp_path / "data")
    with Broker(data=tmp_path / "data", settings=settings) as successor:
        reader = CommittedReader(successor.bootstrap_servers)
        assert reader.ends(place) == (2, 2)
        assert reader.read(place).values == [b"synced"]
        reader.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dialect", "flush_messages"),
    [(FIRST, NEVER_FLUSHED), (SECOND, NEVER_FLUSHED), (SECOND, "1")],
    ids=["first", "second", "second, synced"],
)
def test_kill_9_at_any_moment_loses_and_doubles_nothing(
    own_broker: Callable[..., BrokerProcess], dialect: Dialect, flush_messages: str
) -> None:
    settings = {**FEW_SHARDS, "log.flush.interval.messages": flush_messages}
    random, broker = Random(66), own_broker(settings=settings)
    with Connection(broker.bootstrap_servers) as connection:
        topic = a_topic(connection, "ledger", partitions=3)
    places = [(topic, partition) for partition in range(3)]
    producer = RawProducer(broker.bootstrap_servers, "teller", dialect)
    producer.init()
    reader = CommittedReader(broker.bootstrap_servers)
    committed = 0
    for _ in range(KILLS):
        for _ in range(random.randint(1, COMMITS_BETWEEN_KILLS_MAX)):
            transact(producer, places, committed)
            committed += 1
        write_all(producer, places, committed)
        producer.connection.post(producer.end_request(committed=True), dialect.end)
        broker.restart()  # wherever it is with what it was just asked
        producer.close()
        producer.commit()
        committed += 1
        reader.wait_stable(*places)
        expected = [b"%d" % number for number in range(committed)]
        assert [reader.read(place).values for place in places] == [expected] * len(places)
        assert reader.group_offset(GROUP, places[0]) == committed - 1
    producer.close()
    reader.close()


def transact(producer: RawProducer, places: list[Place], number: int) -> None:
    write_all(producer, places, number)
    producer.commit()


def write_all(producer: RawProducer, places: list[Place], number: int) -> None:
    for place in places:
        producer.write(place, b"%d" % number)
    producer.send_offsets(GROUP, {places[0]: number})
