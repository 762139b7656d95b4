"""Assignors give every partition to one reader of its topic, evenly, and move little."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.coordination.group.assignors import ASSIGNORS
from ottla.coordination.group.assignors.range import assign_ranges
from ottla.coordination.group.assignors.spec import GroupSpec, MemberSpec, Partitions
from ottla.coordination.group.assignors.uniform import assign_uniformly

TOPICS = tuple(bytes([number]) * 16 for number in range(1, 5))

counts = st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 12))
some_topics = st.frozensets(st.sampled_from(TOPICS))


@st.composite
def specs(draw: st.DrawFn, *, alike: bool = False) -> GroupSpec:
    """Groups with any past: what members had may overlap or not exist any more."""
    partition_counts = draw(counts)
    shared = draw(some_topics) if alike else None
    partitions = st.frozensets(st.tuples(st.sampled_from(TOPICS), st.integers(0, 14)), max_size=12)
    members = {
        f"member-{number}": MemberSpec(
            topic_ids=shared if shared is not None else draw(some_topics),
            assigned=draw(partitions),
            instance_id=draw(st.none() | st.just(f"instance-{number}")),
        )
        for number in range(draw(st.integers(0, 7)))
    }
    return GroupSpec(members, partition_counts)


def wanted(spec: GroupSpec) -> set[tuple[bytes, int]]:
    read = {topic for member in spec.members.values() for topic in member.topic_ids}
    return {
        (topic, index)
        for topic, count in spec.partition_counts.items()
        if topic in read
        for index in range(count)
    }


def with_target(spec: GroupSpec, target: dict[str, Partitions]) -> GroupSpec:
    members = {
        each: MemberSpec(member.topic_ids, target[each], member.instance_id)
        for each, member in spec.members.items()
    }
    return GroupSpec(members, spec.partition_counts)


@given(specs(), st.sampled_from(sorted(ASSIGNORS)))
def test_every_partition_goes_to_one_reader_of_its_topic(spec: GroupSpec, name: str) -> None:
    target = ASSIGNORS[name](spec)
    assert target.keys() == spec.members.keys()
    given_out = [each for partitions in target.values() for each in partitions]
    assert len(given_out) == len(set(given_out))
    assert set(given_out) == wanted(spec)
    for member_id, partitions in target.items():
        assert {topic for topic, _ in partitions} <= spec.members[member_id].topic_ids


@given(specs(), st.sampled_from(sorted(ASSIGNORS)))
def test_an_assignment_is_a_function_of_the_group(spec: GroupSpec, name: str) -> None:
    backwards = GroupSpec(
        dict(reversed(list(spec.members.items()))),
        dict(reversed(list(spec.partition_counts.items()))),
    )
    assert ASSIGNORS[name](spec) == ASSIGNORS[name](backwards)


@given(specs(alike=True))
def test_uniform_shares_differ_by_one_at_most(spec: GroupSpec) -> None:
    sizes = [len(each) for each in assign_uniformly(spec).values()]
    assert not sizes or max(sizes) - min(sizes) <= 1


@given(specs())
def test_no_single_move_would_make_uniform_shares_more_even(spec: GroupSpec) -> None:
    target = assign_uniformly(spec)
    for giver, partitions in target.items():
        for topic, _ in partitions:
            for receiver, member in spec.members.items():
                if topic in member.topic_ids:
                    assert len(target[giver]) - len(target[receiver]) <= 1


@given(specs())
def test_uniform_moves_nothing_when_nothing_changed(spec: GroupSpec) -> None:
    target = assign_uniformly(spec)
    assert assign_uniformly(with_target(spec, target)) == target


@given(specs(alike=True))
def test_a_newcomer_takes_only_its_share(spec: GroupSpec) -> None:
    if not spec.members:
        return
    before = assign_uniformly(spec)
    settled = with_target(spec, before)
    shared = next(iter(spec.members.values())).topic_ids
    grown = GroupSpec({**settled.members, "newcomer": MemberSpec(shared)}, spec.partition_counts)
    after = assign_uniformly(grown)
    moved = sum(len(before[each] - after[each]) for each in before)
    assert moved == len(after["newcomer"])


@given(specs())
def test_range_gives_runs_of_neighbours(spec: GroupSpec) -> None:
    for partitions in assign_ranges(spec).values():
        for topic in {each for each, _ in partitions}:
            indexes = sorted(index for each, index in partitions if each == topic)
            assert indexes == list(range(indexes[0], indexes[-1] + 1))


@given(st.integers(1, 6), st.integers(1, 12))
def test_range_gives_the_same_numbers_of_each_topic_to_one_member(
    member_count: int, partition_count: int
) -> None:
    both = frozenset(TOPICS[:2])
    spec = GroupSpec(
        {f"member-{number}": MemberSpec(both) for number in range(member_count)},
        dict.fromkeys(both, partition_count),
    )
    for partitions in assign_ranges(spec).values():
        first, second = (
            {index for topic, index in partitions if topic == each} for each in sorted(both)
        )
        assert first == second
