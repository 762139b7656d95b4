"""Gives each member a run of neighbouring partitions of each of its topics.

Members that read the same topics get the same partition numbers of each, so that records with the
same key in different topics meet at one member.
"""

from __future__ import annotations

from ottla.coordination.group.assignors.spec import GroupSpec, PartitionKey, Partitions


def assign_ranges(spec: GroupSpec) -> dict[str, Partitions]:
    """Split each topic into runs, as equal as can be, in the order of the members."""
    given: dict[str, set[PartitionKey]] = {member_id: set() for member_id in spec.members}
    in_order = sorted(
        spec.members,
        key=lambda each: (
            spec.members[each].instance_id is None,
            spec.members[each].instance_id or each,
        ),
    )
    for topic_id, count in spec.partition_counts.items():
        readers = [each for each in in_order if topic_id in spec.members[each].topic_ids]
        if not readers:
            continue
        size, longer = divmod(count, len(readers))
        start = 0
        for place, member_id in enumerate(readers):
            end = start + size + (place < longer)
            given[member_id].update((topic_id, index) for index in range(start, end))
            start = end
    return {member_id: frozenset(partitions) for member_id, partitions in given.items()}
