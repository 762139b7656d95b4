"""Messages to bytes and back: encoders and decoders, compiled when first asked for.

    decode_produce = decoder(ProduceRequest, 9)
    request = decode_produce(frame, body_position)

Each (message, version) is compiled once, on first use, from the source that `decoder_source` and
`encoder_source` write; a process compiles what its peers speak and no more.
"""

from __future__ import annotations

from functools import cache
from typing import Protocol, TypeVar, cast

from ottla.model.file_region import FileRegion
from ottla.protocol.decoder_source import DecoderSource
from ottla.protocol.encoder_source import EncoderSource
from ottla.protocol.message import Message
from ottla.protocol.plan import plan_message

M = TypeVar("M", bound=Message)
M_co = TypeVar("M_co", bound=Message, covariant=True)

Regions = list[tuple[int, FileRegion]]
"""Runs of file bytes, each with the position in the encoded bytes where it belongs."""

Lent = list[tuple[int, memoryview]]
"""The same for long records that stand in memory and are not copied."""


class Encoder(Protocol):
    """Appends a message to `out`; long records too, unless their sender lends them."""

    def __call__(
        self,
        message: Message,
        out: bytearray,
        regions: Regions | Lent,
        lends: bool = False,
        /,
    ) -> None: ...


class Decoder(Protocol[M_co]):
    """Reads the message that starts at `position`; raises ProtocolError."""

    def __call__(self, buffer: memoryview, position: int = 0, /) -> M_co: ...


def decoder(message_class: type[M], version: int) -> Decoder[M]:
    """The decoder of one version of a message."""
    return cast("Decoder[M]", _decoder(message_class, version))


@cache
def _decoder(message_class: type[Message], version: int) -> Decoder[Message]:
    writer = DecoderSource(plan_message(message_class, version))
    source = writer.write()
    return cast("Decoder[Message]", _compile(source, writer.names, "decode"))


@cache
def encoder(message_class: type[Message], version: int) -> Encoder:
    """The encoder of one version of a message: `encode(message, out, regions)` appends to `out`."""
    writer = EncoderSource(plan_message(message_class, version))
    source = writer.write()
    return cast("Encoder", _compile(source, writer.names, "encode"))


def decode(message_class: type[M], buffer: bytes | bytearray | memoryview, version: int) -> M:
    """Read the message at the start of the buffer."""
    return decoder(message_class, version)(memoryview(buffer))


def encode(message: Message, version: int) -> bytes:
    """The bytes of a message that holds no file regions."""
    out = bytearray()
    regions: Regions = []
    encoder(type(message), version)(message, out, regions)
    assert not regions, "a message with file regions has no bytes of its own"
    return bytes(out)


def _compile(source: str, names: dict[str, object], function: str) -> object:
    namespace = dict(names)
    exec(compile(source, f"<{function}>", "exec"), namespace)
    return namespace[function]
