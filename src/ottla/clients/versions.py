"""Which version of each API to use with a broker: the highest that both sides know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ottla.clients.failures import BrokerTooOld
from ottla.protocol.message import VersionRange


@dataclass(frozen=True, slots=True)
class BrokerVersions:
    """What one broker offers, by api key."""

    peer: str
    ranges: Mapping[int, VersionRange]
    is_assumed: bool = False
    """The broker is too old to say what it offers."""
    features: Mapping[str, int] = field(default_factory=dict)
    """The levels the cluster has agreed on, such as transaction.version."""

    def choose(self, api_key: int, api_name: str, ours: VersionRange) -> int:
        """The version to use, or BrokerTooOld."""
        theirs = self.ranges.get(api_key)
        if theirs is None:
            raise self._too_old(api_name, ours, "not at all")
        highest = min(ours.last, theirs.last)
        if highest < max(ours.first, theirs.first):
            raise self._too_old(api_name, ours, f"in {_words(theirs)}")
        return highest

    def _too_old(self, api_name: str, ours: VersionRange, offered: str) -> BrokerTooOld:
        if self.is_assumed:
            offered = "does not say what it offers: it expects TLS, or is older than Kafka 0.10"
        else:
            offered = f"offers {api_name} {offered}, and {_words(ours)} would be needed"
        return BrokerTooOld(self.peer, api_name, offered)


ASSUMED_RANGES: Final[Mapping[int, VersionRange]] = {
    0: VersionRange(0, 1),  # Produce
    1: VersionRange(0, 1),  # Fetch
    2: VersionRange(0, 0),  # ListOffsets
    3: VersionRange(0, 0),  # Metadata
    8: VersionRange(0, 2),  # OffsetCommit
    9: VersionRange(0, 1),  # OffsetFetch
    10: VersionRange(0, 0),  # FindCoordinator
    11: VersionRange(0, 0),  # JoinGroup
    12: VersionRange(0, 0),  # Heartbeat
    13: VersionRange(0, 0),  # LeaveGroup
    14: VersionRange(0, 0),  # SyncGroup
    15: VersionRange(0, 0),  # DescribeGroups
    16: VersionRange(0, 0),  # ListGroups
}
"""What a broker from before ApiVersions (Kafka 0.9) can do; it does not say so itself."""


def _words(versions: VersionRange) -> str:
    if versions.first == versions.last:
        return f"version {versions.first}"
    return f"versions {versions.first} to {versions.last}"
