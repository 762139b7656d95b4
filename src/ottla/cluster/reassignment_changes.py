"""Moves of partitions, written: the topic's node and the states that must change with it.

What must stay true: nobody is in sync who holds no replica. A leader that has not heard of a move
could take somebody in whom the move has just dropped; so whenever a broker goes out of the
replicas, the partition's state is written in the same multi, and with its new version the leader's
own change fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Final

from msgspec.structs import replace

from ottla.cluster import layout
from ottla.cluster.changes import topic_node, topic_of, write_leadership
from ottla.cluster.election import Leadership, Situation
from ottla.cluster.image import Draft, PartitionImage
from ottla.cluster.reassignment import Move, assignment_of, next_step
from ottla.cluster.store import SetData

MOVES_AT_ONCE_MAX: Final = 1_000
"""Partitions of one topic moved by one multi, which has a limit in bytes."""


def write_moves(draft: Draft, name: str, moves: Mapping[int, Move]) -> None:
    """Let partitions of a topic be assigned as decided."""
    topic = topic_of(draft, name)
    left = iter(moves.items())
    while some := dict(islice(left, MOVES_AT_ONCE_MAX)):
        partitions = list(topic.partitions)
        for index, move in some.items():
            partitions[index] = _moved(draft, name, partitions[index], move)
        before = topic.version
        topic = replace(topic, partitions=tuple(partitions), version=before + 1)
        data = layout.encode(topic_node(topic))
        draft.operations.append(SetData(layout.topic_path(name), data, before))
        draft.may_end_here()
    draft.put_topic(topic)


def continue_moves(draft: Draft, names: Iterable[str], situation: Situation) -> int:
    """Finish the moves whose new replicas are all in sync; how many were finished."""
    count = 0
    for name in names:
        topic = draft.topics.get(name)
        if topic is None or topic.is_being_deleted:
            continue
        moves = {
            each.index: move
            for each in topic.partitions
            if (each.adding_replicas or each.removing_replicas)
            and (move := next_step(each, situation)) is not None
        }
        if moves:
            write_moves(draft, name, moves)
            count += len(moves)
    return count


def _moved(draft: Draft, topic: str, before: PartitionImage, move: Move) -> PartitionImage:
    after = before
    if move.leadership is not None or move.abandons(assignment_of(before)):
        as_it_is = Leadership(before.leader, before.isr, before.recovery_state)
        after = write_leadership(draft, topic, before, move.leadership or as_it_is)
    return replace(
        after,
        replicas=move.assignment.replicas,
        adding_replicas=move.assignment.adding,
        removing_replicas=move.assignment.removing,
    )
