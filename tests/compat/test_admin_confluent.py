"""Every admin call of confluent-kafka that concerns topics, configs, records and the cluster."""

from collections.abc import Callable

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from support.clients.confluent import WAIT_SECONDS_MAX, ConfluentClient
from support.clients.face import Sending, ToSend
from support.eventually import eventually

NewName = Callable[[], str]


@pytest.fixture
def admin(bootstrap: str) -> AdminClient:
    return ConfluentClient(bootstrap).admin()


def create(admin: AdminClient, *topics: NewTopic, **options: bool) -> None:
    for future in admin.create_topics(list(topics), **options).values():
        future.result(WAIT_SECONDS_MAX)


def partitions_of(admin: AdminClient, topic: str) -> int:
    return len(admin.list_topics(topic, timeout=WAIT_SECONDS_MAX).topics[topic].partitions)


def topic_configs(admin: AdminClient, topic: str) -> dict[str, ConfigEntry]:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    return admin.describe_configs([resource])[resource].result(WAIT_SECONDS_MAX)


def alter(
    admin: AdminClient, topic: str, name: str, value: str | None, how: AlterConfigOpType
) -> None:
    entry = ConfigEntry(name, value, incremental_operation=how)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(WAIT_SECONDS_MAX)


def test_topics_are_created_listed_and_deleted(admin: AdminClient, new_name: NewName) -> None:
    names = [new_name() for _ in range(3)]
    create(admin, *(NewTopic(name, num_partitions=2) for name in names))
    eventually(lambda: set(names) <= set(admin.list_topics().topics), "the topics appear")
    for future in admin.delete_topics(names).values():
        future.result(WAIT_SECONDS_MAX)
    eventually(lambda: not set(names) & set(admin.list_topics().topics), "the topics are gone")


def test_validate_only_creates_nothing(admin: AdminClient, new_name: NewName) -> None:
    name = new_name()
    create(admin, NewTopic(name, num_partitions=2), validate_only=True)
    assert name not in admin.list_topics(timeout=WAIT_SECONDS_MAX).topics
    wish = NewTopic(name, num_partitions=1, config={"retention.ms": "soon"})
    with pytest.raises(KafkaException) as caught:
        create(admin, wish, validate_only=True)
    assert caught.value.args[0].code() == KafkaError.INVALID_CONFIG


def test_assignments_choose_the_replicas(admin: AdminClient, new_name: NewName) -> None:
    name = new_name()
    (node,) = admin.list_topics(timeout=WAIT_SECONDS_MAX).brokers
    create(admin, NewTopic(name, num_partitions=3, replica_assignment=[[node], [node], [node]]))
    assert eventually(lambda: partitions_of(admin, name) == 3, "three partitions")


def test_assignments_to_an_unknown_broker_are_refused(
    admin: AdminClient, new_name: NewName
) -> None:
    with pytest.raises(KafkaException) as caught:
        create(admin, NewTopic(new_name(), num_partitions=1, replica_assignment=[[97]]))
    assert caught.value.args[0].code() == KafkaError.INVALID_REPLICA_ASSIGNMENT


def test_more_replicas_than_brokers_are_refused(admin: AdminClient, new_name: NewName) -> None:
    with pytest.raises(KafkaException) as caught:
        create(admin, NewTopic(new_name(), num_partitions=1, replication_factor=3))
    assert caught.value.args[0].code() == KafkaError.INVALID_REPLICATION_FACTOR


def test_partitions_are_added(admin: AdminClient, new_name: NewName) -> None:
    name = new_name()
    create(admin, NewTopic(name, num_partitions=1))
    admin.create_partitions([NewPartitions(name, 4)])[name].result(WAIT_SECONDS_MAX)
    eventually(lambda: partitions_of(admin, name) == 4, "four partitions")
    with pytest.raises(KafkaException) as caught:
        admin.create_partitions([NewPartitions(name, 2)])[name].result(WAIT_SECONDS_MAX)
    assert caught.value.args[0].code() == KafkaError.INVALID_PARTITIONS


