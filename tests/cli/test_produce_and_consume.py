"""`ottla produce` and `ottla consume` against a real broker."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import ottla as ottla_client
from ottla.testing import Broker


def test_lines_go_in_and_come_out(ottla, topic: str) -> None:
    produced = ottla("produce", topic, stdin="one\ntwo\nthree\n")
    assert produced.code == 0
    assert "3 records" in produced.err
    assert sorted(ottla("consume", topic).lines) == ["one", "three", "two"]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec_works(ottla, topic: str, codec: str) -> None:
    lines = [f"line {number}" for number in range(2000)]
    ottla("produce", topic, "-p", "0", "-z", codec, stdin="\n".join(lines))
    assert ottla("consume", topic).lines == lines


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_every_acks_works(ottla, topic: str, acks: str) -> None:
    assert ottla("produce", topic, "--acks", acks, stdin="v\n").code == 0
    assert ottla("consume", topic, "--follow", "--max", "1").lines == ["v"]


def test_keys_headers_and_nulls_are_shown(ottla, topic: str) -> None:
    options = ("-k", ":", "--null-marker", "NULL", "-H", "a=1", "-H", "b=")
    ottla("produce", topic, "-p", "2", *options, stdin="k:v\nk:NULL\n")
    shown = ottla("consume", topic, "-K", "-H", "-O", "-s", "|", "--null-marker", "(null)")
    assert shown.lines == ["2:0|a=1,b=|k|v", "2:1|a=1,b=|k|(null)"]


def test_records_of_a_key_go_to_one_partition(ottla, topic: str) -> None:
    ottla("produce", topic, "-k", ":", stdin="".join(f"key:{n}\n" for n in range(50)))
    rows = [json.loads(line) for line in ottla("consume", topic, "--json").lines]
    assert len({row["partition"] for row in rows}) == 1
    assert [row["value"] for row in rows] == [str(n) for n in range(50)]


def test_json_lines_copy_a_topic_as_it_is(ottla, topic: str, new_name) -> None:
    record = {
        "key": "k",
        "value": '{"a": 1}',
        "headers": {"h": "x"},
        "timestamp": 1_767_225_600_000,
        "partition": 1,
    }
    odd = {"key_base64": "/w==", "value": None, "timestamp": 1_767_225_600_001, "partition": 1}
    lines = json.dumps(record) + "\n" + json.dumps(odd) + "\n"
    assert ottla("produce", topic, "-f", "json", stdin=lines).code == 0
    first = ottla("consume", topic, "-f", "json").out
    copy = new_name()
    ottla("topics", "create", copy, "-p", "3")
    assert ottla("produce", copy, "-f", "json", stdin=first).code == 0
    second = ottla("consume", copy, "-f", "json").out
    assert second == first.replace(topic, copy)


def test_hex_and_base64_carry_bytes(ottla, topic: str) -> None:
    ottla("produce", topic, "-p", "0", "-f", "hex", stdin="00ff0a\n")
    ottla("produce", topic, "-p", "0", "-f", "base64", stdin="AP8K\n")
    assert ottla("consume", topic, "-f", "hex").lines == ["00ff0a", "00ff0a"]


def test_records_before_one_for_a_partition_that_is_not_there_are_told(ottla, topic: str) -> None:
    lines = '{"value": "good", "partition": 1}\n{"value": "lost", "partition": 99}\n'
    produced = ottla("produce", topic, "-f", "json", "--offsets", stdin=lines)
    assert (produced.code, produced.lines) == (1, ["1:0\t1"])
    assert "line 2: there is no partition 99" in produced.err


def test_a_bad_line_is_named_and_those_before_it_are_kept(ottla, topic: str) -> None:
    lines = '{"value": "good", "partition": 1}\nbad\n'
    produced = ottla("produce", topic, "-f", "json", "--offsets", stdin=lines)
    assert (produced.code, produced.lines) == (1, ["1:0\t1"])
    assert "line 2" in produced.err
    assert ottla("consume", topic).lines == ["good"]


def test_reading_can_begin_anywhere(ottla, topic: str) -> None:
    lines = [
        json.dumps({"value": str(n), "timestamp": 1_767_225_600_000 + n * 1000, "partition": 0})
        for n in range(10)
    ]
    ottla("produce", topic, "-f", "json", stdin="\n".join(lines))

    def read(*arguments: str) -> list[str]:
        return ottla("consume", topic, *arguments).lines

    assert read("--from", "7") == ["7", "8", "9"]
    assert read("--from", "-2") == ["8", "9"]
    assert read("--from", "@1767225604000", "--max", "2") == ["4", "5"]
    assert read("--from", "2026-01-01T00:00:08Z") == ["8", "9"]
    assert read("--from", "-1s") == []
    assert read("--partition", "1") == []
    past = ottla("consume", topic, "--from", "11")
    assert (past.code, past.lines, "ends at 10" in past.err) == (0, [], True)


def test_following_shows_what_comes_later(ottla, topic: str, bootstrap: str) -> None:
    command = [sys.executable, "-m", "ottla", "consume", topic, "--from", "beginning", "-F"]
    ottla("produce", topic, "-p", "0", stdin="early\n")
    reading = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OTTLA_BOOTSTRAP": bootstrap},
        # A test run in the background ignores Ctrl-C, and so would its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert reading.stdout is not None
    assert reading.stdout.readline() == "early\n"
    ottla("produce", topic, "-p", "1", stdin="late\n")
    assert reading.stdout.readline() == "late\n"
    reading.send_signal(signal.SIGINT)
    _, errors = reading.communicate(timeout=30)
    assert (reading.returncode, errors) == (130, "")


def test_a_reader_that_leaves_the_pipe_is_no_error(ottla, topic: str, bootstrap: str) -> None:
    ottla("produce", topic, stdin="".join(f"{n}\n" for n in range(200_000)))
    reading = subprocess.Popen(
        [sys.executable, "-m", "ottla", "consume", topic, "--follow"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "OTTLA_BOOTSTRAP": bootstrap},
    )
    assert reading.stdout is not None
    assert reading.stderr is not None
    reading.stdout.readline()
    reading.stdout.close()
    assert reading.wait(timeout=30) == 0
    assert reading.stderr.read() == b""
    reading.stderr.close()


def test_a_file_can_be_produced(ottla, topic: str, tmp_path: Path) -> None:
    lines = [f"{n} " + "x" * 100 for n in range(20_000)]
    path = tmp_path / "lines.txt"
    path.write_text("\n".join(lines) + "\n")
    assert ottla("produce", topic, str(path), "-p", "0").code == 0
    assert ottla("consume", topic).lines == lines


def test_a_large_record_goes_alone(ottla, topic: str) -> None:
    large = "x" * 900_000
    assert ottla("produce", topic, "-p", "0", stdin=f"a\n{large}\nb\n").code == 0
    assert ottla("consume", topic).lines == ["a", large, "b"]


def test_a_record_too_large_for_the_topic_is_refused_with_the_fix(ottla, topic: str) -> None:
    refused = ottla("produce", topic, stdin="x" * 3_000_000)
    assert refused.code == 1
    assert "max.message.bytes" in refused.err


def test_a_missing_topic_is_created_only_when_asked(ottla, new_name) -> None:
    name = new_name()
    refused = ottla("produce", name, stdin="v\n")
    assert (refused.code, "topics create" in refused.err) == (1, True)
    assert ottla("consume", name).code == 1
    assert ottla("produce", name, "--create", stdin="v\n").code == 0
    assert ottla("consume", name).lines == ["v"]


def test_a_missing_partition_is_named(ottla, topic: str) -> None:
    for command in (("consume", topic), ("produce", topic)):
        refused = ottla(*command, "--partition", "99", stdin="v\n")
        assert refused.code == 1
        assert "partition 99" in refused.err


def test_where_records_went_can_be_shown(ottla, topic: str) -> None:
    produced = ottla("produce", topic, "-p", "1", "--offsets", "-q", stdin="a\nb\nc\n")
    assert (produced.lines, produced.err) == (["1:0\t3"], "")
    unknown = ottla("produce", topic, "-p", "1", "--offsets", "-q", "--acks", "0", stdin="d\ne\n")
    assert unknown.lines == ["1:-1\t2"]


def test_a_topic_that_ends_with_a_commit_is_read_to_its_end(
    ottla, topic: str, bootstrap: str, new_name
) -> None:
    with ottla_client.Producer(bootstrap, transactional_id=new_name()) as producer:
        with producer.transaction():
            producer.send(topic, b"kept", partition=0)
        producer.begin_transaction()
        producer.send(topic, b"dropped", partition=0).result(30)
        producer.abort_transaction()
    assert ottla("consume", topic).lines == ["kept", "dropped"]
    assert ottla("consume", topic, "--committed").lines == ["kept"]


def test_following_a_topic_ends_when_it_is_deleted(ottla, new_name, bootstrap: str) -> None:
    name = new_name()
    ottla("produce", name, "--create", stdin="v\n")
    reading = subprocess.Popen(
        [sys.executable, "-m", "ottla", "consume", name, "--follow"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OTTLA_BOOTSTRAP": bootstrap},
    )
    assert reading.stdout is not None
    assert reading.stdout.readline() == "v\n"
    assert ottla("topics", "delete", name, "--yes").code == 0
    _, errors = reading.communicate(timeout=60)
    assert f"there is no topic '{name}'" in errors
    assert reading.returncode == 1


def test_a_broker_that_sends_no_records_is_given_up_after_the_time_out() -> None:
    with Broker() as broker:
        environment = {**os.environ, "OTTLA_BOOTSTRAP": broker.bootstrap_servers}
        with ottla_client.Producer(broker.bootstrap_servers) as producer:
            producer.send("t", b"v").result(30)
        broker.faults.fail("Fetch", "KAFKA_STORAGE_ERROR", times=100_000)
        ran = subprocess.run(
            [sys.executable, "-m", "ottla", "consume", "t", "--timeout", "1"],
            capture_output=True,
            text=True,
            timeout=60,
            env=environment,
            check=False,
        )
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "no more records of 't' came for 1 s" in ran.stderr


def test_a_refusal_ends_producing_while_the_input_is_still_open() -> None:
    with Broker() as broker:
        environment = {**os.environ, "OTTLA_BOOTSTRAP": broker.bootstrap_servers}
        broker.faults.fail("Produce", "TOPIC_AUTHORIZATION_FAILED", times=100)
        with subprocess.Popen(
            [sys.executable, "-m", "ottla", "produce", "t", "--create"],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        ) as producing:
            assert producing.stdin is not None
            assert producing.stderr is not None
            producing.stdin.write("v\n")
            producing.stdin.flush()
            assert producing.wait(timeout=60) == 1
            assert "connect as a user who may" in producing.stderr.read()
