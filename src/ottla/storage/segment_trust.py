"""What an earlier run of a broker left in a segment: looked at once, when it is first read.

What damaged it while no broker ran is not passed on: there are clients that die of it. Looks at
headers only, and does not know what reads.
"""

from __future__ import annotations

from ottla.model.ids import Offset
from ottla.storage.batch_scan import walk
from ottla.storage.segment import Segment


def trusted_bytes(segment: Segment, position: int, size_bytes: int) -> int:
    """How many of these bytes, which begin with a batch, are batches whose headers can be."""
    end = position + size_bytes
    if end <= segment.untrusted_start:
        return size_bytes
    sound = position
    next_offset = segment.base_offset
    for header in walk(segment.file(), position, segment.size_bytes):
        if not header.can_be(next_offset, segment.end_offset):
            return sound - position
        next_offset = Offset(header.last_offset + 1)
        sound = header.position + header.size_bytes
        if sound >= end:
            break
    if position <= segment.untrusted_start:
        segment.untrusted_start = max(segment.untrusted_start, sound)
    if sound >= segment.untrusted_end:
        segment.untrusted_end = position
    if segment.untrusted_start >= segment.untrusted_end:
        segment.untrusted_end = 0
    return min(sound, end) - position
