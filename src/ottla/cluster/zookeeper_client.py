"""One connection to ZooKeeper: kazoo in its own thread, this process's event loop on our side.

All that touches kazoo is in this file. kazoo keeps the connection (hosts, TLS, authentication,
pings, sessions); four things it does not offer are taken from its inside, on the instance:
`_call` (send any request), `_read_watch_event` (lasting watches), `_connect` (when a session was
asked for, and the timeout the server granted) and `_invoke` (how long it waits to be taken up).

Everything kazoo's thread learns goes through one queue to the loop, in the order it was learned:
a change is told before the answer to whatever was asked after it.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any, ClassVar, Final, Protocol

import msgspec
from kazoo.client import KazooClient
from kazoo.exceptions import (
    AuthFailedError,
    ConnectionDropped,
    KazooException,
    SessionExpiredError,
    ZookeeperError,
)
from kazoo.handlers.threading import KazooTimeoutError, SequentialThreadingHandler
from kazoo.protocol.states import KazooState, KeeperState
from kazoo.retry import KazooRetry

from ottla.cluster.zookeeper_address import ZooKeeperAddress
from ottla.cluster.zookeeper_wire import read_event
from ottla.model.clock import Clock

RECONNECT_SECONDS_MAX: Final = 1.0
CONNECT_SECONDS_MIN: Final = 1.0
REVIVE_SECONDS: Final = 1.0
GREETINGS_PER_TIMEOUT: Final = 3
"""A server that is starting may take a connection and never answer: there must be time for others,
and for the same one again, before the session is over."""
_INSIDE: Final = ("_read_watch_event", "_connect", "_invoke")

log = logging.getLogger(__name__)


def _kazoo_log() -> logging.Logger:
    """kazoo has two lines for every attempt to connect: only for those who want to see all."""
    logger = logging.getLogger(f"{__name__}.kazoo")
    if not logger.filters:
        logger.addFilter(
            lambda record: record.levelno >= logging.ERROR or log.isEnabledFor(logging.DEBUG)
        )
    return logger


class Request(Protocol):
    """What kazoo can send."""

    type: ClassVar[int]

    def serialize(self) -> bytes: ...


class Connected(msgspec.Struct, frozen=True):
    """The server has taken us up, and authenticated us where that was asked."""

    session_id: int
    timeout_ms: int
    asked_at_ms: int


class Disconnected(msgspec.Struct, frozen=True):
    """The connection broke. Nobody knows yet what becomes of the session."""


class Expired(msgspec.Struct, frozen=True):
    """The session is over."""

    reason: str


class Changed(msgspec.Struct, frozen=True):
    """A watched node changed; the path is whole."""

    kind: int
    path: str


class Troubled(msgspec.Struct, frozen=True):
    """A server could not be connected to, or did not take us up; others, or it again, are tried."""

    reason: str


Event = Connected | Disconnected | Expired | Changed | Troubled


class ConnectionLost(Exception):
    """The connection broke before the answer: what was asked may have been done."""


class Refused(Exception):
    """ZooKeeper answered with an error of its own."""

    def __init__(self, code: int, name: str) -> None:
        self.code = code
        super().__init__(f"ZooKeeper answered {name} ({code})")


class _ToLoop:
    """Carries what another thread learned to the event loop, in order, waking it once a batch."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._lock = threading.Lock()
        self._waiting: list[Callable[[], None]] = []

    def put(self, action: Callable[[], None]) -> None:
        with self._lock:
            self._waiting.append(action)
            if len(self._waiting) > 1:
                return
        try:
            self._loop.call_soon_threadsafe(self._run)
        except RuntimeError:
            log.debug("the event loop has ended before its metadata store")

    def _run(self) -> None:
        with self._lock:
            actions, self._waiting = self._waiting, []
        for action in actions:
            action()


