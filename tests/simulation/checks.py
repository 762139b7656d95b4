"""The invariants of a cluster: some looked at all the time, the others in the end.

I1 nothing acknowledged by all is lost · I2 an offset has one value for ever · I3 a producer's
records are in order, and once where it is idempotent · I4 acknowledged offsets grow · I5 no aborted
or never sent value is read · I6 a group's offsets do not go back · I7 replicas are equal below the
high watermark · I8 the leader is in sync, and who is in sync has all that is committed · I9 an
epoch has one leader · I10 all goes on after everything was set right.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ottla.broker.partition import Partition
from ottla.cluster import layout
from ottla.cluster.zookeeper_client import Changed
from ottla.model.ids import TopicPartition
from ottla.records.batch import split
from simulation.history import History, Sent
from simulation.state import CHROOT, held, partition_states, replicas
from simulation.workload import kept
from simulation.world import World

Log = list[tuple[int, bytes]]
"""Offsets and values of one partition, as a consumer reads it from beginning to end."""


class Onlooker:
    """Looks at every change of the metadata, and at the brokers now and then."""

    def __init__(self, world: World, history: History) -> None:
        self._world = world
        self._history = history
        self._leaders: dict[tuple[str, str, int], int] = {}
        self._epochs: dict[str, int] = {}
        world.ensemble.observers.append(self._changed)

    def _changed(self, changes: list[Changed]) -> None:
        for change in changes:
            node = self._world.ensemble.tree.nodes.get(change.path)
            if node is None:
                continue
            if change.path.endswith("/state"):
                self._state_changed(change.path, node.data)
            elif change.path == CHROOT + layout.CONTROLLER_EPOCH:
                self._grows(change.path, int(node.data))

    def _state_changed(self, path: str, data: bytes) -> None:
        state = layout.decode(layout.PartitionStateNode, data, path)
        topic = self._world.ensemble.tree.nodes[path.rsplit("/", 3)[0]]
        created = f"{path}@{topic.czxid}"
        if state.leader >= 0:
            known = self._leaders.setdefault((created, "", state.leader_epoch), state.leader)
            if known != state.leader:
                self._history.violated(
                    "I9", f"{path} epoch {state.leader_epoch}: {known}, then {state.leader}"
                )
            if state.leader not in state.isr:
                self._history.violated("I8", f"{path}: leader {state.leader} not in {state.isr}")
        if not state.isr:
            self._history.violated("I8", f"{path}: nobody is in sync")
        self._grows(created, state.leader_epoch)

    def _grows(self, what: str, epoch: int) -> None:
        if epoch < self._epochs.get(what, 0):
            self._history.violated("I9", f"the epoch of {what} went back to {epoch}")
        self._epochs[what] = epoch

    def look(self) -> None:
        """StrongIsr: whoever is in sync has all that any leader shows as committed."""
        by_id = {machine.node_id: machine for machine in self._world.machines}
        for place, state in partition_states(self._world):
            owned = [(machine, held(machine, place)) for machine in self._world.machines]
            shown = max(
                (each.log.high_watermark for _, each in owned if each and each.is_leader), default=0
            )
            for member in state.isr:
                replica = held(by_id[member], place)
                if replica is not None and replica.log.end_offset < shown:
                    self._history.violated(
                        "I8",
                        f"{place}: {shown} is committed, {member} is in sync and ends at"
                        f" {replica.log.end_offset}",
                    )


def check_end(
    world: World, history: History, logs: Mapping[str, Mapping[TopicPartition, Log]]
) -> None:
    """What must be true once all has calmed down. `logs` by isolation level."""
    everything, committed = logs["read_uncommitted"], logs["read_committed"]
    for level in logs.values():
        for place, log in level.items():
            for offset, value in log:
                history.read(place, offset, value)
    _nothing_is_lost(history, everything)
    _order_is_kept(history, everything)
    _transactions_are_whole(history, committed)
    _replicas_are_equal(world, history)


def _nothing_is_lost(history: History, logs: Mapping[TopicPartition, Log]) -> None:
    found = {place: {value for _, value in log} for place, log in logs.items()}
    for sent in history.sent.values():
        if kept(sent) and sent.value not in found[sent.place]:
            history.violated("I1", f"{sent.value!r} was acknowledged at {sent.place} {sent.offset}")


def _order_is_kept(history: History, logs: Mapping[TopicPartition, Log]) -> None:
    for place, log in logs.items():
        last: dict[str, int] = {}
        for offset, value in log:
            sent = history.sent.get(value)
            if sent is None or sent.kind not in ("idempotent", "transactional"):
                continue
            if sent.number <= last.get(sent.producer, -1):
                history.violated(
                    "I3", f"{place} {offset}: {value!r} after number {last[sent.producer]}"
                )
            last[sent.producer] = sent.number


def _transactions_are_whole(history: History, logs: Mapping[TopicPartition, Log]) -> None:
    visible = {value for log in logs.values() for _, value in log}
    for transaction in history.transactions:
        shown = [sent for sent in transaction.records if sent.value in visible]
        if transaction.state == "committed" and len(shown) < len(transaction.records):
            lost = [sent.value for sent in transaction.records if sent.value not in visible]
            history.violated("I1", f"{lost} of a committed transaction cannot be read")
        elif transaction.state in ("aborted", "aborting", "open") and shown:
            values = [sent.value for sent in shown]
            history.violated("I5", f"{values} can be read, the transaction was {transaction.state}")
        elif shown and len(shown) < len(_written(transaction.records)):
            history.violated("I5", f"only {[sent.value for sent in shown]} of a transaction")


def _written(records: Iterable[Sent]) -> list[Sent]:
    return [sent for sent in records if sent.offset is not None]


def _replicas_are_equal(world: World, history: History) -> None:
    for place, _ in partition_states(world):
        if place.topic.startswith("__"):
            continue  # compacted, by each at its own time
        holders = [
            (machine, replica)
            for machine in world.machines
            if machine.node_id in replicas(world, place) and (replica := held(machine, place))
        ]
        if not holders:
            continue
        end = min(replica.log.high_watermark for _, replica in holders)
        start = max(replica.log.start_offset for _, replica in holders)
        contents = {machine.name: _bytes(replica, start, end) for machine, replica in holders}
        if len(set(contents.values())) > 1:
            sizes = {name: len(content) for name, content in contents.items()}
            history.violated("I7", f"replicas of {place} differ in [{start}, {end}): {sizes}")


def _bytes(replica: Partition, start: int, end: int) -> bytes:
    """All batches below `end`, as they lie on the disk."""
    content = bytearray()
    offset = start
    while offset < end:
        region = replica.log.read(offset, bytes_max=1 << 20, end=end)
        if region is None:
            break
        data = region.read()
        for batch in split(memoryview(data), ignore_torn_tail=True):
            content += data[: batch.size_bytes]
            data = data[batch.size_bytes :]
            offset = batch.next_offset
    return bytes(content)
