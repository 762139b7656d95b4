"""What has settings that can be changed: topics, brokers and groups, as the wire names them."""

from __future__ import annotations

from collections.abc import Container
from enum import IntEnum
from typing import Final

from ottla.cluster.layout import DEFAULT_ENTITY
from ottla.errors import InvalidRequest

CLUSTER_DEFAULT: Final = ""
"""As the name of a broker: the settings that all brokers share."""
BROKER_LOGGER: Final = 8
"""A broker's loggers, whose levels it keeps to itself: nothing of them is metadata."""


class ResourceType(IntEnum):
    """The kinds of resources that have settings here."""

    TOPIC = 2
    BROKER = 4
    GROUP = 32


def resource_type(number: int) -> ResourceType:
    """The kind a number stands for; refused where this broker has no such resources."""
    try:
        return ResourceType(number)
    except ValueError:
        raise InvalidRequest(
            f"resource type {number} has no settings here; 2 (topic), 4 (broker), 32 (group) have"
        ) from None


def broker_entity(name: str, brokers: Container[int]) -> str:
    """The name under which the settings of one of these brokers, or the shared ones, are stored."""
    if name == CLUSTER_DEFAULT:
        return DEFAULT_ENTITY
    if not name.isdecimal() or int(name) not in brokers:
        raise InvalidRequest(f"there is no broker {name!r} in this cluster")
    return str(int(name))


def check_own(name: str, broker_id: int) -> None:
    """InvalidRequest where a broker is asked for what only another knows."""
    if name != str(broker_id):
        raise InvalidRequest(f"broker {name} was asked of broker {broker_id}; ask that one")
