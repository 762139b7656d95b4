"""`ottla log verify --repair`: lets a replica fetch again what is damaged on its disk.

Only where others certainly have it: another broker leads the partition, and this one is not in its
in-sync set, so that it cannot lead before it has everything again.
"""

from __future__ import annotations

from pathlib import Path

from ottla.cli.message import say, say_error
from ottla.cli.session import with_client
from ottla.clients.client import Client
from ottla.clients.metadata import PartitionInfo
from ottla.clients.topics import describe_topic
from ottla.errors import OttlaError
from ottla.model.ids import BrokerId, TopicPartition
from ottla.storage.damaged_end import first_damage, set_aside_from
from ottla.storage.directory_identity import read_identity, read_topic_id
from ottla.storage.disk import LocalDisk
from ottla.storage.file_names import parse_partition
from ottla.storage.inspect import VerifiedLog
from ottla.storage.log_directory import LOCK


def repair(place: Path, report: VerifiedLog) -> bool:
    """Sets the damaged end of a partition's log aside; False where that would not be safe."""
    disk = LocalDisk()
    damage = first_damage(report)
    if damage is None:
        say(f"{place}: the data is sound; a broker rebuilds the rest at its next start")
        return True
    lock = disk.lock(f"{place.parent}/{LOCK}")
    if lock is None:
        say_error(f"{place}: a broker is running on this directory; stop it first")
        return False
    try:
        refusal = _refusal(disk, place)
        if refusal is not None:
            say_error(f"{place}: not repaired, for {refusal}")
            return False
        aside = set_aside_from(disk, str(place), damage)
    finally:
        lock.release()
    say(f"{place}: cut at {damage.path} byte {damage.position}; the replica fetches the rest")
    for path in aside:
        say(f"    set aside: {path}")
    return True


def _refusal(disk: LocalDisk, place: Path) -> str | None:
    """Why nothing may be cut here; None where others have it all."""
    identity = read_identity(disk, str(place.parent))
    partition = parse_partition(place.name)
    if identity is None or partition is None:
        return "it is not in a broker's data directory, so nobody knows who has copies of it"
    topic_id = read_topic_id(disk, str(place))

    async def ask(client: Client) -> tuple[bytes, PartitionInfo | None]:
        topic = await describe_topic(client, partition.topic)
        found = [each for each in topic.partitions if each.partition == partition.partition]
        return topic.id, found[0] if found else None

    try:
        current_id, state = with_client(ask)
    except (OttlaError, OSError) as error:
        return f"the cluster cannot be asked who has copies: {error} (--bootstrap names a broker)"
    if topic_id != current_id:
        return "the cluster's topic of this name is another, with another id"
    return _why_not_safe(partition, identity.node_id, state)


def _why_not_safe(
    partition: TopicPartition, broker: BrokerId, state: PartitionInfo | None
) -> str | None:
    if state is None or state.leader < 0 or state.leader == broker:
        return f"no other broker leads {partition}, so this may be the only copy"
    if broker in state.in_sync:
        return (
            f"broker {broker} is still in the in-sync set of {partition} and could be made its"
            " leader: leave it stopped until it is out of it"
        )
    return None
