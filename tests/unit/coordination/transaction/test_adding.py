"""Adding partitions and offsets to a transaction, and verifying that they were added."""

import pytest
from msgspec.structs import replace

from ottla.coordination.decision import Ticket
from ottla.coordination.transaction.adding import Addition
from ottla.coordination.transaction.state import State
from ottla.errors import ErrorCode
from ottla.model.ids import ProducerEpoch, ProducerId, TopicPartition
from unit.coordination.transaction.coordinator import (
    A0,
    A1,
    B0,
    FIRST,
    SECOND,
    Coordinator,
    pair,
)

OLD_ADD = 3
"""A version of AddPartitionsToTxn of the first protocol."""


@pytest.mark.parametrize("version", [OLD_ADD, SECOND])
def test_the_first_partition_begins_the_transaction(version):
    coordinator = Coordinator()
    producer = coordinator.started()
    coordinator.now_ms += 5
    assert coordinator.add(producer, [A0], version) is ErrorCode.NONE
    transaction = coordinator.transaction()
    assert transaction.state is State.ONGOING
    assert transaction.partitions == {A0}
    assert transaction.started_ms == coordinator.now_ms


def test_further_partitions_do_not_make_it_younger():
    coordinator = Coordinator()
    producer = coordinator.started()
    coordinator.add(producer, [A0])
    began_ms = coordinator.now_ms
    coordinator.now_ms += 1_000
    coordinator.add(producer, [A1, B0])
    assert coordinator.transaction().partitions == {A0, A1, B0}
    assert coordinator.transaction().started_ms == began_ms


def test_adding_what_is_there_writes_nothing():
    coordinator = Coordinator()
    producer = coordinator.started()
    coordinator.add(producer, [A0, A1])
    records = len(coordinator.log)
    assert coordinator.add(producer, [A1]) is ErrorCode.NONE
    assert len(coordinator.log) == records


def test_several_processes_share_one_producer_and_each_adds_its_own_partitions():
    coordinator = Coordinator()
    producer = coordinator.started()
    workers = [TopicPartition("sink", number) for number in range(20)]
    for partition in workers:
        assert coordinator.add(producer, [partition]) is ErrorCode.NONE
    coordinator.end(producer, commit=True)
    (markers,) = coordinator.markers
    assert markers.partitions == tuple(workers)
    # A worker that comes late is not let into the next transaction either.
    assert coordinator.add(producer, [B0]) is ErrorCode.PRODUCER_FENCED


def test_an_unknown_transactional_id_has_no_producer():
    coordinator = Coordinator()
    assert coordinator.add(pair(100, 0), [A0]) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert coordinator.verify(pair(100, 0), [A0]) == {A0: ErrorCode.INVALID_PRODUCER_ID_MAPPING}


def test_another_producer_id_is_not_the_ids():
    coordinator = Coordinator()
    coordinator.started()
    assert coordinator.add(pair(99, 0), [A0]) is ErrorCode.INVALID_PRODUCER_ID_MAPPING


@pytest.mark.parametrize("epoch", [0, 2])
def test_another_epoch_is_fenced(epoch):
    coordinator = Coordinator()
    coordinator.started()
    coordinator.started()
    assert coordinator.add(pair(100, epoch), [A0]) is ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize(
    ("version", "code"), [(1, ErrorCode.INVALID_PRODUCER_EPOCH), (2, ErrorCode.PRODUCER_FENCED)]
)
def test_fencing_has_the_name_the_version_knows(version, code):
    coordinator = Coordinator()
    first = coordinator.started()
    coordinator.started()
    assert coordinator.add(first, [A0], version) is code
    assert coordinator.add_offsets(first, B0, version) is code


def test_the_next_transaction_waits_for_the_markers_of_the_one_before():
    coordinator = Coordinator()
    producer = coordinator.started()
    coordinator.add(producer, [A0], OLD_ADD)
    coordinator.end(producer, commit=True, version=FIRST)
    assert coordinator.add(producer, [A0], OLD_ADD) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert coordinator.verify(producer, [A0]) == {A0: ErrorCode.CONCURRENT_TRANSACTIONS}
    coordinator.write_markers()
    assert coordinator.add(producer, [A0], OLD_ADD) is ErrorCode.NONE


def test_the_holder_of_a_new_producer_id_waits_for_the_markers_of_the_old_one():
    coordinator = Coordinator()
    coordinator.started()
    last = pair(100, 32766)
    coordinator.stored(replace(coordinator.transaction(), producer=last))
    coordinator.add(last, [A0])
    fresh = coordinator.given(coordinator.end(last, commit=True))
    assert fresh.epoch == 0
    assert coordinator.add(fresh, [A0]) is ErrorCode.CONCURRENT_TRANSACTIONS
    coordinator.write_markers()
    assert coordinator.add(fresh, [A0]) is ErrorCode.NONE


def test_offsets_are_added_as_their_partition():
    coordinator = Coordinator()
    producer = coordinator.started()
    offsets = TopicPartition("__consumer_offsets", 17)
    assert coordinator.add_offsets(producer, offsets) is ErrorCode.NONE
    coordinator.end(producer, commit=True, version=FIRST)
    assert coordinator.markers[0].partitions == (offsets,)


def test_an_empty_transactional_id_is_refused():
    coordinator = Coordinator()
    addition = Addition("", ProducerId(1), ProducerEpoch(0), (A0,), SECOND)
    for decision in (
        coordinator.shard.add_partitions(addition, Ticket(1), 0),
        coordinator.shard.verify_partitions(addition, Ticket(2)),
    ):
        (reply,) = decision.replies
        result = reply.response.topic_results[0].results_by_partition[0]
        assert result.partition_error_code == ErrorCode.INVALID_REQUEST


class TestVerifying:
    def test_each_partition_has_its_own_answer_and_nothing_is_written(self):
        coordinator = Coordinator()
        producer = coordinator.started()
        coordinator.add(producer, [A0], OLD_ADD)
        records = len(coordinator.log)
        assert coordinator.verify(producer, [A0, B0]) == {
            A0: ErrorCode.NONE,
            B0: ErrorCode.TRANSACTION_ABORTABLE,
        }
        assert len(coordinator.log) == records

    def test_a_partition_of_the_transaction_before_is_not_in_this_one(self):
        coordinator = Coordinator()
        producer = coordinator.started()
        coordinator.add(producer, [A0], OLD_ADD)
        coordinator.finish(producer, commit=True, version=FIRST)
        assert coordinator.verify(producer, [A0]) == {A0: ErrorCode.TRANSACTION_ABORTABLE}

    def test_a_fenced_producer_is_told_so(self):
        coordinator = Coordinator()
        first = coordinator.started()
        coordinator.started()
        assert coordinator.verify(first, [A0]) == {A0: ErrorCode.PRODUCER_FENCED}
