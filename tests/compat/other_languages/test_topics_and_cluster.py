"""The admin of every client creates, describes, alters and deletes topics, and sees the cluster."""

from collections.abc import Callable

import pytest

from compat.other_languages.client import OtherClient
from compat.other_languages.conftest import CLIENTS
from support.clients.confluent import ConfluentClient
from support.clients.face import ToSend
from support.eventually import eventually

NewName = Callable[[], str]

pytestmark = pytest.mark.slow


def test_a_topic_is_created_listed_described_and_deleted(
    client: OtherClient, new_name: NewName
) -> None:
    topic = new_name()
    client.create_topic(topic, partitions=3, configs={"retention.ms": "777000"})
    assert topic in client.topics()
    partitions = client.partitions_of(topic)
    (broker,) = client.cluster()["brokers"]
    own = broker["id"]
    assert partitions == [
        {"partition": number, "leader": own, "replicas": [own], "in_sync": [own]}
        for number in range(3)
    ]
    assert client.configs_of(topic)["retention.ms"] == "777000"
    client.delete_topic(topic)
    eventually(lambda: topic not in client.topics(), "the deletion")


def test_partitions_are_added_to_a_topic(client: OtherClient, new_name: NewName) -> None:
    topic = new_name()
    client.create_topic(topic)
    client.add_partitions(topic, total=4)
    eventually(lambda: len(client.partitions_of(topic)) == 4, "the new partitions")
    assert client.produce(topic, [ToSend(b"x", partition=3)]) == [0]


def test_configs_are_altered_and_described(
    client: OtherClient, bootstrap: str, new_name: NewName
) -> None:
    topic = new_name()
    ConfluentClient(bootstrap).create_topic(topic)
    before = client.configs_of(topic)
    assert before["cleanup.policy"] == "delete"
    client.alter_configs(topic, {"segment.ms": "60000", "cleanup.policy": "compact"})
    after = client.configs_of(topic)
    assert after == {**before, "segment.ms": "60000", "cleanup.policy": "compact"}


def test_the_cluster_has_one_broker_that_controls_it(client: OtherClient, bootstrap: str) -> None:
    cluster = client.cluster()
    (broker,) = cluster["brokers"]
    assert f"{broker['host']}:{broker['port']}" == bootstrap
    assert cluster["controller"] == broker["id"]
    known = ConfluentClient(bootstrap).admin().list_topics(timeout=30)
    assert cluster.get("cluster_id", known.cluster_id) == known.cluster_id


@pytest.mark.parametrize("client", [name for name in CLIENTS if name != "kafka-go"], indirect=True)
def test_records_are_deleted_up_to_an_offset(client: OtherClient, new_name: NewName) -> None:
    topic = new_name()
    client.create_topic(topic)
    client.produce(topic, [ToSend(b"%d" % number) for number in range(9)])
    client.delete_records(topic, {0: 4})
    assert client.offset_range(topic, 0) == (4, 9)
