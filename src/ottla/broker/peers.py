"""Asks other brokers over the wire: one connection a peer, made when it is first needed.

What is asked travels in the newest version that both brokers speak and this one's level allows
(spoken_versions.py). Does not know what the answers mean, and does not ask again: whoever asked
knows whether that is safe.
"""

from __future__ import annotations

import asyncio
from functools import cache
from typing import Final

from ottla.broker.cluster_view import ClusterView
from ottla.broker.spoken_versions import SpokenVersions, Versions, ask_versions
from ottla.errors import ErrorCode, OttlaError, UnsupportedVersion
from ottla.model.ids import BrokerId
from ottla.net.client_connection import ClientConnection, ConnectionFailed
from ottla.net.listener import Address
from ottla.protocol.api import APIS, Api
from ottla.protocol.frames import decode_response, decode_response_header, encode_request
from ottla.protocol.message import Message

CONNECT_SECONDS_MAX: Final = 2.0
ANSWER_SECONDS_MAX: Final = 30.0
CLIENT_PREFIX: Final = "ottla-broker-"


class PeerUnreachable(OttlaError):
    """Another broker could not be asked, or did not answer; it may have done what was asked."""

    code = ErrorCode.BROKER_NOT_AVAILABLE

    def __init__(self, broker_id: int, reason: str) -> None:
        self.broker_id = broker_id
        self.reason = reason
        super().__init__(f"broker {broker_id} cannot be asked: {reason}")


class _Line:
    """An open connection to a broker, and which versions it speaks."""

    def __init__(self, connection: ClientConnection, address: Address, client_id: str) -> None:
        self.connection = connection
        self.address = address
        self._client_id = client_id
        self.versions: Versions = {}

    async def greet(self) -> None:
        """Learn the versions."""
        self.versions = await ask_versions(self.connection, self._client_id)

    async def ask(self, api: Api, version: int, request: Message, timeout_s: float) -> Message:
        connection = self.connection
        correlation_id = connection.next_correlation_id()
        frame = encode_request(api, version, correlation_id, self._client_id, request)
        answer = await connection.request(frame, correlation_id, timeout_s=timeout_s)
        _, position = decode_response_header(answer, api, version)
        return decode_response(api, version, answer, position)


class Peers:
    """The other brokers of the cluster, as this one can ask them."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view
        self._spoken = SpokenVersions.of(view.settings.replication.protocol_level)
        self._lines: dict[BrokerId, _Line] = {}
        self._opening: dict[BrokerId, asyncio.Lock] = {}

    async def ask(
        self,
        broker_id: BrokerId,
        request: Message,
        *,
        version: int | None = None,
        timeout_s: float = ANSWER_SECONDS_MAX,
    ) -> Message:
        """The answer of a broker; PeerUnreachable where there is none.

        A `version` is kept to: UnsupportedVersion where it is newer than what may be sent.
        """
        api = api_of_request(type(request))
        try:
            line = await self._line(broker_id)
            newest = self._spoken.version_for(api, line.versions)
            if version is not None and version > newest:
                raise UnsupportedVersion(api.name, version)
            return await line.ask(api, newest if version is None else version, request, timeout_s)
        except ConnectionFailed as failure:
            raise PeerUnreachable(broker_id, failure.reason) from failure

    async def ask_controller(
        self,
        request: Message,
        *,
        version: int | None = None,
        timeout_s: float = ANSWER_SECONDS_MAX,
    ) -> Message:
        """The answer of the broker that decides for the cluster."""
        controller = self._view.image.controller_id
        if controller < 0:
            raise PeerUnreachable(controller, "the cluster has no controller at this moment")
        return await self.ask(controller, request, version=version, timeout_s=timeout_s)

    def close(self) -> None:
        """Ends all connections."""
        for line in self._lines.values():
            line.connection.close()
        self._lines.clear()

    async def _line(self, broker_id: BrokerId) -> _Line:
        address = self._view.address_of(broker_id)
        if address is None:
            raise PeerUnreachable(broker_id, "it is not alive")
        async with self._opening.setdefault(broker_id, asyncio.Lock()):
            line = self._lines.get(broker_id)
            if line is not None and line.connection.is_open and line.address == address:
                return line
            if line is not None:
                line.connection.close()
            # In a task of its own: handlers begin outside of any, where no time can be limited.
            opening = asyncio.get_running_loop().create_task(self._open(address))
            line = self._lines[broker_id] = await opening
            return line

    async def _open(self, address: Address) -> _Line:
        connection = await ClientConnection.open(
            address.host, address.port, timeout_s=CONNECT_SECONDS_MAX
        )
        line = _Line(connection, address, f"{CLIENT_PREFIX}{self._view.broker_id}")
        try:
            await line.greet()
        except BaseException:
            connection.close()
            raise
        return line


def is_peer(client_id: str | None) -> bool:
    """Whether a request came from another broker, which does not pass it on a second time."""
    return client_id is not None and client_id.startswith(CLIENT_PREFIX)


@cache
def api_of_request(request_class: type[Message]) -> Api:
    """The API a request belongs to."""
    return next(api for api in APIS.values() if api.request is request_class)
