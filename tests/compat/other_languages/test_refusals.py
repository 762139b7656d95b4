"""What cannot be is told to every client under the name by which it knows it."""

from collections.abc import Callable

import pytest

from compat.other_languages.client import OtherClient
from compat.other_languages.conftest import CLIENTS
from compat.other_languages.program import Refused
from support.clients.face import Reading, ToSend

NewName = Callable[[], str]

pytestmark = pytest.mark.slow


def name_of_refusal(do: Callable[[], object]) -> str:
    with pytest.raises(Refused) as refused:
        do()
    return refused.value.name


def test_an_unknown_topic_is_refused(client: OtherClient, new_name: NewName) -> None:
    nowhere = new_name()
    unknown = "UNKNOWN_TOPIC_OR_PARTITION"
    assert name_of_refusal(lambda: client.delete_topic(nowhere)) == unknown
    assert name_of_refusal(lambda: client.produce(nowhere, [ToSend(b"x")])) == unknown
    assert nowhere not in client.topics()


def test_a_record_larger_than_the_topic_allows_is_refused(
    client: OtherClient, new_name: NewName
) -> None:
    topic = new_name()
    client.create_topic(topic, configs={"max.message.bytes": "1000"})
    large = [ToSend(b"x" * 5000)]
    assert name_of_refusal(lambda: client.produce(topic, large)) == "MESSAGE_TOO_LARGE"
    assert client.offset_range(topic, 0) == (0, 0)


def test_topics_that_cannot_be_created_are_refused(client: OtherClient, new_name: NewName) -> None:
    topic = new_name()
    client.create_topic(topic)
    assert name_of_refusal(lambda: client.create_topic(topic)) == "TOPIC_ALREADY_EXISTS"
    configs = {"cleanup.policy": "nonsense"}
    wrong = name_of_refusal(lambda: client.create_topic(new_name(), configs=configs))
    assert wrong == "INVALID_CONFIG"
    strange = name_of_refusal(lambda: client.create_topic("no spaces"))
    assert strange == "INVALID_TOPIC_EXCEPTION"
    fewer = name_of_refusal(lambda: client.add_partitions(topic, total=1))
    assert fewer == "INVALID_PARTITIONS"


@pytest.mark.parametrize("client", [name for name in CLIENTS if name != "kafkajs"], indirect=True)
def test_an_offset_that_is_not_there_is_refused(client: OtherClient, new_name: NewName) -> None:
    topic = new_name()  # kafkajs begins anew by itself
    client.create_topic(topic)
    reading = Reading(count=1)
    refusal = name_of_refusal(lambda: client.consume(topic, {0: 100}, reading))
    assert refusal == "OFFSET_OUT_OF_RANGE"


def test_a_group_that_is_not_there_is_refused(client: OtherClient, new_name: NewName) -> None:
    assert name_of_refusal(lambda: client.delete_group(new_name())) == "GROUP_ID_NOT_FOUND"
