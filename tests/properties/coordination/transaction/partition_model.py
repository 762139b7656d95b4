"""A partition as far as transactions concern it: data, markers and who may still write."""

from __future__ import annotations

from dataclasses import dataclass, field

from ottla.coordination.transaction.decision import WriteMarkers
from ottla.coordination.transaction.transaction import SECOND_VERSION, Producer


@dataclass(frozen=True, slots=True)
class Data:
    """One record of a transaction; `tag` names the transaction its writer meant."""

    producer: Producer
    tag: int
    number: int


@dataclass(frozen=True, slots=True)
class Marker:
    """The end of the producer's transaction in this partition."""

    producer: Producer
    is_commit: bool


@dataclass(slots=True)
class PartitionModel:
    """A log with the checks of a partition's leader."""

    entries: list[Data | Marker] = field(default_factory=list)
    epochs: dict[int, int] = field(default_factory=dict)
    coordinator_epochs: dict[int, int] = field(default_factory=dict)
    numbers: set[int] = field(default_factory=set)

    def guard(self, producer: Producer) -> int:
        """Changes whenever a transaction of the producer ends here."""
        return sum(
            isinstance(entry, Marker) and entry.producer.producer_id == producer.producer_id
            for entry in self.entries
        )

    def append(self, data: Data) -> bool:
        """Write a record; False if its writer is fenced here."""
        producer = data.producer
        if producer.epoch < self.epochs.get(producer.producer_id, -1):
            return False
        self.epochs[producer.producer_id] = producer.epoch
        if data.number not in self.numbers:
            self.numbers.add(data.number)
            self.entries.append(data)
        return True

    def write_marker(self, markers: WriteMarkers) -> None:
        """Write a marker unless it is an old one that comes again."""
        producer_id, epoch = markers.producer_id, markers.producer_epoch
        if markers.coordinator_epoch < self.coordinator_epochs.get(producer_id, -1):
            return
        self.coordinator_epochs[producer_id] = markers.coordinator_epoch
        current = self.epochs.get(producer_id, -1)
        is_second = markers.transaction_version >= SECOND_VERSION
        if epoch < current or (is_second and epoch == current):
            return
        self.epochs[producer_id] = epoch
        self.entries.append(Marker(Producer(producer_id, epoch), markers.is_commit))

    def outcomes(self) -> tuple[list[tuple[Data, bool]], list[Data]]:
        """Each ended record with whether it is committed, and the records that are still open."""
        ended: list[tuple[Data, bool]] = []
        open_data: dict[int, list[Data]] = {}
        for entry in self.entries:
            producer_id = entry.producer.producer_id
            if isinstance(entry, Data):
                open_data.setdefault(producer_id, []).append(entry)
            else:
                ended += [(data, entry.is_commit) for data in open_data.pop(producer_id, [])]
        return ended, [data for each in open_data.values() for data in each]
