"""Record batches: a view over bytes nobody copies, and the few things that look inside one.

batch.py        the 61-byte header of a version 2 batch, checksum, in-place stamping, splitting
record.py       records inside a batch: decode, encode, check
builder.py      make a batch from records
control.py      the markers that end a transaction
rewrite.py      recompress a batch, or keep only some of its records
message_set.py  the old formats: messages of magic 0 and 1
legacy.py       conversion between the old formats and version 2
compression.py  gzip, snappy, lz4 and zstd, with a limit on what comes out
lz4_header.py   the header checksum old clients get wrong
rows.py         whole batches from and to rows at once
arrow_*.py      whole batches from and to Arrow tables
accelerated/    the loops of these, compiled where that is possible; speed.py chooses
"""
