"""A group member on kafka-python."""

from collections.abc import Callable, Iterable

from kafka import ConsumerRebalanceListener, KafkaConsumer, OffsetAndMetadata, TopicPartition
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.errors import KafkaConnectionError, KafkaError

from support.groups.membership import MemberOptions, Membership
from support.journal import now_ns

ASSIGNORS = {"range": RangePartitionAssignor, "cooperative-sticky": CooperativeStickyAssignor}
POLL_MS = 100


class KafkaPythonMember(ConsumerRebalanceListener):
    """Polls, writes down, commits; callbacks run inside poll and close."""

    def __init__(self, options: MemberOptions, membership: Membership) -> None:
        self._topic = options.topic
        self._membership = membership
        self._consumer = KafkaConsumer(
            bootstrap_servers=options.bootstrap,
            client_id=options.name,
            group_id=options.group,
            group_instance_id=options.instance_id,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=options.session_timeout_ms,
            heartbeat_interval_ms=options.heartbeat_interval_ms,
            max_poll_interval_ms=20_000,
            fetch_max_wait_ms=100,
            reconnect_backoff_ms=20,
            reconnect_backoff_max_ms=200,
            partition_assignment_strategy=[ASSIGNORS[options.strategy]],
        )

    def run(self, is_over: Callable[[], bool]) -> None:
        self._consumer.subscribe([self._topic], listener=self)
        while not is_over():
            self._read()
            self._membership.write_records()
            self._commit()
        self._consumer.close()

    def _read(self) -> None:
        try:
            polled = self._consumer.poll(timeout_ms=POLL_MS)
        except KafkaConnectionError:
            return  # The coordinator is away; this library leaves it to its user to ask again.
        for records in polled.values():
            for record in records:
                self._membership.read(record.partition, record.offset)

    def _commit(self) -> None:
        positions = dict(self._membership.uncommitted)
        if not positions:
            return
        generation, since_ns = self._generation(), now_ns()
        wanted = {
            TopicPartition(self._topic, partition): OffsetAndMetadata(position, "", -1)
            for partition, position in positions.items()
        }
        try:
            self._consumer.commit(wanted)
        except KafkaError as error:
            self._membership.refused(positions, generation, repr(error))
        else:
            self._membership.committed(positions, generation, since_ns)

    def _generation(self) -> int:
        return int(self._consumer._coordinator.group_metadata().generation_id)

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        self._membership.assigned([one.partition for one in assigned], self._generation())

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        self._membership.write_records()
        self._commit()
        numbers = [one.partition for one in revoked]
        self._membership.given_up(numbers, self._generation(), is_lost=False)

    def on_partitions_lost(self, lost: Iterable[TopicPartition]) -> None:
        numbers = [one.partition for one in lost]
        self._membership.given_up(numbers, self._generation(), is_lost=True)
