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

from ottla.cli.connection_options import bootstrap, bootstrap_option
from ottla.cli.message import note
from ottla.cli.streams_display import open_display
from ottla.cli.streams_file import MODULE, application_in, load, topology_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ottla.streams import Streams

_LOOK_S: Final = 0.5
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
@bootstrap_option
def run(
    file: Path, app_id: str | None, checkpoint: Path | None, once: bool, cores: int | None
) -> None:
    """Run the application in FILE until Ctrl-C."""
    app = _application(file, app_id, checkpoint)
    spark = _quiet_session(app.app_id, cores)
    try:
        with app.start(spark), open_display(app.app_id) as show:
            note(f"{app.app_id} runs with {len(app.queries)} queries")
            if once:
                app.catch_up()
                show(app.progress())
                return
            while not app.wait(_LOOK_S):
                show(app.progress())
    finally:
        spark.stop()


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


def _quiet_session(app_id: str, cores: int | None) -> SparkSession:
    """A Spark that does not talk into the display, and knows the file's functions."""
    from pyspark import cloudpickle

    from ottla.spark.local_spark import session

    cloudpickle.register_pickle_by_value(sys.modules[MODULE])  # type: ignore[no-untyped-call]
    with _errors_to_file(Path(tempfile.gettempdir()) / f"ottla-streams-{os.getpid()}.log"):
        spark = session(app_id, cores=cores)
        spark.sparkContext.setLogLevel("ERROR")
    return spark


@contextmanager
def _errors_to_file(path: Path) -> Iterator[None]:
    """What is started meanwhile, which is Java, writes its complaints there as long as it runs."""
    kept = os.dup(2)
    with path.open("ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
