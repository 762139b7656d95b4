"""Quotas of users, clients and addresses: which there can be, and who has which.

Pure: wishes are checked and written into a draft, questions are answered from an image. Does not
know how quotas are held.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum, IntEnum
from typing import Final

import msgspec

from ottla.cluster.entity_configs import replace_entity_config
from ottla.cluster.image import ClusterImage, Draft
from ottla.cluster.layout import entity_name, name_of_entity
from ottla.errors import ErrorCode, InvalidRequest, RequestFailed
from ottla.settings.declare import INT_MAX, LONG_MAX, render


class EntityKind(Enum):
    """What a quota can be for, by the name on the wire."""

    USER = "user"
    CLIENT = "client-id"
    IP = "ip"


class Match(IntEnum):
    """How a filter compares a name, by the code on the wire."""

    EXACT = 0
    DEFAULT = 1
    ANY = 2


QuotaEntity = Mapping[EntityKind, str | None]
"""Whom quotas are for: a user, a client, both, or an address. The name None is the default."""


class QuotaFilter(msgspec.Struct, frozen=True):
    """A kind an entity must have, and its name where that counts."""

    kind: EntityKind
    match: Match
    name: str | None = None


class QuotaAlteration(msgspec.Struct, frozen=True):
    """One quota's new value; None takes it away."""

    name: str
    value: float | None


class Quotas(msgspec.Struct, frozen=True):
    """The quotas somebody has."""

    entity: QuotaEntity
    values: Mapping[str, float]


_FRACTION_MAX: Final = 1e-6
_UNBOUNDED: Final = None
_CLIENT_QUOTAS: Final[Mapping[str, int | None]] = {
    "producer_byte_rate": LONG_MAX,
    "consumer_byte_rate": LONG_MAX,
    "request_percentage": _UNBOUNDED,
    "controller_mutation_rate": _UNBOUNDED,
}
"""The largest whole number each can be; _UNBOUNDED may have a fraction."""
_ADDRESS_QUOTAS: Final[Mapping[str, int | None]] = {"connection_creation_rate": INT_MAX}
_PLACES: Final = {EntityKind.USER: "users", EntityKind.CLIENT: "clients", EntityKind.IP: "ips"}
_KINDS: Final = {place: kind for kind, place in _PLACES.items()}


def quota_entity(parts: Sequence[tuple[str, str | None]]) -> QuotaEntity:
    """The entity that kinds and names on the wire stand for."""
    entity: dict[EntityKind, str | None] = {}
    for kind_name, name in parts:
        kind = entity_kind(kind_name)
        if kind in entity:
            raise InvalidRequest(f"{kind_name} is named twice in one entity")
        if name == "":
            raise InvalidRequest(f"the name of a {kind_name} cannot be empty")
        entity[kind] = name
    if not entity:
        raise InvalidRequest("the entity is empty: name a user, a client-id or an ip")
    if EntityKind.IP in entity and len(entity) > 1:
        raise InvalidRequest("an ip has quotas alone, not together with a user or a client-id")
    return entity


def entity_kind(name: str) -> EntityKind:
    """The kind of this name; UNSUPPORTED_VERSION where there is none, as Kafka has it."""
    if not name:
        raise InvalidRequest("an entity's kind cannot be empty")
    try:
        return EntityKind(name)
    except ValueError:
        raise RequestFailed(
            ErrorCode.UNSUPPORTED_VERSION, f"{name!r} is no kind of entity: user, client-id, ip"
        ) from None


def alter_quotas(draft: Draft, entity: QuotaEntity, alterations: Sequence[QuotaAlteration]) -> None:
    """Change some of an entity's quotas."""
    known = _ADDRESS_QUOTAS if EntityKind.IP in entity else _CLIENT_QUOTAS
    place = _place(entity)
    wanted = dict(draft.entity_config(place).configs)
    for each in alterations:
        if each.name not in known:
            raise InvalidRequest(
                f"{each.name!r} is no quota here; there are {', '.join(sorted(known))}"
            )
        if each.value is None:
            wanted.pop(each.name, None)
        else:
            wanted[each.name] = _text(each.name, each.value, known[each.name])
    replace_entity_config(draft, place, wanted)


def quotas_that_match(
    image: ClusterImage, filters: Sequence[QuotaFilter], *, is_strict: bool
) -> Iterator[Quotas]:
    """The quotas of all entities that pass every filter; strictly: and have no other kind."""
    if len({each.kind for each in filters}) != len(filters):
        raise InvalidRequest("a kind of entity stands in the filter twice")
    for place, config in image.entity_configs.items():
        entity = _entity(place)
        if not entity:
            continue
        known = _ADDRESS_QUOTAS if EntityKind.IP in entity else _CLIENT_QUOTAS
        values = {name: float(text) for name, text in config.configs.items() if name in known}
        if not values or (is_strict and len(entity) != len(filters)):
            continue
        if all(_passes(entity, each) for each in filters):
            yield Quotas(entity, values)


def _passes(entity: QuotaEntity, wanted: QuotaFilter) -> bool:
    if wanted.kind not in entity:
        return False
    match wanted.match:
        case Match.ANY:
            return True
        case Match.DEFAULT:
            return entity[wanted.kind] is None
        case Match.EXACT:
            return wanted.name is not None and entity[wanted.kind] == wanted.name


def _text(name: str, value: float, most: int | None) -> str:
    if not value > 0:
        raise InvalidRequest(f"the quota {name} must be greater than 0, not {value}")
    if most is None:
        return render(value) or ""
    if value > most:
        raise InvalidRequest(f"the quota {name} can be at most {most}, not {value}")
    if abs(value % 1.0) > _FRACTION_MAX:
        raise InvalidRequest(f"the quota {name} is a whole number, not {value}")
    return str(int(value))


def _place(entity: QuotaEntity) -> str:
    """The place below /config. A user stands before a client."""
    return "/".join(
        f"{_PLACES[kind]}/{entity_name(entity[kind])}" for kind in EntityKind if kind in entity
    )


def _entity(place: str) -> QuotaEntity:
    """The entity of a place, empty for a group; a bare users/alice/clients holds no quotas."""
    parts = place.split("/")
    return {
        _KINDS[kind]: name_of_entity(name)
        for kind, name in zip(parts[::2], parts[1::2], strict=False)
        if kind in _KINDS
    }
