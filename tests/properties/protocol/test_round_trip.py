"""What is encoded is decoded again, whatever the message and the version."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.protocol.codec import decode, decoder, encode
from ottla.protocol.message import Message
from ottla.protocol.messages.produce import ProduceRequest
from ottla.protocol.plan import StructPlan, plan_message
from ottla.protocol.wire import write_uvarint
from properties.protocol.strategies import messages, messages_with_version
from unit.protocol.every_message import every_message, every_version


def normal(message: Message) -> object:
    """As plain data, with an absent tagged struct the same as one that has only defaults."""
    plan = plan_message(type(message), message.schema.range().last)  # type: ignore[attr-defined]
    return _normal(message, plan)


def _normal(message: Message, plan: StructPlan) -> object:
    values = msgspec.structs.asdict(message)
    for field in plan.fields:
        value = values[field.name]
        if field.tag is not None and field.element is not None and value is not None:
            if value == field.element.message_class():
                values[field.name] = field.default
        elif isinstance(value, list) and field.element is not None:
            values[field.name] = [_normal(element, field.element) for element in value]
    return values


@settings(max_examples=400, deadline=None)
@given(messages_with_version())
def test_any_message_survives_the_wire(pair: tuple[Message, int]) -> None:
    message, version = pair
    data = encode(message, version)
    again = decode(type(message), data, version)
    assert normal(again) == normal(message)
    assert encode(again, version) == data


@pytest.mark.parametrize("name", sorted(every_message()))
def test_an_empty_message_survives_the_wire_in_every_version(name: str) -> None:
    message_class = every_message()[name]
    for version in message_class.schema.range().numbers():  # type: ignore[attr-defined]
        data = encode(message_class(), version)
        assert normal(decode(message_class, data, version)) == normal(message_class())


@given(messages(ProduceRequest, 9), st.binary(max_size=20))
def test_a_message_may_start_anywhere_in_its_buffer(message: Message, before: bytes) -> None:
    frame = memoryview(before + encode(message, 9))
    assert decoder(ProduceRequest, 9)(frame, len(before)) == message


FLEXIBLE = [
    (message_class, version)
    for message_class, version in every_version()
    if plan_message(message_class, version).flexible
]


@settings(max_examples=200, deadline=None)
@given(messages_with_version(among=FLEXIBLE), st.integers(1000, 2**31), st.binary(max_size=200))
def test_tags_nobody_knows_are_passed_over(
    pair: tuple[Message, int], tag: int, content: bytes
) -> None:
    message, version = pair
    plan = plan_message(type(message), version)
    data = bytearray(encode(message_without_tags(message, plan), version))
    assert data.pop() == 0, "a flexible message without tagged fields ends with an empty section"
    data.append(1)
    write_uvarint(data, tag)
    write_uvarint(data, len(content))
    data += content
    expected = decode(type(message), encode(message_without_tags(message, plan), version), version)
    assert decode(type(message), bytes(data), version) == expected


def message_without_tags(message: Message, plan: StructPlan) -> Message:
    """The message with its own tagged fields at their defaults."""
    return msgspec.structs.replace(
        message, **{field.name: field.default for field in plan.tagged()}
    )
