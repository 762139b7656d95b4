"""How far the next micro-batch goes. Pure: offsets and a time in, offsets out."""

from __future__ import annotations

from collections.abc import Mapping

from ottla.model.ids import TopicPartition
from ottla.spark.offsets import Offsets
from ottla.spark.options import TriggerLimits


def admit(
    start: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int], offsets_max: int
) -> Offsets:
    """The end of a micro-batch of at most so many offsets, shared out by what each has.

    Never behind `start`. Every partition that has something comes in for at least one offset as
    long as there are any left, so that none waits for ever beside a large one.
    """
    sizes = {where: max(0, end - start[where]) for where, end in latest.items()}
    total = sum(sizes.values())
    if total <= offsets_max:
        return {where: start[where] + size for where, size in sizes.items()}
    left = offsets_max
    ends: Offsets = {}
    shares = sorted(sizes, key=lambda where: (sizes[where], where))
    for where in shares:
        share = max(1, offsets_max * sizes[where] // total) if sizes[where] else 0
        share = min(share, left, sizes[where])
        ends[where] = start[where] + share
        left -= share
    for where in reversed(shares):  # what rounding left over goes to the largest
        more = min(left, sizes[where] - (ends[where] - start[where]))
        ends[where] += more
        left -= more
    return ends


def is_too_little(available: int, limits: TriggerLimits, *, waited_ms: float) -> bool:
    """Whether the next micro-batch should wait for more."""
    if limits.offsets_min is None or available >= limits.offsets_min:
        return False
    return waited_ms < limits.delay_ms_max
