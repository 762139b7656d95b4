"""Measures Ottla beside Apache Kafka in the same run and prints the ratios against the bars.

    python bench/run.py --against kafka                   everything; about 25 minutes
    python bench/run.py --against kafka --quick           a rough look in a few minutes
    python bench/run.py --only produce,latency            some groups, Ottla alone
    python bench/run.py --only clients                    Python's clients beside each other
    python bench/run.py --against kafka --only cluster    clusters of three, one at a time
    python bench/run.py --bootstrap HOST:PORT --pid PID   any broker that is already running
    python bench/run.py --report bench/results/X.jsonl    the table of an earlier run

Every measurement is a JSON line in bench/results/. The brokers take turns, so that what disturbs
the machine meets both; a figure in the table is the median of the repetitions. Rows marked
"disturbed" saw other processes use more than an eighth of the machine: measure again.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec
import report
from brokers import ApacheKafka, Broker, GivenBroker, NotPossible, OttlaBroker
from cluster_brokers import RunningCluster
from recycled_memory import RecycledMemory, recycled_memory
from scenarios import MEGABYTE, Effort, Scenario, scenarios, warm_up

import clients
import cluster
import groups
import transactions

RESULTS = Path(__file__).resolve().parent / "results"
QUICK = Effort(seconds=1.0, scale=0.1, memory_records=1_000_000, growth_bytes=500 * MEGABYTE)


def main(arguments: list[str]) -> int:
    """Run what was asked for; return 1 when a bar was missed or a scenario of ours failed."""
    options = _parse(arguments)
    known = (
        *scenarios(),
        *clients.scenarios(),
        *groups.scenarios(),
        *transactions.scenarios(),
        *cluster.scenarios(),
    )
    chosen = [one for one in known if _is_chosen(one, options.only)]
    if options.list:
        print("\n".join(f"{one.group:<16}{one.name}" for one in chosen))
        return 0
    if options.report:
        lines = options.report.read_bytes().splitlines()
        results = [msgspec.json.decode(line, type=report.Result) for line in lines]
    else:
        results = list(_measure_all(chosen, options))
    rows = list(report.rows(chosen, results, _our_name(options)))
    if beside := clients.tables(results):
        print(beside, end="\n\n")
    print(report.table(rows, _our_name(options)))
    print(report.verdict(rows))
    return 1 if any(row.is_bad() for row in rows) else 0


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--against", choices=["kafka", "none"], default="none", help="what to measure beside Ottla")
    add("--bootstrap", help="measure the broker at this address instead of starting Ottla")
    add("--pid", type=int, help="the process of that broker, for its CPU and memory")
    add("--only", default="", help="groups, with commas; see --list")
    add("--list", action="store_true", help="name the measurements and end")
    add("--quick", action="store_true", help="a tenth of the load, once")
    add("--repeat", type=int, default=3, help="repetitions of each measurement")
    add("--seconds", type=float, help="length of each wire measurement")
    add("--growth-gb", type=float, help="how much the growth measurement stores")
    add("--partitions", type=int, help="of the start with many partitions")
    add("--data", type=Path, help="folder for the brokers' data; a temporary one otherwise")
    add("--kafka-port", type=int, default=19592)
    add("--report", type=Path, help="print the table of this result file and end")
    return parser.parse_args(arguments)


def _is_chosen(scenario: Scenario, only: str) -> bool:
    words = [word.strip() for word in only.split(",") if word.strip()]
    fits = [scenario.group == word or scenario.group.startswith(word + "-") for word in words]
    return any(fits) or not words


def _our_name(options: argparse.Namespace) -> str:
    return options.bootstrap or OttlaBroker.name


def _effort(options: argparse.Namespace) -> Effort:
    effort = QUICK if options.quick else Effort()
    return dataclasses.replace(
        effort,
        seconds=options.seconds or effort.seconds,
        growth_bytes=int((options.growth_gb or 0) * 1e9) or effort.growth_bytes,
        partitions=options.partitions or effort.partitions,
    )


@contextmanager
def _brokers(options: argparse.Namespace) -> Iterator[list[Broker]]:
    """The brokers to measure, running; stopped and forgotten afterwards."""
    with ExitStack() as stack:
        folder = options.data or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        started: list[Broker] = []
        if not options.bootstrap:
            started.append(OttlaBroker(folder))
        if options.against == "kafka":
            if not ApacheKafka.is_available():
                raise SystemExit("Apache Kafka cannot be started: see bench/brokers.py")
            started.append(ApacheKafka(folder, options.kafka_port))
        for broker in started:
            stack.callback(broker.remove_data)
            stack.callback(broker.stop)
            print(f"{broker.name} answers after {broker.start():.2f} s", flush=True)
        given: list[Broker] = []
        if options.bootstrap:
            given.append(GivenBroker(options.bootstrap, options.bootstrap, options.pid))
        yield given + started


def _measure_all(chosen: list[Scenario], options: argparse.Namespace) -> Iterator[report.Result]:
    """Run the scenarios and write each result down as it comes."""
    RESULTS.mkdir(exist_ok=True)
    file = RESULTS / f"{datetime.datetime.now():%Y-%m-%d-%H%M%S}.jsonl"
    print(f"results go to {file}", flush=True)
    on_one = [one for one in chosen if not cluster.is_clustered(one)]
    on_three = [one for one in chosen if cluster.is_clustered(one)]
    with recycled_memory(options.data) as memory:
        for part, measure in ((on_one, _measure), (on_three, _measure_clusters)):
            for result in measure(part, memory, options) if part else ():
                with open(file, "ab") as out:
                    out.write(msgspec.json.encode(result) + b"\n")
                yield result


def _measure(
    chosen: list[Scenario], memory: RecycledMemory, options: argparse.Namespace
) -> Iterator[report.Result]:
    """The brokers taking turns."""
    with _brokers(options) as brokers:
        yield from _in_turns(chosen, brokers, memory, options)


def _measure_clusters(
    chosen: list[Scenario], memory: RecycledMemory, options: argparse.Namespace
) -> Iterator[report.Result]:
    """One cluster runs at a time."""
    effort = _effort(options)
    with tempfile.TemporaryDirectory(dir=options.data) as folder:
        turns = cluster.turns(
            chosen,
            Path(folder),
            beside_kafka=options.against == "kafka",
            repeat=1 if options.quick else options.repeat,
        )
        for running, scenarios_of_it in turns:
            for scenario in scenarios_of_it:
                memory.fill()
                yield _run(scenario, running, effort)


def _in_turns(
    chosen: list[Scenario],
    brokers: list[Broker],
    memory: RecycledMemory,
    options: argparse.Namespace,
) -> Iterator[report.Result]:
    effort = _effort(options)
    is_warm = False
    for scenario in chosen:
        if scenario.group not in ("startup", clients.GROUP) and not is_warm:
            for broker in brokers:
                print(f"warming up {broker.name}", flush=True)
                warm_up(broker)
            is_warm = True
        once = options.quick or scenario.group in ("growth", "memory", "partitions")
        for _ in range(1 if once else options.repeat):
            for broker in brokers:
                if scenario.group == "growth":
                    memory.release()  # What is stored has to fit in, or the disk is measured.
                else:
                    memory.fill()
                yield _run(scenario, broker, effort)


def _run(scenario: Scenario, broker: Broker | RunningCluster, effort: Effort) -> report.Result:
    """One measurement; a failure becomes a result that tells of it."""
    now = datetime.datetime.now().isoformat(timespec="seconds")
    try:
        figures = scenario.run(broker, effort)
    except NotPossible as problem:
        figures, error = {}, f"{report.SKIPPED}: {problem}"
    except Exception as problem:
        figures, error = {}, f"failed: {type(problem).__name__}: {problem}"
    else:
        error = ""
    headline = next((bar.figure for bar in scenario.bars), next(iter(scenario.shown), ""))
    told = error or f"{headline} {figures.get(headline, 0):,.2f}"
    print(f"  {scenario.name} · {broker.name}: {told}", flush=True)
    return report.Result(scenario.name, broker.name, figures, error, now)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
