"""The members of every client share partitions, take over from each other and resume."""

from collections.abc import Callable
from contextlib import ExitStack

import pytest

from compat.other_languages.client import Member, OtherClient, Place
from compat.other_languages.conftest import ClientNamed
from compat.other_languages.program import Refused
from support.clients.confluent import ConfluentClient
from support.clients.face import ToSend
from support.eventually import eventually

NewName = Callable[[], str]

PARTITIONS = 4
WAYS_TO_SHARE = [
    ("kafkajs", "round-robin"),
    ("franz-go", "range"),
    ("franz-go", "cooperative-sticky"),
    ("franz-go", "broker"),
    ("sarama", "range"),
    ("sarama-2.8", "range"),
    ("kafka-go", "range"),
    ("java", "range"),
    ("java", "cooperative-sticky"),
    ("java", "broker"),
]

pytestmark = pytest.mark.slow


class Feed:
    """Writes one record to each partition at a time, through a Python client."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._client, self._topic = ConfluentClient(bootstrap), topic
        self._client.create_topic(topic, partitions=PARTITIONS)

    def round(self, number: int) -> None:
        values = [ToSend(b"%d" % number, partition=partition) for partition in range(PARTITIONS)]
        self._client.produce(self._topic, values)


def wait_shared(client: OtherClient, place: Place, *client_ids: str) -> dict[str, list[int]]:
    """The partitions of each member, as soon as these members have all of them."""

    def shared() -> dict[str, list[int]] | None:
        try:
            found = client.describe_group(place)
        except Refused as refused:
            if refused.name != "GROUP_ID_NOT_FOUND":  # which means that nobody has joined yet
                raise
            return None
        owned = sorted(number for numbers in found.members.values() for number in numbers)
        is_settled = owned == list(range(PARTITIONS)) and all(found.members.values())
        return found.members if is_settled and set(found.members) == set(client_ids) else None

    return eventually(shared, f"that {client_ids} share the partitions")


def wait_round(member: Member, partitions: list[int], number: int) -> None:
    """One round's records of these partitions, and only they, come to the member."""
    received = [member.wait_record() for _ in partitions]
    assert sorted(record.partition for record in received) == partitions
    assert {record.value for record in received} == {b"%d" % number}
    assert {record.offset for record in received} == {number}


@pytest.mark.parametrize(("client", "balancer"), WAYS_TO_SHARE, indirect=["client"])
def test_members_share_take_over_and_resume(
    client: OtherClient, balancer: str, bootstrap: str, new_name: NewName
) -> None:
    place = Place(group=new_name(), topic=new_name(), balancer=balancer)
    feed = Feed(bootstrap, place.topic)
    everything = list(range(PARTITIONS))
    with client.member(place, "first") as first, client.member(place, "second") as second:
        owned = wait_shared(client, place, "first", "second")
        assert [len(partitions) for partitions in owned.values()] == [2, 2]
        feed.round(0)
        wait_round(first, owned["first"], 0)
        wait_round(second, owned["second"], 0)
        second.leave()
        wait_shared(client, place, "first")
        feed.round(1)
        wait_round(first, everything, 1)
        first.leave()
    assert client.group_offsets(place) == dict.fromkeys(everything, 2)
    feed.round(2)
    with client.member(place, "third") as third:
        wait_round(third, everything, 2)
        third.leave()


def test_members_of_different_clients_share_one_group(
    client_named: ClientNamed, bootstrap: str, new_name: NewName
) -> None:
    place = Place(group=new_name(), topic=new_name())
    feed = Feed(bootstrap, place.topic)
    names = ("franz-go", "sarama", "java", "kafka-go")
    with ExitStack() as members:
        joined = {
            name: members.enter_context(client_named(name).member(place, name)) for name in names
        }
        owned = wait_shared(client_named("franz-go"), place, *names)
        feed.round(0)
        for name, member in joined.items():
            wait_round(member, owned[name], 0)
        for name in names[:-1]:
            joined[name].leave()
        wait_shared(client_named("sarama"), place, "kafka-go")
        feed.round(1)
        wait_round(joined["kafka-go"], list(range(PARTITIONS)), 1)
        joined["kafka-go"].leave()


def test_groups_are_listed_described_and_deleted(
    client: OtherClient, bootstrap: str, new_name: NewName
) -> None:
    place = Place(group=new_name(), topic=new_name())
    Feed(bootstrap, place.topic)
    with client.member(place, "only") as only:
        wait_shared(client, place, "only")
        assert client.describe_group(place).state == "Stable"
        with pytest.raises(Refused) as refused:
            client.delete_group(place.group)
        assert refused.value.name == "NON_EMPTY_GROUP"
        only.leave()
    assert place.group in client.groups()
    client.delete_group(place.group)
    assert place.group not in client.groups()


def test_a_member_starts_where_an_admin_set_the_offsets(
    client: OtherClient, bootstrap: str, new_name: NewName
) -> None:
    place = Place(group=new_name(), topic=new_name())
    feed = Feed(bootstrap, place.topic)
    for number in range(4):
        feed.round(number)
    everything = list(range(PARTITIONS))
    client.set_group_offsets(place, dict.fromkeys(everything, 3))
    assert client.group_offsets(place) == dict.fromkeys(everything, 3)
    with client.member(place, "only") as only:
        wait_round(only, everything, 3)
        only.leave()
