"""A producer that goes on in the background while a storm passes over a group."""

import random
import threading

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

RECORDS_PER_TURN = 10
TURN_SECONDS = 0.05
FLUSH_SECONDS_MAX = 60.0


class Feed:
    """Writes about two hundred records a second over all partitions, and knows where they went."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self._topic = topic
        self._partitions = partitions
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 5,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
            }
        )
        self._reader = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": "not-a-member", "log_level": 0}
        )
        self._acknowledged_count = 0
        self._failures: list[KafkaError] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"feed of {topic}")
        self._thread.start()

    def _run(self) -> None:
        chance, number = random.Random(7), 0
        while not self._over.wait(TURN_SECONDS):
            for _ in range(RECORDS_PER_TURN):
                number += 1
                partition = chance.randrange(self._partitions)
                self._producer.produce(
                    self._topic, b"%d" % number, partition=partition, on_delivery=self._delivered
                )
            self._producer.poll(0)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failures.append(error)
        else:
            self._acknowledged_count += 1

    def stop(self) -> dict[int, set[int]]:
        """Stop, and return the offsets of all that was acknowledged, by partition."""
        self.close()
        left = self._producer.flush(FLUSH_SECONDS_MAX)
        assert not left, f"{left} records were not acknowledged"
        assert not self._failures, self._failures[0]
        # Asked of the broker: a batch sent twice may be acknowledged without its offset.
        produced = {number: set(range(self._end(number))) for number in range(self._partitions)}
        assert sum(map(len, produced.values())) == self._acknowledged_count
        return produced

    def close(self) -> None:
        """Send no more."""
        self._over.set()
        self._thread.join(FLUSH_SECONDS_MAX)

    def _end(self, partition: int) -> int:
        place = TopicPartition(self._topic, partition)
        _, end = self._reader.get_watermark_offsets(place, timeout=FLUSH_SECONDS_MAX)
        return int(end)
