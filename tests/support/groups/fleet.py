"""The members of one group, each a process that can be killed, paused, added and sent away."""

import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from support.eventually import eventually
from support.groups.journal import ASSIGNED, FAILED, LOST, REVOKED, Event
from support.groups.membership import MemberOptions
from support.journal import JournalReader, now_ns

TESTS = Path(__file__).resolve().parents[2]
MIXED = "mixed"
LIBRARIES = ("confluent", "kafka_python", "aiokafka")
STOP_SECONDS_MAX = 30.0
SETTLE_SECONDS_MAX = 90.0


@dataclass(slots=True)
class Member:
    """One process and its journal."""

    name: str
    process: subprocess.Popen[bytes]
    journal: JournalReader[Event]
    instance_id: str | None = None
    disturbed_ns: list[int] = field(default_factory=list)
    """When it was killed or paused: from then on it may believe what is no longer so."""
    killed_ns: int | None = None
    is_gone: bool = False

    @property
    def identity(self) -> str:
        """What the group knows it by over restarts."""
        return self.instance_id or self.name

    def owned(self) -> set[int]:
        """The partitions it believes to own now."""
        owned: set[int] = set()
        for event in self.journal.read_on():
            if event.kind == ASSIGNED:
                owned.update(event.partitions)
            elif event.kind in (REVOKED, LOST):
                owned.difference_update(event.partitions)
        return owned

    def of_kind(self, *kinds: str) -> list[Event]:
        return [event for event in self.journal.read_on() if event.kind in kinds]


class Fleet:
    """Starts members of one group over one topic and does to them what storms do."""

    def __init__(self, folder: Path, pattern: MemberOptions, partitions: int) -> None:
        self.pattern = pattern
        self.partitions = partitions
        self.members: list[Member] = []
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def living(self) -> list[Member]:
        return [member for member in self.members if not member.is_gone]

    def add(
        self, count: int = 1, *, instance_id: str | None = None, protocol: str | None = None
    ) -> list[Member]:
        """Start so many more members, without waiting for them."""
        protocol = protocol or self.pattern.protocol
        added = [self._start(instance_id, protocol) for _ in range(count)]
        self.members += added
        return added

    def _start(self, instance_id: str | None, protocol: str) -> Member:
        number = len(list(self._folder.iterdir()))
        name = f"{self.pattern.group}-{number}"
        journal = self._folder / name
        journal.touch()
        library = self.pattern.library
        options = msgspec.structs.replace(
            self.pattern,
            library=LIBRARIES[number % len(LIBRARIES)] if library == MIXED else library,
            name=name,
            journal=str(journal),
            instance_id=instance_id,
            protocol=protocol,
        )
        command = [sys.executable, "-m", "support.groups.member"]
        process = subprocess.Popen(
            [*command, msgspec.json.encode(options).decode()],
            env=dict(os.environ, PYTHONPATH=str(TESTS)),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        return Member(name, process, JournalReader(journal, Event), instance_id)

    def kill(self, members: list[Member]) -> None:
        """kill -9: no goodbye to the group."""
        for member in members:
            member.process.kill()
        for member in members:
            member.process.wait(STOP_SECONDS_MAX)
            member.killed_ns = now_ns()
            member.disturbed_ns.append(member.killed_ns)
            member.is_gone = True

    def pause(self, member: Member) -> None:
        """SIGSTOP: alive, but it does nothing until `resume`."""
        member.process.send_signal(signal.SIGSTOP)
        member.disturbed_ns.append(now_ns())

    def resume(self, member: Member) -> None:
        member.process.send_signal(signal.SIGCONT)

    def send_away(self, members: list[Member]) -> None:
        """SIGTERM: they give up what they own and leave."""
        for member in members:
            member.process.send_signal(signal.SIGTERM)
        for member in members:
            code = member.process.wait(STOP_SECONDS_MAX)
            member.is_gone = True
            assert code == 0, f"{member.name}: {member.of_kind(FAILED)}"

    def wait_settled(self, members: list[Member] | None = None) -> None:
        """Wait until these members, the living by default, own every partition between them."""
        among = self.living if members is None else members

        def is_settled() -> bool:
            owned = [member.owned() for member in among]
            everything = [partition for one in owned for partition in one]
            return all(owned) and sorted(everything) == list(range(self.partitions))

        try:
            eventually(is_settled, "a settled group", timeout_seconds=SETTLE_SECONDS_MAX)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.describe(among)}") from error

    def describe(self, members: list[Member]) -> str:
        """Who owns what and what went wrong, for the message of a failure."""
        return "; ".join(
            f"{one.name} exit={one.process.poll()} owns {sorted(one.owned())}"
            f" {[event.text for event in one.of_kind(FAILED)]}"
            for one in members
        )

    def close(self) -> None:
        """End every process whatever its state."""
        for member in self.members:
            if member.process.poll() is None:
                member.process.kill()
        for member in self.members:
            member.process.wait(STOP_SECONDS_MAX)
