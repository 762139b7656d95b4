"""Every golden vector of every message we have: decoded, compared field by field, encoded again.

The vectors were made by Kafka's own classes. They lie beside the checkout; without them there is
nothing to compare with.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.protocol.codec import decode, encode
from ottla.protocol.message import Array, Bytes, Message, Nested, Records, Uuid
from ottla.protocol.plan import FieldPlan, StructPlan, fixed_element, plan_message
from unit.protocol.every_message import every_message

VECTORS = Path(__file__).parents[4] / "shared" / "kafka" / "vectors"

OLD_NAMES = {
    "ListClientMetricsResourcesRequest": "ListConfigResourcesRequest",
    "ListClientMetricsResourcesResponse": "ListConfigResourcesResponse",
}
OLD_FIELD_NAMES = {
    "ListConfigResourcesResponse": {
        "clientMetricsResources": "configResources",
        "name": "resourceName",
    },
    "TxnOffsetCommitRequest": {"generationId": "generationIdOrMemberEpoch"},
}
REDEFINED = ("clients-3.9.2.jsonl.gz", "ReadShareGroupStateSummaryResponse", 0)
"""A version that was unstable in 3.9 and got another layout under the same number later."""


def vectors() -> Iterator[tuple[str, str, int, object, bytes]]:
    for path in sorted(VECTORS.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                vector = json.loads(line)
                name = OLD_NAMES.get(vector["m"], vector["m"])
                fields = with_new_names(vector["j"], OLD_FIELD_NAMES.get(name, {}))
                if (path.name, name, vector["v"]) != REDEFINED:
                    yield name, path.name, vector["v"], fields, bytes.fromhex(vector["h"])


def with_new_names(value: object, names: dict[str, str]) -> object:
    if isinstance(value, dict):
        return {names.get(key, key): with_new_names(inner, names) for key, inner in value.items()}
    if isinstance(value, list):
        return [with_new_names(inner, names) for inner in value]
    return value


def as_json(message: Message, plan: StructPlan) -> dict[str, object]:
    """The message as Kafka writes it in JSON: a tagged field only if it is not the default."""
    fields: dict[str, object] = {}
    for field in plan.fields:
        value = getattr(message, field.name)
        if not field.present or (field.tag is not None and has_default(field, value)):
            continue
        first, *rest = field.name.split("_")
        fields[first + "".join(word.capitalize() for word in rest)] = value_as_json(field, value)
    return fields


def has_default(field: FieldPlan, value: object) -> bool:
    if value == field.default:
        return True
    return isinstance(field.marker, Nested) and value == field.element.message_class()


def value_as_json(field: FieldPlan, value: object) -> object:
    marker = field.marker
    if value is None:
        return None
    if isinstance(marker, Records):
        return ""  # Kafka's JSON tells only whether there are any; their bytes are compared below
    if isinstance(marker, Bytes):
        return base64.b64encode(value).decode()
    if isinstance(marker, Uuid):
        return uuid_as_json(value)
    if isinstance(marker, Nested):
        return as_json(value, field.element)
    if isinstance(marker, Array) and field.element is not None:
        return [as_json(element, field.element) for element in value]
    if isinstance(marker, Array) and fixed_element(marker) is Uuid:
        return [uuid_as_json(element) for element in value]
    return value


def uuid_as_json(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).decode().rstrip("=")


def test_every_golden_vector_decodes_to_its_fields_and_encodes_to_its_bytes() -> None:
    if not VECTORS.is_dir():
        pytest.skip("the golden vectors are not beside this checkout")
    messages = every_message()
    count = 0
    seen = set()
    for name, source, version, expected, data in vectors():
        if name not in messages:
            continue
        message = decode(messages[name], data, version)
        where = f"{name} v{version} of {source}"
        assert as_json(message, plan_message(messages[name], version)) == expected, where
        assert encode(message, version) == data, where
        seen.add(name)
        count += 1
    print(f"{count} golden vectors of {len(seen)} messages")
    assert count > 4000
    assert set(messages) == seen, "every message we have has vectors"
