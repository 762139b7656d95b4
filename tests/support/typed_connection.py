"""A blocking connection that sends any declared message in any version and reads its answer.

Uses Ottla's own codec, which the property tests hold to Kafka's schemas; nothing of Ottla's clients
stands in between, so that requests no client would send can be sent.
"""

import importlib
import struct
from functools import cache
from types import TracebackType

from ottla.protocol.codec import decode, encode
from ottla.protocol.message import Message, parse_versions
from ottla.protocol.plan import schema_of
from support.wire import Connection

API_VERSIONS = 18


@cache
def answer_class(request_class: type[Message]) -> type[Message]:
    """The class of the answers to a class of requests."""
    module = importlib.import_module(request_class.__module__)
    found = getattr(module, request_class.__name__.removesuffix("Request") + "Response")
    assert issubclass(found, Message)
    return found


def versions_of(request_class: type[Message]) -> range:
    """Every version Ottla offers of an API."""
    return schema_of(request_class).range().numbers()


class TypedConnection:
    """One connection; usable as a context."""

    def __init__(self, bootstrap: str, *, client_id: str = "raw-test") -> None:
        self._connection = Connection(bootstrap)
        self._client_id = client_id.encode()
        self._correlation_id = 0

    def __enter__(self) -> "TypedConnection":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def send(self, request: Message, version: int) -> None:
        """Sends a request and does not wait for its answer."""
        schema = schema_of(type(request))
        self._correlation_id += 1
        header = struct.pack(
            ">hhih", schema.api_key, version, self._correlation_id, len(self._client_id)
        )
        tags = b"\0" if version in parse_versions(schema.flexible) else b""
        body = header + self._client_id + tags + encode(request, version)
        self._connection.send_bytes(struct.pack(">i", len(body)) + body)

    def receive(self, request_class: type[Message], version: int) -> Message:
        """The answer to a request that was sent; nothing but it may be in the frame."""
        frame = memoryview(self._connection.receive_frame())
        schema = schema_of(request_class)
        is_flexible = version in parse_versions(schema.flexible)
        has_tags = is_flexible and schema.api_key != API_VERSIONS
        return decode(answer_class(request_class), frame[5 if has_tags else 4 :], version)

    def call(self, request: Message, version: int) -> Message:
        """Sends a request and returns its answer."""
        self.send(request, version)
        return self.receive(type(request), version)