class _Reply:
    """Where kazoo's thread puts an answer."""

    __slots__ = ("_future", "_to_loop")

    def __init__(self, future: asyncio.Future[Any], to_loop: _ToLoop) -> None:
        self._future = future
        self._to_loop = to_loop

    def set(self, value: Any) -> None:
        self._to_loop.put(lambda: self._settle(value, None))

    def set_exception(self, error: BaseException) -> None:
        self._to_loop.put(lambda: self._settle(None, _translated(error)))

    def _settle(self, value: Any, error: Exception | None) -> None:
        if self._future.done():
            return
        if error is not None:
            self._future.set_exception(error)
        else:
            self._future.set_result(value)


class ZooKeeperClient:
    """Sends requests and tells events. Every method is called on the event loop."""

    def __init__(
        self, address: ZooKeeperAddress, clock: Clock, listener: Callable[[Event], None]
    ) -> None:
        self._address = address
        self._clock = clock
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        self._to_loop = _ToLoop(self._loop)
        self._is_closing = False
        self._revival: asyncio.Task[None] | None = None
        self._kazoo = self._new_kazoo()

    def start(self) -> None:
        """Begins to connect, and never stops trying."""
        self._kazoo.start_async()

    def ask(self, request: Request) -> asyncio.Future[Any]:
        """Send a request; the future has the answer, or ConnectionLost, or Refused."""
        future: asyncio.Future[Any] = self._loop.create_future()
        self._kazoo._call(request, _Reply(future, self._to_loop))
        return future

    async def stop(self) -> None:
        """End the session and the thread."""
        self._is_closing = True
        if self._revival is not None:
            self._revival.cancel()
        await self._loop.run_in_executor(None, self._stop)

    def _stop(self) -> None:
        try:
            self._kazoo.stop()
            self._kazoo.close()
        except (KazooException, OSError) as error:
            log.warning("the ZooKeeper session could not be closed: %s", error)

    def _new_kazoo(self) -> Any:
        options = self._address.options
        timeout_seconds = options.session_timeout_ms / 1000
        client = KazooClient(
            hosts=",".join(self._address.hosts),
            timeout=timeout_seconds,
            handler=_handler(timeout_seconds, len(self._address.hosts)),
            connection_retry=KazooRetry(
                max_tries=-1, delay=0.1, backoff=2, max_delay=RECONNECT_SECONDS_MAX
            ),
            auth_data=_auth_data(self._address),
            sasl_options=_sasl_options(self._address),
            use_ssl=options.tls,
            ca=options.tls_ca or None,
            certfile=options.tls_certificate or None,
            keyfile=options.tls_key or None,
            keyfile_password=options.tls_key_password or None,
            verify_certs=options.tls_verify,
            check_hostname=options.tls_verify and options.tls_check_hostname,
            logger=_kazoo_log(),
        )
        connection = client._connection
        if not all(callable(getattr(connection, name, None)) for name in _INSIDE):
            raise RuntimeError("this version of kazoo is not one Ottla knows; install kazoo 2.11")
        connection._read_watch_event = self._event_told
        connection._connect = self._timed(connection._connect)
        connection._invoke = _hurried(connection._invoke, timeout_seconds / GREETINGS_PER_TIMEOUT)
        client.add_listener(self._state_changed)
        return client

    def _timed(self, connect: Callable[..., Any]) -> Callable[..., Any]:
        """kazoo's connecting, with a note of when it began and what the server granted."""

        def connect_and_tell(*place: Any) -> Any:
            asked_at_ms = self._clock.monotonic_ms()
            try:
                read_timeout_ms, connect_timeout_ms = connect(*place)
            except Exception as error:
                reason = str(error) or type(error).__name__
                self._tell(Troubled(f"{place[0]}: {reason}"))
                if isinstance(error, _KNOWN_TO_KAZOO):
                    raise
                raise ConnectionDropped(reason) from error  # else kazoo's thread would end
            # kazoo waits two thirds of what the server granted for an answer.
            granted_ms = round(read_timeout_ms * 3 / 2)
            session_id = self._kazoo.client_id[0]
            self._tell(Connected(session_id, granted_ms, asked_at_ms))
            return read_timeout_ms, connect_timeout_ms

        return connect_and_tell

    def _event_told(self, buffer: bytes, position: int) -> None:
        self._tell(Changed(*read_event(buffer, position)))

    def _state_changed(self, state: str) -> None:
        """Called in kazoo's thread when the connection comes or goes."""
        if state == KazooState.SUSPENDED:
            self._tell(Disconnected())
        elif state == KazooState.LOST:
            found = self._kazoo.client_state
            self._tell(Expired(str(found)))
            if found != KeeperState.EXPIRED_SESSION:
                self._to_loop.put(self._revive)

    def _revive(self) -> None:
        """kazoo gives up for good where authentication fails, be it that a server died meanwhile,
        and where its thread fails; a broker must come back when ZooKeeper does."""
        if not self._is_closing and self._revival is None:
            self._revival = asyncio.ensure_future(self._start_again())

    async def _start_again(self) -> None:
        await asyncio.sleep(REVIVE_SECONDS)
        try:
            await self._loop.run_in_executor(None, self._kazoo.start_async)
        finally:
            self._revival = None

    def _tell(self, event: Event) -> None:
        self._to_loop.put(lambda: self._listener(event))


