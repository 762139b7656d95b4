"""A case of the semantics battery: what goes in, with timestamps, and what must come out.

Written from the documented semantics of Kafka Streams, with its caches off: every update is sent.
Windows of the topologies: tumbling 10 ms with 5 ms grace, hopping 10 by 4 with 3, sliding 10 with
7, sessions of gap 5 with 6; joins within 10 ms with 4 ms grace, or 0 to 8 ms after with 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Input = tuple[str, str | None, str | None, int]
Output = tuple[str | None, str | None, int]


@dataclass(frozen=True, slots=True)
class Case:
    """Inputs are topic, key, value, timestamp; outputs key, value, timestamp of the topic `out`."""

    about: str
    topology: str
    inputs: list[Input]
    outputs: list[Output]

    def steps(self) -> list[dict[str, Any]]:
        """The inputs as the steps both drivers read."""
        names = ("topic", "key", "value", "timestamp")
        return [dict(zip(names, one, strict=True)) for one in self.inputs]


def one_topic(*records: tuple[str | None, str | None, int]) -> list[Input]:
    return [("in", *record) for record in records]
