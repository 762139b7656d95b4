"""`ottla log`: look into segment files on disk, without a broker."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import click
import msgspec

from ottla.cli.connection_options import broker_options, json_option
from ottla.cli.exit_code import ExitCode
from ottla.cli.log_adopt import adopt
from ottla.cli.log_files import partition_directories, segment_files
from ottla.cli.log_repair import repair
from ottla.cli.message import note, paint, say, say_error
from ottla.cli.output import bytes_text, counted, print_json, time_text
from ottla.cli.record_input import TextFormat
from ottla.cli.record_output import OutputRules, render
from ottla.clients.consumer.record import Decoding, decode_batch
from ottla.errors import RecordError
from ottla.model.ids import TopicPartition
from ottla.records.batch import RecordBatch
from ottla.storage.disk import LocalDisk
from ottla.storage.file_names import parse_partition
from ottla.storage.inspect import BatchRow, Finding, VerifiedLog, inspect_segment, verify_log

COLUMNS: Final = (
    ("position", 10),
    ("offsets", 17),
    ("records", 7),
    ("bytes", 8),
    ("codec", 6),
    ("latest", 24),
    ("epoch", 5),
    ("producer", 10),
    ("kind", 7),
)
SEGMENT_PATH: Final = click.Path(exists=True, path_type=Path)
DECODING: Final = Decoding(checks_crc=False)
"""The inspection has checked it."""


@click.group()
def log() -> None:
    """Dump, verify and repair segment files on disk; rebuild lost metadata.

    `dump` and `verify` only read: a broker may be running.
    """


log.add_command(adopt)


@log.command()
@click.argument("paths", nargs=-1, required=True, type=SEGMENT_PATH, metavar="PATH...")
@click.option("--records", "-r", is_flag=True, help="Show the records in each batch too.")
@click.option("--from", "from_offset", type=int, default=0, help="Begin at this offset.")
@click.option("--max", "-n", "batches_max", type=click.IntRange(min=1), help="So many batches.")
@json_option
def dump(
    paths: tuple[Path, ...],
    records: bool,
    from_offset: int,
    batches_max: int | None,
    as_json: bool,
) -> int:
    """List the batches of segment files, or of all in a directory.

    \b
    ottla log dump data/orders-0
    ottla log dump data/orders-0/00000000000000000000.log --records --from 1000 --max 5
    """
    is_good = True
    remaining = sys.maxsize if batches_max is None else batches_max
    for path in segment_files(paths):
        if remaining <= 0:
            break
        if not as_json:
            say(paint(str(path), bold=True))
            say(_line([name for name, _ in COLUMNS]))
        for row in _rows_from(path, from_offset):
            is_good = is_good and row.problem is None
            try:
                (_dump_json if as_json else _dump_text)(path, row, records)
            except RecordError as error:  # the checksum is right, and yet they cannot be read
                is_good = False
                say_error(f"{path} at byte {row.position}: {error}")
            remaining -= 1
            if remaining <= 0:
                break
    return ExitCode.OK if is_good else ExitCode.FAILED


def _rows_from(path: Path, offset: int) -> Iterator[BatchRow]:
    for row in inspect_segment(LocalDisk(), str(path)):
        if row.batch is None or row.batch.next_offset > offset:
            yield row


def _dump_text(path: Path, row: BatchRow, with_records: bool) -> None:
    del path  # stands above the table
    if row.batch is not None:
        say(_line(_columns(row, row.batch)))
    if row.problem is not None:
        say(f"{paint('✗', 'red', bold=True)} at byte {row.position}: {row.problem}")
    elif with_records and row.batch is not None:
        rules = OutputRules(with_timestamps=True, with_headers=True, with_keys=True)
        for record in decode_batch(row.batch, TopicPartition("", 0), 0, DECODING):
            line = render([record], rules).decode(errors="backslashreplace")
            click.echo(f"    {record.offset}\t{line}", nl=False)


def _columns(row: BatchRow, batch: RecordBatch) -> list[str]:
    producer = "-"
    if batch.has_producer:
        producer = f"{batch.producer_id}/{batch.producer_epoch}:{batch.base_sequence}"
    return [
        str(row.position),
        f"{batch.base_offset}-{batch.last_offset}",
        str(batch.record_count),
        str(row.size_bytes),
        batch.compression.config_name,
        time_text(batch.max_timestamp),
        str(batch.leader_epoch),
        producer,
        _kind(batch),
    ]


def _kind(batch: RecordBatch) -> str:
    if batch.is_control:
        return "control"
    return "txn" if batch.is_transactional else "data"


def _line(columns: Iterable[str]) -> str:
    if not sys.stdout.isatty():
        return "\t".join(columns)
    widths = (width for _, width in COLUMNS)
    return " ".join(text.ljust(width) for text, width in zip(columns, widths, strict=True)).rstrip()


def _dump_json(path: Path, row: BatchRow, with_records: bool) -> None:
    line: dict[str, object] = {
        "file": str(path),
        "position": row.position,
        "size_bytes": row.size_bytes,
        "problem": row.problem,
    }
    batch = row.batch
    if batch is not None:
        line |= {
            "base_offset": batch.base_offset,
            "last_offset": batch.last_offset,
            "record_count": batch.record_count,
            "compression": batch.compression.config_name,
            "max_timestamp": batch.max_timestamp,
            "leader_epoch": batch.leader_epoch,
            "producer_id": batch.producer_id,
            "producer_epoch": batch.producer_epoch,
            "base_sequence": batch.base_sequence,
            "transactional": batch.is_transactional,
            "control": batch.is_control,
        }
        if with_records and row.problem is None:
            where = parse_partition(path.parent.name) or TopicPartition(path.parent.name, -1)
            records = decode_batch(batch, where, 0, DECODING)
            lines = render(records, OutputRules(TextFormat.JSON))
            line["records"] = [msgspec.Raw(each) for each in lines.splitlines()]
    click.echo(msgspec.json.encode(line).decode())


@log.command()
@click.argument("paths", nargs=-1, required=True, type=SEGMENT_PATH, metavar="PATH...")
@click.option(
    "--repair",
    "repairs",
    is_flag=True,
    help="Set damaged data aside where other replicas have it, so that it is fetched again.",
)
@broker_options
@json_option
def verify(paths: tuple[Path, ...], repairs: bool, as_json: bool) -> int:
    """Check segment files, partitions or a whole data directory: checksums, sizes, order, indexes.

    \b
    ottla log verify data
    ottla log verify data/orders-0/00000000000000000000.log
    ottla log verify data --repair --bootstrap other-broker:9092

    --repair needs this broker stopped and another in the lead; it asks the cluster for that, and
    deletes nothing: what it cuts stays beside the log under `.damaged`.
    """
    checked = [report for path in paths for report in _check_all(path, prints=not as_json)]
    if as_json:
        print_json([_report_json(place, report) for place, report in checked])
    bad_count = sum(1 for _, report in checked if report.findings)
    if not as_json:
        wrong = f"{bad_count} with something wrong" if bad_count else "nothing wrong"
        note(f"{counted(len(checked), 'log')} checked, {wrong}")
    if repairs:
        bad = [(place, report) for place, report in checked if report.findings]
        repaired = [repair(place, report) for place, report in bad]
        return ExitCode.OK if all(repaired) else ExitCode.FAILED
    return ExitCode.FAILED if bad_count else ExitCode.OK


def _check_all(path: Path, *, prints: bool) -> Iterator[tuple[Path, VerifiedLog]]:
    """A report for the file, or one for each partition of the directory."""
    for place in partition_directories(path) if path.is_dir() else segment_files([path]):
        report = verify_log(LocalDisk(), str(place)) if place.is_dir() else _verify_file(place)
        if prints:
            _print_report(place, report)
        yield place, report


def _verify_file(path: Path) -> VerifiedLog:
    """One segment alone, without its indexes."""
    batches = records = size_bytes = 0
    start = end = None
    findings: list[Finding] = []
    for row in inspect_segment(LocalDisk(), str(path)):
        size_bytes += row.size_bytes
        if row.problem is not None:
            findings.append(Finding(str(path), row.position, row.problem))
        if row.batch is not None:
            batches += 1
            records += row.batch.record_count
            start = row.batch.base_offset if start is None else start
            end = row.batch.next_offset
    return VerifiedLog(1, batches, records, size_bytes, start, end, tuple(findings))


def _print_report(place: Path, report: VerifiedLog) -> None:
    mark = paint("✗", "red", bold=True) if report.findings else paint("✓", "green", bold=True)
    offsets = "no offsets"
    if report.end_offset is not None:
        offsets = f"offsets {report.start_offset} to {report.end_offset}"
    say(
        f"{mark} {place}: {counted(report.segments, 'segment')}, "
        f"{counted(report.records, 'record')}, {offsets}, {bytes_text(report.size_bytes)}"
    )
    for finding in report.findings:
        say(f"    {finding.path} at byte {finding.position}: {finding.problem}")


def _report_json(place: Path, report: VerifiedLog) -> dict[str, object]:
    return {
        "path": str(place),
        "segments": report.segments,
        "batches": report.batches,
        "records": report.records,
        "size_bytes": report.size_bytes,
        "start_offset": report.start_offset,
        "end_offset": report.end_offset,
        "findings": [
            {"path": finding.path, "position": finding.position, "problem": finding.problem}
            for finding in report.findings
        ],
    }
