"""Commits ever higher positions on a raw socket and remembers which were acknowledged."""

import threading
from collections import deque
from dataclasses import dataclass, field

from support.groups.requests import (
    LOADING,
    NO_MEMBER,
    NONE,
    OFFSET_COMMIT,
    ConnectionEnded,
    Membership,
    await_coordinator,
    commit_body,
    committed_offsets,
    read_committed,
)
from support.requests import Place
from support.wire import Connection

IN_FLIGHT_MAX = 3


@dataclass(slots=True)
class Committer:
    """One group's commits, several in flight; one thread at a time runs it."""

    group: str
    places: list[Place]
    membership: Membership = NO_MEMBER
    acknowledged: int = -1
    sent: int = -1
    refused: list[int] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self, bootstrap: str) -> None:
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, args=(bootstrap,), name=self.group)
        self._thread.start()

    def join(self) -> None:
        assert self._thread is not None
        self._thread.join(30)
        assert not self._thread.is_alive(), f"{self.group} hangs"

    def finish(self) -> None:
        """Commit no more, wait for what is in flight, and end."""
        self._stop.set()
        self.join()

    def _run(self, bootstrap: str) -> None:
        in_flight: deque[int] = deque()
        try:
            with Connection(bootstrap) as connection:
                await_coordinator(connection, self.group)
                while not self._stop.is_set():
                    while len(in_flight) < IN_FLIGHT_MAX:
                        in_flight.append(self._send(connection))
                    self._receive(connection, in_flight.popleft())
                while in_flight:
                    self._receive(connection, in_flight.popleft())
        except (OSError, ConnectionEnded):
            pass  # the broker is gone; what was not acknowledged may or may not be there

    def _send(self, connection: Connection) -> int:
        self.sent += 1
        positions = dict.fromkeys(self.places, self.sent)
        connection.send(OFFSET_COMMIT, 7, commit_body(self.group, self.membership, positions))
        return self.sent

    def _receive(self, connection: Connection, position: int) -> None:
        _, reader = connection.receive()
        errors = read_committed(reader)
        if errors == {NONE}:
            self.acknowledged = position
        elif not errors <= LOADING:
            self.refused += errors

    def check(self, connection: Connection) -> None:
        """Nothing acknowledged is lost, nothing unsent is there, no request is half there."""
        assert self.refused == [], f"{self.group} was refused commits: {self.refused}"
        found = committed_offsets(connection, self.group, self.places)
        assert set(found) == set(self.places)
        assert len(set(found.values())) == 1, f"half a commit of {self.group}: {found}"
        position = found[self.places[0]]
        assert self.acknowledged <= position <= self.sent, (
            f"{self.group}: {self.acknowledged} was acknowledged, {position} is stored"
        )
        self.acknowledged = position  # what was seen once must not go back either
