"""Which broker coordinates a group or a transactional id."""

from __future__ import annotations

from enum import IntEnum

from ottla.clients.client import Client
from ottla.clients.failures import check_answer
from ottla.model.ids import BrokerId
from ottla.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)


class Coordinated(IntEnum):
    """What has a coordinator, by its number on the wire."""

    GROUP = 0
    TRANSACTION = 1


async def find_coordinator(client: Client, kind: Coordinated, key: str) -> BrokerId:
    """The broker to ask, once; the error is worth a retry while there is none."""
    # The old versions ask for one key, the new ones for many: a request of each has this one.
    request = FindCoordinatorRequest(key=key, key_type=int(kind), coordinator_keys=[key])
    at_least = 0 if kind is Coordinated.GROUP else 1
    response = await client.call(request, FindCoordinatorResponse, at_least=at_least)
    about = f"the coordinator of {key!r}"
    check_answer(response.error_code, about, response.error_message)
    node = response.node_id
    for row in response.coordinators:
        check_answer(row.error_code, about, row.error_message)
        node = row.node_id
    broker = BrokerId(node)
    if broker not in client.picture.brokers:
        await client.refresh()
    return broker
