"""Chooses the loops over records: the compiled ones where they were built, else the same in Python.

The only place that knows of the choice. Both give the same answers; see ottla.records.accelerated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.records.batch import HEADER_BYTES, RecordBatch
from ottla.records.compression import DECOMPRESSED_BYTES_MAX
from ottla.records.lz4_header import Data

if TYPE_CHECKING:
    from ottla.records.accelerated import decoding, encoding
else:
    try:
        from ottla.records.accelerated import decoding_compiled as decoding
        from ottla.records.accelerated import encoding_compiled as encoding
    except ImportError:
        from ottla.records.accelerated import decoding, encoding

check_produced: Final = decoding.check_produced
"""As a name of its own: compiled modules would look for a module's function in its source."""
IS_ACCELERATED: Final = decoding.IS_COMPILED
"""Whether the loops are the compiled ones."""


def payload_of(batch: RecordBatch, limit_bytes: int = DECOMPRESSED_BYTES_MAX) -> Data:
    """The records' bytes: a copy only where they were compressed."""
    if batch.is_compressed:
        return batch.payload(limit_bytes)
    return batch.view[HEADER_BYTES:]


__all__ = ["IS_ACCELERATED", "check_produced", "decoding", "encoding", "payload_of"]
