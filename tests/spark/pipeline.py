"""A Spark program for tests to kill: copies one topic into another, exactly once.

    python pipeline.py BOOTSTRAP SOURCE TARGET CHECKPOINT [STEP]

With a step (take_over, append, note, end) the first micro-batch that comes so far kills the JVM and
this program right after it, as a power cut would. A file beside the checkpoint says that it did.
"""

import os
import signal
import sys
from pathlib import Path

import ottla.spark
from ottla.spark import batch_commit
from ottla.spark.data_source import OttlaDataSource


class DyingCommit(batch_commit.BatchCommit):
    """Dies after one of its steps."""

    async def take_over(self) -> None:
        await super().take_over()
        die_after("take_over")

    async def append(self) -> None:
        await super().append()
        die_after("append")

    async def note(self) -> None:
        await super().note()
        die_after("note")

    async def end(self) -> None:
        await super().end()
        die_after("end")


def die_after(step: str) -> None:
    if os.environ.get("DIE_AFTER") != step:
        return
    marker = Path(os.environ["DIE_MARKER"])
    if marker.exists():
        return
    marker.write_text(step)
    for pid in (int(os.environ["DRIVER_PID"]), *jvm_of(os.getpid()), os.getpid()):
        os.kill(pid, signal.SIGKILL)


def jvm_of(pid: int) -> list[int]:
    """The processes above this one, up to the JVM: Spark's daemon for Python, and the JVM."""
    found = []
    while pid > 1:
        pid = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
        if pid > 1:
            found.append(pid)
        if "java" in Path(f"/proc/{pid}/comm").read_text():
            break
    return found


class DyingDataSource(OttlaDataSource):
    """The format, with a driver that dies."""

    def streamWriter(self, schema, overwrite):  # type: ignore[no-untyped-def]  # noqa: N802
        batch_commit.BatchCommit = DyingCommit  # type: ignore[misc]
        return super().streamWriter(schema, overwrite)


def main(bootstrap: str, source: str, target: str, checkpoint: str, step: str = "") -> None:
    os.environ["DIE_AFTER"] = step
    os.environ["DIE_MARKER"] = checkpoint + ".died"
    os.environ["DRIVER_PID"] = str(os.getpid())
    spark = ottla.spark.session("killed", cores=2)
    spark.sparkContext.setLogLevel("ERROR")
    spark.dataSource.register(DyingDataSource)
    options = {"kafka.bootstrap.servers": bootstrap}
    frame = (
        spark.readStream.format("ottla")
        .options(**options, subscribe=source, startingOffsets="earliest")
        .option("maxOffsetsPerTrigger", "30")
        .load()
        .select("key", "value")
    )
    query = (
        frame.writeStream.format("ottla")
        .options(**options, topic=target, checkpointLocation=checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
