"""InitProducerId: new ids, take-overs, going on after an error, and its refusals."""

import pytest

from ottla.coordination.transaction.state import State
from ottla.coordination.transaction.transaction import TIMEOUT_NEVER_MS, Transaction
from ottla.errors import ErrorCode
from ottla.model.ids import ProducerId
from ottla.settings.coordination import TransactionSettings
from unit.coordination.transaction.coordinator import A0, ID, SECOND, Coordinator, pair


def test_a_new_id_gets_the_reserved_producer_id_and_epoch_zero():
    coordinator = Coordinator()
    assert coordinator.started() == pair(100, 0)
    assert coordinator.state is State.EMPTY


def test_each_start_bumps_the_epoch():
    coordinator = Coordinator()
    assert [coordinator.started() for _ in range(3)] == [pair(100, each) for each in range(3)]


def test_without_a_reserved_producer_id_the_client_tries_again():
    coordinator = Coordinator()
    coordinator._producer_ids = iter([None])
    assert coordinator.init().error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert not coordinator.log


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_a_time_out_outside_its_bounds_is_refused(timeout_ms):
    response = Coordinator().init(transaction_timeout_ms=timeout_ms)
    assert response.error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert (response.producer_id, response.producer_epoch) == (-1, -1)


@pytest.mark.parametrize("transactional_id", ["", None])
def test_an_empty_transactional_id_is_refused(transactional_id):
    response = Coordinator().init(transactional_id=transactional_id)
    assert response.error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("half", [{"producer_id": 5}, {"producer_epoch": 5}])
def test_a_producer_id_without_its_epoch_is_refused(half):
    assert Coordinator().init(**half).error_code == ErrorCode.INVALID_REQUEST


class TestTakeOver:
    def test_an_open_transaction_is_aborted_before_the_new_producer_gets_its_epoch(self):
        coordinator = Coordinator()
        first = coordinator.started()
        coordinator.add(first, [A0])
        assert coordinator.init().error_code == ErrorCode.CONCURRENT_TRANSACTIONS
        assert coordinator.state is State.PREPARE_ABORT
        (markers,) = coordinator.markers
        assert (markers.producer_id, markers.producer_epoch) == (100, 1)
        assert (markers.is_commit, markers.partitions) == (False, (A0,))
        assert coordinator.init().error_code == ErrorCode.CONCURRENT_TRANSACTIONS
        coordinator.write_markers()
        assert coordinator.started() == pair(100, 2)

    def test_the_one_before_is_fenced_from_the_moment_of_the_abort(self):
        coordinator = Coordinator()
        first = coordinator.started()
        coordinator.add(first, [A0])
        coordinator.init()
        for _ in range(2):
            for commit in (True, False):
                response = coordinator.end(first, commit=commit)
                assert response.error_code == ErrorCode.PRODUCER_FENCED
            assert coordinator.add(first, [A0]) is ErrorCode.PRODUCER_FENCED
            assert coordinator.init(first).error_code == ErrorCode.PRODUCER_FENCED
            coordinator.write_markers()

    def test_a_fenced_producer_cannot_abort_the_transaction_of_the_next(self):
        coordinator = Coordinator()
        first = coordinator.started()
        second = coordinator.started()
        coordinator.add(second, [A0])
        assert coordinator.init(first).error_code == ErrorCode.PRODUCER_FENCED
        assert coordinator.state is State.ONGOING

    @pytest.mark.parametrize(
        ("version", "code"),
        [(3, ErrorCode.INVALID_PRODUCER_EPOCH), (4, ErrorCode.PRODUCER_FENCED)],
    )
    def test_fencing_has_the_name_the_version_knows(self, version, code):
        coordinator = Coordinator()
        first = coordinator.started()
        coordinator.started()
        assert coordinator.init(first, version=version).error_code == code


class TestGoingOn:
    def test_the_holder_gets_the_next_epoch(self):
        coordinator = Coordinator()
        assert coordinator.given(coordinator.init(coordinator.started())) == pair(100, 1)

    def test_a_retry_gets_the_same_answer(self):
        coordinator = Coordinator()
        producer = coordinator.started()
        assert coordinator.given(coordinator.init(producer)) == pair(100, 1)
        assert coordinator.given(coordinator.init(producer)) == pair(100, 1)

    def test_a_retry_gets_the_same_answer_from_the_next_coordinator(self):
        coordinator = Coordinator()
        producer = coordinator.started()
        coordinator.init(producer)
        coordinator.restart()
        assert coordinator.given(coordinator.init(producer)) == pair(100, 1)

    def test_after_a_take_over_a_retry_is_fenced(self):
        coordinator = Coordinator()
        producer = coordinator.started()
        coordinator.init(producer)
        coordinator.init()
        assert coordinator.init(producer).error_code == ErrorCode.PRODUCER_FENCED

    def test_the_holder_of_an_open_transaction_aborts_it_and_goes_on(self):
        coordinator = Coordinator()
        producer = coordinator.started()
        coordinator.add(producer, [A0])
        assert coordinator.init(producer).error_code == ErrorCode.CONCURRENT_TRANSACTIONS
        coordinator.write_markers()
        assert coordinator.given(coordinator.init(producer)) == pair(100, 1)

    def test_a_producer_whose_id_was_forgotten_gets_a_new_one(self):
        assert Coordinator().started(expected=pair(77, 5)) == pair(100, 0)


