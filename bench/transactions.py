"""Transactions per second, and what a transactional producer costs beside a plain one.

    python bench/run.py --only transactions --against kafka     beside Apache Kafka
    python bench/transactions.py --bootstrap HOST:PORT          on a running broker, as JSON lines

confluent-kafka speaks the first version of the transaction protocol. The second version (KIP-890)
is measured on a plain socket, a Produce and an EndTxn for each transaction, with the messages of
Ottla's own protocol package.
"""

from __future__ import annotations

import argparse
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import meter
import msgspec
from brokers import Broker, GivenBroker
from confluent_kafka import Producer
from scenarios import Effort, Scenario, fresh_topic

from ottla.errors import ErrorCode
from ottla.protocol.api import APIS
from ottla.protocol.frames import decode_response, decode_response_header, encode_request
from ottla.protocol.message import Message
from ottla.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.records.builder import BatchBuilder, ProducerStamp

GROUP = "transactions"
VALUE = b"x" * 200
PARTITIONS = 4
CALL_SECONDS_MAX = 60.0
SHOWN_OF_COMMITS = (
    "transactions_per_s",
    "commit_p50_us",
    "commit_p99_us",
    "cpu_us_per_transaction",
)
SHOWN_OF_COST = (
    "records_per_s",
    "plain_records_per_s",
    "share_of_plain",
    "cpu_s_per_million",
    "plain_cpu_s_per_million",
)
COORDINATOR_OF_TRANSACTIONS = 1

Answer = TypeVar("Answer", bound=Message)


class TransactionFailed(Exception):
    """A client or the broker did not do what was asked of it."""


@dataclass(frozen=True, slots=True)
class Commits:
    """How long each commit took, gathered from several producers."""

    seconds: list[float]

    def figures(self, section: meter.Figures) -> meter.Figures:
        """The rates of a metered section in which these commits happened."""
        count = len(self.seconds)
        if not count:
            raise TransactionFailed("there was not a single commit")
        figures = {
            "transactions": float(count),
            "transactions_per_s": count / section["wall_s"],
            **meter.percentiles_us(self.seconds, "commit"),
        }
        if "broker_cpu_s" in section:
            figures["cpu_us_per_transaction"] = section["broker_cpu_s"] / count * 1e6
        return section | figures


def client_transactions(broker: Broker, effort: Effort, *, producers: int) -> meter.Figures:
    """One record on one partition a transaction, as fast as confluent-kafka commits."""

    def transact(topic: str, name: str) -> Callable[[], None]:
        producer = _transactional(broker.bootstrap, name)

        def once() -> None:
            producer.begin_transaction()
            producer.produce(topic, VALUE, partition=0)
            producer.commit_transaction(CALL_SECONDS_MAX)

        return once

    return _commits(broker, effort.seconds, producers, transact)


def wire_transactions(broker: Broker, effort: Effort, *, producers: int) -> meter.Figures:
    """The same in the second version of the protocol, on plain sockets."""

    def transact(topic: str, name: str) -> Callable[[], None]:
        producer = WireProducer(broker.bootstrap, name)
        return partial(producer.transact, topic)

    return _commits(broker, effort.seconds, producers, transact)


def _commits(
    broker: Broker,
    seconds: float,
    producers: int,
    prepare: Callable[[str, str], Callable[[], None]],
) -> meter.Figures:
    """Run prepared transactions on a thread for each producer, for so long."""
    commits = Commits([])
    with fresh_topic(broker, PARTITIONS) as topic:
        prepared = [prepare(topic, f"{topic}-{number}") for number in range(producers)]
        for transact in prepared:
            transact()  # the first one finds leaders and coordinators
        section = meter.Meter(broker.pid)
        deadline = time.perf_counter() + seconds
        failures: list[BaseException] = []
        threads = [
            threading.Thread(target=_repeat, args=(transact, deadline, commits, failures))
            for transact in prepared
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        metered = section.stop()
    if failures:
        raise TransactionFailed(str(failures[0])) from failures[0]
    return commits.figures(metered)


def _repeat(
    transact: Callable[[], None], deadline: float, commits: Commits, failures: list[BaseException]
) -> None:
    try:
        while (begun := time.perf_counter()) < deadline:
            transact()
            commits.seconds.append(time.perf_counter() - begun)
    except Exception as failure:  # told by the thread that waits for this one
        failures.append(failure)


def cost_beside_plain(broker: Broker, effort: Effort, *, per_transaction: int) -> meter.Figures:
    """The same records through an idempotent producer, then in transactions of so many."""
    records = int(200_000 * effort.scale) // per_transaction * per_transaction
    with fresh_topic(broker, PARTITIONS) as topic:
        plain = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
        _send(plain, topic, PARTITIONS)  # finds leaders and gets its producer id
        section = meter.Meter(broker.pid)
        _send(plain, topic, records)
        plain_figures = _rates(section, records)
        transactional = _transactional(broker.bootstrap, topic)
        _send_in_transaction(transactional, topic, PARTITIONS)
        section = meter.Meter(broker.pid)
        for _ in range(records // per_transaction):
            _send_in_transaction(transactional, topic, per_transaction)
        figures = _rates(section, records)
    figures["transactions_per_s"] = records / per_transaction / figures["wall_s"]
    figures["share_of_plain"] = figures["records_per_s"] / plain_figures["records_per_s"]
    return figures | {f"plain_{name}": value for name, value in plain_figures.items()}


def _rates(section: meter.Meter, records: int) -> meter.Figures:
    size_bytes = records * len(VALUE)
    return meter.with_rates(section.stop(), records=records, requests=0, size_bytes=size_bytes)


def _transactional(bootstrap: str, name: str) -> Producer:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name, "linger.ms": 0})
    producer.init_transactions(CALL_SECONDS_MAX)
    return producer


