"""Whatever pictures a broker was shown, what it holds is what the last one says."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ottla.cluster.image import ClusterImage
from unit.broker.cluster import Member, a_partition, a_picture, a_topic, expected
from unit.net.running import run, turns

Row = tuple[int, int, tuple[int, ...]]
"""How a partition is told of: the leader, or -1; and who holds it."""

partitions = st.tuples(
    st.sampled_from([-1, 1, 2, 3]),
    st.just(0),
    st.sampled_from([(1,), (1, 2), (2, 1), (1, 2, 3), (2, 3)]),
)
topics = st.tuples(st.integers(0, 2), st.lists(partitions, min_size=1, max_size=3))
pictures = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from(["a", "b", "c"]), topics, max_size=3),
        st.sets(st.sampled_from([1, 2, 3])),
        st.booleans(),
    ),
    max_size=8,
)


def painted(
    drawn: list[tuple[dict[str, tuple[int, list[Row]]], set[int], bool]],
) -> list[tuple[ClusterImage, bool]]:
    """Pictures in which epochs grow, partitions do not vanish, and replicas move."""
    made: dict[tuple[str, int], list[tuple[int, ...]]] = {}
    sequence = []
    for number, (topics_drawn, brokers, waits) in enumerate(drawn):
        images = []
        for name, (incarnation, rows) in topics_drawn.items():
            held = made.setdefault((name, incarnation), [])
            held[: len(rows)] = [row[2] for row in rows]
            leaders = [row[0] for row in rows] + [-1] * len(held)
            images.append(
                a_topic(
                    name,
                    *(
                        a_partition(
                            index,
                            leader if leader in replicas else -1,
                            *replicas,
                            epoch=number,
                        )
                        for index, (leader, replicas) in enumerate(zip(leaders, held, strict=False))
                    ),
                    incarnation=incarnation,
                )
            )
        sequence.append((a_picture(*images, brokers=brokers), waits))
    return sequence


@given(pictures)
def test_a_broker_holds_what_the_last_picture_says(
    drawn: list[tuple[dict[str, tuple[int, list[Row]]], set[int], bool]],
) -> None:
    async def scenario() -> None:
        member = Member()
        await member.follower.start()
        image = a_picture()
        for image, waits in painted(drawn):
            member.pictures.show(image)
            if waits:
                await member.follower.caught_up()
            else:
                await turns(2)
        await member.follower.caught_up()
        assert member.held() == expected(image)
        followed = {name: leader for name, leader in member.following.leaders.items() if leader}
        assert followed == {
            name: leader
            for name, (_, leader, _, leads) in expected(image).items()
            if leader is not None and not leads
        }
        for name, partition in ((str(each.id), each) for each in member.partitions):
            assert member.directory.topic_id(partition.id) == expected(image)[name][0]
        assert set(map(str, member.directory.partitions())) == set(member.held())
        await member.follower.stop()

    run(scenario())
