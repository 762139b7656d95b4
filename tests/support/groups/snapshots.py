"""What the broker says of a group, again and again while a storm passes."""

import threading

from confluent_kafka import ConsumerGroupState, KafkaException
from confluent_kafka.admin import AdminClient

PAUSE_SECONDS = 0.1
ANSWER_SECONDS_MAX = 30.0


class Snapshots:
    """Describes the group in the background; keeps every picture in which a partition is shared."""

    def __init__(self, bootstrap: str, group: str) -> None:
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        self._group = group
        self._over = threading.Event()
        self.stable_count = 0
        self.shared: list[str] = []
        self._thread = threading.Thread(target=self._run, name=f"snapshots of {group}")
        self._thread.start()

    def _run(self) -> None:
        while not self._over.wait(PAUSE_SECONDS):
            try:
                self._take_one()
            except KafkaException:
                pass  # not there yet, or the broker is away for a moment

    def _take_one(self) -> None:
        asked = self._admin.describe_consumer_groups(
            [self._group], request_timeout=ANSWER_SECONDS_MAX
        )
        described = asked[self._group].result(ANSWER_SECONDS_MAX * 2)
        if described.state != ConsumerGroupState.STABLE:
            return
        owners: dict[tuple[str, int], str] = {}
        for member in described.members:
            for place in member.assignment.topic_partitions if member.assignment else ():
                other = owners.setdefault((place.topic, place.partition), member.member_id)
                if other != member.member_id:
                    self.shared.append(f"{place.partition}: {other} and {member.member_id}")
        self.stable_count += 1

    def stop(self) -> None:
        self._over.set()
        self._thread.join(ANSWER_SECONDS_MAX * 3)
        assert not self._thread.is_alive(), "the snapshots hang"
