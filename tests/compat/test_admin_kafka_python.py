"""Every admin call of kafka-python that concerns topics, configs, records and the cluster."""

import uuid
from collections.abc import Callable, Iterator

import pytest
from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import AlterConfigOp, ConfigResource, ConfigResourceType, OffsetSpec
from kafka.errors import (
    InvalidConfigurationError,
    InvalidPartitionsError,
    InvalidTopicError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)

from support.clients.face import ToSend
from support.clients.kafka_python import KafkaPythonClient
from support.eventually import eventually

NewName = Callable[[], str]


@pytest.fixture
def admin(bootstrap: str) -> Iterator[KafkaAdminClient]:
    client = KafkaPythonClient(bootstrap).admin()
    yield client
    client.close()


def create(admin: KafkaAdminClient, topic: str, partitions: int = 1, **configs: str) -> None:
    named = {name.replace("_", "."): value for name, value in configs.items()}
    wish = {"num_partitions": partitions, "replication_factor": 1, "configs": named}
    admin.create_topics({topic: wish}, wait_for_metadata=True)


def config_of(admin: KafkaAdminClient, topic: str, name: str) -> str:
    resource = ConfigResource(ConfigResourceType.TOPIC, topic)
    described = admin.describe_configs([resource], config_filter="all")
    return str(described["topic"][topic][name]["value"])


def alter(
    admin: KafkaAdminClient, topic: str, configs: dict[str, object], *, incremental: bool
) -> str:
    resource = ConfigResource(ConfigResourceType.TOPIC, topic, configs)
    answer = admin.alter_configs([resource], raise_on_unknown=False, incremental=incremental)
    return str(answer["topic"][topic])


def test_topics_are_created_listed_described_and_deleted(
    admin: KafkaAdminClient, new_name: NewName
) -> None:
    topic = new_name()
    create(admin, topic, partitions=3)
    assert topic in admin.list_topics()
    (described,) = admin.describe_topics([topic])
    assert len(described["partitions"]) == 3
    assert all(part["leader_id"] >= 0 for part in described["partitions"])
    admin.delete_topics([topic])
    eventually(lambda: topic not in admin.list_topics(), "the topic is gone")


def test_topics_are_described_and_deleted_by_their_id(
    admin: KafkaAdminClient, new_name: NewName
) -> None:
    topic = new_name()
    create(admin, topic)
    topic_id = admin.describe_topics([topic])[0]["topic_id"]
    topic_id = topic_id if isinstance(topic_id, uuid.UUID) else uuid.UUID(str(topic_id))
    assert admin.describe_topics([topic_id])[0]["name"] == topic
    admin.delete_topics([topic_id])
    eventually(lambda: topic not in admin.list_topics(), "the topic is gone")


def test_partition_defaults_come_from_the_broker(
    admin: KafkaAdminClient, new_name: NewName
) -> None:
    topic = new_name()
    created = admin.create_topics([topic], wait_for_metadata=True)
    (answer,) = created["topics"]
    assert (answer["num_partitions"], answer["replication_factor"]) == (1, 1)
    assert answer["configs"]["cleanup.policy"]["value"] == "delete"


def test_validate_only_creates_nothing(admin: KafkaAdminClient, new_name: NewName) -> None:
    topic = new_name()
    admin.create_topics([topic], validate_only=True)
    assert topic not in admin.list_topics()


def test_creation_errors_have_their_own_types(admin: KafkaAdminClient, new_name: NewName) -> None:
    topic = new_name()
    create(admin, topic)
    with pytest.raises(TopicAlreadyExistsError):
        create(admin, topic)
    with pytest.raises(InvalidTopicError):
        create(admin, "not a topic!")
    with pytest.raises(InvalidPartitionsError):
        create(admin, new_name(), partitions=0)
    with pytest.raises(InvalidConfigurationError):
        create(admin, new_name(), retention_ms="soon")
    with pytest.raises(UnknownTopicOrPartitionError):
        admin.delete_topics([new_name()])


def test_assignments_are_taken(admin: KafkaAdminClient, new_name: NewName) -> None:
    topic = new_name()
    node = admin.describe_cluster()["brokers"][0]["broker_id"]
    wish = {"assignments": {0: [node], 1: [node]}}
    admin.create_topics({topic: wish}, wait_for_metadata=True)
    parts = admin.describe_topics([topic])[0]["partitions"]
    assert [part["replica_nodes"] for part in parts] == [[node], [node]]


def test_partitions_are_added(admin: KafkaAdminClient, new_name: NewName) -> None:
    topic = new_name()
    create(admin, topic)
    admin.create_partitions({topic: 3}, validate_only=True)
    assert len(admin.describe_topics([topic])[0]["partitions"]) == 1
    admin.create_partitions({topic: 3})
    eventually(
        lambda: len(admin.describe_topics([topic])[0]["partitions"]) == 3, "three partitions"
    )
    with pytest.raises(InvalidPartitionsError):
        admin.create_partitions({topic: 2})


