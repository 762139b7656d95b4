"""`ottla demo`: a broker with records going through it, and a pipeline on Spark, at one command."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

import click

from ottla import __version__
from ottla.cli.demonstration import pipeline_process
from ottla.cli.demonstration.broker_process import (
    RunningBroker,
    default_data,
    free_address,
    started_broker,
)
from ottla.cli.demonstration.dashboard import open_dashboard
from ottla.cli.demonstration.first_records import TOPIC, show_first_records
from ottla.cli.demonstration.pipeline_process import PipelineProcess, running_pipeline
from ottla.cli.demonstration.show import COUNTS, SERVED, prepare_topics, show_pipeline
from ottla.cli.demonstration.tally import Tally
from ottla.cli.ending import signals_handled
from ottla.cli.exit_code import ExitCode
from ottla.cli.message import note, say, say_error
from ottla.clients.address import DEFAULT_PORT, parse_address

PROBLEMS_SAID: Final = 5


@click.command()
@click.option("--listen", metavar="HOST:PORT", help="[default: 127.0.0.1:9092 or the next free]")
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    help="The directory that holds the data.  [default: ~/.local/share/ottla/demo]",
)
@click.option("--no-spark", is_flag=True, help="Only the broker, without the pipeline on Spark.")
@click.option("--once", is_flag=True, help="End when the results were seen and are right.")
def demo(listen: str | None, data: Path | None, no_spark: bool, once: bool) -> int:
    """Start a broker, watch records flow through it and a pipeline on Spark, until Ctrl-C.

    The topics of its pipeline, demo-orders and so on, begin anew each time.
    """
    place = parse_address(listen) if listen else free_address()
    directory = data or default_data()
    directory.mkdir(parents=True, exist_ok=True)
    with _signals_interrupt(), started_broker(place, directory) as broker:
        if broker is None:
            return ExitCode.FAILED
        say(f"Ottla {__version__} serves Kafka's protocol on {broker.address}.")
        if no_spark or not pipeline_process.can_run():
            return _show_broker(broker, once=once, wants_spark=not no_spark)
        return _show_all(broker, once=once)


def _show_broker(broker: RunningBroker, *, once: bool, wants_spark: bool) -> int:
    with _ctrl_c_stops():
        asyncio.run(show_first_records(broker.address))
        if wants_spark:
            note("The second part, a pipeline on Spark, needs: pip install 'ottla[spark]'")
        return ExitCode.OK if once else _keep_running(broker)
    return ExitCode.OK


def _show_all(broker: RunningBroker, *, once: bool) -> int:
    """Spark starts while the first records are shown."""
    asyncio.run(prepare_topics(broker.address))
    with running_pipeline(broker.address) as pipeline, _ctrl_c_stops():
        asyncio.run(show_first_records(broker.address))
        say(f"\nA pipeline on Spark: {pipeline_process.FILE}\n")
        if not once:
            _say_what_next(broker, COUNTS, SERVED)
        with open_dashboard() as dashboard:
            tally = asyncio.run(show_pipeline(broker.address, pipeline, dashboard, once=once))
        is_right = _judge(pipeline, tally)
        if once:
            return ExitCode.OK if is_right else ExitCode.FAILED
        return _keep_running(broker)
    return ExitCode.OK


def _judge(pipeline: PipelineProcess, tally: Tally) -> bool:
    """Says whether the results are what they must be."""
    if pipeline.has_ended:
        say_error(f"the pipeline has ended.\n{pipeline.trouble}")
        return False
    problems = tally.problems()
    if problems:
        say_error("the results are not what they must be.")
        for problem in problems[:PROBLEMS_SAID]:
            say(f"  {problem}")
        return False
    say(f"Right: {tally.ordered} orders, each joined once and counted once.")
    return True


def _keep_running(broker: RunningBroker) -> int:
    """Returns when the broker ends; Ctrl-C raises."""
    _say_what_next(broker, TOPIC)
    return ExitCode.OK if broker.process.wait() == 0 else ExitCode.FAILED


def _say_what_next(broker: RunningBroker, *topics: str) -> None:
    is_default = str(broker.address) == f"127.0.0.1:{DEFAULT_PORT}"
    option = "" if is_default else f" -b {broker.address}"
    looks = "\n".join(f"  ottla{option} consume {topic} --keys" for topic in topics)
    say(
        f"""The broker keeps running; its data is in {broker.data}. Ctrl-C stops it.
In another terminal:
{looks}
  ottla{option} groups lag
  echo hello | ottla{option} produce greetings --create
From Python, with this client or any other for Kafka:
  import ottla
  with ottla.Producer("{broker.address}") as producer:
      producer.send("greetings", "hello from Python")
"""
    )


@contextmanager
def _ctrl_c_stops() -> Iterator[None]:
    """Ctrl-C ends what is shown with a word, before what runs is stopped, which takes a moment."""
    try:
        yield
    except KeyboardInterrupt:
        say("\nStopping.")


@contextmanager
def _signals_interrupt() -> Iterator[None]:
    """SIGTERM and a closed terminal end the demonstration as Ctrl-C does: nothing is left over."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        del number, frame
        signal.raise_signal(signal.SIGINT)

    with signals_handled((signal.SIGTERM, signal.SIGHUP), interrupt):
        yield
