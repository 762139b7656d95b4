"""A group member on confluent-kafka, of the classic or the consumer protocol."""

import struct
from collections.abc import Callable

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from support.groups.membership import MemberOptions, Membership
from support.journal import now_ns

BATCH_RECORDS_MAX = 50
POLL_SECONDS = 0.1
METADATA_START = b"CGMDv2:"


class ConfluentMember:
    """Polls, writes down, commits; callbacks run inside poll and close."""

    def __init__(self, options: MemberOptions, membership: Membership) -> None:
        self._topic = options.topic
        self._membership = membership
        self._consumer = Consumer(settings_of(options))

    def run(self, is_over: Callable[[], bool]) -> None:
        self._consumer.subscribe(
            [self._topic], on_assign=self._assign, on_revoke=self._revoke, on_lost=self._lose
        )
        while not is_over():
            self._read_some()
            self._commit()
        self._consumer.close()

    def _read_some(self) -> None:
        message, count = self._consumer.poll(POLL_SECONDS), 0
        while message is not None:
            error = message.error()
            if error is None:
                self._membership.read(message.partition(), message.offset())
            elif error.code() == KafkaError._FATAL:
                raise KafkaException(error)
            count += 1
            message = self._consumer.poll(0) if count < BATCH_RECORDS_MAX else None
        self._membership.write_records()

    def _commit(self) -> None:
        positions = dict(self._membership.uncommitted)
        if not positions:
            return
        generation, since_ns = self.generation(), now_ns()
        wanted = [TopicPartition(self._topic, *position) for position in positions.items()]
        try:
            answered = self._consumer.commit(offsets=wanted, asynchronous=False)
        except KafkaException as error:
            self._membership.refused(positions, generation, str(error))
            return
        problems = [str(one.error) for one in answered if one.error is not None]
        if problems:
            self._membership.refused(positions, generation, problems[0])
        else:
            self._membership.committed(positions, generation, since_ns)

    def generation(self) -> int:
        """The generation or member epoch, from the opaque metadata meant for transactions."""
        metadata = self._consumer.consumer_group_metadata()
        if not metadata.startswith(METADATA_START):
            return -1
        (generation,) = struct.unpack_from("<i", metadata, len(METADATA_START))
        return int(generation)

    def _assign(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self._membership.assigned([one.partition for one in partitions], self.generation())

    def _revoke(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self._membership.write_records()
        self._commit()
        self._give_up(partitions, is_lost=False)

    def _lose(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self._give_up(partitions, is_lost=True)

    def _give_up(self, partitions: list[TopicPartition], *, is_lost: bool) -> None:
        numbers = [one.partition for one in partitions]
        self._membership.given_up(numbers, self.generation(), is_lost=is_lost)


def settings_of(options: MemberOptions) -> dict[str, object]:
    """librdkafka's settings; those of the other protocol may not be named."""
    settings: dict[str, object] = {
        "bootstrap.servers": options.bootstrap,
        "group.id": options.group,
        "client.id": options.name,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "fetch.wait.max.ms": 100,
        "reconnect.backoff.ms": 20,
        "reconnect.backoff.max.ms": 200,
        "topic.metadata.refresh.interval.ms": 2000,
        "log_level": 0,
    }
    if options.instance_id is not None:
        settings["group.instance.id"] = options.instance_id
    if options.protocol == "consumer":
        return settings | {"group.protocol": "consumer"}
    return settings | {
        "session.timeout.ms": options.session_timeout_ms,
        "heartbeat.interval.ms": options.heartbeat_interval_ms,
        "partition.assignment.strategy": options.strategy,
    }
