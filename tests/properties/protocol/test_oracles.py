"""Two independent codecs must agree with ours: kio on the bytes, kafka-python on the fields too."""

from __future__ import annotations

import io
import pkgutil
import uuid
from importlib import import_module

import kafka.protocol
from hypothesis import given, settings
from kafka.protocol.api_message import ApiMessage
from kio.index import load_entity_schema
from kio.schema.index import schema_name_map
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

from ottla.protocol.codec import encode
from ottla.protocol.message import NO_UUID, Message, Nested, Uuid
from ottla.protocol.messages.api_versions import ApiVersionsResponse
from ottla.protocol.plan import FieldPlan, StructPlan, plan_message
from properties.protocol.strategies import messages_with_version
from unit.protocol.every_message import every_version


def kio_key(message_class: type[Message], version: int) -> tuple[str, int, EntityType]:
    """How kio finds one version of a message: it names APIs as we name their files."""
    is_request = message_class.__name__.endswith("Request")
    entity_type = EntityType.request if is_request else EntityType.response
    return message_class.__module__.rpartition(".")[2], version, entity_type


def is_known_to_kio(message_class: type[Message], version: int) -> bool:
    name, version, entity_type = kio_key(message_class, version)
    return entity_type in schema_name_map.get(name, {}).get(version, {})


def kafka_python_classes() -> dict[str, type[ApiMessage]]:
    found = {}
    for info in pkgutil.walk_packages(kafka.protocol.__path__, "kafka.protocol."):
        if not any(word in info.name for word in (".old", ".schemas", ".generate_stubs")):
            found.update(vars(import_module(info.name)))
    return {name: value for name, value in found.items() if is_api_message(value)}


def is_api_message(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, ApiMessage) and value is not ApiMessage


KAFKA_PYTHON_CLASSES = kafka_python_classes()


def is_known_to_kafka_python(message_class: type[Message], version: int) -> bool:
    theirs = KAFKA_PYTHON_CLASSES.get(message_class.__name__)
    if theirs is None or message_class is ApiVersionsResponse:  # it reads any error as version 0
        return False
    first, last = theirs.valid_versions
    return first <= version <= last


OUR_TAGS = 10_000
"""Fields of ours that Kafka does not have are tagged from here on; nobody else reads them."""

KIO = [pair for pair in every_version() if is_known_to_kio(*pair)]
KAFKA_PYTHON = [pair for pair in every_version() if is_known_to_kafka_python(*pair)]


def test_the_oracles_know_many_of_our_messages() -> None:
    assert len(KIO) > 400
    assert len(KAFKA_PYTHON) > 200


@settings(max_examples=200, deadline=None)
@given(messages_with_version(among=KIO, plausible=True))
def test_kio_reads_what_we_write_and_writes_the_same(pair: tuple[Message, int]) -> None:
    message, version = pair
    data = encode(message, version)
    entity_class = load_entity_schema(*kio_key(type(message), version))
    entity, size = entity_reader(entity_class)(data, 0)
    assert size == len(data)
    out = io.BytesIO()
    entity_writer(entity_class)(out, entity)
    assert out.getvalue() == data


@settings(max_examples=200, deadline=None)
@given(messages_with_version(among=KAFKA_PYTHON))
def test_kafka_python_reads_the_fields_we_wrote(pair: tuple[Message, int]) -> None:
    message, version = pair
    theirs = KAFKA_PYTHON_CLASSES[type(message).__name__].decode(
        encode(message, version), version=version
    )
    plan = plan_message(type(message), version)
    assert plain(theirs, plan) == plain(message, plan)


def plain(message: object, plan: StructPlan) -> dict[str, object]:
    """The fields this version has, of their message or of ours."""
    return {
        field.name: plain_value(value_of(message, field.name), field)
        for field in plan.fields
        if field.present
        and not field.name.endswith("authorized_operations")  # theirs is a set
        and (field.tag is None or field.tag < OUR_TAGS)
    }


def value_of(message: object, name: str) -> object:
    if type(message).__name__ == "TxnOffsetCommitRequest" and not hasattr(message, name):
        name = "generation_id"  # an older name of theirs
    return getattr(message, name)


def plain_value(value: object, field: FieldPlan) -> object:
    if isinstance(field.marker, Uuid) and value is None:
        return NO_UUID
    if field.element is None:
        return plain_primitive(value)
    if isinstance(field.marker, Nested):
        if value is None:
            return plain_absent(field)
        return plain(value, field.element)
    return None if value is None else [plain(element, field.element) for element in value]


def plain_absent(field: FieldPlan) -> object:
    return None if field.nullable else plain(field.element.message_class(), field.element)


def plain_primitive(value: object) -> object:
    if isinstance(value, uuid.UUID):
        return value.bytes
    if isinstance(value, memoryview | bytearray):
        return bytes(value)
    return [plain_primitive(element) for element in value] if isinstance(value, list) else value
