"""Wishes become operations and a picture that agree, or errors that change nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ottla.cluster import layout
from ottla.cluster.changes import (
    PARTITIONS_MAX,
    NewTopic,
    add_partitions,
    change_leader,
    check_topic_name,
    create_topic,
    delete_topic,
)
from ottla.cluster.config_changes import (
    Alteration,
    AlterOperation,
    alter_broker_config,
    alter_group_config,
    alter_topic_config,
    replace_broker_config,
    replace_topic_config,
    settle_shared_settings,
)
from ottla.cluster.embedded import EmbeddedStore
from ottla.cluster.image import BrokerImage, ClusterImage, Draft, TopicImage, image_from
from ottla.cluster.metadata import ClusterMetadata
from ottla.cluster.placement import Turn
from ottla.cluster.store import Create
from ottla.errors import ConfigError, ErrorCode, OttlaError, RequestFailed
from ottla.model.ids import BrokerId, TopicId
from ottla.settings import BrokerSettings
from ottla.settings.coordination import GroupSettings

BROKER = BrokerId(1)


def a_cluster(*brokers: int) -> ClusterImage:
    images = [BrokerImage(BrokerId(number), (), None, 1) for number in brokers or (1,)]
    return ClusterImage(cluster_id="c", brokers={each.id: each for each in images})


def created(draft: Draft, name: str = "t", **wish: Any) -> TopicImage:
    topic_id = TopicId(name.encode().ljust(16, b"\0")[:16])
    return create_topic(
        draft,
        NewTopic(name, **wish),
        topic_id=topic_id,
        turn=Turn(),
        settings=BrokerSettings(num_partitions=3),
    )


def error_of(call: Callable[[], object]) -> ErrorCode:
    with pytest.raises(OttlaError) as failure:
        call()
    return failure.value.code


def test_numbers_left_open_come_from_the_settings() -> None:
    topic = created(Draft(a_cluster()))
    assert len(topic.partitions) == 3
    assert [part.replicas for part in topic.partitions] == [(BROKER,)] * 3
    assert all(part.leader == BROKER and part.isr == (BROKER,) for part in topic.partitions)


@pytest.mark.parametrize("name", ["a", "a" * 249, "A.b_c-9", "...", "__consumer_offsets"])
def test_good_names(name: str) -> None:
    check_topic_name(name)


@pytest.mark.parametrize("name", ["", ".", "..", "a" * 250, "a b", "a/b", "é", "a\n"])
def test_bad_names(name: str) -> None:
    assert error_of(lambda: check_topic_name(name)) is ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize(
    ("wish", "code"),
    [
        ({"name": "there"}, ErrorCode.TOPIC_ALREADY_EXISTS),
        ({"name": "a_b"}, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ({"partition_count": 0}, ErrorCode.INVALID_PARTITIONS),
        ({"partition_count": -2}, ErrorCode.INVALID_PARTITIONS),
        ({"partition_count": PARTITIONS_MAX + 1}, ErrorCode.POLICY_VIOLATION),
        ({"replication_factor": 0}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ({"replication_factor": 2}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ({"assignments": {0: [1]}, "partition_count": 1}, ErrorCode.INVALID_REQUEST),
        ({"assignments": {0: [9]}}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ({"configs": {"retention.ms": "x"}}, ErrorCode.INVALID_CONFIG),
        ({"configs": {"no.such": "x"}}, ErrorCode.INVALID_CONFIG),
    ],
)
def test_a_refused_topic_has_its_code_and_leaves_the_draft_alone(
    wish: dict[str, Any], code: ErrorCode
) -> None:
    draft = Draft(a_cluster())
    created(draft, "there")
    created(draft, "a.b")
    operations, topics = list(draft.operations), dict(draft.topics)
    assert error_of(lambda: created(draft, **wish)) is code
    assert (draft.operations, draft.topics) == (operations, topics)


def test_a_deleted_name_may_be_used_again_by_its_twin() -> None:
    draft = Draft(a_cluster())
    created(draft, "a.b")
    delete_topic(draft, "a.b")
    assert created(draft, "a_b").name == "a_b"


def test_a_published_picture_does_not_change_with_later_drafts() -> None:
    draft = Draft(a_cluster())
    created(draft, "one")
    first = draft.image()
    second = Draft(first)
    created(second, "two")
    delete_topic(second, "one")
    assert list(first.topics) == ["one"]
    assert list(second.image().topics) == ["two"]
    assert first.topic_by_id(first.topics["one"].id) == first.topics["one"]
    assert second.image().topic_by_id(first.topics["one"].id) is None


def test_partitions_are_found_by_topic_and_index() -> None:
    image = a_cluster().with_topic(created(Draft(a_cluster())))
    assert image.partition("t", 2) == image.topics["t"].partitions[2]
    assert image.partition("t", 3) is None
    assert image.partition("t", -1) is None
    assert image.partition("u", 0) is None
    assert image.without_topic("t").topics == {}


@pytest.mark.parametrize(
    ("count", "assignments", "code"),
    [
        (3, None, ErrorCode.INVALID_PARTITIONS),
        (2, None, ErrorCode.INVALID_PARTITIONS),
        (PARTITIONS_MAX + 4, None, ErrorCode.POLICY_VIOLATION),
        (5, [[1]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (4, [[1, 2]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (4, [[9]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_partitions_only_grow_and_as_the_topic_is(
    count: int, assignments: list[list[int]] | None, code: ErrorCode
) -> None:
    draft = Draft(a_cluster(1, 2))
    created(draft)
    operations = list(draft.operations)
    assert (
        error_of(lambda: add_partitions(draft, "t", count, assignments=assignments, turn=Turn()))
        is code
    )
    assert draft.operations == operations


def test_what_is_not_there_is_unknown() -> None:
    draft = Draft(a_cluster())
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert error_of(lambda: delete_topic(draft, "t")) is unknown
    assert error_of(lambda: add_partitions(draft, "t", 4, turn=Turn())) is unknown
    assert error_of(lambda: change_leader(draft, "t", 0, leader=BROKER, isr=(BROKER,))) is unknown
    created(draft)
    assert error_of(lambda: change_leader(draft, "t", 3, leader=BROKER, isr=(BROKER,))) is unknown


def altered(current: dict[str, str], *alterations: Alteration, **broker: str) -> dict[str, str]:
    texts = {name.replace("_", "."): text for name, text in broker.items()}
    draft = Draft(a_cluster())
    created(draft, configs=current)
    topic = alter_topic_config(draft, "t", alterations, BrokerSettings.from_texts(texts))
    return dict(topic.configs)


def test_settings_are_set_deleted_added_to_and_taken_from() -> None:
    name = "cleanup.policy"
    set_it = Alteration("retention.ms", AlterOperation.SET, "5")
    assert altered({}, set_it) == {"retention.ms": "5"}
    assert altered({"retention.ms": "4"}, Alteration("retention.ms", AlterOperation.DELETE)) == {}
    append = Alteration(name, AlterOperation.APPEND, "compact")
    assert altered({}, append) == {name: "delete,compact"}
    assert altered({}, append, log_cleanup_policy="compact") == {name: "compact"}
    subtract = Alteration(name, AlterOperation.SUBTRACT, "delete")
    assert altered({name: "delete,compact"}, subtract) == {name: "compact"}


@pytest.mark.parametrize(
    ("alterations", "code"),
    [
        ([("retention.ms", AlterOperation.APPEND, "5")], ErrorCode.INVALID_CONFIG),
        ([("retention.ms", AlterOperation.SET, "x")], ErrorCode.INVALID_CONFIG),
        ([("retention.ms", AlterOperation.SET, None)], ErrorCode.INVALID_REQUEST),
        ([("no.such", AlterOperation.SET, "1")], ErrorCode.INVALID_CONFIG),
        (
            [("retention.ms", AlterOperation.SET, "1"), ("retention.ms", AlterOperation.SET, "2")],
            ErrorCode.INVALID_REQUEST,
        ),
    ],
)
def test_a_bad_alteration_is_refused(
    alterations: list[tuple[str, AlterOperation, str | None]], code: ErrorCode
) -> None:
    assert error_of(lambda: altered({}, *(Alteration(*each) for each in alterations))) is code


def test_a_broker_takes_only_what_can_change_while_it_runs() -> None:
    draft = Draft(a_cluster())
    alter_broker_config(draft, "1", [Alteration("max.connections", AlterOperation.SET, "7")])
    assert draft.image().broker_configs["1"].configs == {"max.connections": "7"}
    with pytest.raises(ConfigError, match="cannot change"):
        replace_broker_config(draft, "1", {"node.id": "3"})


def test_what_is_already_so_costs_no_operation() -> None:
    draft = Draft(a_cluster())
    created(draft, configs={"retention.ms": "1"})
    operations = list(draft.operations)
    replace_topic_config(draft, "t", {"retention.ms": "1"}, BrokerSettings())
    replace_broker_config(draft, "1", {})
    assert draft.operations == operations


def a_registration() -> layout.BrokerNode:
    return layout.BrokerNode(
        host="h",
        port=1,
        endpoints=("PLAINTEXT://h:1",),
        timestamp="0",
        listener_security_protocol_map={"PLAINTEXT": "PLAINTEXT"},
    )


NAMES = st.sampled_from(["a", "b.c", "b_c", "d"])
BROKER_SETTINGS = BrokerSettings()
WISHES = st.one_of(
    st.tuples(st.just("create"), NAMES, st.integers(1, 3)),
    st.tuples(st.just("create with config"), NAMES, st.integers(1, 3)),
    st.tuples(st.just("delete"), NAMES, st.just(0)),
    st.tuples(st.just("grow"), NAMES, st.integers(1, 6)),
    st.tuples(st.just("lead"), NAMES, st.integers(0, 3)),
    st.tuples(st.just("config"), NAMES, st.integers(-1, 3)),
    st.tuples(st.just("broker config"), NAMES, st.integers(1, 3)),
)


def wish_into(draft: Draft, kind: str, name: str, number: int) -> None:
    match kind:
        case "create":
            created(draft, name, partition_count=number)
        case "create with config":
            created(draft, name, partition_count=number, configs={"retention.ms": "1"})
        case "delete":
            delete_topic(draft, name)
        case "grow":
            add_partitions(draft, name, number, turn=Turn())
        case "lead":
            change_leader(draft, name, number, leader=BROKER, isr=(BROKER,))
        case "config":
            configs = {"retention.ms": str(number)} if number > 0 else {}
            replace_topic_config(draft, name, configs, BROKER_SETTINGS)
        case _:
            replace_broker_config(draft, layout.DEFAULT_ENTITY, {"max.connections": str(number)})


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(WISHES, max_size=4), max_size=6))
def test_the_picture_after_each_commit_is_what_the_store_holds(
    drafts: list[list[tuple[str, str, int]]],
) -> None:
    async def scenario() -> None:
        store = await EmbeddedStore.open(None)
        metadata = await ClusterMetadata.open(store, cluster_id="c")
        await metadata.register(BROKER, a_registration())
        await metadata.become_controller(BROKER, now_ms=1)
        for wishes in drafts:

            def decide(draft: Draft, wishes: list[tuple[str, str, int]] = wishes) -> None:
                for wish in wishes:
                    with suppress(RequestFailed):
                        wish_into(draft, *wish)

            await metadata.change(decide)
            assert metadata.image == image_from(await store.read_all("/"))
        await store.close()

    asyncio.run(scenario())


def test_the_image_keeps_what_it_does_not_change() -> None:
    base = replace(a_cluster(), controller_id=BROKER, controller_epoch=4)
    image = base.with_topic(created(Draft(base)))
    assert (image.cluster_id, image.controller_id, image.controller_epoch) == ("c", BROKER, 4)
    assert image.brokers is base.brokers


def test_a_setting_nobody_knows_can_be_deleted_but_not_set() -> None:
    draft = Draft(a_cluster())
    created(draft)
    gone = [Alteration("no.such.setting", AlterOperation.DELETE)]
    assert alter_topic_config(draft, "t", gone, BrokerSettings()).configs == {}
    assert alter_broker_config(draft, "1", gone).configs == {}
    wish = [Alteration("no.such.setting", AlterOperation.SET, "1")]
    assert error_of(lambda: alter_broker_config(draft, "1", wish)) is ErrorCode.INVALID_CONFIG


def test_a_groups_settings_are_kept_in_its_own_node() -> None:
    draft = Draft(a_cluster())
    wish = [Alteration("consumer.session.timeout.ms", AlterOperation.SET, "50000")]
    alter_group_config(draft, "my/group", wish, GroupSettings())
    assert draft.image().group_configs("my/group") == {"consumer.session.timeout.ms": "50000"}
    [operation] = draft.operations
    assert isinstance(operation, Create)
    assert operation.path == "/config/groups/my%2Fgroup"
    back = [Alteration("consumer.session.timeout.ms", AlterOperation.DELETE)]
    alter_group_config(draft, "my/group", back, GroupSettings())
    assert draft.image().group_configs("my/group") == {}


def test_a_new_cluster_agrees_on_min_insync_replicas_once_and_for_all_brokers() -> None:
    draft = Draft(a_cluster())
    settle_shared_settings(draft, BrokerSettings.from_texts({"min.insync.replicas": "2"}))
    settled = draft.image()
    shared = settled.broker_configs[layout.DEFAULT_ENTITY].configs
    assert shared == {"min.insync.replicas": "2"}
    again = Draft(settled)
    settle_shared_settings(again, BrokerSettings.from_texts({"min.insync.replicas": "3"}))
    assert again.operations == []