def test_configs_are_given_at_creation_and_described(admin: AdminClient, new_name: NewName) -> None:
    name = new_name()
    create(admin, NewTopic(name, num_partitions=1, config={"retention.ms": "123456"}))
    eventually(lambda: topic_configs(admin, name), "the configs")
    configs = topic_configs(admin, name)
    assert configs["retention.ms"].value == "123456"
    assert configs["retention.ms"].source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    assert configs["cleanup.policy"].value == "delete"
    assert configs["cleanup.policy"].is_default
    expected = {"segment.bytes", "max.message.bytes", "compression.type", "flush.messages"}
    assert expected <= set(configs)


def test_configs_are_set_deleted_appended_and_subtracted(
    admin: AdminClient, new_name: NewName
) -> None:
    name = new_name()
    create(admin, NewTopic(name, num_partitions=1))

    def waits_for(config: str, value: str) -> None:
        eventually(lambda: topic_configs(admin, name)[config].value == value, f"{config}={value}")

    alter(admin, name, "retention.ms", "60000", AlterConfigOpType.SET)
    waits_for("retention.ms", "60000")
    alter(admin, name, "cleanup.policy", "compact", AlterConfigOpType.APPEND)
    policies = {"delete,compact", "compact,delete"}
    eventually(lambda: topic_configs(admin, name)["cleanup.policy"].value in policies, "appended")
    alter(admin, name, "cleanup.policy", "delete", AlterConfigOpType.SUBTRACT)
    waits_for("cleanup.policy", "compact")
    alter(admin, name, "retention.ms", None, AlterConfigOpType.DELETE)
    waits_for("retention.ms", "604800000")


def test_old_alter_configs_replaces_everything(admin: AdminClient, new_name: NewName) -> None:
    name = new_name()
    create(admin, NewTopic(name, num_partitions=1, config={"retention.ms": "1000000"}))
    resource = ConfigResource(ResourceType.TOPIC, name, set_config={"max.message.bytes": "2000"})
    with pytest.warns(DeprecationWarning, match="alter_configs"):
        futures = admin.alter_configs([resource])
    futures[resource].result(WAIT_SECONDS_MAX)
    eventually(
        lambda: topic_configs(admin, name)["max.message.bytes"].value == "2000", "the new value"
    )
    assert topic_configs(admin, name)["retention.ms"].value == "604800000"


@pytest.mark.parametrize(
    ("name", "value"),
    [("retention.ms", "soon"), ("no.such.config", "1"), ("segment.bytes", "-7")],
)
def test_bad_configs_are_refused(
    admin: AdminClient, name: str, value: str, new_name: NewName
) -> None:
    topic = new_name()
    create(admin, NewTopic(topic, num_partitions=1))
    with pytest.raises(KafkaException) as caught:
        alter(admin, topic, name, value, AlterConfigOpType.SET)
    assert caught.value.args[0].code() == KafkaError.INVALID_CONFIG
    with pytest.raises(KafkaException) as caught:
        create(admin, NewTopic(new_name(), num_partitions=1, config={name: value}))
    assert caught.value.args[0].code() == KafkaError.INVALID_CONFIG


def test_a_changed_size_limit_holds_at_once(
    admin: AdminClient, bootstrap: str, new_name: NewName
) -> None:
    client, topic = ConfluentClient(bootstrap), new_name()
    client.create_topic(topic, configs={"max.message.bytes": "1000"})
    big = [ToSend(b"v" * 5000)]
    with pytest.raises(KafkaException) as caught:
        client.produce(topic, big)
    assert caught.value.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE
    alter(admin, topic, "max.message.bytes", "10000", AlterConfigOpType.SET)
    eventually(
        lambda: topic_configs(admin, topic)["max.message.bytes"].value == "10000", "the new limit"
    )
    assert client.produce(topic, big, Sending(idempotent=True)) == [0]


def test_broker_configs_are_described(admin: AdminClient) -> None:
    (node,) = admin.list_topics(timeout=WAIT_SECONDS_MAX).brokers
    resource = ConfigResource(ResourceType.BROKER, str(node))
    configs = admin.describe_configs([resource])[resource].result(WAIT_SECONDS_MAX)
    assert {"log.retention.ms", "num.partitions", "message.max.bytes"} <= set(configs)
    assert configs["num.partitions"].value == "1"


