"""A consumer group as it will be when the decision in the making is replayed.

Each change is written to the outcome and made on a copy, so that the next step of the decision
sees it; the group itself changes only by replay. Where nothing is written nothing is copied.
"""

from __future__ import annotations

from ottla.coordination.group.consumer_group import ConsumerGroup
from ottla.coordination.group.consumer_records import Change, apply_change
from ottla.coordination.group.outcome import Outcome
from ottla.coordination.group.records import new_record


class Stage:
    """One group during one decision."""

    __slots__ = ("_is_own", "group", "outcome")

    def __init__(self, group: ConsumerGroup, outcome: Outcome, *, is_new: bool = False) -> None:
        self.group = group
        self.outcome = outcome
        self._is_own = is_new

    @property
    def group_id(self) -> str:
        return self.group.group_id

    def write(self, change: Change) -> None:
        if not self._is_own:
            self.group = self.group.copy()
            self._is_own = True
        self.outcome.write(new_record(*change))
        apply_change(self.group, change)
