"""What members tell each other comes across."""

from ottla.clients.consumer.embedded import (
    assignment_bytes,
    assignment_from,
    member_from,
    sticky_memory,
    sticky_memory_from,
    subscription_bytes,
)
from ottla.model.ids import TopicPartition

OWNED = (TopicPartition("a", 1), TopicPartition("b", 0))


def test_a_subscription_is_read_as_it_was_written() -> None:
    data = subscription_bytes(["b", "a"], OWNED, 7, rack="r")
    member = member_from("m", "i", data, "cooperative-sticky")

    assert member.topics == {"a", "b"}
    assert member.owned == OWNED
    assert (member.id, member.instance_id, member.generation) == ("m", "i", 7)


def test_an_assignment_is_read_as_it_was_written() -> None:
    assert assignment_from(assignment_bytes(OWNED)) == OWNED
    assert assignment_from(b"") == ()


def test_the_sticky_memory_travels_as_user_data() -> None:
    data = subscription_bytes(["a"], (), 3, user_data=sticky_memory(OWNED, 3))
    member = member_from("m", None, data, "sticky")

    assert (member.owned, member.generation) == (OWNED, 3)


def test_a_damaged_memory_is_none() -> None:
    memory = sticky_memory(OWNED, 3)

    for end in range(len(memory) - 4):
        assert sticky_memory_from(memory[:end]) == ((), -1)