def _translated(error: BaseException) -> Exception:
    """Only what the server itself answered is known not to have been done."""
    if isinstance(error, ZookeeperError) and error.code in _ANSWERS:
        return Refused(error.code, type(error).__name__.removesuffix("Error"))
    if isinstance(error, AuthFailedError):
        return ConnectionLost("ZooKeeper refused the credentials")
    return ConnectionLost(str(error) or type(error).__name__)


_KNOWN_TO_KAZOO: Final = (
    ConnectionDropped,
    KazooTimeoutError,
    SessionExpiredError,
    AuthFailedError,
)
_ANSWERS: Final = frozenset(
    {-5, -6, -8, -101, -102, -103, -108, -110, -111, -113, -114, -119, -121, -122, -127}
)
"""ZooKeeper's error codes for requests it understood and did not do."""


def _handler(timeout_seconds: float, host_count: int) -> Any:
    """kazoo's threads, with a shorter wait for a server that does not answer at all.

    kazoo would wait a whole session timeout for one dead server, and lose the session by it. A dead
    connection is noticed after two thirds of the timeout; the rest must do for all servers.
    """
    handler = SequentialThreadingHandler()
    patience_seconds = max(CONNECT_SECONDS_MIN, timeout_seconds / 3 / host_count)
    connect = handler.create_connection

    def connect_soon(*arguments: Any, **keywords: Any) -> Any:
        given = keywords.get("timeout") or patience_seconds
        return connect(*arguments, **{**keywords, "timeout": min(given, patience_seconds)})

    handler.create_connection = connect_soon
    return handler


def _hurried(invoke: Callable[..., Any], seconds_max: float) -> Callable[..., Any]:
    """kazoo's greeting of a server, for which it would wait a whole session timeout."""
    return lambda seconds, *request, **more: invoke(min(seconds, seconds_max), *request, **more)


def _auth_data(address: ZooKeeperAddress) -> list[tuple[str, str]]:
    options = address.options
    if options.auth != "digest":
        return []
    return [("digest", f"{options.username}:{options.secret()}")]


def _sasl_options(address: ZooKeeperAddress) -> dict[str, str] | None:
    options = address.options
    if options.auth != "sasl":
        return None
    if options.sasl_mechanism == "GSSAPI":
        chosen = {"mechanism": "GSSAPI"}
        return {**chosen, "principal": options.username} if options.username else chosen
    return {
        "mechanism": options.sasl_mechanism,
        "username": options.username,
        "password": options.secret(),
    }
