"""Topics rebuilt from logs that a broker has, after the metadata that knew them was lost.

In a cluster each broker tells of its logs in turn, while none of them runs. A partition is led by
the one whose log is the newest: with the latest leader epoch, then the highest end offset. Such a
log has everything that was ever committed. What the others have more or otherwise is cut off when
they follow it, as after any election. `/admin/adoption` notes how far each leader's log reaches, so
that the next broker can compare. Its note counts only until a broker has run.

Nothing that was stored may be deleted by settings that are lost: adopted topics keep their records
until somebody sets their retention again. Pure: writes to a draft.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec
from msgspec.structs import replace

from ottla.cluster import layout
from ottla.cluster.changes import check_topic_name, write_assignment, write_leadership, write_topic
from ottla.cluster.election import Leadership
from ottla.cluster.image import NO_NODE_VERSION, Draft, PartitionImage, TopicImage
from ottla.cluster.store import Create, Node, SetData
from ottla.errors import OttlaError
from ottla.model.ids import BrokerId, LeaderEpoch, TopicId

ADOPTION: Final = "/admin/adoption"
KEEP_EVERYTHING: Final = {"retention.ms": "-1", "retention.bytes": "-1"}


class AdoptableLog(msgspec.Struct, frozen=True):
    """How far the log of one partition reaches."""

    index: int
    latest_epoch: LeaderEpoch
    end_offset: int


class AdoptableTopic(msgspec.Struct, frozen=True):
    """The logs of one topic on one broker."""

    name: str
    id: TopicId
    logs: tuple[AdoptableLog, ...]


class Claim(msgspec.Struct, frozen=True):
    """How far the log of an adopted partition's leader reaches."""

    epoch: int
    end_offset: int

    def is_behind(self, log: AdoptableLog) -> bool:
        return (self.epoch, self.end_offset) < (log.latest_epoch, log.end_offset)


class AdoptionNode(msgspec.Struct, frozen=True, kw_only=True):
    """The claims, by `topic-partition`; they hold while the controller epoch is this one."""

    version: int = 1
    controller_epoch: int
    claims: dict[str, Claim]


class Adoption(msgspec.Struct):
    """What came of it."""

    adopted: dict[str, list[int]] = msgspec.field(default_factory=dict)
    """The partitions of each topic that this broker holds from now on."""
    known: list[str] = msgspec.field(default_factory=list)
    """Topics that the metadata had."""
    refused: dict[str, str] = msgspec.field(default_factory=dict)
    """Topics that stay as they are, and why."""


class AdoptionNotes:
    """The claims of brokers that told of their logs before, and this one's."""

    def __init__(self, node: Node | None, *, epoch_before: int) -> None:
        self._node = node
        self._claims: dict[str, Claim] = {}
        if node is not None:
            found = layout.decode(AdoptionNode, node.data, ADOPTION)
            if found.controller_epoch == epoch_before:
                self._claims = dict(found.claims)

    def of(self, topic: str, index: int) -> Claim | None:
        return self._claims.get(f"{topic}-{index}")

    def put(self, topic: str, log: AdoptableLog) -> None:
        self._claims[f"{topic}-{log.index}"] = Claim(log.latest_epoch, log.end_offset)

    def copy(self) -> AdoptionNotes:
        copied = AdoptionNotes(None, epoch_before=0)
        copied._node, copied._claims = self._node, dict(self._claims)
        return copied

    def write(self, draft: Draft) -> None:
        note = AdoptionNode(controller_epoch=draft.base.controller_epoch, claims=self._claims)
        data = layout.encode(note)
        operation = (
            Create(ADOPTION, data)
            if self._node is None
            else SetData(ADOPTION, data, self._node.version)
        )
        draft.operations.append(operation)
        draft.may_end_here()


def adopt(
    draft: Draft,
    broker: BrokerId,
    topics: Iterable[AdoptableTopic],
    notes: AdoptionNotes,
    configs_of: Callable[[str], Mapping[str, str]],
) -> Adoption:
    """Let the draft have all these topics, with the broker as a holder of what it has of them."""
    wanted = tuple(topics)
    # The claims are written before what they claim: alone they do no harm, and a topic without them
    # would be led by whoever told of it first.
    claims = notes.copy()
    _adopt(Draft(draft.base), broker, wanted, claims, configs_of)
    claims.write(draft)
    return _adopt(draft, broker, wanted, notes, configs_of)


