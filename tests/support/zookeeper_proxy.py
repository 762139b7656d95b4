"""A TCP proxy before a ZooKeeper server that loses one request or its answer, or all packets.

Frames have a size, then (but for the first of a connection) the request's number and its type.
"""

from __future__ import annotations

import socket
import struct
import threading
from types import TracebackType
from typing import Final

MULTI: Final = 14
_SIZE: Final = struct.Struct(">i")
_HEADER: Final = struct.Struct(">ii")


class ZooKeeperProxy:
    """Listens on a port of its own; use as a context."""

    def __init__(self, upstream_port: int) -> None:
        self._upstream_port = upstream_port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: set[socket.socket] = set()
        self._flowing = threading.Event()
        self._flowing.set()
        self._lose_request = False
        self._lose_answer = False
        self._lost_number: int | None = None
        self._is_deaf_once = False
        self.was_lost = threading.Event()
        """Set once what was to be lost is lost."""

    @property
    def host_and_port(self) -> str:
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> ZooKeeperProxy:
        _in_background(self._accept)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _shut(self._listener)
        self._listener.close()
        self._flowing.set()
        self.cut()

    def lose_next_multi(self, *, was_done: bool) -> None:
        """Break the connection on the next multi, before the server has it or once it answered."""
        self.was_lost.clear()
        self._lose_answer, self._lose_request = was_done, not was_done

    def ignore_next_connection(self) -> None:
        """Take the next connection and never answer it, like a server that is starting."""
        self._is_deaf_once = True

    def stall(self) -> None:
        """Let nothing through from now on; connections stay open and new ones hang."""
        self._flowing.clear()

    def flow(self) -> None:
        self._flowing.set()

    def cut(self) -> None:
        """Break every connection."""
        for one in list(self._open):
            _shut(one)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            _in_background(self._serve, client)

    def _serve(self, client: socket.socket) -> None:
        self._open.add(client)
        if self._is_deaf_once:
            self._is_deaf_once = False
            return
        self._flowing.wait()
        try:
            server = socket.create_connection(("127.0.0.1", self._upstream_port), timeout=10)
        except OSError:
            client.close()
            return
        server.settimeout(None)
        self._open.add(server)
        _in_background(self._answers, client, server)
        self._requests(client, server)

    def _requests(self, client: socket.socket, server: socket.socket) -> None:
        is_first = True
        while (payload := _frame(client)) is not None:
            self._flowing.wait()
            if not is_first and _HEADER.unpack_from(payload)[1] == MULTI:
                if self._lose_request:
                    self._lose_request = False
                    self.was_lost.set()
                    break
                if self._lose_answer:
                    self._lose_answer = False
                    self._lost_number = _HEADER.unpack_from(payload)[0]
            is_first = False
            if not _send(server, payload):
                break
        _shut(client)
        _shut(server)

    def _answers(self, client: socket.socket, server: socket.socket) -> None:
        is_first = True
        while (payload := _frame(server)) is not None:
            self._flowing.wait()
            if not is_first and _SIZE.unpack_from(payload)[0] == self._lost_number:
                self._lost_number = None
                self.was_lost.set()
                break
            is_first = False
            if not _send(client, payload):
                break
        _shut(client)
        _shut(server)
        self._open -= {client, server}


def _in_background(work: object, *arguments: object) -> None:
    threading.Thread(target=work, args=arguments, daemon=True).start()  # type: ignore[arg-type]


def _frame(source: socket.socket) -> bytes | None:
    head = _exactly(source, _SIZE.size)
    return None if head is None else _exactly(source, _SIZE.unpack(head)[0])


def _exactly(source: socket.socket, count: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < count:
        try:
            data = source.recv(count - len(parts))
        except OSError:
            return None
        if not data:
            return None
        parts += data
    return bytes(parts)


def _send(target: socket.socket, payload: bytes) -> bool:
    try:
        target.sendall(_SIZE.pack(len(payload)) + payload)
    except OSError:
        return False
    return True


def _shut(one: socket.socket) -> None:
    try:
        one.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