class TestLastEpoch:
    def at(self, epoch: int, **fields: object) -> Coordinator:
        coordinator = Coordinator()
        coordinator.stored(Transaction(ID, pair(50, epoch), 60_000, 1_000, **fields))
        return coordinator

    def test_no_client_gets_an_epoch_that_could_not_be_fenced(self):
        coordinator = self.at(32765)
        assert coordinator.started() == pair(50, 32766)
        assert coordinator.started() == pair(100, 0)

    def test_the_holder_of_the_last_epoch_gets_a_new_producer_id_and_may_ask_again(self):
        coordinator = self.at(32766)
        for _ in range(2):
            assert coordinator.given(coordinator.init(pair(50, 32766))) == pair(100, 0)
        assert coordinator.started() == pair(100, 1)
        assert coordinator.init(pair(50, 32766)).error_code == ErrorCode.PRODUCER_FENCED

    def test_a_transaction_with_the_last_epoch_can_be_fenced(self):
        coordinator = self.at(32766)
        coordinator.add(pair(50, 32766), [A0])
        assert coordinator.init().error_code == ErrorCode.CONCURRENT_TRANSACTIONS
        assert coordinator.markers[0].producer_epoch == 32767
        coordinator.write_markers()
        assert coordinator.started() == pair(101, 0)

    def test_the_fencing_epoch_is_nobodys(self):
        coordinator = self.at(32767, state=State.COMPLETE_ABORT)
        unowned = pair(50, 32767)
        assert coordinator.add(unowned, [A0]) is ErrorCode.PRODUCER_FENCED
        for version in (SECOND, SECOND - 1):
            response = coordinator.end(unowned, commit=False, version=version)
            assert response.error_code == ErrorCode.PRODUCER_FENCED
        assert coordinator.init(unowned).error_code == ErrorCode.PRODUCER_FENCED

    def test_the_holder_can_go_on_after_a_time_out_used_the_last_epoch(self):
        coordinator = self.at(32766)
        coordinator.add(pair(50, 32766), [A0])
        coordinator.time_out()
        coordinator.write_markers()
        response = coordinator.end(pair(50, 32766), commit=False)
        assert response.error_code == ErrorCode.PRODUCER_FENCED
        for _ in range(2):
            assert coordinator.given(coordinator.init(pair(50, 32766))) == pair(101, 0)


