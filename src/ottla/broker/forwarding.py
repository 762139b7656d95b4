"""Lets clients ask any broker for what only the controller may do: the request is passed on.

A broker that got a request from another broker does not pass it on again: the two would disagree
about who is controller, and time will tell; the client is told NOT_CONTROLLER and asks again.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.broker.peers import Peers, PeerUnreachable, is_peer
from ottla.broker.request import Handler, RequestContext, settled
from ottla.cluster.metadata import ClusterMetadata
from ottla.cluster.registration import ControllerMoved
from ottla.errors import ErrorCode, ProtocolError, RequestFailed, UnsupportedVersion
from ottla.protocol.api import ApiKey
from ottla.protocol.message import Message

FORWARDED: Final = frozenset(
    {
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.ALTER_CLIENT_QUOTAS,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.ELECT_LEADERS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.UPDATE_FEATURES,
    }
)
"""What changes the metadata."""


class ForwardingHandler:
    """Answers as controller, or with the controller's answer."""

    def __init__(self, handler: Handler, metadata: ClusterMetadata, peers: Peers) -> None:
        self._handler = handler
        self._metadata = metadata
        self._peers = peers

    async def handle(self, request: Any, context: RequestContext) -> Message | None:
        if self._metadata.is_controller:
            return await settled(self._handler.handle(request, context))
        if is_peer(context.client_id):
            raise ControllerMoved
        try:
            return await self._ask_controller(request, context.version)
        except PeerUnreachable as error:
            raise ControllerMoved from error

    async def _ask_controller(self, request: Message, version: int) -> Message:
        """In the client's version, or in the newest the controller knows where that is older."""
        try:
            return await self._peers.ask_controller(request, version=version)
        except UnsupportedVersion:
            pass
        try:
            return await self._peers.ask_controller(request)
        except ProtocolError as error:
            reason = f"the controller does not know what was asked for: {error}"
            raise RequestFailed(ErrorCode.UNSUPPORTED_VERSION, reason) from error

    def refuse(self, request: Any, code: ErrorCode) -> Message:
        return self._handler.refuse(request, code)


def forwarding(
    handlers: dict[ApiKey, Handler], metadata: ClusterMetadata, peers: Peers
) -> dict[ApiKey, Handler]:
    """The handlers, those of FORWARDED asking the controller where this broker is not it."""
    return {
        key: ForwardingHandler(handler, metadata, peers) if key in FORWARDED else handler
        for key, handler in handlers.items()
    }
