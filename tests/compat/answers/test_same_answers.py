"""Every group and transaction API answers, field by field, what Apache Kafka 4.3.1 answered."""

import json
from typing import Any

import pytest

from compat.answers.record_answers import RECORDED
from compat.answers.scenarios import run

ANSWERS: dict[str, list[Any]] = json.loads(RECORDED.read_text())


@pytest.mark.parametrize("name", ANSWERS)
def test_the_answers_are_those_of_apache_kafka(bootstrap: str, name: str) -> None:
    scenario, version = name.split()
    given = run(bootstrap, scenario, int(version))
    differing = [
        f"{label}: {ours} instead of {kafkas}"
        for (label, ours), (_, kafkas) in zip(given, ANSWERS[name], strict=True)
        if ours != kafkas
    ]
    assert not differing, "\n".join(differing)
