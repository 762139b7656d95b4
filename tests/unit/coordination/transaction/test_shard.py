"""What a shard does beside the rules of requests: loading, failed writes, expiry, listings."""

import pytest

from ottla.coordination.decision import Ticket
from ottla.coordination.transaction import shard as shard_module
from ottla.coordination.transaction.decision import NOTHING
from ottla.coordination.transaction.records import record_of
from ottla.coordination.transaction.state import State
from ottla.coordination.transaction.transaction import Producer, Transaction
from ottla.errors import ErrorCode
from ottla.protocol.codec import decode, encode
from ottla.protocol.messages.describe_transactions import DescribeTransactionsResponse
from ottla.protocol.messages.end_txn import EndTxnRequest
from ottla.protocol.messages.list_transactions import ListTransactionsRequest
from ottla.settings.coordination import TransactionSettings
from unit.coordination.transaction.coordinator import A0, B0, FIRST, ID, Coordinator, caller, pair

DAY_MS = 24 * 3_600_000


def opened() -> tuple[Coordinator, Producer]:
    coordinator = Coordinator()
    producer = coordinator.started()
    coordinator.add(producer, [A0, B0])
    return coordinator, producer


class TestLoading:
    @pytest.mark.parametrize("commit", [True, False])
    def test_a_decided_transaction_is_finished_by_the_next_coordinator(self, commit):
        coordinator, producer = opened()
        coordinator.end(producer, commit=commit)
        old = coordinator.markers[0]
        coordinator.report(old, [A0])
        coordinator.restart()
        (markers,) = coordinator.markers
        assert markers.partitions == (A0, B0)
        assert markers.is_commit is commit
        assert markers.coordinator_epoch == old.coordinator_epoch + 1
        coordinator.write_markers()
        assert coordinator.state.is_complete
        assert coordinator.state.is_commit is commit

    def test_a_report_to_the_coordinator_before_does_not_count(self):
        coordinator, producer = opened()
        coordinator.end(producer, commit=True)
        old = coordinator.markers[0]
        coordinator.restart()
        coordinator.report(old, old.partitions)
        assert coordinator.state is State.PREPARE_COMMIT

    def test_an_open_transaction_goes_on(self):
        coordinator, producer = opened()
        assert coordinator.restart() == NOTHING
        assert coordinator.given(coordinator.end(producer, commit=True)) == pair(100, 1)

    def test_a_decided_transaction_without_partitions_is_completed_at_once(self):
        coordinator = Coordinator()
        coordinator.stored(Transaction(ID, pair(5, 1), 1_000, 1_000, State.PREPARE_ABORT))
        coordinator.restart()
        assert coordinator.state is State.COMPLETE_ABORT

    def test_a_record_of_an_unknown_kind_is_passed_over(self):
        coordinator, _ = opened()
        coordinator.shard.replay(b"\x00\x09anything", b"\x00\x00")
        assert coordinator.state is State.ONGOING


class TestOldRecords:
    """While some broker cannot read the newer version of the records."""

    def test_nothing_newer_is_written(self):
        coordinator = Coordinator(version_max=0)
        producer = coordinator.given(coordinator.init())
        producer = coordinator.given(coordinator.init(producer))
        coordinator.add(producer, [A0, B0])
        coordinator.end(producer, commit=True, version=4)
        coordinator.write_markers()
        assert coordinator.state is State.COMPLETE_COMMIT
        assert {record.value[:2] for record in coordinator.log} == {b"\x00\x00"}

    def test_the_second_protocol_is_refused(self):
        coordinator = Coordinator(version_max=0)
        producer = coordinator.given(coordinator.init())
        coordinator.add(producer, [A0])
        refused = coordinator.end(producer, commit=True, version=5)
        assert refused.error_code == ErrorCode.UNSUPPORTED_VERSION
        kept = coordinator.init(version=6, keep_prepared_txn=True)
        assert kept.error_code == ErrorCode.UNSUPPORTED_VERSION
        assert coordinator.state is State.ONGOING


