"""Every partition has one reader who wants it, and the assignors keep their promises."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.clients.consumer.assignors import (
    ASSIGNORS,
    Assignment,
    Member,
    cooperative_sticky,
    range_,
    round_robin,
    sticky,
)
from ottla.clients.consumer.embedded import member_from, subscription_bytes
from ottla.model.ids import TopicPartition

topic_names = st.sampled_from(["a", "b", "c"])
counts = st.dictionaries(topic_names, st.integers(0, 9), min_size=1)
subscriptions = st.lists(st.frozensets(topic_names, min_size=1), min_size=1, max_size=6)


def members_of(subscribed: list[frozenset[str]]) -> list[Member]:
    return [Member(f"m{index}", topics) for index, topics in enumerate(subscribed)]


def places(topic: str, *partitions: int) -> list[TopicPartition]:
    return [TopicPartition(topic, partition) for partition in partitions]


def near(*racks: str, topics: str = "a") -> list[Member]:
    """Members m0, m1, … in these racks, who all want these topics; no rack for an empty name."""
    return [
        Member(f"m{index}", frozenset(topics), rack=rack or None)
        for index, rack in enumerate(racks)
    ]


def racks_of(**by_topic: str) -> dict[TopicPartition, frozenset[str]]:
    """`racks_of(a="xy x y")`: where the replicas of each partition are."""
    return {
        TopicPartition(topic, partition): frozenset(racks)
        for topic, texts in by_topic.items()
        for partition, racks in enumerate(texts.split())
    }


def having(members: list[Member], assignment: Assignment, generation: int) -> list[Member]:
    return [
        Member(m.id, m.topics, m.instance_id, tuple(assignment[m.id]), generation) for m in members
    ]


@pytest.mark.parametrize("name", ["range", "roundrobin", "sticky", "cooperative-sticky"])
@given(subscribed=subscriptions, sizes=counts)
def test_every_partition_has_one_reader_who_wants_it(
    name: str, subscribed: list[frozenset[str]], sizes: dict[str, int]
) -> None:
    members = members_of(subscribed)
    assignment = ASSIGNORS[name](members, sizes)
    wanted = {topic for member in members for topic in member.topics}
    given_out = [each for partitions in assignment.values() for each in partitions]

    assert sorted(given_out) == sorted(
        TopicPartition(topic, p) for topic in wanted for p in range(sizes.get(topic, 0))
    )
    for member in members:
        assert {each.topic for each in assignment[member.id]} <= member.topics


@given(st.integers(1, 6), st.integers(0, 20))
def test_sticky_is_even_when_all_want_the_same(member_count: int, partitions: int) -> None:
    members = members_of([frozenset("a")] * member_count)
    loads = [len(each) for each in sticky(members, {"a": partitions}).values()]

    assert max(loads) - min(loads) <= 1


@given(subscribed=subscriptions, sizes=counts)
def test_sticky_changes_nothing_when_nothing_changed(
    subscribed: list[frozenset[str]], sizes: dict[str, int]
) -> None:
    members = members_of(subscribed)
    before = sticky(members, sizes)

    assert sticky(having(members, before, 1), sizes) == before


@given(st.integers(1, 5), st.integers(0, 20))
def test_a_newcomer_only_takes_and_the_others_only_give(count: int, partitions: int) -> None:
    members = members_of([frozenset("a")] * count)
    before = sticky(members, {"a": partitions})
    after = sticky([*having(members, before, 1), Member("new", frozenset("a"))], {"a": partitions})

    for member in members:
        assert set(after[member.id]) <= set(before[member.id])


@given(st.integers(1, 5), st.integers(0, 20))
def test_cooperative_gives_nothing_away_that_somebody_still_has(
    count: int, partitions: int
) -> None:
    sizes = {"a": partitions}
    members = members_of([frozenset("a")] * count)
    before = cooperative_sticky(members, sizes)
    owner = {each: member for member, own in before.items() for each in own}
    all_members = [*having(members, before, 1), Member("new", frozenset("a"))]
    first = cooperative_sticky(all_members, sizes)
    second = cooperative_sticky(having(all_members, first, 2), sizes)

    assert all(owner[each] == member for member, own in first.items() for each in own)
    assert sum(len(own) for own in second.values()) == partitions


def test_range_gives_neighbours_and_the_first_get_more() -> None:
    members = members_of([frozenset("a")] * 3)

    assert range_(members, {"a": 7}) == {
        "m0": places("a", 0, 1, 2),
        "m1": places("a", 3, 4),
        "m2": places("a", 5, 6),
    }


def test_round_robin_deals_over_topics() -> None:
    members = members_of([frozenset("ab"), frozenset("ab")])

    assert round_robin(members, {"a": 3, "b": 3}) == {
        "m0": places("a", 0, 2) + places("b", 1),
        "m1": places("a", 1) + places("b", 0, 2),
    }


def test_static_members_come_first_by_their_names() -> None:
    members = [
        Member("z", frozenset("a"), "one"),
        Member("a", frozenset("a")),
        Member("y", frozenset("a"), "two"),
    ]

    assert range_(members, {"a": 3}) == {
        "z": places("a", 0),
        "y": places("a", 1),
        "a": places("a", 2),
    }


def test_of_two_claims_the_later_generation_counts() -> None:
    old = Member("old", frozenset("a"), None, tuple(places("a", 0)), 1)
    new = Member("new", frozenset("a"), None, tuple(places("a", 0)), 2)

    assert sticky([old, new], {"a": 2})["new"] == places("a", 0)


def test_range_gives_each_reader_what_is_near_it() -> None:
    racks = racks_of(a="x y x y")
    assert range_(near("x", "y"), {"a": 4}, racks) == {
        "m0": places("a", 0, 2),
        "m1": places("a", 1, 3),
    }


def test_range_is_even_before_it_is_near() -> None:
    racks = racks_of(a="x x x y")
    assert range_(near("x", "y"), {"a": 4}, racks) == {
        "m0": places("a", 0, 1),
        "m1": places("a", 2, 3),
    }


@pytest.mark.parametrize(
    "racks",
    [{}, racks_of(a="xy xy xy xy"), racks_of(a="z z w w")],
    ids=["nobody says", "everywhere", "elsewhere"],
)
def test_range_gives_neighbours_where_racks_make_no_difference(racks: dict) -> None:
    assert range_(near("y", "x"), {"a": 4}, racks) == {
        "m0": places("a", 0, 1),
        "m1": places("a", 2, 3),
    }


def test_a_reader_far_from_everything_keeps_its_place_in_the_order() -> None:
    assert range_(near("far", "x"), {"a": 4}, racks_of(a="x x x x")) == {
        "m0": places("a", 0, 1),
        "m1": places("a", 2, 3),
    }


def test_a_reader_that_says_no_rack_takes_anything() -> None:
    assert range_(near("", "x"), {"a": 4}, racks_of(a="y x y x")) == {
        "m0": places("a", 0, 1),
        "m1": places("a", 2, 3),
    }


def test_topics_of_the_same_size_are_read_side_by_side() -> None:
    """Partition 1 of topic a is in both racks; that of b decides for both."""
    racks = racks_of(a="x xy y xy", b="x y xy x")
    assert range_(near("x", "y", topics="ab"), {"a": 4, "b": 4}, racks) == {
        "m0": [*places("a", 0, 3), *places("b", 0, 3)],
        "m1": [*places("a", 1, 2), *places("b", 1, 2)],
    }


rack_names = st.sampled_from(["x", "y", "z"])


@given(
    subscriptions.flatmap(
        lambda all_: st.tuples(
            st.just(all_), st.lists(st.none() | rack_names, min_size=len(all_), max_size=len(all_))
        )
    ),
    counts,
    st.data(),
)
def test_racks_change_nobodys_share(
    who: tuple[list[frozenset[str]], list[str | None]], sizes: dict[str, int], data: st.DataObject
) -> None:
    members = [
        Member(f"m{index}", topics, rack=rack)
        for index, (topics, rack) in enumerate(zip(*who, strict=True))
    ]
    racks = {
        TopicPartition(topic, partition): data.draw(st.frozensets(rack_names))
        for topic, size in sizes.items()
        for partition in range(size)
    }
    aware, plain = range_(members, sizes, racks), range_(members, sizes)

    for topic in sizes:
        both = [
            sorted(sum(each.topic == topic for each in mine) for mine in assignment.values())
            for assignment in (aware, plain)
        ]
        assert both[0] == both[1]
    given_out = [[p for mine in each.values() for p in mine] for each in (aware, plain)]
    assert sorted(given_out[0]) == sorted(given_out[1])


def test_a_member_tells_its_rack() -> None:
    words = subscription_bytes(["a"], (), 1, rack="x")
    assert member_from("m", None, words, "range").rack == "x"
    assert member_from("m", None, subscription_bytes(["a"], (), 1), "range").rack is None
