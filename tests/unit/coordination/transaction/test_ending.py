"""EndTxn in both versions of the protocol, and time-outs."""

import pytest

from ottla.coordination.transaction.state import State
from ottla.coordination.transaction.transaction import Producer, Transaction
from ottla.errors import ErrorCode
from unit.coordination.transaction.coordinator import (
    A0,
    A1,
    B0,
    FIRST,
    ID,
    SECOND,
    TIMEOUT_MS,
    Coordinator,
    pair,
)

COMPLETE = {True: State.COMPLETE_COMMIT, False: State.COMPLETE_ABORT}
PREPARE = {True: State.PREPARE_COMMIT, False: State.PREPARE_ABORT}
NONE, FENCED = ErrorCode.NONE, ErrorCode.PRODUCER_FENCED
INVALID, WAIT = ErrorCode.INVALID_TXN_STATE, ErrorCode.CONCURRENT_TRANSACTIONS


def opened(version: int = SECOND) -> tuple[Coordinator, Producer]:
    """A coordinator with a transaction of (100, 0) on two partitions."""
    coordinator = Coordinator()
    producer = coordinator.started()
    coordinator.add(producer, [A0, B0], version if version >= SECOND else 3)
    return coordinator, producer


@pytest.mark.parametrize("version", [FIRST, SECOND])
@pytest.mark.parametrize("commit", [True, False])
def test_the_decision_is_recorded_and_its_markers_follow(version, commit):
    coordinator, producer = opened(version)
    assert coordinator.end(producer, commit=commit, version=version).error_code == NONE
    assert coordinator.state is PREPARE[commit]
    (markers,) = coordinator.markers
    assert markers.is_commit is commit
    assert markers.partitions == (A0, B0)
    assert markers.coordinator_epoch == 7
    coordinator.write_markers()
    assert coordinator.state is COMPLETE[commit]
    assert coordinator.transaction().partitions == frozenset()


def test_the_transaction_is_complete_when_the_last_partition_has_its_marker():
    coordinator, producer = opened()
    coordinator.end(producer, commit=True)
    (markers,) = coordinator.markers
    coordinator.report(markers, [A0])
    coordinator.report(markers, [A0])
    coordinator.report(markers, [A1])
    assert coordinator.state is State.PREPARE_COMMIT
    coordinator.report(markers, [B0])
    assert coordinator.state is State.COMPLETE_COMMIT
    records = len(coordinator.log)
    coordinator.report(markers, [A0, B0])
    assert len(coordinator.log) == records


def test_a_late_report_about_one_transaction_does_not_count_for_the_next():
    coordinator, producer = opened(FIRST)
    coordinator.end(producer, commit=True, version=FIRST)
    (old,) = coordinator.markers
    coordinator.write_markers()
    coordinator.add(producer, [A0, B0], 3)
    coordinator.end(producer, commit=True, version=FIRST)
    (new,) = coordinator.markers
    assert (new.producer_id, new.producer_epoch) == (old.producer_id, old.producer_epoch)
    coordinator.report(old, old.partitions)
    assert coordinator.state is State.PREPARE_COMMIT


class TestFirstVersion:
    def test_the_epoch_stays(self):
        coordinator, producer = opened(FIRST)
        coordinator.finish(producer, commit=True, version=FIRST)
        assert coordinator.transaction().producer == producer
        assert coordinator.markers == []

    @pytest.mark.parametrize("commit", [True, False])
    def test_the_same_outcome_again_is_a_retry_and_the_other_is_invalid(self, commit):
        coordinator, producer = opened(FIRST)
        coordinator.end(producer, commit=commit, version=FIRST)
        assert coordinator.end(producer, commit=commit, version=FIRST).error_code == WAIT
        assert coordinator.end(producer, commit=not commit, version=FIRST).error_code == INVALID
        coordinator.write_markers()
        assert coordinator.end(producer, commit=commit, version=FIRST).error_code == NONE
        assert coordinator.end(producer, commit=not commit, version=FIRST).error_code == INVALID
        assert not coordinator.markers

    @pytest.mark.parametrize("commit", [True, False])
    def test_there_is_nothing_to_end_before_anything_was_added(self, commit):
        coordinator = Coordinator()
        producer = coordinator.started()
        assert coordinator.end(producer, commit=commit, version=FIRST).error_code == INVALID

    @pytest.mark.parametrize(
        ("version", "code"), [(1, ErrorCode.INVALID_PRODUCER_EPOCH), (2, FENCED)]
    )
    def test_fencing_has_the_name_the_version_knows(self, version, code):
        coordinator, producer = opened(FIRST)
        coordinator.time_out()
        assert coordinator.end(producer, commit=True, version=version).error_code == code

    def test_a_timed_out_producer_is_fenced(self):
        coordinator, producer = opened(FIRST)
        coordinator.time_out()
        assert coordinator.end(producer, commit=False, version=FIRST).error_code == FENCED
        coordinator.write_markers()
        assert coordinator.end(producer, commit=False, version=FIRST).error_code == FENCED
        assert coordinator.init(producer).error_code == FENCED


