"""Trouble to order: make the next requests of an API fail, wait or lose their connection."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from dataclasses import dataclass

from ottla.broker.request import RequestContext
from ottla.errors import ErrorCode, ProtocolError
from ottla.protocol.api import ApiKey


@dataclass(slots=True)
class _Fault:
    times_left: int
    code: ErrorCode | None = None
    delay_seconds: float = 0.0
    drops: bool = False


class Faults:
    """The faults ordered and not yet used up, by API. Orders come from the test's thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ordered: dict[ApiKey, deque[_Fault]] = {}

    def fail(self, api: str | ApiKey, error: str | ErrorCode, *, times: int = 1) -> None:
        """The next `times` requests of `api` are answered with `error` and have no effect."""
        self._order(api, _Fault(times, code=_error_code(error)))

    def delay(self, api: str | ApiKey, *, seconds: float, times: int = 1) -> None:
        """The next `times` requests of `api` are handled so much later."""
        if seconds < 0:
            raise ValueError("seconds must be zero or more")
        self._order(api, _Fault(times, delay_seconds=seconds))

    def drop(self, api: str | ApiKey, *, times: int = 1) -> None:
        """The next `times` requests of `api` have no effect and their connections are closed."""
        self._order(api, _Fault(times, drops=True))

    def clear(self) -> None:
        """Takes back all orders."""
        with self._lock:
            self._ordered.clear()

    def _order(self, api: str | ApiKey, fault: _Fault) -> None:
        if fault.times_left < 1:
            raise ValueError("times must be one or more")
        with self._lock:
            self._ordered.setdefault(_api_key(api), deque()).append(fault)

    # --- the broker's side ---

    def concerns(self, api: ApiKey) -> bool:
        """Whether the next request of `api` is to have trouble."""
        return bool(self._ordered.get(api))

    async def before(self, api: ApiKey, context: RequestContext) -> ErrorCode | None:
        """Carries out the first order for `api`."""
        fault = self._take(api)
        if fault is None:
            return None
        if fault.delay_seconds:
            await asyncio.sleep(fault.delay_seconds)
        if fault.drops:
            raise ProtocolError(f"the connection of {context.peer} is dropped, as ordered")
        return fault.code

    def _take(self, api: ApiKey) -> _Fault | None:
        with self._lock:
            ordered = self._ordered.get(api)
            if not ordered:
                return None
            fault = ordered[0]
            fault.times_left -= 1
            if not fault.times_left:
                ordered.popleft()
            return fault


def _api_key(api: str | ApiKey) -> ApiKey:
    if isinstance(api, ApiKey):
        return api
    wanted = api.replace("_", "").lower()
    for key in ApiKey:
        if key.name.replace("_", "").lower() == wanted:
            return key
    raise ValueError(f"there is no API {api!r}; names are Kafka's, such as Produce or Fetch")


def _error_code(error: str | ErrorCode) -> ErrorCode:
    if isinstance(error, ErrorCode):
        return error
    if error not in ErrorCode.__members__:
        raise ValueError(
            f"there is no error {error!r}; names are Kafka's, such as REQUEST_TIMED_OUT"
        )
    return ErrorCode[error]
