"""What a local cluster says of itself over the wire, and waiting until it says what is wanted.

Every running broker is asked, past the disturbed network, for each may know something else: of two
that name a leader the one with the later epoch is right.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

from ottla.clients.address import parse_addresses
from ottla.clients.broker_connection import ConnectionOptions
from ottla.clients.client import Client, ClientOptions
from ottla.clients.metadata import ClusterPicture, PartitionInfo
from ottla.clients.retry import RetryPolicy
from ottla.errors import OttlaError
from ottla.model.ids import BrokerId, LeaderEpoch
from ottla.testing.child import ChildBroker

ANSWER_SECONDS_MAX: Final = 3.0
WAIT_SECONDS_MAX: Final = 60.0
_POLL_SECONDS: Final = 0.1

T = TypeVar("T")


class NotInTime(AssertionError):
    """The cluster did not become what was waited for; the message says what it was instead."""


class ClusterView:
    """Asks the brokers that run; each question is a connection of its own."""

    def __init__(self, brokers: Callable[[], Sequence[ChildBroker]]) -> None:
        self._brokers = brokers

    def pictures(self) -> dict[int, ClusterPicture]:
        """Brokers, topics and partitions as each running broker sees them; some may not answer."""
        running = {number: each for number, each in enumerate(self._brokers()) if each.is_running}

        async def ask_all() -> dict[int, ClusterPicture]:
            answers = await asyncio.gather(*(_ask(each) for each in running.values()))
            found = zip(running, answers, strict=True)
            return {number: picture for number, picture in found if picture is not None}

        return asyncio.run(ask_all())

    def leader(self, topic: str, partition: int) -> int | None:
        """The leader of the latest epoch that any broker knows of; None where it has none."""
        rows = [
            row
            for picture in self.pictures().values()
            if topic in picture.topics
            for row in picture.topics[topic].partitions
            if row.partition == partition
        ]
        latest = max(rows, key=lambda row: row.leader_epoch, default=None)
        return int(latest.leader) if latest is not None and latest.leader >= 0 else None

    def controller(self) -> int | None:
        """The running broker that most others take for the controller."""
        pictures = self.pictures()
        named = Counter(int(each.controller) for each in pictures.values())
        running = [number for number, each in enumerate(self._brokers()) if each.is_running]
        votes = [(count, number) for number, count in named.items() if number in running]
        return max(votes)[1] if votes else None

    def unknown(self) -> list[str]:
        """Running brokers that do not answer, or that another running one does not know."""
        pictures = self.pictures()
        running = [number for number, each in enumerate(self._brokers()) if each.is_running]
        silent = [
            f"broker {number} does not answer" for number in running if number not in pictures
        ]
        return silent + [
            f"broker {number} is absent, says broker {witness}"
            for witness, picture in pictures.items()
            for number in running
            if BrokerId(number) not in picture.brokers
        ]

    def missing(self) -> list[str]:
        """What is not as it should be, in a few words each: brokers, leaders, replicas, and who
        has not heard yet what another knows."""
        unknown = self.unknown()
        if unknown:
            return unknown
        pictures = self.pictures()
        return _troubles(pictures) or _disagreements(pictures)

    def wait(
        self,
        found: Callable[[], T | None],
        what: Callable[[], str],
        timeout_seconds: float = WAIT_SECONDS_MAX,
    ) -> T:
        """The first answer of `found` that is not None; NotInTime says what did not happen."""
        deadline = time.monotonic() + timeout_seconds
        while time.monotonic() < deadline:
            answer = found()
            if answer is not None:
                return answer
            time.sleep(_POLL_SECONDS)
        raise NotInTime(f"not within {timeout_seconds:g} s: {what()}")


async def _ask(broker: ChildBroker) -> ClusterPicture | None:
    connection = ConnectionOptions(
        connect_timeout_s=ANSWER_SECONDS_MAX, request_timeout_s=ANSWER_SECONDS_MAX
    )
    options = ClientOptions(connection, RetryPolicy(attempts_max=1))
    try:
        async with Client(parse_addresses([broker.bootstrap_servers]), options) as client:
            return await client.refresh(None)
    except OttlaError:
        return None


def _troubles(pictures: Mapping[int, ClusterPicture]) -> list[str]:
    return [
        f"{topic.name}-{row.partition}: {trouble}, says broker {number}"
        for number, picture in pictures.items()
        for topic in picture.topics.values()
        for row in topic.partitions
        if (trouble := _trouble(row))
    ]


def _disagreements(pictures: Mapping[int, ClusterPicture]) -> list[str]:
    """Topics that not every broker knows, or of which one knows an older epoch than another."""
    said: dict[str, dict[int, tuple[LeaderEpoch, ...]]] = {}
    for number, picture in pictures.items():
        for topic in picture.topics.values():
            epochs = tuple(row.leader_epoch for row in topic.partitions)
            said.setdefault(topic.name, {})[number] = epochs
    return [
        f"{name}: brokers know of different leader epochs: {epochs}"
        for name, epochs in said.items()
        if len(epochs) < len(pictures) or len(set(epochs.values())) > 1
    ]


def _trouble(row: PartitionInfo) -> str:
    if row.leader < 0:
        return "no leader"
    if set(row.in_sync) != set(row.replicas):
        return f"replicas {list(row.replicas)}, in sync {list(row.in_sync)}"
    return ""
