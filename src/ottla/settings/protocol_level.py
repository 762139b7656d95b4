"""The levels of what brokers say to each other, and which one a broker is set to speak.

A level is raised for a whole cluster once every broker runs a program that knows it
(`inter.broker.protocol.version`). It bounds what one broker sends another, what coordinators write
to their logs, and which features clients are offered. Does not know APIs: spoken_versions.py does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

PROTOCOL_FEATURE: Final = "ottla.protocol"
"""Under this name the number of a level stands in the metadata."""
TRANSACTION_FEATURE: Final = "transaction.version"
GROUP_FEATURE: Final = "group.version"


@dataclass(frozen=True, slots=True)
class ProtocolLevel:
    """What brokers of one level understand. Named after the version of Kafka that first did."""

    number: int
    name: str
    features: Mapping[str, int] = field(default_factory=dict)
    """The highest level of each feature that clients may be offered."""
    transaction_value_version: int = 0
    """The newest version of the values in __transaction_state."""
    offset_value_version: int = 0
    """The newest version of committed offsets in __consumer_offsets."""


LEVELS: Final = (
    ProtocolLevel(1, "3.8", {TRANSACTION_FEATURE: 0, GROUP_FEATURE: 0}, 0, 3),
    ProtocolLevel(2, "4.3", {TRANSACTION_FEATURE: 2, GROUP_FEATURE: 1}, 1, 4),
)
"""All levels this program knows, the oldest first."""
NEWEST: Final = LEVELS[-1]


def level_named(name: str) -> ProtocolLevel:
    """The level with this name, which is one of the setting's values."""
    return next(level for level in LEVELS if level.name == name)


def name_of_level(number: int) -> str:
    """A level as an operator knows it."""
    return next((level.name for level in LEVELS if level.number == number), f"level {number}")
