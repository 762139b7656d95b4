"""What clients did and were told: the evidence on which a world is judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ottla.model.ids import TopicPartition


@dataclass(eq=False, slots=True)
class Sent:
    """One record on its way. `acked_before` is the largest offset acknowledged until then."""

    producer: str
    number: int
    place: TopicPartition
    kind: str
    acked_before: int
    transaction: Transaction | None = None
    offset: int | None = None
    """Where it is, once a broker has said so."""

    @property
    def value(self) -> bytes:
        return f"{self.producer}/{self.number}".encode()


@dataclass(eq=False, slots=True)
class Transaction:
    """What became of a transaction, as far as its producer knows."""

    state: str = "open"
    records: list[Sent] = field(default_factory=list)


class History:
    """Everything that was sent, acknowledged, read and committed."""

    def __init__(self) -> None:
        self.is_over = False
        self.sent: dict[bytes, Sent] = {}
        self.transactions: list[Transaction] = []
        self.committed: dict[TopicPartition, int] = {}
        """The largest offsets of the group that a broker has confirmed."""
        self.violations: list[str] = []
        self._values: dict[tuple[TopicPartition, int], bytes] = {}
        self._acked: dict[TopicPartition, int] = {}
        self._numbers: dict[str, int] = {}
        self.acknowledged = 0
        self.reads = 0

    def violated(self, rule: str, story: str) -> None:
        """Something happened that must not."""
        self.violations.append(f"{rule}: {story}")

    def send(
        self,
        producer: str,
        place: TopicPartition,
        kind: str,
        transaction: Transaction | None = None,
    ) -> Sent:
        number = self._numbers[producer] = self._numbers.get(producer, -1) + 1
        sent = Sent(producer, number, place, kind, self._acked.get(place, -1), transaction)
        self.sent[sent.value] = sent
        if transaction is not None:
            transaction.records.append(sent)
        return sent

    def acknowledge(self, sent: Sent, offset: int) -> None:
        """A broker said that the record is written."""
        sent.offset = offset
        self.acknowledged += 1
        if sent.kind == "leader-only" or offset < 0:
            return
        if offset <= sent.acked_before:
            self.violated(
                "I4",
                f"{sent.value!r} got offset {offset} of {sent.place}, but {sent.acked_before}"
                " was acknowledged before it was sent",
            )
        self._acked[sent.place] = max(self._acked.get(sent.place, -1), offset)
        if sent.transaction is None:
            self._is_at(sent.place, offset, sent.value, "acknowledged")

    def read(self, place: TopicPartition, offset: int, value: bytes) -> None:
        """A consumer was shown a record."""
        self.reads += 1
        if value not in self.sent:
            self.violated("I5", f"{value!r} at {place} {offset} was never sent")
        self._is_at(place, offset, value, "read")

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """A broker confirmed the group's offsets."""
        for place, offset in offsets.items():
            self.committed[place] = max(self.committed.get(place, 0), offset)

    def _is_at(self, place: TopicPartition, offset: int, value: bytes, how: str) -> None:
        known = self._values.setdefault((place, offset), value)
        if known != value:
            self.violated("I2", f"{place} {offset} was {known!r}, and {value!r} was {how} later")
