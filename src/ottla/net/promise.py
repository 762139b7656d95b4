"""A reply that is not ready yet. What of a future a connection needs, and no more: whoever waits is
called on the spot, where a future's callbacks wait for the loop's next round."""

from __future__ import annotations

from collections.abc import Callable

from ottla.protocol.frames import EncodedResponse


class Promise:
    """Settled once, by a reply, by silence or by an error; or given up by who waited, of which
    `given_up` is told."""

    __slots__ = ("_callback", "_error", "_given_up", "_is_cancelled", "_is_done", "_reply")

    def __init__(self, given_up: Callable[[], None] | None = None) -> None:
        self._given_up = given_up
        self._callback: Callable[[Promise], None] | None = None
        self._reply: EncodedResponse | None = None
        self._error: Exception | None = None
        self._is_done = False
        self._is_cancelled = False

    def settle(self, reply: EncodedResponse | None) -> None:
        self._reply = reply
        self._end()

    def fail(self, error: Exception) -> None:
        self._error = error
        self._end()

    def cancel(self) -> bool:
        """Nobody waits any more; False where it was settled already."""
        if self._is_done:
            return False
        self._is_done = self._is_cancelled = True
        given_up, self._given_up = self._given_up, None
        if given_up is not None:
            given_up()
        return True

    def add_done_callback(self, callback: Callable[[Promise], None]) -> None:
        """There is one who waits."""
        assert self._callback is None, "only a connection waits for a reply"
        self._callback = callback
        if self._is_done:
            callback(self)

    def done(self) -> bool:
        return self._is_done

    def cancelled(self) -> bool:
        return self._is_cancelled

    def exception(self) -> Exception | None:
        return self._error

    def result(self) -> EncodedResponse | None:
        return self._reply

    def _end(self) -> None:
        self._is_done = True
        self._given_up = None
        if self._callback is not None:
            self._callback(self)
