"""What one broker remembers of a consumer's fetches, so that only changes are asked (KIP-227).

Decides what the next request says; does not send it. A broker that keeps no sessions, or has no
place for one, is asked in full every time.

Invariants:
1. While there is a session, `_places` is what the broker remembers in it.
2. Whatever goes wrong, the next request is in full and begins another session in its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ottla.errors import ErrorCode
from ottla.model.ids import TopicId, TopicPartition

SESSION_ERRORS: Final = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)
"""After which a request in full helps, at once."""
_NO_SESSION: Final = 0
_FIRST: Final = 0
_EPOCH_MAX: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class FetchPlace:
    """From where a partition is read, as a request says it."""

    topic_id: TopicId
    offset: int
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class Question:
    """What a request says: its session, the partitions that are new or changed, and the gone."""

    session_id: int
    epoch: int
    places: Mapping[TopicPartition, FetchPlace]
    forgotten: Mapping[TopicPartition, FetchPlace]

    @property
    def is_full(self) -> bool:
        """Whether it says everything, and needs nothing to be remembered."""
        return self.epoch == _FIRST


class FetchSession:
    """The session with one broker: ask for the next question, tell what became of it."""

    __slots__ = ("_epoch", "_id", "_places")

    def __init__(self) -> None:
        self._id = _NO_SESSION
        self._epoch = _FIRST
        self._places: dict[TopicPartition, FetchPlace] = {}

    def ask(self, wanted: Mapping[TopicPartition, FetchPlace]) -> Question:
        """The question that makes the broker answer for exactly these."""
        known = self._places
        moved = any(
            where in known and known[where].topic_id != place.topic_id
            for where, place in wanted.items()
        )
        if moved:  # a topic was made anew under its name: so is the session
            self.failed()
        self._places = dict(wanted)
        if self._epoch == _FIRST:
            return Question(self._id, _FIRST, wanted, {})
        changed = {where: place for where, place in wanted.items() if known.get(where) != place}
        forgotten = {where: place for where, place in known.items() if where not in wanted}
        return Question(self._id, self._epoch, changed, forgotten)

    def answered(self, session_id: int) -> None:
        """The broker has answered, and remembers; session 0 stands for none."""
        if session_id == _NO_SESSION:
            self._id, self._epoch = _NO_SESSION, _FIRST
        else:
            self._id = session_id
            self._epoch = 1 if self._epoch == _EPOCH_MAX else self._epoch + 1

    def failed(self) -> None:
        """Nobody knows what the broker remembers: the next question replaces it."""
        self._epoch = _FIRST
