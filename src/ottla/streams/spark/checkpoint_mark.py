"""A note beside each query's checkpoint on what it is of, so that another topology does not go on
from it.

Only for checkpoints in a folder; those of other file systems are Spark's alone.
"""

from __future__ import annotations

from pathlib import Path

from ottla.streams.failures import TopologyError
from ottla.streams.topology import Subtopology


def mark_checkpoint(checkpoint: str, part: Subtopology) -> None:
    """Leaves the note, or compares with the one that is there."""
    if "://" in checkpoint:
        return
    file = Path(checkpoint) / f"{part.id}.topology"
    now = _description(part)
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(now)
        return
    before = file.read_text()
    if before != now:
        raise TopologyError(
            f"the checkpoint {checkpoint} is of another topology: sub-topology {part.id} had "
            f"{_in_words(before)}, now has {_in_words(now)}; use another app_id and checkpoint"
        )


def _description(part: Subtopology) -> str:
    lines = [f"topic {topic}" for topic in part.topics()]
    lines += [f"store {store.name}" for store in part.stores if not store.is_global]
    return "".join(f"{line}\n" for line in sorted(lines))


def _in_words(description: str) -> str:
    return ", ".join(description.splitlines())
