"""A TCP proxy before a broker that can keep back requests by API and cut connections.

A request that is kept back stays in the proxy even when its client gives up, as a packet stays in
the network: it arrives when the test lets it, on the connection it was sent on.
"""

import socket
import struct
import threading
from collections.abc import Callable
from types import TracebackType

from ottla.protocol.api import ApiKey

WAIT_SECONDS_MAX = 30.0
_SIZE = struct.Struct(">i")
_API_KEY = struct.Struct(">h")


class Hold:
    """An order to keep back the next request of an API, and then that request."""

    def __init__(self, api_key: ApiKey, containing: bytes) -> None:
        self.api_key = api_key
        self.containing = containing
        self._arrived = threading.Event()
        self._released = threading.Event()
        self._delivered = threading.Event()
        self._answered = threading.Event()
        self._client: socket.socket | None = None

    def concerns(self, payload: bytes) -> bool:
        """Whether the request is the one that is waited for."""
        return _api_of(payload) == self.api_key and self.containing in payload

    def wait_arrived(self) -> None:
        """Wait until the request has come and is kept."""
        assert self._arrived.wait(WAIT_SECONDS_MAX), f"no {self.api_key.name} came to be held"

    def hang_up(self) -> None:
        """Close the client's side of the connection; the request stays here."""
        assert self._client is not None, "nothing is held yet"
        _shut(self._client)

    def release(self) -> None:
        """Let the request go on, and wait until it was handed to the broker (or its grave)."""
        self._released.set()
        assert self._delivered.wait(WAIT_SECONDS_MAX), "the held request was not delivered"

    def wait_answered(self) -> None:
        """Wait until the broker has answered it, whether or not its client still listens."""
        assert self._answered.wait(WAIT_SECONDS_MAX), "the held request was not answered"

    def keep(self, client: socket.socket) -> None:
        """The proxy's side: stay here until released."""
        self._client = client
        self._arrived.set()
        self._released.wait()

    def note_delivered(self) -> None:
        """The proxy's side: the request is on its way."""
        self._delivered.set()

    def note_answered(self) -> None:
        """The proxy's side: an answer came on its connection."""
        self._answered.set()

    def give_up(self) -> None:
        """The proxy's side: it ends."""
        self._released.set()


class Proxy:
    """Listens on a port of its own; use as a context. `upstream` may change at any time."""

    def __init__(self, upstream: str = "") -> None:
        self.upstream = upstream
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()
        self._holds: list[Hold] = []
        self._kept: list[Hold] = []
        self._cuts: list[ApiKey] = []
        self._unanswered: dict[socket.socket, Hold] = {}
        self._open: set[socket.socket] = set()
        self._is_closed = False

    def __enter__(self) -> "Proxy":
        _in_background(self._accept)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_closed = True
        _shut(self._listener)
        self._listener.close()
        with self._lock:
            held, sockets = [*self._kept, *self._holds], list(self._open)
        for hold in held:
            hold.give_up()
        for one in sockets:
            _shut(one)

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    def hold(self, api_key: ApiKey, *, containing: bytes = b"") -> Hold:
        """Keep back the next request of an API that has these bytes in it."""
        hold = Hold(api_key, containing)
        with self._lock:
            self._holds.append(hold)
        return hold

    def cut_answer(self, api_key: ApiKey) -> None:
        """Deliver the next request of an API, and close its connection before the answer."""
        with self._lock:
            self._cuts.append(api_key)

    def _accept(self) -> None:
        while not self._is_closed:
            try:
                client, _ = self._listener.accept()
                host, port = self.upstream.rsplit(":", 1)
            except (OSError, ValueError):
                continue
            try:
                broker = socket.create_connection((host, int(port)), timeout=WAIT_SECONDS_MAX)
            except OSError:
                client.close()
                continue
            broker.settimeout(None)
            for one in (client, broker):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._open |= {client, broker}
            _in_background(lambda client=client, broker=broker: self._requests(client, broker))
            _in_background(lambda client=client, broker=broker: self._answers(client, broker))

    def _requests(self, client: socket.socket, broker: socket.socket) -> None:
        """Carry requests one by one; a held one holds back what its client sends after it."""
        try:
            while (payload := _read_frame(client)) is not None:
                hold = self._taken_hold(payload)
                if hold is not None:
                    hold.keep(client)
                    self._unanswered[broker] = hold
                try:
                    broker.sendall(_SIZE.pack(len(payload)) + payload)
                finally:
                    if hold is not None:
                        hold.note_delivered()
                if self._is_cut(payload):
                    _shut(client)
        except OSError:
            pass
        _shut(broker, how=socket.SHUT_WR)

    def _answers(self, client: socket.socket, broker: socket.socket) -> None:
        try:
            while (data := broker.recv(1 << 16)) != b"":
                hold = self._unanswered.pop(broker, None)
                if hold is not None:
                    hold.note_answered()
                client.sendall(data)
        except OSError:
            pass
        _shut(client)
        with self._lock:
            self._open -= {client, broker}

    def _taken_hold(self, payload: bytes) -> Hold | None:
        with self._lock:
            for hold in self._holds:
                if hold.concerns(payload):
                    self._holds.remove(hold)
                    self._kept.append(hold)
                    return hold
        return None

    def _is_cut(self, payload: bytes) -> bool:
        with self._lock:
            api_key = _api_of(payload)
            if api_key in self._cuts:
                self._cuts.remove(api_key)
                return True
        return False


def _api_of(payload: bytes) -> int:
    return int(_API_KEY.unpack_from(payload)[0])


def _in_background(work: Callable[[], None]) -> None:
    threading.Thread(target=work, name="proxy", daemon=True).start()


def _read_frame(source: socket.socket) -> bytes | None:
    head = _read_exactly(source, _SIZE.size)
    return None if head is None else _read_exactly(source, _SIZE.unpack(head)[0])


def _read_exactly(source: socket.socket, count: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < count:
        data = source.recv(count - len(parts))
        if not data:
            return None
        parts += data
    return bytes(parts)


def _shut(one: socket.socket, *, how: int = socket.SHUT_RDWR) -> None:
    try:
        one.shutdown(how)
    except OSError:
        pass
