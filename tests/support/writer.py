"""A producer on a raw socket that remembers exactly what was acknowledged to it.

Every value says who wrote it and its number, so that a log can be checked record by record.
A plain writer never sends anything twice; an idempotent one, started again after a crash, sends its
unanswered batches once more under their old sequences, as a real client does.
"""

import threading
from collections import deque
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random

from support.batches import Sequenced, Stored, batch, read_records
from support.requests import (
    PRODUCE,
    FetchPlace,
    Place,
    fetch_one,
    init_producer_id,
    produce_body,
    read_produced,
)
from support.wire import Connection

IN_FLIGHT_MAX = 5  # what a broker remembers of an idempotent producer
RECORDS_PER_BATCH_MAX = 12
VALUE_BYTES_MAX = 600
STOPPING_ERRORS = {-1, 6, 7, 56}  # what a broker on its way down may answer


@dataclass(slots=True)
class Outgoing:
    """A batch on its way: its values and its first sequence."""

    values: list[bytes]
    sequence: int


@dataclass(slots=True)
class Writer:
    """Writes to one partition until told to stop or cut off; one thread at a time runs it."""

    name: str
    place: Place
    random: Random
    idempotent: bool
    acknowledged: dict[int, bytes] = field(default_factory=dict)
    refused: list[int] = field(default_factory=list)
    next_number: int = 0
    _producer: tuple[int, int] | None = None
    _unanswered: deque[Outgoing] = field(default_factory=deque)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self, bootstrap: str) -> None:
        """Connect and write in a thread."""
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, args=(bootstrap,), name=self.name)
        self._thread.start()

    def join(self) -> None:
        """Wait until the thread has ended (the connection broke, or `finish` was called)."""
        assert self._thread is not None
        self._thread.join(30)
        assert not self._thread.is_alive(), f"{self.name} hangs"

    def finish(self) -> None:
        """Send no more, wait for what is in flight, and end."""
        self._stop.set()
        self.join()

    def _run(self, bootstrap: str) -> None:
        try:
            with Connection(bootstrap) as connection:
                self._resume(connection)
                while not self._stop.is_set():
                    while len(self._unanswered) < IN_FLIGHT_MAX:
                        self._send(connection, self._next_batch())
                    self._await_answer(connection)
                while self._unanswered:
                    self._await_answer(connection)
        except OSError:
            pass  # the broker is gone; what was not acknowledged is not counted

    def _resume(self, connection: Connection) -> None:
        if not self.idempotent:
            self._unanswered.clear()
            return
        if self._producer is None:
            self._producer = init_producer_id(connection)
        for outgoing in list(self._unanswered):
            self._transmit(connection, outgoing)

    def _next_batch(self) -> Outgoing:
        sequence, values = self.next_number, []
        for _ in range(self.random.randint(1, RECORDS_PER_BATCH_MAX)):
            padding = b"." * self.random.randint(0, VALUE_BYTES_MAX)
            values.append(f"{self.name} {self.next_number} ".encode() + padding)
            self.next_number += 1
        return Outgoing(values, sequence)

    def _send(self, connection: Connection, outgoing: Outgoing) -> None:
        self._unanswered.append(outgoing)
        self._transmit(connection, outgoing)

    def _transmit(self, connection: Connection, outgoing: Outgoing) -> None:
        producer = Sequenced(*self._producer, outgoing.sequence) if self._producer else None
        data = batch(list(outgoing.values), producer=producer)
        connection.send(PRODUCE, 8, produce_body({self.place: data}, version=8))

    def _await_answer(self, connection: Connection) -> None:
        _, reader = connection.receive()
        answer = read_produced(reader, 8)[self.place]
        if answer.error_code in STOPPING_ERRORS:
            raise ConnectionAbortedError(f"answered {answer.error_code}")
        outgoing = self._unanswered.popleft()
        if answer.error_code:
            self.refused.append(answer.error_code)
            return
        for delta, value in enumerate(outgoing.values):
            self.acknowledged[answer.base_offset + delta] = value

    def numbers_in(self, log: list[Stored]) -> list[int]:
        """The numbers of this writer's records, in the order of the log."""
        mine = f"{self.name} ".encode()
        return [
            int(record.value.split(b" ", 2)[1])
            for record in log
            if record.value is not None and record.value.startswith(mine)
        ]

    def check(self, log: list[Stored]) -> None:
        """Everything acknowledged stands where it was acknowledged, in order and once."""
        assert self.refused == []
        for offset, value in self.acknowledged.items():
            assert offset < len(log), f"{self.name}: acknowledged offset {offset} is gone"
            assert log[offset].value == value, f"{self.name}: offset {offset} holds another record"
        numbers = self.numbers_in(log)
        assert all(left < right for left, right in pairwise(numbers)), (
            f"{self.name}: out of order or twice"
        )
        if self.idempotent and not self._unanswered:
            assert numbers == list(range(self.next_number)), f"{self.name}: not exactly once"


def whole_log(bootstrap: str, place: Place, *, start: int = 0) -> list[Stored]:
    """Every record of a partition from an offset on, offsets checked to have no hole."""
    log: list[Stored] = []
    with Connection(bootstrap) as connection:
        while True:
            offset = start + len(log)
            fetched = fetch_one(connection, FetchPlace(*place, offset=offset, bytes_max=4 << 20))
            assert fetched.error_code == 0, fetched.error_code
            if not fetched.records:
                assert fetched.high_watermark == offset
                return log
            fresh = [one for one in read_records(fetched.records) if one.offset >= offset]
            assert [one.offset for one in fresh] == list(range(offset, offset + len(fresh)))
            log.extend(fresh)
