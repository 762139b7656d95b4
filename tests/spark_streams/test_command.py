"""`ottla streams` on a file, as far as no Spark is needed; and the numbers it shows."""

from pathlib import Path

import msgspec
import pytest

from ottla.cli.main import run
from ottla.cli.streams_display import JsonLines, PlainLines, Report, numbers
from ottla.streams.spark.failure_sentence import sentence
from ottla.streams.spark.progress import QueryProgress, query_progress

EXAMPLE = Path(__file__).parents[2] / "examples" / "streams" / "word_count.py"
REPORT = {
    "batchId": 4,
    "durationMs": {"triggerExecution": 500},
    "sources": [
        {
            "startOffset": '{"in": {"0": 10, "1": 5}}',
            "endOffset": '{"in": {"0": 25, "1": 10, "2": 5}}',
            "latestOffset": {"in": {"0": 30, "1": 10, "2": 6}},
        }
    ],
    "stateOperators": [{"numRowsTotal": 3, "memoryUsedBytes": 2048}],
}


def test_the_topology_of_a_file_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["streams", "describe", str(EXAMPLE)]) == 0
    assert "Sink KSTREAM-SINK-0000000006 (topic: word-counts)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("x = 1", "has neither a Streams object nor a Topology"),
        ("x = 1\ny = x / 0", "line 2: ZeroDivisionError: division by zero"),
        ("def f(:", "SyntaxError"),
    ],
)
def test_a_file_that_is_no_application_gets_a_sentence(
    program: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "app.py"
    file.write_text(program)
    assert run(["streams", "describe", str(file)]) != 0
    errors = capsys.readouterr().err
    assert said in errors
    assert "Traceback" not in errors


def test_progress_counts_records_and_lag_by_offsets() -> None:
    found = query_progress("app-0", ("in",), REPORT)
    assert found == QueryProgress("app-0", ("in",), 4, 25, 500, 6, 3, 2048)
    assert found.records_per_s == 50
    assert numbers(found) == ("4", "25", "50", "500 ms", "6", "2.0 KiB")
    assert numbers(query_progress("app-0", ("in",), None)) == ("-",) * 6


def test_a_micro_batch_is_shown_once_where_nobody_watches(
    capsys: pytest.CaptureFixture[str],
) -> None:
    display, progress = PlainLines(), query_progress("app-0", ("in",), REPORT)
    for _ in range(2):
        display.show(Report("app runs", (progress,)))
    said = capsys.readouterr()
    assert said.out == "app-0: batch 4, 25 records in 500 ms, lag 6\n"
    assert said.err == "app runs\n"


def test_reports_for_programs_come_when_they_are_new_and_can_be_read_back(
    capsys: pytest.CaptureFixture[str],
) -> None:
    display, progress = JsonLines(), query_progress("app-0", ("in",), REPORT)
    reports = [Report("Spark starts"), Report("app runs", (progress,))]
    for report in (reports[0], reports[0], reports[1], reports[1]):
        display.show(report)
    lines = capsys.readouterr().out.splitlines()
    assert [msgspec.json.decode(line, type=Report) for line in lines] == reports


def test_a_failure_is_told_in_the_words_of_the_last_error() -> None:
    trace = 'Traceback (most recent call last):\n  File "x", line 1\n'
    assert sentence(f"[STREAM_FAILED] x\n{trace}ValueError: bad\n\tat org.x") == "ValueError: bad"
    ours = f"[STREAM_FAILED] x\n{trace}ottla.streams.failures.ProcessingFailed: record 1 failed\n"
    assert sentence(ours) == "record 1 failed"
    assert sentence("\nno trace\nat all") == "no trace"
