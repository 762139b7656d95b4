"""The states of a transactional id and which may follow which. Numbers and names are Kafka's."""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class State(IntEnum):
    """Where a transactional id stands; the number is the one in the log."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def wire_name(self) -> str:
        """The name a listing shows and filters by."""
        return "".join(word.capitalize() for word in self.name.split("_"))

    @property
    def is_prepared(self) -> bool:
        """The outcome is decided, and not yet in every partition."""
        return self in (State.PREPARE_COMMIT, State.PREPARE_ABORT)

    @property
    def is_complete(self) -> bool:
        """The outcome is in every partition."""
        return self in (State.COMPLETE_COMMIT, State.COMPLETE_ABORT)

    @property
    def is_idle(self) -> bool:
        """No transaction is under way."""
        return self is State.EMPTY or self.is_complete

    @property
    def is_commit(self) -> bool:
        return self in (State.PREPARE_COMMIT, State.COMPLETE_COMMIT)


BY_WIRE_NAME: Final = {state.wire_name: state for state in State}

_IDLE: Final = frozenset({State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT})

VALID_PREVIOUS: Final[dict[State, frozenset[State]]] = {
    State.EMPTY: _IDLE,
    State.ONGOING: _IDLE | {State.ONGOING},
    State.PREPARE_COMMIT: frozenset({State.ONGOING}),
    # The idle ones only in the second version of the protocol: an abort before anything was added.
    State.PREPARE_ABORT: _IDLE | {State.ONGOING, State.PREPARE_EPOCH_FENCE},
    State.COMPLETE_COMMIT: frozenset({State.PREPARE_COMMIT}),
    State.COMPLETE_ABORT: frozenset({State.PREPARE_ABORT}),
    State.DEAD: _IDLE,
    State.PREPARE_EPOCH_FENCE: frozenset({State.ONGOING}),
}
"""From which states each state may be entered.

DEAD and PREPARE_EPOCH_FENCE are never written: a dead id is a tombstone, and a fence is written
together with the abort it leads to.
"""
