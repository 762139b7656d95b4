"""What a small pipeline costs on Spark beside its rows: start-up, an idle query, a single record.

    python bench/spark_costs.py [--jars DIR] [--idle-seconds 30] [--records 50]

Each connector has a Spark of its own, started in a process of its own, and one broker serves all.
A query copies one topic into another, triggered as fast as Spark goes; last comes a Streams
application that counts by key. Lines of JSON:

    start-up   seconds from the program's first line to a session, to the first rows read, to a
               query's first result
    latency    milliseconds from a record's send until a consumer has its copy, one at a time, when
               nothing else is under way
    idle       CPU seconds a minute of Spark's JVM and of its Python workers without any record

With --jars (see spark_connectors.py) Spark's own connector is measured as well, and the last lines
are the ratios, where more than 1 means that ours takes less. Latency and start-up mean something
on a quiet machine only.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from meter import cpu_by_process
from spark_connectors import OURS, THEIRS, spark_pid

Figures = dict[str, float]
WAIT_S = 120.0
WARM_UP_RECORDS = 10
EXACTLY_ONCE = "ottla exactly-once"
STREAMS = "streams, a count"
DELIVERY = {OURS: "at-least-once", EXACTLY_ONCE: "exactly-once", THEIRS: ""}
LABELS = (*DELIVERY, STREAMS)
PARTITIONS = 2


def measure(label: str, bootstrap: str, arguments: argparse.Namespace) -> None:
    """All measurements of one connector, in this process."""
    begun = time.perf_counter()
    import ottla
    import ottla.spark

    jars = sorted(arguments.jars.glob("*.jar")) if label == THEIRS else []
    settings = {"spark.jars": ",".join(str(jar) for jar in jars)} if jars else {}
    spark = ottla.spark.session("costs", settings=settings)
    spark.sparkContext.setLogLevel("ERROR")
    session_s = time.perf_counter() - begun
    name = THEIRS if label == THEIRS else OURS
    options = {"kafka.bootstrap.servers": bootstrap}
    source, target = f"from-{label.replace(' ', '-')}", f"to-{label.replace(' ', '-')}"
    with ottla.Admin(bootstrap) as admin:
        admin.create_topics(ottla.NewTopic(source, PARTITIONS), ottla.NewTopic(target, PARTITIONS))
    with ottla.Producer(bootstrap) as producer:
        producer.send(source, b"first")
    read = spark.read.format(name).options(**options, subscribe=source).load()
    assert read.count() == 1
    read_s = time.perf_counter() - begun
    frame = spark.readStream.format(name).options(**options, subscribe=source)
    copied = frame.option("startingOffsets", "earliest").load().select("key", "value")
    writer = copied.writeStream.format(name).options(**options, topic=target)
    if DELIVERY[label]:
        writer = writer.option("delivery", DELIVERY[label])
    with tempfile.TemporaryDirectory() as checkpoint, Echo(bootstrap, source, target) as echo:
        query = writer.option("checkpointLocation", checkpoint).start()
        try:
            echo.wait()
            first_s = time.perf_counter() - begun
            report(
                label, "start-up", session_s=session_s, first_read_s=read_s, first_copy_s=first_s
            )
            report_running(label, echo, spark_pid(spark), arguments)
        finally:
            query.stop()
            spark.stop()


def measure_streams(label: str, bootstrap: str, arguments: argparse.Namespace) -> None:
    """The same of a Streams application that counts by key, exactly once, state and changelog."""
    begun = time.perf_counter()
    import ottla
    import ottla.spark
    from ottla.streams import Streams, StreamsBuilder

    spark = ottla.spark.session("costs")
    spark.sparkContext.setLogLevel("ERROR")
    session_s = time.perf_counter() - begun
    with ottla.Admin(bootstrap) as admin:
        for topic in ("events", "counted"):
            admin.create_topics(ottla.NewTopic(topic, PARTITIONS))
    with ottla.Producer(bootstrap) as producer:
        producer.send("events", b"first", key=b"one")
    builder = StreamsBuilder(value="str")
    builder.stream("events").group_by_key().count(store="counts").to_stream().to("counted")
    with tempfile.TemporaryDirectory() as checkpoint, Echo(bootstrap, "events", "counted") as echo:
        application = Streams(
            builder.build(), app_id="costs", bootstrap_servers=bootstrap, checkpoint=checkpoint
        )
        with application.start(spark):
            echo.wait()
            first_s = time.perf_counter() - begun
            report(label, "start-up", session_s=session_s, first_copy_s=first_s)
            report_running(label, echo, spark_pid(spark), arguments)
    spark.stop()


class Echo:
    """Sends a record into one topic and waits for its copy in another."""

    def __init__(self, bootstrap: str, source: str, target: str) -> None:
        import ottla
        from ottla.model.ids import TopicPartition

        self._source = source
        self._producer = ottla.Producer(bootstrap, linger_ms=0)
        self._consumer = ottla.Consumer(
            bootstrap_servers=bootstrap,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            fetch_max_wait_ms=500,
        )
        self._consumer.assign(TopicPartition(target, n) for n in range(PARTITIONS))

    def __enter__(self) -> Echo:
        return self

    def __exit__(self, *_: object) -> None:
        self._producer.close()
        self._consumer.close()

    def wait(self) -> None:
        """Returns when the next copy is there."""
        until = time.monotonic() + WAIT_S
        while time.monotonic() < until:
            if list(self._consumer.poll(1.0)):
                return
        raise SystemExit(f"no copy came within {WAIT_S:.0f} s")

    def seconds(self) -> float:
        """How long one record takes."""
        begun = time.perf_counter()
        self._producer.send(self._source, b"x", key=b"one")
        self._producer.flush()
        self.wait()
        return time.perf_counter() - begun


def latency(echo: Echo, records: int) -> Figures:
    for _ in range(WARM_UP_RECORDS):
        echo.seconds()
    taken_ms = sorted(echo.seconds() * 1000 for _ in range(records))
    return {
        "median_ms": statistics.median(taken_ms),
        "least_ms": taken_ms[0],
        "p90_ms": taken_ms[int(len(taken_ms) * 0.9)],
    }


def idle(pid: int, seconds: float) -> Figures:
    time.sleep(2)  # what the last record left to do
    begun, before = time.perf_counter(), cpu_by_process(pid)
    time.sleep(seconds)
    after, passed = cpu_by_process(pid), time.perf_counter() - begun
    used = sum(spent - before.get(one, 0.0) for one, spent in after.items())
    return {"cpu_s_per_minute": used / passed * 60}


def report_running(label: str, echo: Echo, pid: int, arguments: argparse.Namespace) -> None:
    """What a query that runs costs."""
    report(label, "latency", **latency(echo, arguments.records))
    report(label, "idle", **idle(pid, arguments.idle_seconds))


def report(label: str, what: str, **figures: float) -> None:
    rounded = {name: round(value, 3) for name, value in figures.items()}
    print(json.dumps({"what": what, "connector": label, **rounded}), flush=True)


def ratios(lines: list[dict[str, float | str]]) -> None:
    """Theirs by ours, figure by figure."""
    theirs = {line["what"]: line for line in lines if line["connector"] == THEIRS}
    for line in lines:
        other = theirs.get(line["what"])
        if other is None or line["connector"] in (THEIRS, STREAMS):
            continue
        found = {
            name: round(float(other[name]) / float(value), 2)
            for name, value in line.items()
            if name not in ("what", "connector") and float(value)
        }
        print(json.dumps({"what": f"{line['what']}, {line['connector']} : {THEIRS}", **found}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--jars", type=Path)
    parser.add_argument("--idle-seconds", type=float, default=30.0)
    parser.add_argument("--records", type=int, default=50)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--bootstrap", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        work = measure_streams if arguments.one == STREAMS else measure
        work(arguments.one, arguments.bootstrap, arguments)
        return
    from ottla.testing import ChildBroker

    lines = []
    with ChildBroker() as broker:
        for label in LABELS:
            if label == THEIRS and not arguments.jars:
                continue
            found = run_apart(label, broker.bootstrap_servers)
            print("\n".join(found), flush=True)
            lines += [json.loads(line) for line in found]
    ratios(lines)


def run_apart(label: str, bootstrap: str) -> list[str]:
    """The lines that a process of its own prints for one connector."""
    command = [sys.executable, __file__, "--one", label, "--bootstrap", bootstrap, *sys.argv[1:]]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=1800)
    return done.stdout.splitlines()


if __name__ == "__main__":
    main()
