"""Stopping on request, starting twice, and what an acknowledgement means with flush.messages=1."""

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from random import Random

from support.batches import batch
from support.broker_process import BrokerProcess, free_port
from support.eventually import eventually
from support.requests import (
    FETCH,
    FetchPlace,
    FetchQuestion,
    a_topic,
    fetch_body,
    produce,
)
from support.wire import Connection
from support.writer import Writer, whole_log

OwnBroker = Callable[..., BrokerProcess]

REFUSED_SECONDS_MAX = 20


def test_sigterm_under_load_stops_cleanly_and_loses_nothing(own_broker: OwnBroker) -> None:
    broker = own_broker()
    with Connection(broker.bootstrap_servers) as connection:
        topic = a_topic(connection, "loaded", partitions=2)
    writers = [
        Writer("plain", (topic, 0), Random(1), idempotent=False),
        Writer("sequenced", (topic, 1), Random(2), idempotent=True),
    ]
    for _ in range(3):
        for writer in writers:
            already = len(writer.acknowledged)
            writer.start(broker.bootstrap_servers)
            eventually(
                lambda writer=writer, already=already: len(writer.acknowledged) > already + 100,
                "acknowledgements",
            )
        assert broker.stop() == 0
        for writer in writers:
            writer.join()
        broker.start()
        for writer in writers:
            writer.check(whole_log(broker.bootstrap_servers, writer.place))
    for writer in writers:
        writer.start(broker.bootstrap_servers)
        writer.finish()
        writer.check(whole_log(broker.bootstrap_servers, writer.place))
    assert "Traceback" not in broker.errors()


def test_sigterm_does_not_wait_for_idle_or_waiting_connections(own_broker: OwnBroker) -> None:
    broker = own_broker()
    idle = [Connection(broker.bootstrap_servers) for _ in range(20)]
    half = Connection(broker.bootstrap_servers)
    half.send_bytes(b"\0\0\1")
    assert broker.stop() == 0
    for connection in (*idle, half):
        assert connection.is_closed_by_peer()
        connection.close()


def test_a_broker_that_still_waits_for_its_metadata_stops_when_asked(tmp_path: Path) -> None:
    nobody = f"zookeeper://127.0.0.1:{free_port()}"
    broker = BrokerProcess(tmp_path / "data", settings={"metadata": nobody})
    with (tmp_path / "err").open("wb") as errors:
        process = subprocess.Popen(broker.command(), stderr=errors)
    eventually(lambda: nobody in (tmp_path / "err").read_text(), "word of the trouble")
    process.terminate()
    assert process.wait(REFUSED_SECONDS_MAX) == 0
    told = (tmp_path / "err").read_text()
    assert (told.count(nobody), "Traceback" in told) == (1, False)


def test_asked_a_second_time_it_leaves_at_once_and_loses_nothing(own_broker: OwnBroker) -> None:
    broker = own_broker()
    with Connection(broker.bootstrap_servers) as connection:
        topic = a_topic(connection, "hurried")
        for _ in range(30):
            answer = produce(connection, {(topic, 0): batch([b"x" * 900_000])})[topic, 0]
            assert answer.error_code == 0
    reader = Connection(broker.bootstrap_servers)
    question = FetchQuestion((FetchPlace(topic, 0, 0, bytes_max=50 << 20),))
    reader.send(FETCH, 11, fetch_body(question, 11))  # and never reads all it is owed
    reader.socket.recv(1)
    broker.send_signal(signal.SIGTERM)
    eventually(lambda: "stopping" in broker.errors(), "the first request to be heard")
    assert broker.stop() == 1
    reader.close()
    broker.start()
    assert len(whole_log(broker.bootstrap_servers, (topic, 0))) == 30


def test_a_second_broker_on_the_same_directory_is_refused(own_broker: OwnBroker) -> None:
    broker = own_broker()
    second = BrokerProcess(broker.data)
    refused = subprocess.run(
        second.command(), capture_output=True, text=True, timeout=REFUSED_SECONDS_MAX, check=False
    )
    assert refused.returncode != 0
    said = refused.stdout + refused.stderr
    assert str(broker.data) in said.replace("\n", ""), said
    assert "Traceback" not in said
    with Connection(broker.bootstrap_servers) as connection:
        topic = a_topic(connection, "still-served")
        assert produce(connection, {(topic, 0): batch([b"x"])})[topic, 0].error_code == 0


def test_a_killed_broker_leaves_no_lock_behind(own_broker: OwnBroker) -> None:
    broker = own_broker()
    for _ in range(3):
        broker.restart()
    assert broker.is_alive


def test_a_taken_port_is_refused_with_a_sentence(own_broker: OwnBroker) -> None:
    broker = own_broker()
    second = BrokerProcess(broker.data.parent / "elsewhere")
    second.port = broker.port
    refused = subprocess.run(
        second.command(), capture_output=True, text=True, timeout=REFUSED_SECONDS_MAX, check=False
    )
    assert refused.returncode != 0
    assert str(broker.port) in refused.stdout + refused.stderr
    assert "Traceback" not in refused.stdout + refused.stderr


def test_flush_messages_one_acknowledges_after_the_flush_and_survives(
    own_broker: OwnBroker,
) -> None:
    broker = own_broker()
    with Connection(broker.bootstrap_servers) as connection:
        topic = a_topic(connection, "flushed", partitions=2, flush_messages="1")
    writers = [
        Writer("plain", (topic, 0), Random(3), idempotent=False),
        Writer("sequenced", (topic, 1), Random(4), idempotent=True),
    ]
    for writer in writers:
        writer.start(broker.bootstrap_servers)
    eventually(lambda: min(len(writer.acknowledged) for writer in writers) > 50, "acknowledgements")
    broker.kill()
    for writer in writers:
        writer.join()
    broker.start()
    for writer in writers:
        writer.check(whole_log(broker.bootstrap_servers, writer.place))


def test_topics_and_their_configs_survive_kill_9(own_broker: OwnBroker) -> None:
    broker = own_broker()
    with Connection(broker.bootstrap_servers) as connection:
        for number in range(20):
            a_topic(connection, f"topic-{number}", partitions=2, max_message_bytes="1000")
    broker.restart()
    with Connection(broker.bootstrap_servers) as connection:
        for number in range(20):
            place = f"topic-{number}", 1
            too_large = produce(connection, {place: batch([b"v" * 2000])})[place]
            assert too_large.error_code == 10
            assert produce(connection, {place: batch([b"v"])})[place].base_offset == 0
