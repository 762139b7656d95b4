"""Which topics a consumer group reads: patterns resolved, and a hash that tells of changes."""

from __future__ import annotations

from hashlib import blake2b

from ottla.coordination.group.consumer_group import ConsumerGroup, ResolvedPattern
from ottla.coordination.group.consumer_records import epoch_change, pattern_change, pattern_gone
from ottla.coordination.group.stage import Stage
from ottla.coordination.group.topic_pattern import TopicPattern
from ottla.coordination.group.topics import Topics


def metadata_hash(group: ConsumerGroup, topics: Topics) -> int:
    """Stands for the topics the group reads, their ids and their numbers of partitions."""
    digest = blake2b(digest_size=8)
    for name in sorted(group.subscribed_topics()):
        count = topics.partition_count(name)
        if count is not None:
            digest.update(f"{name}\0{count}\0".encode())
            digest.update(topics.id_of(name) or b"")
    return int.from_bytes(digest.digest(), "big", signed=True)


def resolve(pattern: str, topics: Topics, now_ms: int) -> ResolvedPattern:
    """The topics a pattern matches now."""
    matcher = TopicPattern(pattern)
    return ResolvedPattern(frozenset(filter(matcher.matches, topics.names())), now_ms)


def tidy_patterns(stage: Stage, topics: Topics) -> None:
    """Resolve the patterns members have begun to use; forget those nobody uses."""
    used = {each.pattern for each in stage.group.members.values()}
    for pattern in sorted(used - stage.group.patterns.keys() - {None}, key=str):
        assert pattern is not None
        resolved = resolve(pattern, topics, stage.outcome.now_ms)
        stage.write(pattern_change(stage.group_id, pattern, resolved))
    for pattern in sorted(stage.group.patterns.keys() - used):
        stage.write(pattern_gone(stage.group_id, pattern))


def refresh(stage: Stage, topics: Topics) -> None:
    """Look at the topics again; the group begins an epoch where they have changed."""
    for pattern, known in sorted(stage.group.patterns.items()):
        resolved = resolve(pattern, topics, stage.outcome.now_ms)
        if resolved.topics != known.topics:
            stage.write(pattern_change(stage.group_id, pattern, resolved))
    present = metadata_hash(stage.group, topics)
    if present != stage.group.metadata_hash and not stage.group.is_empty:
        begin_epoch(stage, topics)


def begin_epoch(stage: Stage, topics: Topics) -> None:
    """Begin the group's next epoch, for which a new target is due."""
    group = stage.group
    epoch = group.epoch + 1
    if not group.epoch and any(each.topics for each in group.members.values()):
        epoch += 1  # as with Apache Kafka: the group is one epoch, its first subscription another
    stage.write(epoch_change(group.group_id, epoch, metadata_hash(group, topics)))
