"""Administration against a real broker, through both faces."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

import ottla
import ottla.aio
from ottla.clients.acls import Acl, AclFilter, AclOperation, AclResource
from ottla.clients.configs import Resource, ResourceKind
from ottla.clients.failures import TopicNotFound, WrongUse
from ottla.clients.features import FeatureChange
from ottla.clients.group_offsets import CommittedOffset
from ottla.clients.offsets import EARLIEST, LATEST
from ottla.clients.scram import ScramMechanism
from ottla.clients.topics import NewTopic
from ottla.errors import ConfigError, ErrorCode, OttlaError
from ottla.model.ids import Offset, TopicPartition
from support.eventually import eventually

WAIT_S = 30.0
NewName = Callable[[], str]


def test_a_list_of_topics_is_refused_with_a_word_on_what_to_write(bootstrap: str) -> None:
    names: Any = ["one", "two"]
    with ottla.Admin(bootstrap) as admin:
        with pytest.raises(WrongUse, match=r"\*topics"):
            admin.create_topics(names)
        with pytest.raises(WrongUse, match=r"\*names"):
            admin.delete_topics(names)


def test_topics_are_made_changed_and_deleted(bootstrap: str, new_name: NewName) -> None:
    name = new_name()
    with ottla.Admin(bootstrap) as admin:
        (created,) = admin.create_topics(NewTopic(name, 2, 1, {"retention.ms": "1000"}))
        (again,) = admin.create_topics(name)
        admin.wait_for_topic(name)
        admin.add_partitions(name, 5)
        eventually(lambda: len(admin.wait_for_topic(name).partitions) == 5, "there are five")
        assert name in [topic.name for topic in admin.list_topics()]
        (deleted,) = admin.delete_topics(name)
        deadline = time.monotonic() + WAIT_S
        while name in [topic.name for topic in admin.list_topics()]:
            assert time.monotonic() < deadline
        with pytest.raises(TopicNotFound):
            admin.describe_topic(name)

    assert created.error is None
    assert again.error is not None
    assert again.error.code.name == "TOPIC_ALREADY_EXISTS"
    assert deleted.error is None


def test_configs_are_read_and_set(bootstrap: str, new_name: NewName) -> None:
    name = new_name()
    topic = Resource(ResourceKind.TOPIC, name)
    with ottla.Admin(bootstrap) as admin:
        admin.create_topics(name)
        admin.wait_for_topic(name)
        admin.alter_configs(topic, {"retention.ms": "12345"})
        (entry,) = admin.describe_configs(topic, ["retention.ms"])
        assert (entry.value, entry.is_default) == ("12345", False)
        admin.alter_configs(topic, unset=["retention.ms"])
        (entry,) = admin.describe_configs(topic, ["retention.ms"])
        assert entry.is_default


def test_records_and_offsets(bootstrap: str, new_name: NewName) -> None:
    name = new_name()
    with ottla.Admin(bootstrap) as admin, ottla.Producer(bootstrap) as producer:
        admin.create_topics(name)
        admin.wait_for_topic(name)
        for _ in range(10):
            producer.send(name, b"v", partition=0)
        producer.flush()
        assert admin.list_offsets(name, {0: LATEST})[0].offset == 10
        assert admin.delete_records(name, {0: 4}) == {0: 4}
        assert admin.list_offsets(name, {0: EARLIEST})[0].offset == 4
        assert len(admin.describe_producers(TopicPartition(name, 0))) == 1


def test_the_cluster_describes_itself(bootstrap: str) -> None:
    with ottla.Admin(bootstrap) as admin:
        cluster = admin.describe_cluster()
        dirs = admin.describe_log_dirs(cluster.brokers[0].id)

    assert cluster.id
    assert cluster.brokers
    assert dirs[0].path


def test_the_quorum_is_described(bootstrap: str) -> None:
    with ottla.Admin(bootstrap) as admin:
        quorum = admin.describe_quorum()

    assert quorum.leader in [voter.id for voter in quorum.voters]
    assert quorum.leader_epoch >= 0


def test_features_are_described_and_what_is_so_already_can_be_ordered(bootstrap: str) -> None:
    with ottla.Admin(bootstrap) as admin:
        features = admin.describe_features()
        (broker, *_) = admin.describe_cluster().brokers
        assert admin.describe_features(broker.id) == features
        feature = features.by_name["transaction.version"]
        assert feature.supported is not None
        assert feature.level == feature.supported.last
        assert features.epoch >= 0
        admin.update_features({feature.name: feature.level}, validate_only=True)
        with pytest.raises(OttlaError):
            admin.update_features({feature.name: feature.supported.last + 1})
        with pytest.raises(OttlaError):
            admin.update_features({"no.such.feature": 1}, change=FeatureChange.SAFE_DOWNGRADE)
        assert admin.describe_features() == features


def test_replicas_are_moved_between_directories_of_a_broker(
    bootstrap: str, new_name: NewName
) -> None:
    place = TopicPartition(new_name(), 0)
    with ottla.Admin(bootstrap) as admin:
        admin.create_topics(NewTopic(place.topic, 1))
        admin.wait_for_topic(place.topic)
        (broker, *_) = admin.describe_cluster().brokers
        holding = [d for d in admin.describe_log_dirs(broker.id) if place in d.partition_bytes]
        assert admin.move_replicas(broker.id, {place: holding[0].path}) == {}
        refused = admin.move_replicas(broker.id, {place: "/no/such/directory"})
    assert refused[place].code is ErrorCode.LOG_DIR_NOT_FOUND


def test_metrics_tell_how_the_brokers_answer(bootstrap: str) -> None:
    with ottla.Admin(bootstrap) as admin:
        admin.describe_cluster()
        served = admin.metrics()
    assert served.requests_answered >= 1
    assert served.connect_max_ms > 0


def test_groups_are_seen_moved_and_deleted(bootstrap: str, new_name: NewName) -> None:
    name, group = new_name(), new_name()
    place = TopicPartition(name, 0)
    with ottla.Admin(bootstrap) as admin, ottla.Producer(bootstrap) as producer:
        admin.create_topics(name)
        admin.wait_for_topic(name)
        producer.send(name, b"v", partition=0).result(WAIT_S)
        how = {"bootstrap_servers": bootstrap, "group_id": group, "auto_offset_reset": "earliest"}
        with ottla.Consumer(name, **how) as consumer:
            assert consumer.poll(WAIT_S)
            consumer.commit()
            described = admin.describe_group(group)
            assert described.members[0].assigned == (place,)
            assert group in [listed.id for listed in admin.list_groups()]
        assert admin.list_group_offsets(group)[place].offset == 1
        admin.alter_group_offsets(group, {place: CommittedOffset(Offset(0))})
        assert [row.lag for row in admin.group_lag(group)] == [1]
        admin.delete_group_offsets(group, [place])
        assert admin.list_group_offsets(group) == {}
        assert [outcome.error for outcome in admin.delete_groups(group)] == [None]


def test_static_members_are_taken_out(bootstrap: str, new_name: NewName) -> None:
    name, group = new_name(), new_name()
    with ottla.Admin(bootstrap) as admin:
        admin.create_topics(name)
        admin.wait_for_topic(name)
        how = {"bootstrap_servers": bootstrap, "group_id": group, "group_instance_id": "one"}
        with ottla.Consumer(name, **how) as consumer:
            deadline = time.monotonic() + WAIT_S
            while not consumer.assignment:
                consumer.poll(0.1)
                assert time.monotonic() < deadline
        assert len(admin.describe_group(group).members) == 1
        admin.remove_members(group, ["one"])
        assert admin.describe_group(group).members == ()


def test_transactions_are_seen_and_fenced(bootstrap: str, new_name: NewName) -> None:
    name, identity = new_name(), new_name()
    with ottla.Admin(bootstrap) as admin:
        admin.create_topics(name)
        admin.wait_for_topic(name)
        with ottla.Producer(bootstrap, transactional_id=identity) as producer:
            producer.begin_transaction()
            producer.send(name, b"v", partition=0).result(WAIT_S)
            described = admin.describe_transaction(identity)
            assert described.state == "Ongoing"
            assert described.partitions == (TopicPartition(name, 0),)
            assert identity in [listed.id for listed in admin.list_transactions()]
            admin.fence_producer(identity)
            with pytest.raises(OttlaError):
                producer.commit_transaction()


def test_preferred_leaders_are_elected(bootstrap: str, new_name: NewName) -> None:
    name = new_name()
    with ottla.Admin(bootstrap) as admin:
        admin.create_topics(name)
        admin.wait_for_topic(name)
        assert admin.elect_leaders([TopicPartition(name, 0)]) == {}
        assert admin.list_reassignments() == []


def test_quotas_and_passwords_are_kept(bootstrap: str, new_name: NewName) -> None:
    user = new_name()
    with ottla.Admin(bootstrap) as admin:
        admin.alter_quotas({"user": user}, {"producer_byte_rate": 1000.0})
        (quota,) = eventually(lambda: admin.describe_quotas(exactly={"user": user}), "the quota")
        assert dict(quota.values) == {"producer_byte_rate": 1000.0}
        admin.alter_quotas({"user": user}, {"producer_byte_rate": None})
        eventually(lambda: not admin.describe_quotas(exactly={"user": user}), "no quota")
        admin.set_scram_password(user, "secret", ScramMechanism.SHA_512)
        (credential,) = eventually(lambda: admin.describe_scram(user), "the password")
        assert (credential.user, credential.mechanism) == (user, ScramMechanism.SHA_512)
        admin.delete_scram(user, ScramMechanism.SHA_512)
        eventually(lambda: not admin.describe_scram(user), "no password")


def test_rules_are_refused_in_words_where_there_is_no_authorizer(bootstrap: str) -> None:
    rule = Acl(AclResource.TOPIC, "t", "User:a", AclOperation.READ)
    with ottla.Admin(bootstrap) as admin:
        with pytest.raises(OttlaError):
            admin.create_acls(rule)
        with pytest.raises(OttlaError):
            admin.describe_acls(AclFilter())


def test_the_asynchronous_face_does_the_same(bootstrap: str, new_name: NewName) -> None:
    async def main() -> list[str]:
        name = new_name()
        async with ottla.aio.Admin(bootstrap) as admin:
            await admin.create_topics(name)
            await admin.wait_for_topic(name)
            return [topic.name for topic in await admin.list_topics() if topic.name == name]

    assert len(asyncio.run(main())) == 1


def test_an_unknown_setting_is_refused() -> None:
    with pytest.raises(ConfigError, match="client_id"):
        ottla.Admin("127.0.0.1:1", client_idd="x")
