"""The demonstration's pipeline and its judge, without Spark and without a broker."""

import io
from random import Random

import msgspec
import pytest
from rich.console import Console

from ottla.cli.demonstration import pipeline, show
from ottla.cli.demonstration.cafes import CAFES, Order, WindowCount, orders, served, window_of
from ottla.cli.demonstration.dashboard import Moment, PlainDashboard, picture
from ottla.cli.demonstration.pipeline_process import FILE
from ottla.cli.demonstration.tally import WINDOWS_KEPT, Tally
from ottla.cli.streams_display import Report
from ottla.streams import TopologyTestDriver
from ottla.streams.spark.progress import QueryProgress

START_MS = 1_700_000_040_000


def a_tally_of(count: int) -> tuple[Tally, list[tuple[str, Order, int]]]:
    """Orders, a second apart, and the tally that knows them."""
    tally, made = Tally(), []
    for (name, order), number in zip(orders(Random(1)), range(count), strict=False):
        made.append((name, order, START_MS + number * 1_000))
        tally.add_order(*made[-1])
    return tally, made


def dealt_with(tally: Tally, made: list[tuple[str, Order, int]]) -> None:
    """Gives the tally what the pipeline's topology makes of the orders."""
    driver = TopologyTestDriver(pipeline.topology)
    for name, cafe in CAFES.items():
        driver.pipe(show.CAFE_TABLE, name, msgspec.to_builtins(cafe), timestamp_ms=0)
    for name, order, at_ms in made:
        driver.pipe(show.ORDERS, name, msgspec.to_builtins(order), timestamp_ms=at_ms)
    for record in driver.read(show.SERVED):
        order = msgspec.convert(record.value, Order)
        tally.add_served(served(record.key, order), delay_ms=400)
        assert record.value == msgspec.to_builtins(served(record.key, order))
    for record in driver.read(show.COUNTS):
        tally.add_count(record.key, msgspec.convert(record.value, WindowCount))


def test_the_pipeline_reads_and_writes_the_topics_that_are_shown() -> None:
    topology = pipeline.topology
    assert {*topology.input_topics(), *topology.output_topics()} == set(show.TOPICS)
    assert len(topology.subtopologies) == 1  # one query: the demonstration starts sooner
    assert FILE.samefile(pipeline.__file__)


def test_what_the_topology_makes_of_orders_is_right() -> None:
    tally, made = a_tally_of(45)
    assert not tally.is_complete
    dealt_with(tally, made)
    assert tally.is_complete
    assert (tally.joined, tally.counted, tally.problems()) == (45, 45, [])
    assert sorted(tally.windows) == [window_of(START_MS) + n * 10_000 for n in (2, 3, 4)]


def test_an_order_that_was_not_joined_is_a_problem() -> None:
    tally, made = a_tally_of(10)
    dealt_with(tally, made[:-1])
    assert any("order 10 was not joined" in problem for problem in tally.problems())
    assert any("orders, counted were" in problem for problem in tally.problems())


def test_an_order_joined_twice_or_wrongly_is_a_problem() -> None:
    tally, made = a_tally_of(10)
    dealt_with(tally, made)
    name, order, _ = made[0]
    tally.add_served(served(name, order), 1)
    assert "order 1 was joined twice or wrongly" in tally.problems()[0]
    tally, made = a_tally_of(1)
    name, order, _ = made[0]
    tally.add_served(served("lima" if name == "oslo" else "oslo", order), 1)
    assert "order 1 was joined twice or wrongly" in tally.problems()[0]


def test_a_window_counted_twice_is_a_problem() -> None:
    tally, made = a_tally_of(10)
    dealt_with(tally, made)
    name, _, at_ms = made[0]
    tally.add_count(name, WindowCount(window_of(at_ms), 1))
    assert any(f"{name} was counted from" in problem for problem in tally.problems())


def test_windows_that_are_over_are_forgotten_only_if_they_were_right() -> None:
    tally, made = a_tally_of(30)
    dealt_with(tally, made[:-1])
    tally.forget_before(START_MS + 1_000_000)
    assert len(tally._expected) == 1
    assert tally.problems()


def test_the_picture_fits_a_terminal_of_100_columns_and_30_lines() -> None:
    tally, made = a_tally_of(200)
    dealt_with(tally, made)
    report = Report("runs", (QueryProgress("q", ("t",), 1_234, 100, 12_345),))
    drawn = io.StringIO()
    Console(file=drawn, width=100, height=30, force_terminal=True, color_system=None).print(
        picture(Moment(754.2, report, tally))
    )
    lines = [line.rstrip() for line in drawn.getvalue().splitlines()]
    assert len(lines) < 20
    assert max(map(len, lines)) < 99  # the terminal's ^C must not break a line
    assert any("12:34  orders are joined" in line for line in lines)
    assert sum("│" in line for line in lines) == len(CAFES)
    assert len(tally.windows) == WINDOWS_KEPT


def test_stages_are_said_once_where_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    dashboard, tally = PlainDashboard(), Tally()
    for stage in ("Spark starts", "Spark starts", "queries start", "q runs with 1 query"):
        dashboard.show(Moment(1.0, Report(stage), tally))
    said = capsys.readouterr().out.splitlines()
    assert [line.split(" (")[0] for line in said] == [
        "Java and Spark start, which takes a while",
        "Spark's query starts",
        "the first micro-batch runs",
    ]
