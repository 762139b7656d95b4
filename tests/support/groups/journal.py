"""What a group member writes down in its journal (support.journal)."""

import msgspec

ASSIGNED, REVOKED, LOST = "assigned", "revoked", "lost"
RECORDS, COMMITTED, REFUSED = "records", "committed", "refused"
STARTED, ENDED, FAILED = "started", "ended", "failed"


class Event(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that happened to a member; the fields in use depend on its kind."""

    kind: str
    at_ns: int
    generation: int = -1
    partitions: list[int] = []
    offsets: dict[int, list[int]] = {}
    """Of RECORDS: the offsets read of each partition."""
    positions: dict[int, int] = {}
    """Of COMMITTED and REFUSED: the position of each partition."""
    since_ns: int = 0
    """Of COMMITTED and REFUSED: when the commit was begun."""
    text: str = ""
