"""Members that leave a consumer group, of their own will or not.

Where the last member of the consumer protocol goes and classic members stay, the group becomes a
classic one.
"""

from __future__ import annotations

from ottla.coordination.group import timer_keys
from ottla.coordination.group.consumer_group import ConsumerGroup
from ottla.coordination.group.consumer_records import member_gone
from ottla.coordination.group.downgrade import can_downgrade, downgrade
from ottla.coordination.group.outcome import Outcome
from ottla.coordination.group.stage import Stage
from ottla.coordination.group.subscriptions import begin_epoch, tidy_patterns
from ottla.coordination.group.topics import Topics
from ottla.settings.coordination import GroupSettings


class ConsumerDeparture:
    """Takes members out of consumer groups."""

    __slots__ = ("_settings", "_topics")

    def __init__(self, settings: GroupSettings, topics: Topics) -> None:
        self._settings = settings
        self._topics = topics

    def remove(self, group: ConsumerGroup, member_ids: list[str], outcome: Outcome) -> None:
        """Take members out; what they had is free for the others in the next epoch."""
        for member_id in member_ids:
            for key in timer_keys.all_of_member(group.group_id, member_id):
                outcome.stop_timer(key)
        stage = Stage(group, outcome)
        if can_downgrade(group, frozenset(member_ids), self._settings):
            downgrade(stage, frozenset(member_ids), self._topics)
            return
        for member_id in member_ids:
            for change in member_gone(group.group_id, member_id):
                stage.write(change)
        tidy_patterns(stage, self._topics)
        begin_epoch(stage, self._topics)
