"""The messages of StreamsGroupTopologyDescriptionUpdate, api key 93."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import field

from ottla.protocol.message import Array, Int8, Int16, Int32, Message, Nested, Schema, String


class TopologyDescriptionNode(Message):
    name: Annotated[str, String("0+")] = ""
    node_type: Annotated[int, Int8("0+")] = 0
    source_topics: Annotated[list[str], Array("0+", of=String)] = []
    sink_topic: Annotated[str | None, String("0+", nullable="0+")] = None
    stores: Annotated[list[str], Array("0+", of=String)] = []
    successors: Annotated[list[str], Array("0+", of=String)] = []


class TopologyDescriptionSubtopology(Message):
    subtopology_id: Annotated[str, String("0+")] = ""
    nodes: Annotated[list[TopologyDescriptionNode], Array("0+")] = []


class TopologyDescriptionGlobalStore(Message):
    source: Annotated[TopologyDescriptionNode, Nested("0+")] = field(
        default_factory=TopologyDescriptionNode
    )
    processor: Annotated[TopologyDescriptionNode, Nested("0+")] = field(
        default_factory=TopologyDescriptionNode
    )


class TopologyDescription(Message):
    subtopologies: Annotated[list[TopologyDescriptionSubtopology], Array("0+")] = []
    global_stores: Annotated[list[TopologyDescriptionGlobalStore], Array("0+")] = []


class StreamsGroupTopologyDescriptionUpdateRequest(Message):
    """Store a readable description of a streams group's topology."""

    schema: ClassVar[Schema] = Schema(api_key=93, versions="0", flexible="0+")
    group_id: Annotated[str, String("0+")] = ""
    member_id: Annotated[str, String("0+")] = ""
    topology_epoch: Annotated[int, Int32("0+")] = 0
    topology_description: Annotated[TopologyDescription, Nested("0+")] = field(
        default_factory=TopologyDescription
    )


class StreamsGroupTopologyDescriptionUpdateResponse(Message):
    """Whether the description was stored."""

    schema: ClassVar[Schema] = Schema(api_key=93, versions="0", flexible="0+")
    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = None