class TestSecondVersion:
    @pytest.mark.parametrize("commit", [True, False])
    def test_every_ending_bumps_the_epoch_and_says_so(self, commit):
        coordinator, producer = opened()
        assert coordinator.given(coordinator.end(producer, commit=commit)) == pair(100, 1)
        (markers,) = coordinator.markers
        assert (markers.producer_id, markers.producer_epoch) == (100, 1)
        assert markers.transaction_version == 2

    # retry: the epoch before; current: the epoch that was given out last
    @pytest.mark.parametrize(
        ("state", "commit", "on_retry", "on_current"),
        [
            (State.EMPTY, False, FENCED, NONE),
            (State.EMPTY, True, FENCED, INVALID),
            (State.ONGOING, False, FENCED, NONE),
            (State.ONGOING, True, FENCED, NONE),
            (State.PREPARE_ABORT, False, WAIT, WAIT),
            (State.PREPARE_ABORT, True, INVALID, WAIT),
            (State.PREPARE_COMMIT, False, INVALID, WAIT),
            (State.PREPARE_COMMIT, True, WAIT, WAIT),
            (State.COMPLETE_ABORT, False, NONE, NONE),
            (State.COMPLETE_ABORT, True, INVALID, INVALID),
            (State.COMPLETE_COMMIT, False, INVALID, NONE),
            (State.COMPLETE_COMMIT, True, NONE, INVALID),
        ],
    )
    def test_the_table_of_answers(self, state, commit, on_retry, on_current):
        for asking, code in ((pair(100, 1), on_retry), (pair(100, 2), on_current)):
            coordinator = self.in_state(state)
            assert coordinator.end(asking, commit=commit).error_code == code
            assert coordinator.end(pair(100, 0), commit=commit).error_code == FENCED
            assert coordinator.end(pair(100, 7), commit=commit).error_code == FENCED

    def in_state(self, state: State) -> Coordinator:
        """A coordinator whose holder is (100, 2) in that state, reached by its own requests."""
        coordinator = Coordinator()
        coordinator.started()
        if state is State.EMPTY:
            coordinator.init(pair(100, 0))
            coordinator.init(pair(100, 1))
            return coordinator
        producer = coordinator.given(coordinator.init())
        coordinator.add(producer, [A0])
        if state is State.ONGOING:
            coordinator.add(coordinator.finish(producer, commit=True), [A0])
            return coordinator
        coordinator.end(producer, commit=state.is_commit)
        if state.is_complete:
            coordinator.write_markers()
        assert coordinator.state is state
        assert coordinator.transaction().holder == pair(100, 2)
        return coordinator

    @pytest.mark.parametrize("commit", [True, False])
    def test_a_delayed_request_of_one_transaction_does_not_end_the_next(self, commit):
        coordinator, producer = opened()
        following = coordinator.finish(producer, commit=commit)
        coordinator.add(following, [A1])
        assert coordinator.end(producer, commit=commit).error_code == FENCED
        assert coordinator.state is State.ONGOING

    def test_a_retry_is_answered_with_the_bumped_epoch_after_a_restart_too(self):
        coordinator, producer = opened()
        coordinator.end(producer, commit=True)
        coordinator.restart()
        assert coordinator.end(producer, commit=True).error_code == WAIT
        coordinator.write_markers()
        coordinator.restart()
        assert coordinator.given(coordinator.end(producer, commit=True)) == pair(100, 1)

    def test_an_abort_before_anything_was_added_bumps_the_epoch_at_once(self):
        coordinator = Coordinator()
        producer = coordinator.started()
        assert coordinator.given(coordinator.end(producer, commit=False)) == pair(100, 1)
        assert coordinator.state is State.COMPLETE_ABORT
        assert not coordinator.markers

    def test_the_last_epoch_is_followed_by_a_new_producer_id(self):
        coordinator = Coordinator()
        coordinator.stored(Transaction(ID, pair(50, 32766), TIMEOUT_MS, 1_000))
        last = pair(50, 32766)
        coordinator.add(last, [A0])
        assert coordinator.given(coordinator.end(last, commit=True)) == pair(100, 0)
        (markers,) = coordinator.markers
        assert (markers.producer_id, markers.producer_epoch) == (50, 32767)
        coordinator.restart()
        assert coordinator.end(last, commit=True).error_code == WAIT
        coordinator.write_markers()
        assert coordinator.transaction().producer == pair(100, 0)
        assert coordinator.given(coordinator.end(last, commit=True)) == pair(100, 0)
        assert coordinator.end(last, commit=False).error_code == INVALID
        coordinator.add(pair(100, 0), [A0])
        response = coordinator.end(last, commit=True)
        assert response.error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert coordinator.state is State.ONGOING

    def test_without_a_spare_producer_id_the_client_tries_again(self):
        coordinator = Coordinator()
        coordinator.stored(Transaction(ID, pair(50, 32766), TIMEOUT_MS, 1_000))
        coordinator.add(pair(50, 32766), [A0])
        coordinator._producer_ids = iter([None])
        response = coordinator.end(pair(50, 32766), commit=True)
        assert response.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert coordinator.state is State.ONGOING

    @pytest.mark.parametrize("asking", [pair(99, 0), pair(-1, -1)], ids=["another", "none"])
    def test_a_strange_producer_id_is_not_the_ids(self, asking):
        coordinator, _ = opened()
        response = coordinator.end(asking, commit=True)
        assert response.error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert (response.producer_id, response.producer_epoch) == (-1, -1)

    def test_a_client_may_change_between_the_versions(self):
        coordinator, producer = opened(FIRST)
        producer = coordinator.finish(producer, commit=True, version=SECOND)
        coordinator.add(producer, [A0], 3)
        coordinator.finish(producer, commit=True, version=FIRST)
        assert coordinator.transaction().producer == producer == pair(100, 1)


