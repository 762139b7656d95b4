"""A session with the metadata store, and how long this process may believe that it lives.

The store ends a session it has not heard of for the session's timeout, and with it the ephemeral
nodes: others then take over what this process led. A process that is cut off is told of that only
when it reaches the store again, so that it keeps a deadline of its own.

Invariants:
1. The deadline counts from when a question was asked, not from its answer: the store heard of us
   somewhere in between.
2. It is a tenth of the timeout early. A ZooKeeper follower tells its leader of living sessions
   only every half tick, and clocks differ a little.
3. Past the deadline the session counts as dead until the store has answered again.
Pure: time comes in as numbers.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from enum import Enum, auto
from typing import Final

PREVIOUS_SESSIONS_MAX: Final = 64
_EARLY: Final = 0.9
_NEVER: Final = float("inf")

log = logging.getLogger(__name__)


class SessionEvent(Enum):
    """What happened to the session."""

    DOUBTED = auto()
    """The deadline passed without an answer: others may hold the session for dead. Act so."""
    CONFIRMED = auto()
    """The doubted session lives after all; its ephemeral nodes are still there."""
    EXPIRED = auto()
    """The store ended the session and its ephemeral nodes."""
    RENEWED = auto()
    """There is a new session in place of the expired one: register again."""


SessionListener = Callable[[SessionEvent], None]


class Session:
    """What is known of the session. Its owner tells it what happens; it tells its listeners."""

    def __init__(self, session_id: int = 0, *, never_ends: bool = False) -> None:
        self.id = session_id
        """Zero until there is a session. The owner of this session's ephemeral nodes."""
        self.timeout_ms = 0
        self.deadline_ms = _NEVER if never_ends else -_NEVER
        self.listeners: list[SessionListener] = []
        self._previous_ids: deque[int] = deque(maxlen=PREVIOUS_SESSIONS_MAX)
        self._is_doubted = False
        self._doubted_at_ms = 0
        self._is_expired = not never_ends

    def is_alive(self, now_ms: int) -> bool:
        """Whether the store still keeps this session, for all this process can know."""
        return not self._is_expired and not self._is_doubted and now_ms < self.deadline_ms

    def was_own(self, session_id: int) -> bool:
        """Whether this process had the session before the present one."""
        return session_id in self._previous_ids

    def begin(self, session_id: int, timeout_ms: int, asked_at_ms: int) -> None:
        """The store took us up: with a new session, or with the one we had."""
        self.timeout_ms = timeout_ms
        if session_id == self.id and not self._is_expired:
            self.confirm(asked_at_ms)
            return
        had_one = self.id != 0
        self.expire()
        self.id = session_id
        self._is_expired = self._is_doubted = False
        self.deadline_ms = self._deadline(asked_at_ms)
        if had_one:
            self._tell(SessionEvent.RENEWED)

    def confirm(self, asked_at_ms: int) -> None:
        """The store answered something that was asked then, in this session."""
        if self._is_expired:
            return
        self.deadline_ms = max(self.deadline_ms, self._deadline(asked_at_ms))
        if self._is_doubted and asked_at_ms > self._doubted_at_ms:
            self._is_doubted = False
            self._tell(SessionEvent.CONFIRMED)

    def doubt(self, now_ms: int) -> None:
        """Look at the clock; where the deadline has passed, the session is dead until confirmed."""
        if self._is_expired or self._is_doubted or now_ms < self.deadline_ms:
            return
        self._is_doubted = True
        self._doubted_at_ms = now_ms
        self._tell(SessionEvent.DOUBTED)

    def expire(self) -> None:
        """The store said that the session is over."""
        if self._is_expired:
            return
        self._is_expired = True
        self.deadline_ms = -_NEVER
        self._previous_ids.append(self.id)
        self._tell(SessionEvent.EXPIRED)

    def _deadline(self, asked_at_ms: int) -> float:
        return asked_at_ms + self.timeout_ms * _EARLY

    def _tell(self, event: SessionEvent) -> None:
        """A listener that fails may keep neither the session nor other listeners from going on."""
        for listener in tuple(self.listeners):
            try:
                listener(event)
            except Exception:
                log.exception("a listener failed when its session was %s", event.name.lower())
