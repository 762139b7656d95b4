"""`ottla log` on the files of a broker that ran here."""

import json
from pathlib import Path

import pytest

from ottla.testing.broker import Broker


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with two partitions; partition 0 holds two batches of two records."""
    from ottla.cli.main import run

    directory = tmp_path_factory.mktemp("log") / "data"
    lines = tmp_path_factory.mktemp("lines") / "lines"
    lines.write_text("k:one\nk:two\n")
    with Broker(data=directory) as broker:
        place = ["-b", broker.bootstrap_servers]
        assert run([*place, "topics", "create", "t", "--partitions", "2"]) == 0
        for codec in ("none", "zstd"):
            options = ["-k", ":", "-p", "0", "-z", codec, "-q", "-H", "h=x"]
            assert run([*place, "produce", "t", str(lines), *options]) == 0
    return directory


def segment(data: Path) -> Path:
    return data / "t-0" / "00000000000000000000.log"


@pytest.fixture
def damaged(data: Path, tmp_path: Path) -> Path:
    """A copy of the segment with a byte changed in its second batch."""
    content = bytearray(segment(data).read_bytes())
    content[-1] ^= 1
    path = tmp_path / "t-0" / segment(data).name
    path.parent.mkdir()
    path.write_bytes(content)
    return path


def test_the_batches_of_a_segment_are_listed(data: Path, ottla) -> None:
    dumped = ottla("log", "dump", str(segment(data)))
    path, names, *rows = dumped.lines
    assert (dumped.code, path) == (0, str(segment(data)))
    cells = [dict(zip(names.split("\t"), row.split("\t"), strict=True)) for row in rows]
    assert [(cell["offsets"], cell["codec"]) for cell in cells] == [
        ("0-1", "none"),
        ("2-3", "zstd"),
    ]


def test_records_are_shown_on_demand(data: Path, ottla) -> None:
    dumped = ottla("log", "dump", str(segment(data)), "--records", "--json", "--from", "2")
    (batch,) = [json.loads(line) for line in dumped.lines]
    assert [record["value"] for record in batch["records"]] == ["one", "two"]
    first = batch["records"][0]
    assert (first["topic"], first["partition"], first["offset"]) == ("t", 0, 2)
    assert (first["key"], first["headers"]) == ("k", {"h": "x"})
    assert "\tk\tone" in ottla("log", "dump", str(segment(data)), "-r").out


def test_a_directory_stands_for_all_segments_in_it(data: Path, ottla) -> None:
    for place in (data, data / "t-0"):
        assert str(segment(data)) in ottla("log", "dump", str(place)).lines


def test_good_files_pass(data: Path, ottla) -> None:
    checked = ottla("log", "verify", str(data), "--json")
    reports = {Path(each["path"]).name: each for each in json.loads(checked.out)}
    assert checked.code == 0
    assert (reports["t-0"]["records"], reports["t-0"]["end_offset"]) == (4, 4)
    assert all(not each["findings"] for each in reports.values())
    assert ottla("log", "verify", str(segment(data))).code == 0


def test_damage_is_found_and_its_place_named(damaged: Path, ottla) -> None:
    for place in (damaged, damaged.parent):
        checked = ottla("log", "verify", str(place), "--json")
        (report,) = json.loads(checked.out)
        (finding,) = report["findings"]
        assert checked.code == 1
        assert finding["path"] == str(damaged)
        assert finding["position"] > 0
    readable = ottla("log", "verify", str(damaged))
    assert f"at byte {finding['position']}" in readable.out
    assert ottla("log", "dump", str(damaged), "--records").code == 1


def test_every_torn_end_is_found(data: Path, tmp_path: Path, ottla) -> None:
    content = segment(data).read_bytes()
    path = tmp_path / "torn" / segment(data).name
    path.parent.mkdir()
    for missing in (1, 30, 61):
        path.write_bytes(content[:-missing])
        checked = ottla("log", "verify", str(path))
        assert (checked.code, "part of a batch" in checked.out) == (1, True)


def test_what_is_no_segment_is_refused(data: Path, tmp_path: Path, ottla) -> None:
    assert ottla("log", "dump", str(data / "meta.properties")).code == 2
    assert ottla("log", "verify", str(tmp_path)).code == 2
    assert ottla("log", "verify", str(tmp_path / "nowhere")).code == 2