def test_incremental_config_changes(admin: KafkaAdminClient, new_name: NewName) -> None:
    topic = new_name()
    create(admin, topic, retention_ms="5000000")
    assert alter(admin, topic, {"max.message.bytes": "7000"}, incremental=True) == "OK"
    eventually(lambda: config_of(admin, topic, "max.message.bytes") == "7000", "the change")
    assert config_of(admin, topic, "retention.ms") == "5000000"
    deletion = {"retention.ms": (AlterConfigOp.DELETE, None)}
    assert alter(admin, topic, deletion, incremental=True) == "OK"
    eventually(lambda: config_of(admin, topic, "retention.ms") == "604800000", "the default")


def test_old_config_changes(admin: KafkaAdminClient, new_name: NewName) -> None:
    topic = new_name()
    create(admin, topic)
    assert alter(admin, topic, {"max.message.bytes": "7000"}, incremental=False) == "OK"
    eventually(lambda: config_of(admin, topic, "max.message.bytes") == "7000", "the change")


def test_a_bad_config_answers_its_reason(admin: KafkaAdminClient, new_name: NewName) -> None:
    topic = new_name()
    create(admin, topic)
    answer = alter(admin, topic, {"retention.ms": "soon"}, incremental=True)
    assert "retention.ms" in answer
    assert config_of(admin, topic, "retention.ms") == "604800000"


def test_config_synonyms_are_described(admin: KafkaAdminClient, new_name: NewName) -> None:
    topic = new_name()
    create(admin, topic, retention_ms="77777")
    resource = ConfigResource(ConfigResourceType.TOPIC, topic)
    described = admin.describe_configs([resource], include_synonyms=True, config_filter="all")
    entry = described["topic"][topic]["retention.ms"]
    assert (entry["value"], entry["config_source"]) == ("77777", "DYNAMIC_TOPIC_CONFIG")
    assert entry["synonyms"][0]["value"] == "77777"


def test_broker_configs_are_described(admin: KafkaAdminClient) -> None:
    node = admin.describe_cluster()["brokers"][0]["broker_id"]
    resource = ConfigResource(ConfigResourceType.BROKER, str(node))
    described = admin.describe_configs([resource], config_filter="all")["broker"][str(node)]
    assert {"num.partitions", "log.segment.bytes", "auto.create.topics.enable"} <= set(described)


def test_records_are_deleted(admin: KafkaAdminClient, bootstrap: str, new_name: NewName) -> None:
    client, topic = KafkaPythonClient(bootstrap), new_name()
    create(admin, topic)
    client.produce(topic, [ToSend(b"%d" % number) for number in range(5)])
    place = TopicPartition(topic, 0)
    assert admin.delete_records({place: 3})[place]["low_watermark"] == 3
    assert client.offset_range(topic, 0) == (3, 5)


def test_offsets_are_listed_by_every_specification(
    admin: KafkaAdminClient, bootstrap: str, new_name: NewName
) -> None:
    client, topic, base_ms = KafkaPythonClient(bootstrap), new_name(), 1_600_000_000_000
    create(admin, topic)
    for number in (0, 9, 3):
        client.produce(topic, [ToSend(b"x", timestamp_ms=base_ms + number)])
    place = TopicPartition(topic, 0)

    def offset(specification: OffsetSpec | int) -> int:
        return int(admin.list_partition_offsets({place: specification})[place].offset)

    assert offset(OffsetSpec.EARLIEST) == 0
    assert offset(OffsetSpec.LATEST) == 3
    assert offset(OffsetSpec.MAX_TIMESTAMP) == 1
    assert offset(base_ms + 1) == 1


def test_the_cluster_is_described(admin: KafkaAdminClient, bootstrap: str) -> None:
    cluster = admin.describe_cluster()
    (broker,) = cluster["brokers"]
    assert f"{broker['host']}:{broker['port']}" == bootstrap
    assert cluster["cluster_id"]


def test_log_directories_are_described(
    admin: KafkaAdminClient, bootstrap: str, new_name: NewName
) -> None:
    client, topic = KafkaPythonClient(bootstrap), new_name()
    create(admin, topic, partitions=2)
    client.produce(topic, [ToSend(b"v" * 1000)])
    (broker,) = admin.describe_log_dirs({topic: [0, 1]})
    (directory,) = broker["log_dirs"]
    assert directory["error_code"] == 0
    (found,) = directory["topics"]
    sizes = {part["partition_index"]: part["partition_size"] for part in found["partitions"]}
    assert sizes[0] >= 1000
    assert sizes[1] == 0


def test_topic_partitions_are_described_page_by_page(
    admin: KafkaAdminClient, new_name: NewName
) -> None:
    topic = new_name()
    create(admin, topic, partitions=5)
    page = admin.describe_topic_partitions([topic], response_partition_limit=3)
    assert [part["partition_index"] for part in page["topics"][0]["partitions"]] == [0, 1, 2]
    assert page["next_cursor"] == {"topic_name": topic, "partition_index": 3}
    rest = admin.describe_topic_partitions([topic], cursor=page["next_cursor"])
    assert [part["partition_index"] for part in rest["topics"][0]["partitions"]] == [3, 4]
    assert rest["next_cursor"] is None
