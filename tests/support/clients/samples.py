"""Records that every client is given, whatever its language."""

from support.clients.face import ToSend

NULLS_AND_EMPTIES = (
    ToSend(b"no key"),
    ToSend(b"empty key", key=b""),
    ToSend(b"", key=b"empty value"),
    ToSend(None, key=b"null value"),
    ToSend(b"\0\xff\x80", key=b"\xff\0"),
)


def text_of(number: int) -> bytes:
    """Something that compresses."""
    return f"record {number}, said again and again so that it compresses ".encode() * 5
