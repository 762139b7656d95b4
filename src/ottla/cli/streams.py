"""`ottla streams`: run an application on Spark, or show its topology."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from ottla.cli.connection_options import bootstrap, bootstrap_option, json_option
from ottla.cli.ending import Ending
from ottla.cli.streams_display import Display, Report, open_display
from ottla.cli.streams_file import MODULE, application_in, load, topology_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ottla.streams import Streams

_LOOK_S: Final = 0.5
_QUICK_START: Final = {
    "spark.driver.extraJavaOptions": (
        "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData -Xshare:auto"
    )
}
"""A Java that never compiles twice has a session with a third less work, and is slower later."""
_file = click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))


@click.group()
def streams() -> None:
    """Run a streams application on Spark, or show its topology.

    FILE is Python: it draws a topology, and leaves it in a variable, or a Streams object.
    """


@streams.command()
@_file
@click.option("--app-id", help="The application's name, if FILE has only a topology.")
@click.option(
    "--checkpoint",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where progress and state are kept.  [default: ~/.ottla/streams/APP-ID]",
)
@click.option("--once", is_flag=True, help="Work off what there is, and end.")
@click.option("--cores", type=click.IntRange(min=1), help="How many tasks run at a time.")
@click.option("--quick-start", is_flag=True, help="Start Java sooner, for short runs.")
@json_option
@bootstrap_option
def run(
    file: Path,
    app_id: str | None,
    checkpoint: Path | None,
    once: bool,
    cores: int | None,
    quick_start: bool,
    as_json: bool,
) -> None:
    """Run the application in FILE until Ctrl-C."""
    app = _application(file, app_id, checkpoint)
    ending = Ending().listen()
    with open_display(app.app_id, as_json=as_json) as display:
        display.show(Report("Spark starts"))
        with _quiet_session(app.app_id, cores, quick_start=quick_start) as spark:
            ending.listen()  # Spark has taken Ctrl-C for itself
            display.show(Report("queries start"))
            with app.start(spark):
                ending.work_begins()
                _watch(app, display, ending, once=once)


def _watch(app: Streams, display: Display, ending: Ending, *, once: bool) -> None:
    """Shows how the application does, until it has ended or somebody wants it to."""
    count = len(app.queries)
    stage = f"{app.app_id} runs with {count} {'query' if count == 1 else 'queries'}"
    if once:
        display.show(Report(stage))
        app.catch_up()
        display.show(Report(stage, tuple(app.progress())))
        return
    while not ending.is_wanted and not app.wait(_LOOK_S):
        display.show(Report(stage, tuple(app.progress())))


@streams.command()
@_file
def describe(file: Path) -> None:
    """Show the topology in FILE."""
    click.echo(str(topology_in(load(file))))


def _application(file: Path, app_id: str | None, checkpoint: Path | None) -> Streams:
    module = load(file)
    app = application_in(module)
    if app is not None:
        if app_id is not None or checkpoint is not None:
            raise click.UsageError(f"{file} makes its own application: set it there")
        return app
    from ottla.streams import Streams

    return Streams(
        topology_in(module),
        app_id=app_id or file.stem,
        bootstrap_servers=bootstrap(),
        checkpoint=checkpoint,
    )


@contextmanager
def _quiet_session(app_id: str, cores: int | None, *, quick_start: bool) -> Iterator[SparkSession]:
    """A Spark that does not talk into the display, and knows the file's functions."""
    from pyspark import cloudpickle

    from ottla.spark.local_spark import session

    cloudpickle.register_pickle_by_value(sys.modules[MODULE])  # type: ignore[no-untyped-call]
    complaints = Path(tempfile.gettempdir()) / f"ottla-streams-{os.getpid()}.log"
    with _errors_to_file(complaints):
        spark = session(app_id, cores=cores, settings=_QUICK_START if quick_start else None)
        spark.sparkContext.setLogLevel("ERROR")
    try:
        yield spark
    finally:
        with _errors_to_file(complaints):  # PySpark's own threads miss the Java that they talk to
            spark.stop()
    complaints.unlink(missing_ok=True)  # kept where something went wrong


@contextmanager
def _errors_to_file(path: Path) -> Iterator[None]:
    """Complaints of this process go there meanwhile; those of what it starts, which is Java, as
    long as that runs."""
    kept = os.dup(2)
    with path.open("ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