@pytest.mark.parametrize("version", [FIRST, SECOND])
def test_an_unknown_transactional_id_cannot_be_ended(version):
    response = Coordinator().end(pair(1, 0), commit=True, version=version)
    assert response.error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING


class TestTimeOut:
    def test_nothing_happens_before_the_time_is_up(self):
        coordinator, _ = opened()
        coordinator.now_ms += TIMEOUT_MS
        coordinator.do(coordinator.shard.abort_timed_out(coordinator.now_ms))
        assert coordinator.state is State.ONGOING

    def test_a_late_transaction_is_aborted_with_a_bumped_epoch(self):
        coordinator, _ = opened()
        coordinator.time_out()
        assert coordinator.state is State.PREPARE_ABORT
        (markers,) = coordinator.markers
        assert (markers.producer_epoch, markers.is_commit) == (1, False)

    def test_its_holder_cannot_commit_it_and_learns_of_the_abort_by_aborting(self):
        coordinator, producer = opened()
        coordinator.time_out()
        assert coordinator.end(producer, commit=True).error_code == INVALID
        assert coordinator.end(producer, commit=False).error_code == WAIT
        coordinator.write_markers()
        assert coordinator.end(producer, commit=True).error_code == INVALID
        following = coordinator.given(coordinator.end(producer, commit=False))
        assert following == pair(100, 1)
        assert coordinator.add(following, [A0]) is NONE

    @pytest.mark.parametrize("hours", [1, -1])
    def test_a_coordinator_with_another_clock_gives_it_its_time_and_no_more(self, hours):
        coordinator, producer = opened()
        coordinator.now_ms += hours * 3_600_000
        coordinator.restart()
        coordinator.now_ms += TIMEOUT_MS
        assert coordinator.add(producer, [A0]) is NONE
        coordinator.do(coordinator.shard.abort_timed_out(coordinator.now_ms))
        assert coordinator.state is State.ONGOING
        coordinator.now_ms += 1
        coordinator.do(coordinator.shard.abort_timed_out(coordinator.now_ms))
        assert coordinator.state is State.PREPARE_ABORT

    def test_the_next_transaction_has_its_own_time_after_a_coordinator_took_one_over(self):
        coordinator, producer = opened()
        coordinator.restart()
        producer = coordinator.finish(producer, commit=True)
        coordinator.now_ms += TIMEOUT_MS
        coordinator.add(producer, [A0])
        coordinator.now_ms += TIMEOUT_MS
        coordinator.do(coordinator.shard.abort_timed_out(coordinator.now_ms))
        assert coordinator.state is State.ONGOING
        coordinator.time_out()
        assert coordinator.state is State.PREPARE_ABORT

    def test_a_decided_transaction_does_not_time_out(self):
        coordinator, producer = opened()
        coordinator.end(producer, commit=True)
        coordinator.time_out()
        assert coordinator.state is State.PREPARE_COMMIT

    def test_an_idle_id_does_not_time_out(self):
        coordinator = Coordinator()
        coordinator.started()
        coordinator.time_out()
        assert coordinator.state is State.EMPTY

    def test_a_transaction_that_got_late_during_a_restart_is_aborted(self):
        coordinator, _ = opened()
        coordinator.restart()
        coordinator.time_out()
        assert coordinator.state is State.PREPARE_ABORT
