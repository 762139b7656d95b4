"""What the processes of a fault battery write down in their journals (support.journal)."""

import msgspec


class Sent(msgspec.Struct, frozen=True, array_like=True):
    """A record that was acknowledged, or failed for good."""

    partition: int
    number: int
    sent_ns: int
    ended_ns: int
    offset: int
    """-1 where the client does not know it: a batch that had arrived in an earlier attempt."""


class Writing(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of some records of a producer."""

    acknowledged: list[Sent] = []
    failed: list[Sent] = []
    sent: dict[int, int] = {}
    """In the last line only: how many numbers were used in each partition."""
    trouble: str = ""


class Reading(msgspec.Struct, frozen=True, omit_defaults=True):
    """Records a reader saw: by partition, offsets and values."""

    at_ns: int
    records: dict[int, list[tuple[int, str]]] = {}
    committed: dict[int, int] = {}
    """Positions whose commit was acknowledged."""
    uncertain: dict[int, int] = {}
    """Positions whose commit failed, and may have happened or happen yet."""
    trouble: str = ""


class ProducerOptions(msgspec.Struct, frozen=True):
    """How a producer process is to behave; given to it as JSON."""

    name: str
    library: str
    bootstrap: str
    topic: str
    partitions: int
    journal: str
    records_per_second: int = 300
    acks: str = "all"
    is_idempotent: bool = True


class ReaderOptions(msgspec.Struct, frozen=True):
    """What a reader process is to read; given to it as JSON."""

    bootstrap: str
    topic: str
    partitions: int
    journal: str
    group: str


class Note(msgspec.Struct, frozen=True):
    """What a writer knows of a transfer: it has begun, is committed or is aborted."""

    word: str
    transfer: str
    at_ns: int


class TransferOptions(msgspec.Struct, frozen=True):
    """How a writer of transfers is to behave; given to it as JSON."""

    library: str
    bootstrap: str
    transactional_id: str
    life: int
    topic: str
    journal: str


def value_of(producer: str, number: int) -> str:
    """Every value says who wrote it and its number among those of its partition."""
    return f"{producer} {number}"


def parse_value(value: str) -> tuple[str, int]:
    producer, number = value.split(" ")
    return producer, int(number)
