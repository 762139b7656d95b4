"""Who a commit says it comes from. The groups decide whether to believe it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ottla.errors import ErrorCode

Refusal = Callable[[str, int], ErrorCode]
"""Says what speaks against a commit of one partition of a topic, or NONE."""


def no_refusal(_topic: str, _partition: int) -> ErrorCode:
    """Nothing speaks against any commit."""
    return ErrorCode.NONE


def always(code: ErrorCode) -> Refusal:
    """The same speaks against every commit."""
    return lambda _topic, _partition: code


class Committer(msgspec.Struct, frozen=True):
    """The sender of an offset commit, as the request names it."""

    member_id: str
    instance_id: str | None
    generation: int
    """The generation of a classic group, the member's epoch in a consumer group; -1 for none."""
    version: int
    is_transactional: bool = False

    @property
    def claims_membership(self) -> bool:
        return self.generation >= 0 or bool(self.member_id) or self.instance_id is not None
