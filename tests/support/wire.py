"""Kafka's wire format by hand: frames, primitives and a raw socket.

Independent of ottla.protocol, so that both ends of a test cannot share a mistake. Knows only the
non-flexible encodings; flexible bodies come ready-made from the caller.
"""

import socket
import struct
from types import TracebackType

TIMEOUT_SECONDS = 15.0


class PeerClosed(ConnectionError):
    """The broker closed the connection."""


def int8(value: int) -> bytes:
    return struct.pack(">b", value)


def int16(value: int) -> bytes:
    return struct.pack(">h", value)


def int32(value: int) -> bytes:
    return struct.pack(">i", value)


def int64(value: int) -> bytes:
    return struct.pack(">q", value)


def string(value: str | None) -> bytes:
    if value is None:
        return int16(-1)
    encoded = value.encode()
    return int16(len(encoded)) + encoded


def nullable_bytes(value: bytes | None) -> bytes:
    return int32(-1) if value is None else int32(len(value)) + value


def array(elements: list[bytes] | None) -> bytes:
    return int32(-1) if elements is None else int32(len(elements)) + b"".join(elements)


def frame(payload: bytes) -> bytes:
    return int32(len(payload)) + payload


def request_header(
    api_key: int, version: int, correlation_id: int, *, flexible: bool = False
) -> bytes:
    header = int16(api_key) + int16(version) + int32(correlation_id) + string("raw-test")
    return header + b"\0" if flexible else header


class Reader:
    """Reads primitives one after another; a short buffer is an assertion failure."""

    def __init__(self, buffer: bytes) -> None:
        self.buffer = buffer
        self.position = 0

    @property
    def remaining(self) -> int:
        return len(self.buffer) - self.position

    def take(self, count: int) -> bytes:
        assert self.remaining >= count, "the response is shorter than its fields"
        start = self.position
        self.position += count
        return self.buffer[start : self.position]

    def _number(self, code: str) -> int:
        (value,) = struct.unpack(code, self.take(struct.calcsize(code)))
        return int(value)

    def int8(self) -> int:
        return self._number(">b")

    def int16(self) -> int:
        return self._number(">h")

    def int32(self) -> int:
        return self._number(">i")

    def int64(self) -> int:
        return self._number(">q")

    def string(self) -> str | None:
        length = self.int16()
        return None if length < 0 else self.take(length).decode()

    def bytes(self) -> bytes | None:
        length = self.int32()
        return None if length < 0 else self.take(length)

    def count(self) -> int:
        """The length of an array; a null one counts as empty."""
        return max(self.int32(), 0)

    def end(self) -> None:
        assert self.remaining == 0, f"{self.remaining} bytes after the last field"


class Connection:
    """A blocking socket that frames requests and answers; usable as a context."""

    def __init__(self, bootstrap: str, *, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        host, port = bootstrap.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=timeout_seconds)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._correlation_id = 0

    def __enter__(self) -> "Connection":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def send_bytes(self, data: bytes) -> None:
        self.socket.sendall(data)

    def send(self, api_key: int, version: int, body: bytes, *, flexible: bool = False) -> int:
        """Send one request and return its correlation id."""
        self._correlation_id += 1
        header = request_header(api_key, version, self._correlation_id, flexible=flexible)
        self.send_bytes(frame(header + body))
        return self._correlation_id

    def receive(self) -> tuple[int, Reader]:
        """The next response: its correlation id and a reader at the byte after it."""
        reader = Reader(self.receive_frame())
        return reader.int32(), reader

    def receive_frame(self) -> bytes:
        (length,) = struct.unpack(">i", self._receive_exactly(4))
        assert 4 <= length < 1 << 30, f"a response of {length} bytes"
        return self._receive_exactly(length)

    def _receive_exactly(self, count: int) -> bytes:
        received = bytearray(count)
        view, filled = memoryview(received), 0
        while filled < count:
            got = self.socket.recv_into(view[filled:])
            if got == 0:
                raise PeerClosed(f"closed after {filled} of {count} bytes")
            filled += got
        return bytes(received)

    def call(self, api_key: int, version: int, body: bytes) -> Reader:
        """Send a request of a non-flexible version and return a reader over its response body."""
        sent = self.send(api_key, version, body)
        answered, reader = self.receive()
        assert answered == sent, f"answer {answered} to request {sent}"
        return reader

    def is_closed_by_peer(self) -> bool:
        """Wait for the peer to close; False where it answers or keeps silent instead."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True
        except TimeoutError:
            return False
