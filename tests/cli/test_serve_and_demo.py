"""`ottla serve` and `ottla demo` as a user runs them."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

import ottla
from ottla.cli import main
from ottla.cli.demonstration import pipeline_process
from ottla.cli.demonstration.pipeline_process import APP_ID
from ottla.cli.demonstration.show import ORDERS, TOPICS, prepare_topics
from ottla.clients.address import parse_address
from ottla.testing import Broker

SECONDS_MAX = 90


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ottla", *arguments],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        stdin=subprocess.DEVNULL,
        check=False,
    )


def test_a_broker_says_where_it_is_and_stops_cleanly(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ottla", "serve", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(
        [*command, "--data", str(tmp_path / "data")], stdout=subprocess.PIPE, text=True
    ) as broker:
        assert broker.stdout is not None
        line = broker.stdout.readline()
        assert " ready on 127.0.0.1:" in line
        assert line.rstrip().endswith(f"data in {tmp_path / 'data'}")
        address = line.split(" ready on ")[1].split(",")[0]
        assert run("doctor", address).returncode == 0
        second = run("serve", "--listen", "127.0.0.1:0", "--data", str(tmp_path / "data"))
        assert second.returncode != 0
        assert "in use by another broker" in second.stderr
        taken = run("serve", "--listen", address, "--data", str(tmp_path / "other"))
        assert taken.returncode != 0
        assert "in use" in taken.stderr
        broker.terminate()
        assert broker.wait(timeout=SECONDS_MAX) == 0


def test_a_kafka_configuration_file_is_understood(tmp_path: Path) -> None:
    config = tmp_path / "server.properties"
    config.write_text("process.roles=broker,controller\nnum.partitions=4\n")
    command = [sys.executable, "-m", "ottla", "serve", "--listen", "127.0.0.1:0"]
    command += ["--data", str(tmp_path / "data"), "--config", str(config)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as broker:
        assert broker.stdout is not None
        address = broker.stdout.readline().split(" ready on ")[1].split(",")[0]
        created = run("topics", "create", "t", "-b", address)
        broker.terminate()
        _, errors = broker.communicate(timeout=SECONDS_MAX)
    assert "with 4 partitions" in created.stdout
    assert "process.roles has no effect" in errors


def test_a_mistyped_setting_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    ran = run("serve", "--data", str(tmp_path), "--set", "log.retention.hour=3")
    assert ran.returncode == 2
    assert "log.retention.hours" in ran.stderr


def test_the_demonstration_shows_records_and_stops(tmp_path: Path) -> None:
    place = ["--listen", "127.0.0.1:0", "--data", str(tmp_path / "data")]
    for _ in range(2):
        ran = run("demo", "--once", "--no-spark", *place)
        assert (ran.returncode, ran.stderr) == (0, "")
        deliveries = [line for line in ran.stdout.splitlines() if "celsius" in line]
        assert len(deliveries) == 30


def test_the_demonstration_says_how_to_get_its_second_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pipeline_process, "NEEDED", ("pyspark_is_not_here",))
    place = ["--listen", "127.0.0.1:0", "--data", str(tmp_path / "data")]
    assert main.run(["demo", "--once", *place]) == 0
    said = capfd.readouterr()
    assert said.out.count("celsius") == 30
    assert said.err == ("The second part, a pipeline on Spark, needs: pip install 'ottla[spark]'\n")


def test_a_demonstration_forgets_what_an_earlier_one_has_left() -> None:
    with Broker() as broker, ottla.Admin(broker.bootstrap_servers) as admin:
        address = parse_address(broker.bootstrap_servers)
        asyncio.run(prepare_topics(address))
        admin.create_topics(ottla.NewTopic(f"{APP_ID}-counts-changelog"), ottla.NewTopic("mine"))
        with ottla.Producer(broker.bootstrap_servers) as producer:
            producer.send(ORDERS, b"an order")
        place = {"bootstrap_servers": broker.bootstrap_servers, "auto_offset_reset": "earliest"}
        with ottla.Consumer(ORDERS, group_id=APP_ID, **place) as consumer:
            assert len(consumer.poll(10)) == 1
            consumer.commit()
        asyncio.run(prepare_topics(address))
        assert {topic.name for topic in admin.list_topics()} == {*TOPICS, "mine"}
        assert admin.list_groups() == []
        with ottla.Consumer(**place) as consumer:
            where = ottla.TopicPartition(ORDERS, 0)
            assert consumer.end_offsets(where) == {where: 0}
