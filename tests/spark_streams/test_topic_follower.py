"""A topic is followed without a gap, whatever happens to the one who reads."""

from collections.abc import Callable

from ottla.streams.spark.topic_follower import TopicFollower
from spark.topics import fill, make_topic

NewName = Callable[[], str]


def values(follower: TopicFollower) -> list[bytes | None]:
    return [record.value for record in follower.news()]


def test_each_call_gives_what_came_since_the_last(bootstrap: str, new_name: NewName) -> None:
    topic = make_topic(bootstrap, new_name(), 2)
    follower = TopicFollower(topic, {"bootstrap.servers": bootstrap})
    assert values(follower) == []
    fill(bootstrap, topic, [b"a", b"b"], partition=1)
    assert values(follower) == [b"a", b"b"]
    fill(bootstrap, topic, [b"c"], partition=0)
    fill(bootstrap, topic, [b"d"], partition=1)
    assert values(follower) == [b"c", b"d"]
    assert values(follower) == []


def test_the_record_at_which_a_reader_fails_comes_again(bootstrap: str, new_name: NewName) -> None:
    topic = make_topic(bootstrap, new_name(), 1)
    fill(bootstrap, topic, [b"a", b"b", b"c"])
    follower = TopicFollower(topic, {"bootstrap.servers": bootstrap})
    for record in follower.news():
        if record.value == b"b":
            break
    assert values(follower) == [b"b", b"c"]
