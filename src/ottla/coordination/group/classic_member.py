"""A member of a classic group: what it told of itself, what it was assigned, what it awaits."""

from __future__ import annotations

from collections.abc import Container

import msgspec

from ottla.coordination.group.outcome import Parked

Protocols = tuple[tuple[str, bytes], ...]
"""The names of the assignment protocols a member supports, the preferred first, each with what
the member says in it."""


class ClassicMember(msgspec.Struct):
    """One member. The group changes it; it knows nothing of the others."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    joining: Parked | None = None
    syncing: Parked | None = None
    is_new: bool = False
    """Has not been through a generation yet: it does not know its id, so it sends no heartbeats."""

    @property
    def is_waiting(self) -> bool:
        """Waits for the group, and need not prove that it is alive."""
        return not self.is_new and (self.joining is not None or self.syncing is not None)

    def vote(self, candidates: Container[str]) -> str:
        """The protocol this member likes best of those all members support."""
        return next(name for name, _ in self.protocols if name in candidates)

    def metadata_in(self, protocol: str | None) -> bytes:
        """What the member says in one protocol."""
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")