def test_records_are_deleted_up_to_an_offset(
    admin: AdminClient, bootstrap: str, new_name: NewName
) -> None:
    client, topic = ConfluentClient(bootstrap), new_name()
    client.create_topic(topic)
    client.produce(topic, [ToSend(b"%d" % number) for number in range(10)])
    place = TopicPartition(topic, 0, 4)
    deleted = admin.delete_records([place])[place].result(WAIT_SECONDS_MAX)
    assert deleted.low_watermark == 4
    assert client.offset_range(topic, 0) == (4, 10)
    end = TopicPartition(topic, 0, -1)
    assert admin.delete_records([end])[end].result(WAIT_SECONDS_MAX).low_watermark == 10
    beyond = TopicPartition(topic, 0, 11)
    with pytest.raises(KafkaException) as caught:
        admin.delete_records([beyond])[beyond].result(WAIT_SECONDS_MAX)
    assert caught.value.args[0].code() == KafkaError.OFFSET_OUT_OF_RANGE


def test_the_cluster_is_described(admin: AdminClient, bootstrap: str) -> None:
    cluster = admin.describe_cluster().result(WAIT_SECONDS_MAX)
    assert cluster.cluster_id
    (node,) = cluster.nodes
    assert f"{node.host}:{node.port}" == bootstrap
    assert cluster.controller.id == node.id


def test_topics_are_described(admin: AdminClient, new_name: NewName) -> None:
    name, missing = new_name(), new_name()
    create(admin, NewTopic(name, num_partitions=3))
    eventually(lambda: name in admin.list_topics().topics, "the topic appears")
    futures = admin.describe_topics(TopicCollection([name, missing]))
    described = futures[name].result(WAIT_SECONDS_MAX)
    assert [part.id for part in described.partitions] == [0, 1, 2]
    assert all(part.leader is not None and len(part.isr) == 1 for part in described.partitions)
    assert str(described.topic_id) != "AAAAAAAAAAAAAAAAAAAAAA"
    with pytest.raises(KafkaException) as caught:
        futures[missing].result(WAIT_SECONDS_MAX)
    assert caught.value.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_offsets_are_listed_by_every_specification(
    admin: AdminClient, bootstrap: str, new_name: NewName
) -> None:
    client, topic, base_ms = ConfluentClient(bootstrap), new_name(), 1_600_000_000_000
    client.create_topic(topic)
    for number in (0, 5, 9, 3, 4):
        client.produce(topic, [ToSend(b"x", timestamp_ms=base_ms + number)])

    def offset(specification: OffsetSpec) -> int:
        place = TopicPartition(topic, 0)
        return int(admin.list_offsets({place: specification})[place].result(30).offset)

    assert offset(OffsetSpec.earliest()) == 0
    assert offset(OffsetSpec.latest()) == 5
    assert offset(OffsetSpec.max_timestamp()) == 2
    assert offset(OffsetSpec.for_timestamp(base_ms + 4)) == 1
    assert offset(OffsetSpec.for_timestamp(base_ms + 6)) == 2
    assert offset(OffsetSpec.for_timestamp(base_ms + 10)) == -1


def test_a_recreated_topic_is_a_new_and_empty_one(
    admin: AdminClient, bootstrap: str, new_name: NewName
) -> None:
    client, topic = ConfluentClient(bootstrap), new_name()

    def topic_id() -> str:
        future = admin.describe_topics(TopicCollection([topic]))[topic]
        return str(future.result(WAIT_SECONDS_MAX).topic_id)

    client.create_topic(topic)
    client.produce(topic, [ToSend(b"old")])
    first = topic_id()
    admin.delete_topics([topic])[topic].result(WAIT_SECONDS_MAX)
    eventually(lambda: topic not in admin.list_topics().topics, "the topic is gone")
    client.create_topic(topic)
    assert topic_id() != first
    assert client.offset_range(topic, 0) == (0, 0)
    assert client.produce(topic, [ToSend(b"new")]) == [0]
