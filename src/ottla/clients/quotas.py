"""Quotas of users, clients and addresses: how much of a broker each may have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ottla.clients.client import CONTROLLER, Client
from ottla.clients.failures import check_answer
from ottla.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    OpData,
    RequestEntryData,
)
from ottla.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

_EXACTLY: Final = 0
_DEFAULT: Final = 1
_ANY: Final = 2

Entity = Mapping[str, str | None]
"""Of the types user, client-id and ip the name of each that counts; None for the default."""


@dataclass(frozen=True, slots=True)
class Quota:
    """What one entity may have, such as producer_byte_rate."""

    entity: tuple[tuple[str, str | None], ...]
    values: tuple[tuple[str, float], ...]


async def describe_quotas(
    client: Client, types: Sequence[str] = (), *, exactly: Entity | None = None
) -> list[Quota]:
    """The quotas of entities that have all these types, or of exactly one entity; else all."""
    components = [ComponentData(entity_type=each, match_type=_ANY, match=None) for each in types]
    for kind, name in (exactly or {}).items():
        match_type = _DEFAULT if name is None else _EXACTLY
        components.append(ComponentData(entity_type=kind, match_type=match_type, match=name))
    request = DescribeClientQuotasRequest(components=components, strict=exactly is not None)

    async def attempt() -> list[Quota]:
        response = await client.call(request, DescribeClientQuotasResponse)
        check_answer(response.error_code, "the quotas", response.error_message)
        return [
            Quota(
                tuple((each.entity_type, each.entity_name) for each in entry.entity),
                tuple((each.key, each.value) for each in entry.values),
            )
            for entry in response.entries or ()
        ]

    return await client.retrying(attempt)


async def alter_quotas(client: Client, entity: Entity, values: Mapping[str, float | None]) -> None:
    """Sets the quotas of one entity; None takes one away."""
    request = AlterClientQuotasRequest(
        entries=[
            RequestEntryData(
                entity=[EntityData(entity_type=k, entity_name=n) for k, n in entity.items()],
                ops=[
                    OpData(key=key, value=value or 0.0, remove=value is None)
                    for key, value in values.items()
                ],
            )
        ]
    )

    async def attempt() -> None:
        response = await client.call(request, AlterClientQuotasResponse, to=CONTROLLER)
        for row in response.entries:
            check_answer(row.error_code, f"the quotas of {dict(entity)}", row.error_message)

    await client.retrying(attempt)