def _adopt(
    draft: Draft,
    broker: BrokerId,
    topics: Iterable[AdoptableTopic],
    notes: AdoptionNotes,
    configs_of: Callable[[str], Mapping[str, str]],
) -> Adoption:
    adoption = Adoption()
    for topic in topics:
        try:
            check_topic_name(topic.name)
        except OttlaError as error:
            adoption.refused[topic.name] = str(error)
            continue
        known = draft.topics.get(topic.name)
        if known is None:
            _create(draft, broker, topic, notes, configs_of(topic.name))
            adoption.adopted[topic.name] = [log.index for log in topic.logs]
        elif known.id != topic.id:
            adoption.refused[topic.name] = (
                "there is another topic of this name; delete that one first, then adopt again"
            )
        elif taken := _join(draft, broker, topic, notes):
            adoption.adopted[topic.name] = taken
        else:
            adoption.known.append(topic.name)
    return adoption


def _create(
    draft: Draft,
    broker: BrokerId,
    topic: AdoptableTopic,
    notes: AdoptionNotes,
    configs: Mapping[str, str],
) -> None:
    logs = {log.index: log for log in topic.logs}
    partitions = [
        _adopted(index, broker, logs.get(index), notes, topic.name)
        for index in range(max(logs) + 1)
    ]
    config_version = 0 if configs else NO_NODE_VERSION
    adopted = TopicImage(
        topic.name, topic.id, tuple(partitions), configs, config_version=config_version
    )
    write_topic(draft, adopted)


def _adopted(
    index: int, broker: BrokerId, log: AdoptableLog | None, notes: AdoptionNotes, topic: str
) -> PartitionImage:
    """A partition led by this broker. One that it has no log of begins empty, unless another broker
    tells of its log later."""
    known = log or AdoptableLog(index, LeaderEpoch(-1), 0)
    notes.put(topic, known)
    epoch = LeaderEpoch(known.latest_epoch + 1)
    return PartitionImage(index, broker, epoch, (broker,), (broker,), partition_epoch=0)


def _join(draft: Draft, broker: BrokerId, topic: AdoptableTopic, notes: AdoptionNotes) -> list[int]:
    """Make the broker a holder of partitions that others told of; those it is new in."""
    known = draft.topics[topic.name]
    added = max(log.index for log in topic.logs) + 1 - len(known.partitions)
    logs = {log.index: log for log in topic.logs}
    partitions = list(known.partitions)
    taken: list[int] = []
    for index in range(len(known.partitions), len(known.partitions) + added):
        partitions.append(_adopted(index, broker, logs.get(index), notes, topic.name))
        taken.append(index)
    for index, before in enumerate(known.partitions):
        log, claim = logs.get(index), notes.of(topic.name, index)
        if log is not None and before.leader == broker and before.leader_epoch < log.latest_epoch:
            # The metadata is older than the log: it must not be led in an epoch that it has seen.
            partitions[index] = _led_anew(draft, topic.name, before, broker, log)
        if log is None or claim is None or broker in before.replicas:
            continue
        taken.append(index)
        partitions[index] = replace(before, replicas=(*before.replicas, broker))
        if claim.is_behind(log):
            notes.put(topic.name, log)
            partitions[index] = _led_anew(draft, topic.name, partitions[index], broker, log)
    if tuple(partitions) != known.partitions:
        write_assignment(draft, known, partitions)
    return sorted(taken)


def _led_anew(
    draft: Draft, topic: str, before: PartitionImage, broker: BrokerId, log: AdoptableLog
) -> PartitionImage:
    """Led by this broker instead of the one that told of its log before, which is shorter."""
    newest = LeaderEpoch(max(before.leader_epoch, log.latest_epoch))
    replicas = (broker, *(each for each in before.replicas if each != broker))
    bumped = replace(before, leader_epoch=newest, replicas=replicas)
    return write_leadership(draft, topic, bumped, Leadership(broker, (broker,)))