def _produce(producer: Producer, topic: str, records: int) -> None:
    for number in range(records):
        while True:
            try:
                producer.produce(topic, VALUE, partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.01)


def _send(producer: Producer, topic: str, records: int) -> None:
    _produce(producer, topic, records)
    if left := producer.flush(CALL_SECONDS_MAX):
        raise TransactionFailed(f"{left} records were not acknowledged")


def _send_in_transaction(producer: Producer, topic: str, records: int) -> None:
    producer.begin_transaction()
    _produce(producer, topic, records)
    producer.commit_transaction(CALL_SECONDS_MAX)


class WireProducer:
    """A producer of the second version of the protocol: the broker adds what it writes to."""

    def __init__(self, bootstrap: str, transactional_id: str) -> None:
        host, port = bootstrap.rsplit(":", 1)
        self._socket = socket.create_connection((host, int(port)), timeout=CALL_SECONDS_MAX)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._id = transactional_id
        self._correlation_id = 0
        self._insist(
            FindCoordinatorRequest(
                key_type=COORDINATOR_OF_TRANSACTIONS, coordinator_keys=[transactional_id]
            ),
            4,
            FindCoordinatorResponse,
            lambda answer: answer.coordinators[0].error_code,
        )
        given = self._insist(
            InitProducerIdRequest(transactional_id, 60_000),
            5,
            InitProducerIdResponse,
            lambda answer: answer.error_code,
        )
        self._pair = given.producer_id, given.producer_epoch

    def transact(self, topic: str) -> None:
        """One record, and its commit."""
        builder = BatchBuilder()
        builder.append(int(time.time() * 1000), None, VALUE)
        batch = builder.build(producer=ProducerStamp(*self._pair, 0, is_transactional=True))
        data = [PartitionProduceData(0, memoryview(batch))]
        request = ProduceRequest(
            self._id, -1, 30_000, [TopicProduceData(topic, partition_data=data)]
        )
        self._insist(
            request,
            12,
            ProduceResponse,
            lambda answer: answer.responses[0].partition_responses[0].error_code,
        )
        ended = self._insist(
            EndTxnRequest(self._id, *self._pair, True),
            5,
            EndTxnResponse,
            lambda answer: answer.error_code,
        )
        self._pair = ended.producer_id, ended.producer_epoch

    def _insist(
        self,
        request: Message,
        version: int,
        answer: type[Answer],
        code_of: Callable[[Answer], int],
    ) -> Answer:
        """Send until the transaction before is out of the way: until then there is an error."""
        deadline = time.perf_counter() + CALL_SECONDS_MAX
        while True:
            response = self._exchange(request, version, answer)
            code = ErrorCode.of(code_of(response))
            if code is ErrorCode.NONE:
                return response
            if not code.retriable or time.perf_counter() > deadline:
                raise TransactionFailed(f"{type(request).__name__}: {code.name}")

    def _exchange(self, request: Message, version: int, answer: type[Answer]) -> Answer:
        api = next(row for row in APIS.values() if row.request is type(request))
        self._correlation_id += 1
        self._socket.sendall(
            encode_request(api, version, self._correlation_id, "ottla-bench", request)
        )
        (size,) = struct.unpack(">i", self._receive(4))
        frame = memoryview(self._receive(size))
        _, position = decode_response_header(frame, api, version)
        response = decode_response(api, version, frame, position)
        assert isinstance(response, answer)
        return response

    def _receive(self, count: int) -> bytes:
        received = bytearray()
        while len(received) < count:
            data = self._socket.recv(count - len(received))
            if not data:
                raise TransactionFailed("the broker closed the connection")
            received += data
        return bytes(received)


def scenarios() -> list[Scenario]:
    """The measurements of transactions; what they are compared with has no bar yet."""
    commits = {
        "confluent, 1 producer": partial(client_transactions, producers=1),
        "confluent, 4 producers": partial(client_transactions, producers=4),
        "second version, 1 producer": partial(wire_transactions, producers=1),
        "second version, 4 producers": partial(wire_transactions, producers=4),
    }
    costs = {
        "100 records each, beside plain": partial(cost_beside_plain, per_transaction=100),
        "2,000 records each, beside plain": partial(cost_beside_plain, per_transaction=2_000),
    }
    return [
        *(Scenario(GROUP, name, run, (), SHOWN_OF_COMMITS) for name, run in commits.items()),
        *(Scenario(GROUP, name, run, (), SHOWN_OF_COST) for name, run in costs.items()),
    ]


def main(arguments: list[str]) -> int:
    """All measurements on a running broker."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--pid", type=int, help="the process of the broker, for its CPU")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--scale", type=float, default=1.0)
    options = parser.parse_args(arguments)
    broker = GivenBroker(options.bootstrap, options.bootstrap, options.pid)
    effort = Effort(seconds=options.seconds, scale=options.scale)
    for scenario in scenarios():
        figures = scenario.run(broker, effort)
        shown = {name: round(figures[name], 3) for name in scenario.shown if name in figures}
        print(msgspec.json.encode({"scenario": scenario.name, **shown}).decode(), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
