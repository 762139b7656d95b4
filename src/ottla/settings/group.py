"""The settings a single group can have of its own, under Kafka's names. The broker gives defaults.

Does not know where overrides are kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

from ottla.errors import ConfigError
from ottla.settings.coordination import GroupSettings
from ottla.settings.declare import Declared, Kind, Setting, by_name, declarations, declare, parsed

GROUP_DEFAULTS: Final[Mapping[str, str]] = {
    "consumer.session.timeout.ms": "group.consumer.session.timeout.ms",
    "consumer.heartbeat.interval.ms": "group.consumer.heartbeat.interval.ms",
}
"""The broker's setting from which each one has its default."""


@dataclass(frozen=True, slots=True)
class OwnGroupSettings:
    """How the members of one group of the consumer protocol are held to their heartbeats."""

    consumer_session_timeout_ms: int = declare(
        45_000,
        Setting("consumer.session.timeout.ms", Kind.INT, at_least=1, is_live=True),
        "How long a member of this group may be silent before it is removed.",
    )
    consumer_heartbeat_interval_ms: int = declare(
        5000,
        Setting("consumer.heartbeat.interval.ms", Kind.INT, at_least=1, is_live=True),
        "How often members of this group are told to send a heartbeat.",
    )

    @classmethod
    def from_overrides(
        cls, overrides: Mapping[str, str], broker: GroupSettings
    ) -> OwnGroupSettings:
        """A group's settings: the broker's under the group's own texts."""
        defaults = cls(
            broker.group_consumer_session_timeout_ms, broker.group_consumer_heartbeat_interval_ms
        )
        if not overrides:
            return defaults
        values: dict[str, Any] = {**parsed(group_declarations(), overrides, scope="group")}
        return replace(defaults, **values).checked()

    def checked(self) -> OwnGroupSettings:
        """Itself, where a member can send a heartbeat in time; ConfigError where not."""
        if self.consumer_heartbeat_interval_ms >= self.consumer_session_timeout_ms:
            raise ConfigError(
                "consumer.session.timeout.ms",
                f"{self.consumer_session_timeout_ms} is not larger than"
                f" consumer.heartbeat.interval.ms ({self.consumer_heartbeat_interval_ms})",
                "make it larger",
            )
        return self


@cache
def group_declarations() -> dict[str, Declared]:
    """The settings of a group by name."""
    return by_name(declarations(OwnGroupSettings))
