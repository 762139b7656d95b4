"""Who sends it: connections that ask nonsense, lie, hurry, dawdle, or leave in the middle."""

from __future__ import annotations

import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from random import Random
from time import monotonic

from fuzzing.batches import bomb, lying_batch, produce_body
from fuzzing.bodies import Version, all_versions, damaged, random_body, request
from ottla.protocol.api import APIS, ApiKey

HELD_MAX = 40
"""Connections that one attacker leaves open."""
ANSWER_SECONDS_MAX = 0.2
MEGABYTE = 1 << 20
TOPICS = ("fuzz-plain", "fuzz-compact", "fuzz-gzip")


class Attacker(threading.Thread):
    """One thread of attacks, chosen by its own chance."""

    def __init__(self, address: tuple[str, int], seed: str, end: float) -> None:
        super().__init__(name=f"attacker {seed}")
        self._address = address
        self._random = Random(seed)
        self._end = end
        self._held: list[socket.socket] = []
        self._versions: list[Version] = all_versions()
        self._bomb = bomb()
        self.sent: Counter[str] = Counter()

    def run(self) -> None:
        kinds: dict[Callable[[], None], int] = {
            self._random_requests: 30,
            self._damaged_requests: 30,
            self._noise: 5,
            self._lying_batches: 20,
            self._bombs: 1,
            self._long_lists: 1,
            self._queue_and_leave: 3,
            self._half_open: 5,
            self._announce: 3,
            self._drip: 10,
        }
        while monotonic() < self._end:
            (kind,) = self._random.choices(list(kinds), list(kinds.values()))
            with suppress(OSError):
                kind()
            self.sent[kind.__name__.strip("_").replace("_", " ")] += 1
        for connection in self._held:
            connection.close()

    # --- whole requests ---

    def _random_requests(self) -> None:
        api, version = self._random.choice(self._versions)
        self._ask(request(api, version, random_body(api, version, self._random)))

    def _damaged_requests(self) -> None:
        api, version = self._random.choice(self._versions)
        body = damaged(random_body(api, version, self._random), self._random)
        self._ask(request(api, version, body))

    def _noise(self) -> None:
        self._ask(self._random.randbytes(self._random.randint(1, 400)))

    def _lying_batches(self) -> None:
        self._produce(lying_batch(self._random))

    def _bombs(self) -> None:
        self._produce(self._bomb)

    def _produce(self, records: bytes) -> None:
        body = produce_body(self._random.choice(TOPICS), records)
        self._ask(request(APIS[ApiKey.PRODUCE], 8, body))

    def _long_lists(self) -> None:
        count = 99_000
        if self._random.random() < 0.5:
            names = b"".join(b"\0\6%06d" % number for number in range(count))
            body = struct.pack(">i", count) + names + b"\0\0\0"
            self._ask(request(APIS[ApiKey.METADATA], 8, body))
        else:
            wanted = struct.pack(">iq", 7, -1) * count
            body = struct.pack(">iih", -1, 1, 1) + b"x" + struct.pack(">i", count) + wanted
            self._ask(request(APIS[ApiKey.LIST_OFFSETS], 1, body))

    def _ask(self, data: bytes) -> None:
        with self._connect() as connection:
            connection.sendall(data)
            connection.settimeout(ANSWER_SECONDS_MAX)
            connection.recv(1 << 16)

    # --- rude connections ---

    def _queue_and_leave(self) -> None:
        one = request(APIS[ApiKey.METADATA], 8, struct.pack(">i", -1) + b"\0\0\0")
        with self._connect() as connection:
            connection.sendall(one * self._random.randint(100, 3_000))

    def _half_open(self) -> None:
        api, version = self._random.choice(self._versions)
        whole = request(api, version, random_body(api, version, self._random))
        self._hold(whole[: self._random.randrange(1, len(whole))])

    def _announce(self) -> None:
        size = self._random.randint(1, 100 * MEGABYTE)
        come = self._random.randint(0, min(size - 1, 2 * MEGABYTE))
        self._hold(struct.pack(">i", size) + bytes(come))

    def _drip(self) -> None:
        for connection in tuple(self._held):
            try:
                connection.send(b"\0")
            except OSError:
                self._held.remove(connection)
                connection.close()

    def _hold(self, data: bytes) -> None:
        connection = self._connect()
        self._held.append(connection)
        connection.setblocking(False)
        with suppress(BlockingIOError):
            connection.send(data)
        if len(self._held) > HELD_MAX:
            gone = self._held.pop(self._random.randrange(HELD_MAX))
            if self._random.random() < 0.5:
                gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            gone.close()

    def _connect(self) -> socket.socket:
        return socket.create_connection(self._address, timeout=10)
