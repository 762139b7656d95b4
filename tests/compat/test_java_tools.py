"""Kafka's own Java tools, where they are on this machine: the Java clients as users run them."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from support.eventually import eventually
from support.requests import a_topic, metadata
from support.wire import Connection

NewName = Callable[[], str]

TOOL = Path(__file__).parents[3] / "shared" / "bench" / "kt"
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "kafka-anchor"
IS_HERE = TOOL.exists() and (CACHE / "libs" / ".complete").exists() and shutil.which("java")
TOOL_SECONDS_MAX = 120
JVM_OPTIONS = {"KT_OPTS": "-Xmx512M -XX:TieredStopAtLevel=1"}  # it lives for a second

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not IS_HERE, reason="Kafka's tools are not on this machine"),
]


def run(bootstrap: str, tool: str, *options: str, stdin: str = "") -> str:
    """What the tool prints; it must end well."""
    command = [str(TOOL), tool, "--bootstrap-server", bootstrap, *options]
    done = subprocess.run(
        command,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=TOOL_SECONDS_MAX,
        env={**os.environ, **JVM_OPTIONS},
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_the_java_producer_and_consumer_exchange_records(
    bootstrap: str, connection: Connection, codec: str, new_name: NewName
) -> None:
    topic = a_topic(connection, new_name())
    lines = [f"h:{number}\tkey{number}\tvalue {number} " + "x" * 50 for number in range(20)]
    settings = ["parse.key=true", "parse.headers=true"]
    options = [f"--reader-property={setting}" for setting in settings]
    run(
        bootstrap,
        "ConsoleProducer",
        *("--topic", topic, "--compression-codec", codec, *options),
        stdin="\n".join(lines) + "\n",
    )
    shown = ["print.key=true", "print.headers=true", "print.offset=true", "print.timestamp=true"]
    printing = [f"--formatter-property={setting}" for setting in shown]
    place = ("--topic", topic, "--partition", "0", "--offset", "earliest", "--max-messages", "20")
    printed = run(bootstrap, "ConsoleConsumer", *place, *printing).splitlines()
    for number, line in enumerate(printed):
        assert line.startswith("CreateTime:")
        fields = line.split("\t")[1:]
        assert fields == [f"Offset:{number}", *lines[number].split("\t")]
    assert len(printed) == 20


def test_topics_are_created_altered_described_and_deleted(
    bootstrap: str, connection: Connection, new_name: NewName
) -> None:
    topic = new_name()
    made = ("--create", "--topic", topic, "--partitions", "2", "--config", "retention.ms=777000")
    assert topic in run(bootstrap, "TopicCommand", *made)
    assert topic in run(bootstrap, "TopicCommand", "--list").splitlines()
    run(bootstrap, "TopicCommand", "--alter", "--topic", topic, "--partitions", "3")
    described = run(bootstrap, "TopicCommand", "--describe", "--topic", topic)
    assert "PartitionCount: 3" in described
    assert "retention.ms=777000" in described
    run(bootstrap, "TopicCommand", "--delete", "--topic", topic)
    eventually(lambda: metadata(connection, [topic]).topics[topic][0] == 3, "the deletion")


def test_configs_are_altered_and_described(
    bootstrap: str, connection: Connection, new_name: NewName
) -> None:
    topic = a_topic(connection, new_name())
    entity = ("--entity-type", "topics", "--entity-name", topic)
    run(bootstrap, "ConfigCommand", "--alter", *entity, "--add-config", "segment.ms=60000")
    described = run(bootstrap, "ConfigCommand", "--describe", *entity)
    assert "segment.ms=60000" in described
    run(bootstrap, "ConfigCommand", "--alter", *entity, "--delete-config", "segment.ms")
    assert "segment.ms" not in run(bootstrap, "ConfigCommand", "--describe", *entity)


def test_offsets_records_and_directories(
    bootstrap: str, connection: Connection, new_name: NewName, tmp_path: Path
) -> None:
    topic = a_topic(connection, new_name())
    lines = "".join(f"{number}\n" for number in range(9))
    run(bootstrap, "ConsoleProducer", "--topic", topic, stdin=lines)
    assert f"{topic}:0:9" in run(bootstrap, "GetOffsetShell", "--topic", topic)
    latest = run(bootstrap, "GetOffsetShell", "--topic", topic, "--time", "max-timestamp")
    assert latest.startswith(f"{topic}:0:")
    wishes = tmp_path / "wishes.json"
    place = {"topic": topic, "partition": 0, "offset": 4}
    wishes.write_text(json.dumps({"partitions": [place], "version": 1}))
    run(bootstrap, "DeleteRecordsCommand", "--offset-json-file", str(wishes))
    earliest = run(bootstrap, "GetOffsetShell", "--topic", topic, "--time", "earliest")
    assert f"{topic}:0:4" in earliest
    listed = run(bootstrap, "LogDirsCommand", "--describe", "--topic-list", topic)
    assert f"{topic}-0" in listed


def test_the_api_versions_tool_understands_the_broker(bootstrap: str) -> None:
    printed = run(bootstrap, "BrokerApiVersionsCommand")
    assert "Produce(0): " in printed
    assert "Fetch(1): " in printed
