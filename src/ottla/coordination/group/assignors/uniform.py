"""Gives every member about as many partitions as every other, and moves as few as it can.

Where all members read the same topics, no two differ by more than one partition, and a partition
moves only where balance asks for it. Where they read different topics, no partition could move
to a member that would still have less than its present one.
"""

from __future__ import annotations

from heapq import heapify, heapreplace

from ottla.coordination.group.assignors.spec import GroupSpec, PartitionKey, Partitions

Given = dict[str, set[PartitionKey]]


def assign_uniformly(spec: GroupSpec) -> dict[str, Partitions]:
    """Share the partitions of all topics that somebody reads."""
    given, free = _keep(spec)
    subscriptions = {each.topic_ids for each in spec.members.values()}
    if len(subscriptions) == 1:
        _share_alike(given, free)
    elif subscriptions:
        _share_by_topic(spec, given, free)
    return {member_id: frozenset(partitions) for member_id, partitions in given.items()}


def _keep(spec: GroupSpec) -> tuple[Given, list[PartitionKey]]:
    """What members may keep, and the partitions nobody has."""
    read = frozenset().union(*(each.topic_ids for each in spec.members.values()))
    free = {
        (topic_id, index)
        for topic_id, count in spec.partition_counts.items()
        if topic_id in read
        for index in range(count)
    }
    given: Given = {}
    for member_id in sorted(spec.members):
        member = spec.members[member_id]
        kept = {each for each in member.assigned if each[0] in member.topic_ids} & free
        free -= kept
        given[member_id] = kept
    return given, sorted(free)


def _share_alike(given: Given, free: list[PartitionKey]) -> None:
    """All members read the same: each gets its share, and those that have more give it up."""
    total = len(free) + sum(map(len, given.values()))
    share, longer = divmod(total, len(given))
    # Those that have most keep the longer shares, so that they give up least.
    by_size = sorted(given, key=lambda each: (-len(given[each]), each))
    shares = {each: share + (place < longer) for place, each in enumerate(by_size)}
    for member_id, kept in given.items():
        surplus = sorted(kept)[shares[member_id] :]
        kept.difference_update(surplus)
        free.extend(surplus)
    free.sort(reverse=True)
    # Dealt one at a time in turn, so that the partitions of one topic spread over members.
    hungry = [each for each in sorted(given) if len(given[each]) < shares[each]]
    while hungry:
        for member_id in hungry:
            given[member_id].add(free.pop())
        hungry = [each for each in hungry if len(given[each]) < shares[each]]
    assert not free, "the shares add up to all partitions"


def _share_by_topic(spec: GroupSpec, given: Given, free: list[PartitionKey]) -> None:
    """Members read different topics: give to whoever has least, then even out."""
    readers: dict[bytes, list[str]] = {
        topic_id: [each for each in given if topic_id in spec.members[each].topic_ids]
        for topic_id in spec.partition_counts
    }
    # The partitions with fewest readers first, for they have the least choice.
    free.sort(key=lambda each: (len(readers[each[0]]), each))
    for partition in free:
        member_id = min(readers[partition[0]], key=lambda each: (len(given[each]), each))
        given[member_id].add(partition)
    _even_out(readers, given)


def _even_out(readers: dict[bytes, list[str]], given: Given) -> None:
    """Move partitions from those that have more until no move helps.

    Each move lowers the sum of the squares of the sizes, so this ends.
    """
    fullest = [(-len(partitions), member_id) for member_id, partitions in given.items()]
    heapify(fullest)
    blocked: set[str] = set()
    while fullest and len(blocked) < len(given):
        _, member_id = fullest[0]
        move = None if member_id in blocked else _best_move(readers, given, member_id)
        if move is None:
            blocked.add(member_id)
            heapreplace(fullest, (1, member_id))  # goes behind all others
            continue
        partition, receiver = move
        given[member_id].remove(partition)
        given[receiver].add(partition)
        blocked.clear()
        fullest = [(-len(partitions), each) for each, partitions in given.items()]
        heapify(fullest)


def _best_move(
    readers: dict[bytes, list[str]], given: Given, member_id: str
) -> tuple[PartitionKey, str] | None:
    size = len(given[member_id])
    best: tuple[int, PartitionKey, str] | None = None
    topics = {topic_id: (topic_id, index) for topic_id, index in sorted(given[member_id])}
    for topic_id, partition in topics.items():
        receiver = min(readers[topic_id], key=lambda each: (len(given[each]), each))
        gap = size - len(given[receiver])
        if gap >= 2 and (best is None or gap > best[0]):
            best = (gap, partition, receiver)
    return None if best is None else best[1:]
