"""Who leads and who holds each partition: what the controller decides about it, and on whose wish.

Every method writes only while this broker is the controller; else ControllerMoved is raised. The
decisions themselves are pure and stand in `cluster`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Final

from ottla.broker.cluster_view import ClusterView
from ottla.cluster import reassignment
from ottla.cluster.controller_decisions import (
    Election,
    Elections,
    carry_out,
    finish_deletions,
    prefer_where_unbalanced,
    release_broker,
    settle_leaders,
    to_examine,
)
from ottla.cluster.election import Leadership, Situation, elect, prefer
from ottla.cluster.image import NO_NODE_VERSION, ClusterImage, Draft, PartitionImage, TopicImage
from ottla.cluster.metadata import ClusterMetadata
from ottla.cluster.reassignment import Move
from ottla.cluster.reassignment_changes import continue_moves, write_moves
from ottla.errors import (
    ConfigError,
    ErrorCode,
    InvalidReplicaAssignment,
    OttlaError,
    RequestFailed,
    UnknownTopic,
)
from ottla.model.ids import BrokerId, TopicPartition
from ottla.settings.topic import TopicSettings

NAMED_IN_LOG_MAX: Final = 20
"""Partitions named one by one when many change at once."""

log = logging.getLogger(__name__)


class ElectionType(IntEnum):
    """What is wanted of an election, by the code on the wire."""

    PREFERRED = 0
    UNCLEAN = 1


class Leaderships:
    """Elections and moves."""

    def __init__(self, metadata: ClusterMetadata, view: ClusterView) -> None:
        self._metadata = metadata
        self._view = view
        self._leaving: dict[BrokerId, int] = {}
        """Brokers that said that they are about to stop, and their epochs when they did."""

    def situation(self, image: ClusterImage) -> Situation:
        """The brokers to count on. One that came back with a new epoch is not leaving any more."""
        brokers = image.brokers
        leaving = {
            broker
            for broker, epoch in self._leaving.items()
            if broker in brokers and brokers[broker].epoch == epoch
        }
        return Situation(frozenset(brokers), frozenset(leaving))

    async def settle(self, examined: ClusterImage | None) -> ClusterImage:
        """Set right what is not as it should be since the picture that was `examined`, everything
        where that is None; the picture it was looked for in."""

        def decide(draft: Draft) -> tuple[ClusterImage, list[Election], int]:
            topics = to_examine(examined, draft.base)
            situation = self.situation(draft.base)
            finish_deletions(draft, topics)
            held = settle_leaders(draft, topics, situation, self._may_be_unclean)
            moved = continue_moves(draft, [topic.name for topic in topics], situation)
            return draft.base, held, moved

        image, held, moved = await self._metadata.change(decide)
        _report(held, "since brokers came or went")
        if moved:
            log.info("%d partitions have arrived at their new brokers", moved)
        return image

    async def balance(self, percent_max: int) -> None:
        """Back to preferred leaders, for brokers that lead too few of those that prefer them."""
        held = await self._metadata.change(
            lambda draft: prefer_where_unbalanced(draft, self.situation(draft.base), percent_max)
        )
        _report(held, "to balance leaders")

    async def elect(
        self, kind: ElectionType, wanted: Iterable[TopicPartition] | None
    ) -> dict[TopicPartition, ErrorCode]:
        """Hold elections for these partitions, or for all; what came of each."""
        asked = None if wanted is None else tuple(wanted)

        def decide(draft: Draft) -> tuple[list[Election], dict[TopicPartition, ErrorCode]]:
            situation = self.situation(draft.base)
            decided: Elections = {}
            outcomes: dict[TopicPartition, ErrorCode] = {}
            for key in _every_partition(draft) if asked is None else asked:
                partition = _partition(draft, key)
                chosen = None if partition is None else _elected(partition, kind, situation)
                if chosen is not None:
                    decided[key] = chosen
                outcomes[key] = _outcome(partition, chosen, kind)
            return carry_out(draft, decided), outcomes

        held, outcomes = await self._metadata.change(decide)
        _report(held, "because it was asked for")
        return outcomes

    async def release(self, broker: BrokerId, epoch: int) -> list[TopicPartition]:
        """Move what a broker leads to others before it stops; what it leads still, though another
        replica lives and could take over once it is in sync."""
        known = self._view.image.brokers.get(broker)
        if known is None:
            raise RequestFailed(ErrorCode.BROKER_NOT_AVAILABLE)
        if 0 <= epoch != known.epoch:
            raise RequestFailed(ErrorCode.STALE_BROKER_EPOCH)
        self._leaving[broker] = known.epoch

        def decide(draft: Draft) -> tuple[list[Election], list[TopicPartition]]:
            situation = self.situation(draft.base)
            held = release_broker(draft, broker, situation)
            return held, [
                TopicPartition(topic.name, each.index)
                for topic in draft.topics.values()
                for each in topic.partitions
                if each.leader == broker and any(map(situation.can_lead, each.replicas))
            ]

        held, remaining = await self._metadata.change(decide)
        _report(held, f"because broker {broker} is about to stop")
        return remaining

    async def reassign(
        self,
        wishes: Mapping[TopicPartition, Sequence[BrokerId] | None],
        *,
        may_change_factor: bool = True,
    ) -> dict[TopicPartition, OttlaError | None]:
        """Begin to move partitions to these brokers, or with None end a move; why not, for each."""

        def decide(draft: Draft) -> dict[TopicPartition, OttlaError | None]:
            situation = self.situation(draft.base)
            moves: dict[str, dict[int, Move]] = {}
            outcomes: dict[TopicPartition, OttlaError | None] = {}
            for key, replicas in wishes.items():
                try:
                    move = _move(draft, key, replicas, situation, may_change_factor)
                except OttlaError as error:
                    outcomes[key] = error
                    continue
                outcomes[key] = None
                if move is not None:
                    moves.setdefault(key.topic, {})[key.partition] = move
            for name, of_topic in moves.items():
                write_moves(draft, name, of_topic)
            return outcomes

        return await self._metadata.change(decide)

    def _may_be_unclean(self, topic: TopicImage) -> bool:
        settings = self._view.settings
        try:
            chosen = TopicSettings.from_overrides(topic.configs, settings)
        except ConfigError:
            chosen = settings.topic_defaults
        return chosen.unclean_leader_election_enable


def _every_partition(draft: Draft) -> list[TopicPartition]:
    return [
        TopicPartition(topic.name, each.index)
        for topic in draft.topics.values()
        for each in topic.partitions
    ]


def _partition(draft: Draft, key: TopicPartition) -> PartitionImage | None:
    topic = draft.topics.get(key.topic)
    if topic is None or not 0 <= key.partition < len(topic.partitions):
        return None
    return topic.partitions[key.partition]


def _elected(
    partition: PartitionImage, kind: ElectionType, situation: Situation
) -> Leadership | None:
    if kind is ElectionType.PREFERRED:
        return prefer(partition, situation)
    if partition.has_leader and partition.leader in situation.alive:
        return None
    chosen = elect(partition, situation, may_be_unclean=True)
    return chosen if chosen is not None and chosen.leader in situation.alive else None


def _outcome(
    partition: PartitionImage | None, chosen: Leadership | None, kind: ElectionType
) -> ErrorCode:
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if chosen is not None:
        return ErrorCode.NONE
    if kind is ElectionType.PREFERRED:
        is_led = partition.leader == partition.replicas[0]
        absent = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    else:
        is_led = partition.has_leader
        absent = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    return ErrorCode.ELECTION_NOT_NEEDED if is_led else absent


def _move(
    draft: Draft,
    key: TopicPartition,
    replicas: Sequence[BrokerId] | None,
    situation: Situation,
    may_change_factor: bool,
) -> Move | None:
    """How a wish begins; None where all is as wished already."""
    partition = _partition(draft, key)
    if partition is None:
        raise UnknownTopic(key.topic, key.partition)
    if replicas is None:
        return reassignment.cancel(partition, situation)
    if partition.partition_epoch == NO_NODE_VERSION:
        raise RequestFailed(
            ErrorCode.LEADER_NOT_AVAILABLE, f"{key} is still being made; try again soon"
        )
    before = reassignment.assignment_of(partition)
    if not before.is_moving and tuple(replicas) == before.replicas:
        return None
    if not may_change_factor and len(replicas) != len(before.origin):
        raise RequestFailed(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"{key} has {len(before.origin)} replicas, {len(replicas)} were asked for, and to"
            " change their number was not allowed",
        )
    if strangers := [broker for broker in replicas if broker < 0]:
        raise InvalidReplicaAssignment(f"no such broker: {', '.join(map(str, strangers))}")
    return reassignment.begin(partition, replicas, situation)


def _report(held: Sequence[Election], why: str) -> None:
    """Says what elections changed; those that leave somebody without a leader one by one."""
    if not held:
        return
    led = sum(each.chosen.leader != each.before.leader for each in held)
    shrunk = sum(len(each.chosen.isr) < len(each.before.isr) for each in held)
    log.info(
        "%s: %d partitions got another leader, %d have fewer replicas in sync", why, led, shrunk
    )
    headless = [each for each in held if each.chosen.leader < 0]
    unclean = [each for each in held if each.before.isr and not _is_clean(each)]
    for each in headless[:NAMED_IN_LOG_MAX]:
        isr = ", ".join(map(str, each.chosen.isr))
        log.warning("%s has no leader until one of %s is back", each.partition, isr)
    if len(headless) > NAMED_IN_LOG_MAX:
        log.warning("%d more partitions have no leader", len(headless) - NAMED_IN_LOG_MAX)
    for each in unclean[:NAMED_IN_LOG_MAX]:
        log.warning(
            "%s is led by %d, which was not in sync: committed records may be lost",
            each.partition,
            each.chosen.leader,
        )


def _is_clean(election: Election) -> bool:
    leader = election.chosen.leader
    return leader < 0 or leader in election.before.isr
