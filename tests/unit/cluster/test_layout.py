"""The nodes are written as Kafka writes them, and read with suspicion."""

from __future__ import annotations

import json

import msgspec
import pytest

from ottla.cluster import layout
from ottla.cluster.store import StoreFailed, parent_of
from ottla.model.ids import TopicId


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (
            layout.TopicNode(topic_id="x", partitions={0: (1, 2), 1: (2, 1)}),
            '{"version":3,"topic_id":"x","partitions":{"0":[1,2],"1":[2,1]},'
            '"adding_replicas":{},"removing_replicas":{}}',
        ),
        (
            layout.PartitionStateNode(leader=1, leader_epoch=5, controller_epoch=3, isr=(1, 2)),
            '{"version":1,"leader":1,"leader_epoch":5,"controller_epoch":3,"isr":[1,2]}',
        ),
        (
            layout.PartitionStateNode(
                leader=1, leader_epoch=5, controller_epoch=3, isr=(1,), leader_recovery_state=1
            ),
            '{"version":1,"leader":1,"leader_epoch":5,"controller_epoch":3,"isr":[1],'
            '"leader_recovery_state":1}',
        ),
        (layout.ConfigNode(config={"a": "b"}), '{"version":1,"config":{"a":"b"}}'),
        (
            layout.ControllerNode(broker_id=1, timestamp="9"),
            '{"version":2,"brokerid":1,"timestamp":"9","kraftControllerEpoch":-1}',
        ),
        (layout.ClusterIdNode(id="c"), '{"version":"1","id":"c"}'),
        (
            layout.ProducerIdBlockNode(broker=1, block_start="0", block_end="999"),
            '{"version":1,"broker":1,"block_start":"0","block_end":"999"}',
        ),
        (
            layout.BrokerNode(
                host="h",
                port=9092,
                endpoints=("PLAINTEXT://h:9092",),
                timestamp="9",
                listener_security_protocol_map={"PLAINTEXT": "PLAINTEXT"},
            ),
            '{"version":5,"host":"h","port":9092,"endpoints":["PLAINTEXT://h:9092"],'
            '"jmx_port":-1,"timestamp":"9","rack":null,'
            '"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},"features":{}}',
        ),
    ],
)
def test_a_node_is_kafkas_json_and_comes_back(node: msgspec.Struct, expected: str) -> None:
    data = layout.encode(node)
    assert json.loads(data) == json.loads(expected)
    assert list(json.loads(data)) == list(json.loads(expected))
    assert layout.decode(type(node), data, "/x") == node


def test_fields_of_a_later_version_are_passed_over() -> None:
    node = layout.decode(layout.ConfigNode, b'{"version":2,"config":{},"new":[1]}', "/x")
    assert node.config == {}


@pytest.mark.parametrize("data", [b"", b"null", b"{}", b'{"config":[]}', b"\xff"])
def test_a_node_that_cannot_be_read_names_its_path(data: bytes) -> None:
    with pytest.raises(StoreFailed, match="/config/topics/t"):
        layout.decode(layout.ConfigNode, data, "/config/topics/t")


def test_a_topic_id_is_written_as_kafka_does() -> None:
    topic_id = TopicId(bytes(range(240, 256)))
    text = layout.topic_id_text(topic_id)
    assert text == "8PHy8_T19vf4-fr7_P3-_w"
    assert layout.topic_id_from(text, "/x") == topic_id


@pytest.mark.parametrize("text", ["", "abc", "!" * 22, "é"])
def test_a_bad_topic_id_is_refused(text: str) -> None:
    with pytest.raises(StoreFailed, match="topic id"):
        layout.topic_id_from(text, "/x")


def test_the_controller_epoch_is_a_plain_number() -> None:
    assert layout.decode_controller_epoch(layout.encode_controller_epoch(12)) == 12
    with pytest.raises(StoreFailed):
        layout.decode_controller_epoch(b"x")


def test_every_root_stands_after_its_parent() -> None:
    seen = {"/"}
    for path in layout.ROOTS:
        assert parent_of(path) in seen
        seen.add(path)