class TestFailedAppend:
    @pytest.mark.parametrize(
        ("cause", "code"),
        [
            (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
            (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
            (ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
            (ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_COORDINATOR),
        ],
    )
    def test_every_kind_of_request_is_answered_with_the_error(self, cause, code):
        coordinator = Coordinator()
        coordinator.fails_with = cause
        response = coordinator.init()
        assert (response.error_code, response.producer_id) == (code, -1)
        producer = coordinator.started()
        coordinator.fails_with = cause
        assert coordinator.add(producer, [A0, B0]) is code
        coordinator.fails_with = cause
        assert coordinator.add_offsets(producer, B0) is code
        coordinator.add(producer, [A0])
        coordinator.fails_with = cause
        response = coordinator.end(producer, commit=True)
        assert (response.error_code, response.producer_id) == (code, -1)

    def test_an_outcome_that_was_not_written_is_not_decided(self):
        coordinator, producer = opened()
        coordinator.fails_with = ErrorCode.NOT_ENOUGH_REPLICAS
        coordinator.end(producer, commit=True)
        assert coordinator.state is State.ONGOING
        assert not coordinator.markers
        assert coordinator.given(coordinator.end(producer, commit=False)) == pair(100, 1)

    def test_a_time_out_that_was_not_written_is_tried_again(self):
        coordinator, _ = opened()
        coordinator.fails_with = ErrorCode.NOT_ENOUGH_REPLICAS
        coordinator.time_out()
        assert coordinator.state is State.ONGOING
        coordinator.time_out()
        assert coordinator.markers[0].producer_epoch == 1

    def test_a_completion_that_was_not_written_is_tried_again(self):
        coordinator, producer = opened()
        coordinator.end(producer, commit=True)
        coordinator.fails_with = ErrorCode.NOT_ENOUGH_REPLICAS
        coordinator.write_markers()
        assert coordinator.state is State.PREPARE_COMMIT
        (timer,) = coordinator.timers
        coordinator.do(coordinator.shard.timer_fired(timer.key, coordinator.now_ms))
        assert coordinator.state is State.COMPLETE_COMMIT
        assert coordinator.shard.timer_fired(timer.key, coordinator.now_ms) == NOTHING

    def test_markers_taken_up_after_a_load_stand_although_a_completion_fails(self):
        coordinator, producer = opened()
        coordinator.end(producer, commit=True)
        other = Transaction("other", pair(5, 1), 1_000, 1_000, State.PREPARE_ABORT)
        coordinator.log.append(record_of(other))
        coordinator.fails_with = ErrorCode.NOT_ENOUGH_REPLICAS
        coordinator.restart()
        coordinator.write_markers()
        assert coordinator.state is State.COMPLETE_COMMIT
        for timer in coordinator.timers:
            coordinator.do(coordinator.shard.timer_fired(timer.key, coordinator.now_ms))
        assert coordinator.transaction("other").state is State.COMPLETE_ABORT


class TestExpiry:
    SETTINGS = TransactionSettings(transactional_id_expiration_ms=DAY_MS)

    def expire(self, coordinator: Coordinator, after_ms: int) -> None:
        coordinator.now_ms += after_ms
        coordinator.do(coordinator.shard.expire_transactional_ids(coordinator.now_ms))

    def test_an_id_nobody_uses_is_forgotten(self):
        coordinator = Coordinator(self.SETTINGS)
        coordinator.started()
        self.expire(coordinator, DAY_MS - 1)
        assert coordinator.state is State.EMPTY
        self.expire(coordinator, 1)
        assert coordinator.log[-1].value is None
        description = coordinator.shard.describe(ID)
        assert description.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        assert coordinator.started() == pair(101, 0)

    def test_an_open_or_unfinished_transaction_is_not_forgotten(self):
        coordinator, producer = opened()
        coordinator.shard._settings = self.SETTINGS
        self.expire(coordinator, 10 * DAY_MS)
        assert coordinator.state is State.ONGOING
        coordinator.end(producer, commit=True)
        self.expire(coordinator, 10 * DAY_MS)
        assert coordinator.state is State.PREPARE_COMMIT

    def test_a_forgotten_id_stays_forgotten_after_a_restart(self):
        coordinator = Coordinator(self.SETTINGS)
        coordinator.started()
        self.expire(coordinator, DAY_MS)
        coordinator.restart()
        assert coordinator.shard.needs_producer_id(ID)

    def test_one_call_does_a_bounded_part(self, monkeypatch):
        monkeypatch.setattr(shard_module, "ENDED_PER_CALL_MAX", 3)
        coordinator = Coordinator(self.SETTINGS)
        for number in range(5):
            idle = Transaction(f"idle-{number}", pair(number, 0), 60_000, coordinator.now_ms)
            coordinator.stored(idle)
            open_one = Transaction(
                f"open-{number}",
                pair(number, 0),
                60_000,
                coordinator.now_ms,
                State.ONGOING,
                partitions=frozenset({A0}),
                started_ms=coordinator.now_ms,
            )
            coordinator.stored(open_one)
        coordinator.now_ms += DAY_MS
        counts = [
            (
                len(coordinator.do(coordinator.shard.expire_transactional_ids(now)).records),
                len(coordinator.do(coordinator.shard.abort_timed_out(now)).markers),
            )
            for now in [coordinator.now_ms] * 3
        ]
        assert counts == [(3, 3), (2, 2), (0, 0)]


class TestDescribing:
    def test_an_open_transaction_is_described_in_full(self):
        coordinator, _ = opened()
        described = coordinator.shard.describe(ID)
        assert described.error_code == ErrorCode.NONE
        assert described.transaction_state == "Ongoing"
        assert described.transaction_start_time_ms == coordinator.now_ms
        assert (described.producer_id, described.producer_epoch) == (100, 0)
        assert [(each.topic, each.partitions) for each in described.topics] == [
            ("a", [0]),
            ("b", [0]),
        ]
        response = DescribeTransactionsResponse(transaction_states=[described])
        assert decode(DescribeTransactionsResponse, encode(response, 0), 0) == response

    def test_an_unknown_id_is_not_found_and_an_empty_one_invalid(self):
        shard = Coordinator().shard
        assert shard.describe("x").error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        assert shard.describe("").error_code == ErrorCode.INVALID_REQUEST


class TestListing:
    def listed(self, **filters: object) -> list[str]:
        coordinator = Coordinator()
        began_ms = coordinator.now_ms
        coordinator.stored(Transaction("idle", pair(1, 0), 60_000, began_ms))
        for name, producer_id, age_ms in (("young", 2, 10), ("old", 3, 5_000)):
            coordinator.stored(
                Transaction(
                    name,
                    pair(producer_id, 0),
                    60_000,
                    began_ms,
                    State.ONGOING,
                    partitions=frozenset({A0}),
                    started_ms=began_ms - age_ms,
                )
            )
        request = ListTransactionsRequest(**filters)
        response = coordinator.shard.list_transactions(request, began_ms)
        self.response = response
        return [each.transactional_id for each in response.transaction_states]

    def test_without_filters_all_are_listed(self):
        assert self.listed() == ["idle", "young", "old"]

    def test_filters_narrow_it_down(self):
        assert self.listed(state_filters=["Ongoing"]) == ["young", "old"]
        assert self.listed(producer_id_filters=[1, 3]) == ["idle", "old"]
        assert self.listed(duration_filter=1_000) == ["old"]
        assert self.listed(transactional_id_pattern="(old|idle)") == ["idle", "old"]
        assert self.listed(transactional_id_pattern="ol") == []
        assert self.listed(state_filters=["Ongoing"], producer_id_filters=[1]) == []

    def test_unknown_states_are_named_and_match_nothing(self):
        assert self.listed(state_filters=["Sleeping"]) == []
        assert self.response.unknown_state_filters == ["Sleeping"]

    @pytest.mark.parametrize("pattern", ["(", "a" * 1_001])
    def test_a_pattern_that_cannot_be_used_is_refused(self, pattern):
        assert self.listed(transactional_id_pattern=pattern) == []
        assert self.response.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION


def test_a_reply_names_the_ticket_of_its_request():
    coordinator, producer = opened()
    request = EndTxnRequest(ID, producer.producer_id, producer.epoch, True)
    decision = coordinator.shard.end_txn(
        request, caller(FIRST), Ticket(4711), coordinator.now_ms, None
    )
    assert [reply.ticket for reply in decision.replies] == [Ticket(4711)]
