"""All that is asked of both brokers, by name."""

from collections.abc import Callable, Iterator
from typing import Any

from compat.answers import classic_scenarios, offset_scenarios, transaction_scenarios
from compat.answers.dialogue import Dialogue, as_json
from ottla.protocol.message import Message

Scenario = Callable[[Dialogue, int], None]

SCENARIOS: dict[Scenario, type[Message]] = {
    **classic_scenarios.SCENARIOS,
    **offset_scenarios.SCENARIOS,
    **transaction_scenarios.SCENARIOS,
}
BY_NAME = {scenario.__name__: scenario for scenario in SCENARIOS}


def names(bootstrap: str) -> Iterator[tuple[str, int]]:
    """Each scenario with each version of its API that a broker speaks."""
    dialogue = Dialogue(bootstrap)
    for scenario, request_class in SCENARIOS.items():
        for version in dialogue.versions(request_class):
            yield scenario.__name__, version
    dialogue.close()


def run(bootstrap: str, name: str, version: int) -> Any:
    """The answers of a broker, as they are recorded."""
    dialogue = Dialogue(bootstrap)
    try:
        BY_NAME[name](dialogue, version)
    finally:
        dialogue.close()
    return as_json(dialogue.transcript)