class TestTwoPhaseCommit:
    ALLOWED = TransactionSettings(transaction_two_phase_commit_enable=True)

    def prepared(self) -> Coordinator:
        """A coordinator with an open transaction of (100, 0), whose owner is gone."""
        coordinator = Coordinator(self.ALLOWED)
        coordinator.add(coordinator.started(enable2_pc=True), [A0])
        return coordinator

    def keep(self, coordinator: Coordinator, expected=None):
        return coordinator.init(expected, version=6, enable2_pc=True, keep_prepared_txn=True)

    def test_it_needs_the_brokers_consent(self):
        response = Coordinator().init(enable2_pc=True)
        assert response.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED

    def test_any_time_out_is_accepted_and_means_never(self):
        coordinator = Coordinator(self.ALLOWED)
        coordinator.started(enable2_pc=True, transaction_timeout_ms=2**31 - 1)
        assert coordinator.transaction().timeout_ms == TIMEOUT_NEVER_MS

    def test_it_never_times_out(self):
        coordinator = self.prepared()
        coordinator.now_ms += 10**12
        coordinator.time_out()
        assert coordinator.state is State.ONGOING
        assert not coordinator.markers

    def test_its_new_holder_learns_which_transaction_is_open(self):
        coordinator = self.prepared()
        response = self.keep(coordinator)
        assert coordinator.given(response) == pair(100, 1)
        ongoing = (response.ongoing_txn_producer_id, response.ongoing_txn_producer_epoch)
        assert ongoing == (100, 0)
        assert coordinator.state is State.ONGOING

    def test_without_an_open_transaction_there_is_nothing_to_keep(self):
        coordinator = Coordinator(self.ALLOWED)
        coordinator.started(enable2_pc=True)
        response = self.keep(coordinator)
        assert coordinator.given(response) == pair(100, 1)
        assert response.ongoing_txn_producer_id == response.ongoing_txn_producer_epoch == -1

    def test_keeping_again_bumps_the_holder_only(self):
        coordinator = self.prepared()
        self.keep(coordinator)
        coordinator.restart()
        response = self.keep(coordinator)
        assert coordinator.given(response) == pair(100, 2)
        assert response.ongoing_txn_producer_epoch == 0

    def test_a_kept_transaction_can_only_be_ended(self):
        coordinator = self.prepared()
        holder = coordinator.given(self.keep(coordinator))
        assert coordinator.add(holder, [A0]) is ErrorCode.INVALID_TXN_STATE
        assert coordinator.verify(holder, [A0]) == {A0: ErrorCode.INVALID_TXN_STATE}

    def test_whoever_began_it_is_fenced(self):
        coordinator = self.prepared()
        self.keep(coordinator)
        assert coordinator.add(pair(100, 0), [A0]) is ErrorCode.PRODUCER_FENCED
        response = coordinator.end(pair(100, 0), commit=True)
        assert response.error_code == ErrorCode.PRODUCER_FENCED

    @pytest.mark.parametrize("commit", [True, False])
    def test_its_holder_ends_it_under_the_name_it_began_with(self, commit):
        coordinator = self.prepared()
        self.keep(coordinator)
        holder = coordinator.given(self.keep(coordinator))
        assert coordinator.given(coordinator.end(holder, commit=commit)) == pair(100, 3)
        (markers,) = coordinator.markers
        assert (markers.producer_id, markers.producer_epoch) == (100, 1)
        assert markers.is_commit is commit
        retry = coordinator.end(holder, commit=commit)
        assert retry.error_code == ErrorCode.CONCURRENT_TRANSACTIONS
        coordinator.write_markers()
        assert coordinator.given(coordinator.end(holder, commit=commit)) == pair(100, 3)
        assert coordinator.add(pair(100, 3), [A0]) is ErrorCode.NONE

    def test_keeping_for_the_holder_of_the_last_epoch_takes_a_new_producer_id(self):
        coordinator = Coordinator(self.ALLOWED)
        coordinator.stored(Transaction(ID, pair(50, 32766), TIMEOUT_NEVER_MS, 1_000))
        coordinator.add(pair(50, 32766), [A0])
        holder = coordinator.given(self.keep(coordinator))
        assert holder == pair(100, 0)
        assert coordinator.end(pair(50, 32766), commit=True).error_code == ErrorCode.PRODUCER_FENCED
        assert coordinator.given(coordinator.end(holder, commit=True)) == pair(100, 1)
        assert (coordinator.markers[0].producer_id, coordinator.markers[0].producer_epoch) == (
            50,
            32767,
        )
        coordinator.write_markers()
        assert coordinator.transaction().producer == pair(100, 1)

    def test_three_producer_ids_can_meet_in_one_ending(self):
        coordinator = Coordinator(self.ALLOWED)
        coordinator.stored(
            Transaction(
                ID,
                pair(50, 4),
                TIMEOUT_NEVER_MS,
                1_000,
                State.ONGOING,
                pair(60, 32766),
                partitions=frozenset({A0}),
                started_ms=1_000,
            )
        )
        assert coordinator.given(coordinator.end(pair(60, 32766), commit=True)) == pair(100, 0)
        assert coordinator.transaction().previous_producer_id == ProducerId(60)
        coordinator.restart()
        assert coordinator.markers[0].producer_id == 50
        coordinator.write_markers()
        retry = coordinator.end(pair(60, 32766), commit=True)
        assert coordinator.given(retry) == pair(100, 0)

    def test_a_start_that_does_not_keep_it_aborts_it(self):
        coordinator = self.prepared()
        holder = coordinator.given(self.keep(coordinator))
        response = coordinator.init(version=6, enable2_pc=True)
        assert response.error_code == ErrorCode.CONCURRENT_TRANSACTIONS
        assert coordinator.end(holder, commit=True).error_code == ErrorCode.PRODUCER_FENCED
        coordinator.write_markers()
        assert coordinator.state is State.COMPLETE_ABORT
        assert coordinator.started(version=6, enable2_pc=True) == pair(100, 3)

    def test_a_kept_transaction_never_gets_a_shorter_life(self):
        coordinator = self.prepared()
        coordinator.init(version=6, keep_prepared_txn=True)
        assert coordinator.transaction().timeout_ms == TIMEOUT_NEVER_MS

    def test_without_two_phases_a_kept_transaction_times_out(self):
        coordinator = Coordinator()
        coordinator.add(coordinator.started(), [A0])
        holder = coordinator.given(coordinator.init(version=6, keep_prepared_txn=True))
        coordinator.time_out()
        assert coordinator.state is State.PREPARE_ABORT
        coordinator.write_markers()
        assert coordinator.given(coordinator.end(holder, commit=False)) == pair(100, 2)
