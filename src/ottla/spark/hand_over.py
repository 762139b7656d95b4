"""How a task's record batches reach the driver: with its result, or in a file where they are many.

A file is for both only where both see it: in the local directory of a Spark that is one process,
task and driver alike, or in a directory that the person has named. Elsewhere everything goes with
the task's result, through Spark, which has a limit.

Invariants:
1. A file belongs to one attempt of a task; only the result that Spark takes names it.
2. Runs keep their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Final

from ottla.errors import ConfigError
from ottla.spark.row_encoder import EncodedRun
from ottla.spark.staged_batches import StagedBatches, StagingFile, remove

RESULT_BYTES_MAX: Final = 512 * 1024
"""What goes with a result though there is a place for files. A result of a MiB or more takes a
longer way through Spark: spark.task.maxDirectResultSize."""
TASK_BYTES_MAX: Final = 512 * 1024 * 1024
"""What goes with a result where there is none; Spark limits the sum: spark.driver.maxResultSize."""


def staging_directory(named: str, drivers: str, tasks: str) -> str:
    """Where a task leaves files for its driver; nothing where it has no such place."""
    if named:
        return named
    return drivers if drivers == tasks else ""


def hand_over(runs: Iterator[EncodedRun], directory: str) -> list[EncodedRun]:
    """The runs as they go with the task's result; many in a file, if there is a directory."""
    held: list[EncodedRun] = []
    size_bytes = 0
    for run in runs:
        held.append(run)
        size_bytes += run.size_bytes
        if directory and size_bytes > RESULT_BYTES_MAX:
            return _staged(chain(held, runs), directory)
        if size_bytes > TASK_BYTES_MAX:
            raise ConfigError(
                "delivery",
                f"a task has more than {TASK_BYTES_MAX} bytes for one transaction",
                "set stagingDirectory to one that driver and executors share, limit the "
                "micro-batch (maxOffsetsPerTrigger), or use delivery=at-least-once",
            )
    return held


def forget(runs: Iterable[EncodedRun]) -> None:
    """Removes the files of runs that are written, or will never be."""
    remove({run.batches.path for run in runs if isinstance(run.batches, StagedBatches)})


def _staged(runs: Iterable[EncodedRun], directory: str) -> list[EncodedRun]:
    with StagingFile(directory) as file:
        return [replace(run, batches=file.add(run.batches)) for run in runs]
