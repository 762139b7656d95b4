"""Several processes write one transaction, each its own partitions; a driver ends it for all."""

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

import pytest

from ottla.errors import ErrorCode
from ottla.testing import Broker
from support.requests import Place, a_topic
from support.wire import Connection
from transactions.conftest import Stage
from transactions.raw_producer import FIRST, SECOND, Dialect, RawProducer, Refused
from transactions.shared_task import Task, run_task

TASKS = 3
TOPIC, LEDGER_GROUP = "sink", "query-ledger"
LEDGER: Place = (TOPIC, 0)

both_versions = pytest.mark.parametrize("dialect", [FIRST, SECOND], ids=lambda one: one.name)


@pytest.fixture(scope="module")
def executors() -> Iterator[ProcessPoolExecutor]:
    """Processes that know nothing but what they are told."""
    with ProcessPoolExecutor(TASKS, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool


@pytest.fixture
def sink(broker: Broker) -> list[Place]:
    with Connection(broker.bootstrap_servers) as connection:
        a_topic(connection, TOPIC, partitions=TASKS)
    return [(TOPIC, partition) for partition in range(TASKS)]


def tasks_of(driver: RawProducer, round_number: int) -> list[Task]:
    """One task a partition, with the driver's pair; partitions are added where that is needed."""
    if driver.dialect is FIRST:
        driver.add(*((TOPIC, partition) for partition in range(TASKS)))
    return [
        Task(
            driver.bootstrap,
            driver.transactional_id,
            driver.dialect,
            driver.producer_id,
            driver.epoch,
            TOPIC,
            partition,
            round_number,
        )
        for partition in range(TASKS)
    ]


@both_versions
def test_all_partitions_become_visible_with_the_drivers_commit(
    stage: Stage, sink: list[Place], executors: ProcessPoolExecutor, dialect: Dialect
) -> None:
    expected: list[list[bytes]] = [[] for _ in sink]
    driver = stage.producer(dialect, name="query")
    for round_number in range(4):
        driver.init()  # each round has an epoch of its own, in either version
        tasks = tasks_of(driver, round_number)
        processes = set(executors.map(run_task, tasks))
        assert len(processes) > 1, "several processes wrote"
        assert [stage.reader.read(place).values for place in sink] == expected, (
            "not before the commit"
        )
        driver.send_offsets(LEDGER_GROUP, {LEDGER: round_number})
        if round_number == 2:
            driver.abort()
        else:
            driver.commit()
            for task in tasks:
                expected[task.partition] += task.values()
        stage.reader.wait_stable(*sink)
        assert [stage.reader.read(place).values for place in sink] == expected
    assert stage.reader.group_offset(LEDGER_GROUP, LEDGER) == 3


@both_versions
def test_a_task_of_a_driver_that_was_replaced_writes_nothing(
    stage: Stage, sink: list[Place], executors: ProcessPoolExecutor, dialect: Dialect
) -> None:
    old = tasks_of(stage.producer(dialect, name="query"), 0)
    run_task(old[0])
    new_driver = stage.producer(dialect, name="query")
    new = tasks_of(new_driver, 1)
    list(executors.map(run_task, new))
    for task in old:
        with pytest.raises(Refused) as refused:
            run_task(task)
        assert refused.value.code in {ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH}
    new_driver.commit()
    stage.reader.wait_stable(*sink)
    assert [stage.reader.read(place).values for place in sink] == [task.values() for task in new]


@both_versions
def test_a_task_that_runs_again_in_the_same_transaction_writes_nothing_twice(
    stage: Stage, sink: list[Place], dialect: Dialect
) -> None:
    """Its batches are known by their sequence."""
    driver = stage.producer(dialect, name="query")
    tasks = tasks_of(driver, 0)
    for task in (*tasks, tasks[1]):
        run_task(task)
    driver.commit()
    stage.reader.wait_stable(*sink)
    assert [stage.reader.read(place).values for place in sink] == [task.values() for task in tasks]
