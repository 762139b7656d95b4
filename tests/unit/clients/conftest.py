"""A broker that answers as a test tells it to, on a real port of this machine."""

import asyncio
from collections.abc import Callable

import pytest

from ottla.clients.address import Address
from ottla.clients.broker_connection import ConnectionOptions
from ottla.clients.client import ClientOptions
from ottla.clients.retry import RetryPolicy
from ottla.protocol.api import ApiKey, api_of
from ottla.protocol.frames import decode_request, decode_request_header, encode_response
from ottla.protocol.message import Message
from ottla.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from ottla.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

Answer = Callable[[Message, int], Message | bytes | None]


class ScriptedBroker:
    """Answers each API by a function of request and version: a message, raw bytes, or None to
    close the connection. Starts out with one topic `t` of one partition that it leads."""

    def __init__(self) -> None:
        self.requests: list[tuple[ApiKey, int, Message]] = []
        self.connections = 0
        self.offered = {key: api_of(key).stable_versions for key in ApiKey}
        self.partition_count = 1
        self.leader = 1
        self.answers: dict[ApiKey, Answer] = {
            ApiKey.API_VERSIONS: lambda request, version: self.api_versions(),
            ApiKey.METADATA: lambda request, version: self.metadata(),
        }
        self.address = Address("127.0.0.1", 0)
        self._writers: list[asyncio.StreamWriter] = []

    async def __aenter__(self) -> "ScriptedBroker":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.address = Address("127.0.0.1", self._server.sockets[0].getsockname()[1])
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for writer in self._writers:
            writer.close()
        await self._server.wait_closed()

    def api_versions(self, error_code: int = 0) -> ApiVersionsResponse:
        return ApiVersionsResponse(
            error_code=error_code,
            api_keys=[
                ApiVersion(api_key=int(key), min_version=each.first, max_version=each.last)
                for key, each in self.offered.items()
            ],
        )

    def metadata(self) -> MetadataResponse:
        partitions = [
            MetadataResponsePartition(partition_index=index, leader_id=self.leader)
            for index in range(self.partition_count)
        ]
        me = MetadataResponseBroker(node_id=1, host=self.address.host, port=self.address.port)
        return MetadataResponse(
            brokers=[me],
            cluster_id="scripted",
            controller_id=1,
            topics=[MetadataResponseTopic(name="t", topic_id=b"t" * 16, partitions=partitions)],
        )

    def versions_seen(self, key: ApiKey) -> list[int]:
        return [version for seen, version, _ in self.requests if seen is key]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.append(writer)
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                frame = memoryview(await reader.readexactly(size))
                header, position = decode_request_header(frame)
                request = decode_request(header, frame, position)
                key = ApiKey(header.api_key)
                self.requests.append((key, header.api_version, request))
                answer = self.answers[key](request, header.api_version)
                if answer is None:
                    break
                if isinstance(answer, Message):
                    version = header.api_version
                    if isinstance(answer, ApiVersionsResponse) and answer.error_code == 35:
                        version = 0
                    api, number = api_of(key), header.correlation_id
                    answer = bytes(encode_response(api, version, number, answer).data)
                writer.write(answer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@pytest.fixture
def a_broker() -> type[ScriptedBroker]:
    """`async with a_broker() as broker:` in a test."""
    return ScriptedBroker


@pytest.fixture
def quick() -> ClientOptions:
    """Options of a client that does not wait long for anything."""
    return ClientOptions(
        ConnectionOptions(connect_timeout_s=2.0, request_timeout_s=5.0),
        RetryPolicy(attempts_max=4, first_wait_s=0.001, longest_wait_s=0.002),
    )
