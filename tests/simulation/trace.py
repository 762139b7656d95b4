"""What happened, as one number: two runs are the same when their numbers are."""

from __future__ import annotations

import hashlib


class Trace:
    """A hash over everything it is told, in order; with a listener, also the story itself."""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=8)
        self.events = 0

    def add(self, *facts: object) -> None:
        self.events += 1
        self._hash.update(repr(facts).encode())

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()
