"""The engine gives what Kafka Streams' documentation says, whole, restarted and in batches."""

import json

import pytest

from streams.case import Case
from streams.cases import ALL as CASES
from streams.record_results import RECORDED, digest
from streams.running import random_steps, run, run_in_batches
from streams.topologies import ALL as TOPOLOGIES
from streams.topologies import build

ONE_INPUT = [name for name in TOPOLOGIES if len(build(name).input_topics()) == 1]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.topology}: {case.about}")
def test_what_comes_out_is_what_the_semantics_say(case: Case) -> None:
    outputs = run(case.topology, case.steps()).get("out", [])
    assert [tuple(one) for one in outputs] == case.outputs


def test_every_topology_of_the_battery_has_a_case() -> None:
    assert {case.topology for case in CASES} == set(TOPOLOGIES)


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_a_task_made_anew_after_every_record_goes_on_where_it_was(name: str) -> None:
    for seed in range(4):
        steps = random_steps(name, seed)
        assert run(name, steps, restarts=True) == run(name, steps), f"seed {seed}"


@pytest.mark.parametrize("name", ONE_INPUT)
def test_records_in_batches_give_what_they_give_one_by_one(name: str) -> None:
    for seed in range(4):
        steps = [step for step in random_steps(name, seed) if "advance" not in step]
        assert run_in_batches(name, steps, 7) == run(name, steps), f"seed {seed}"


BY_KEY = [
    *("count", "reduce", "aggregate", "cogroup", "table_filter_kept", "table_left_join"),
    *("table_outer_join", "stream_table_join", "foreign_join", "foreign_left_join"),
]


@pytest.mark.parametrize("name", BY_KEY)
def test_each_key_has_the_same_history_whatever_the_number_of_partitions(name: str) -> None:
    for seed in range(4):
        steps = [step for step in random_steps(name, seed) if step["key"] is not None]
        histories = []
        for partitions in (1, 5):
            by_key: dict[str, list[list[object]]] = {}
            for record in run(name, steps, partitions=partitions).get("out", []):
                by_key.setdefault(record[0], []).append(record)
            histories.append(by_key)
        assert histories[0] == histories[1], f"seed {seed}"


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_random_records_give_what_kafka_streams_gave_for_them(name: str) -> None:
    recorded = json.loads(RECORDED.read_text())[name]
    ours = [digest(run(name, random_steps(name, seed))) for seed in range(len(recorded))]
    assert ours == recorded, "test_java_agrees.py with OTTLA_JAVA_SEEDS=6 shows the records"
