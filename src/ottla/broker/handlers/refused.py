"""APIs whose every request has the same answer: what they are about is not to be had here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.broker.request import RequestContext
from ottla.errors import ErrorCode
from ottla.protocol.message import Message


class RefusedHandler:
    """Refuses each request with one code; `worded` writes that, and any other code."""

    def __init__(self, code: ErrorCode, worded: Callable[[Any, ErrorCode], Message]) -> None:
        self._code = code
        self._worded = worded

    def handle(self, request: Any, _context: RequestContext) -> Message:
        return self._worded(request, self._code)

    def refuse(self, request: Any, code: ErrorCode) -> Message:
        return self._worded(request, code)
