"""A network between client and broker that a test can cut, freeze, slow down and heal."""

import socket
import threading
from types import TracebackType

from ottla.testing import Broker

CHUNK_BYTES = 64 * 1024
SLOW_CHUNK_BYTES = 512


class Network:
    """Carries bytes both ways between clients and a broker that advertises this address."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        # So that a client has to wait as soon as nothing passes; its connections inherit it.
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, CHUNK_BYTES)
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._upstream: tuple[str, int] | None = None
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._flows = threading.Event()
        self._flows.set()
        self._pause = threading.Event()
        self._slowness_s = 0.0
        self._is_closed = False
        self.bytes_seen = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> "Network":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_closed = True
        self._listener.close()
        self.heal()
        self.cut()

    def broker(self) -> Broker:
        """A broker to be started by the test, reached only through here."""
        return Broker(settings={"advertised.listeners": f"PLAINTEXT://{self.address}"})

    def lead_to(self, broker: Broker) -> None:
        """Sends clients to this broker from now on."""
        host, port = broker.bootstrap_servers.rsplit(":", 1)
        self._upstream = (host, int(port))

    def cut(self) -> None:
        """Ends every connection there is; new ones can be made."""
        with self._lock:
            sockets, self._open = self._open, set()
        for each in sockets:
            _shut(each)

    def freeze(self) -> None:
        """Connections stay open, and nothing passes any more: half-open."""
        self._flows.clear()

    def slow_down(self, pause_s: float) -> None:
        """Few bytes at a time, with a pause before each."""
        self._slowness_s = pause_s

    def heal(self) -> None:
        """All flows again."""
        self._slowness_s = 0.0
        self._flows.set()

    def _accept(self) -> None:
        while not self._is_closed:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                assert self._upstream is not None
                server = socket.create_connection(self._upstream, timeout=5)
                server.settimeout(None)
            except OSError:
                client.close()
                continue
            with self._lock:
                self._open |= {client, server}
            for source, target in ((client, server), (server, client)):
                source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self._carry, args=(source, target), daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(SLOW_CHUNK_BYTES if self._slowness_s else CHUNK_BYTES):
                self._flows.wait()
                if self._slowness_s:
                    self._pause.wait(self._slowness_s)
                target.sendall(data)
                self.bytes_seen += len(data)
        except OSError:
            pass
        _shut(source)
        _shut(target)


def _shut(one: socket.socket) -> None:
    try:
        one.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    one.close()
