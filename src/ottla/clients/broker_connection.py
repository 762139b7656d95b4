"""A connection to one broker with its versions agreed: messages out, messages back."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final, TypeVar

from ottla.clients.address import Address
from ottla.clients.versions import ASSUMED_RANGES, BrokerVersions
from ottla.errors import ErrorCode, ProtocolError
from ottla.net.client_connection import ClientConnection, ConnectionLost, NotABroker
from ottla.protocol.api import APIS, Api, ApiKey
from ottla.protocol.codec import decoder
from ottla.protocol.frames import decode_response_header, encode_request_parts
from ottla.protocol.message import VERSION_MAX, Message, VersionRange
from ottla.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.plan import schema_of

SOFTWARE_NAME: Final = "ottla"

Response = TypeVar("Response", bound=Message)


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """How a client introduces itself and how long it waits."""

    client_id: str = "ottla"
    software_version: str = "unknown"
    connect_timeout_s: float = 5.0
    request_timeout_s: float = 30.0


class BrokerConnection:
    """An open connection with its versions agreed."""

    __slots__ = ("_connection", "_options", "address", "versions")

    def __init__(
        self, address: Address, connection: ClientConnection, options: ConnectionOptions
    ) -> None:
        self.address = address
        self.versions = BrokerVersions(str(address), ASSUMED_RANGES, is_assumed=True)
        self._connection = connection
        self._options = options

    @classmethod
    async def open(
        cls, address: Address, options: ConnectionOptions, *, may_be_ancient: bool = True
    ) -> BrokerConnection:
        """Connects and agrees on versions.

        A broker that closes the connection when asked is asked in the oldest version; one that
        closes it again is from before there were versions, and taken for Kafka 0.9, unless the
        caller knows better: then it is in trouble.
        """
        for version in (APIS[ApiKey.API_VERSIONS].stable_versions.last, 0):
            opened = await cls._connect(address, options)
            try:
                opened.versions = await opened._ask_versions(version)
            except ConnectionLost:
                if not may_be_ancient:
                    raise
                continue
            except BaseException:
                opened.close()
                raise
            return opened
        return await cls._connect(address, options)

    @classmethod
    async def _connect(cls, address: Address, options: ConnectionOptions) -> BrokerConnection:
        connection = await ClientConnection.open(
            address.host, address.port, timeout_s=options.connect_timeout_s
        )
        return cls(address, connection, options)

    @property
    def is_open(self) -> bool:
        """Whether requests can be sent."""
        return self._connection.is_open

    async def call(
        self,
        request: Message,
        response_class: type[Response],
        *,
        at_least: int = 0,
        at_most: int = VERSION_MAX,
        timeout_s: float | None = None,
    ) -> Response:
        """Sends the request in the best common version within [at_least, at_most]."""
        api = _api_for(type(request))
        version = self.version_for(api, at_least=at_least, at_most=at_most)
        return await self._exchange(api, version, request, response_class, timeout_s)

    async def send(
        self, request: Message, *, at_least: int = 0, timeout_s: float | None = None
    ) -> None:
        """Sends a request that the broker does not answer; returns when it has left."""
        api = _api_for(type(request))
        version = self.version_for(api, at_least=at_least)
        correlation_id = self._connection.next_correlation_id()
        frame = encode_request_parts(api, version, correlation_id, self._options.client_id, request)
        await self._connection.send(frame, timeout_s=timeout_s or self._options.request_timeout_s)

    def version_for(self, api: Api, *, at_least: int = 0, at_most: int = VERSION_MAX) -> int:
        """The version in which `call` would send this API's requests."""
        ours = api.stable_versions
        wanted = VersionRange(max(ours.first, at_least), min(ours.last, at_most))
        return self.versions.choose(int(api.key), api.name, wanted)

    def close(self) -> None:
        """Ends the connection at once."""
        self._connection.close()

    async def wait_closed(self) -> None:
        """Returns when the socket is closed."""
        await self._connection.wait_closed()

    async def _exchange(
        self,
        api: Api,
        version: int,
        request: Message,
        response_class: type[Response],
        timeout_s: float | None,
    ) -> Response:
        correlation_id = self._connection.next_correlation_id()
        frame = encode_request_parts(api, version, correlation_id, self._options.client_id, request)
        answer = await self._connection.request(
            frame, correlation_id, timeout_s=timeout_s or self._options.request_timeout_s
        )
        _, start = decode_response_header(answer, api, version)
        return decoder(response_class, version)(answer, start)

    async def _ask_versions(self, version: int) -> BrokerVersions:
        """Asks what the broker offers; one that does not know `version` says so in version 0."""
        api = APIS[ApiKey.API_VERSIONS]
        try:
            answer = await self._api_versions(api, version)
        except ProtocolError as error:
            raise NotABroker(str(self.address), b"") from error
        if answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
            offered = {entry.api_key: entry for entry in answer.api_keys}
            entry = offered.get(int(ApiKey.API_VERSIONS))
            answer = await self._api_versions(api, min(version, entry.max_version) if entry else 0)
        ranges = {
            entry.api_key: VersionRange(entry.min_version, entry.max_version)
            for entry in answer.api_keys
        }
        features = {each.name: each.max_version_level for each in answer.finalized_features}
        return BrokerVersions(str(self.address), ranges, features=features)

    async def _api_versions(self, api: Api, version: int) -> ApiVersionsResponse:
        request = ApiVersionsRequest(
            client_software_name=SOFTWARE_NAME,
            client_software_version=self._options.software_version,
        )
        correlation_id = self._connection.next_correlation_id()
        frame = encode_request_parts(api, version, correlation_id, self._options.client_id, request)
        answer = await self._connection.request(
            frame, correlation_id, timeout_s=self._options.request_timeout_s
        )
        _, start = decode_response_header(answer, api, version)
        code = int.from_bytes(answer[start : start + 2], "big", signed=True)
        answered = 0 if code == ErrorCode.UNSUPPORTED_VERSION else version
        return decoder(ApiVersionsResponse, answered)(answer, start)


@cache
def _api_for(request: type[Message]) -> Api:
    """The row of the API table that a request's class belongs to."""
    return APIS[ApiKey(schema_of(request).api_key)]
