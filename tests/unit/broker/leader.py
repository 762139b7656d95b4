"""A leader that answers fetches as a test tells it to, on a real port of this machine."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ottla.net.listener import Address
from ottla.protocol.api import APIS, ApiKey
from ottla.protocol.frames import decode_request, decode_request_header, encode_response
from ottla.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from ottla.protocol.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from ottla.records.batch import RecordBatch
from unit.broker.stage import TOPIC_ID
from unit.net.served import wait_until
from unit.storage.logs import batch

SESSION_ID = 77


def written(*values: bytes, base_offset: int, epoch: int) -> bytes:
    """A batch as a leader of `epoch` has it in its log."""
    view = batch(*values)
    RecordBatch(view).assign(base_offset, epoch)
    return bytes(view)


def data(
    records: bytes = b"",
    *,
    error: int = 0,
    high_watermark: int = 0,
    start_offset: int = 0,
    diverging: tuple[int, int] | None = None,
    index: int = 0,
) -> PartitionData:
    """What the leader says of a partition."""
    return PartitionData(
        index,
        error,
        high_watermark,
        high_watermark,
        start_offset,
        None if diverging is None else EpochEndOffset(*diverging),
        aborted_transactions=None,
        records=records,
    )


def answer(*partitions: PartitionData, error: int = 0, session: int = SESSION_ID) -> FetchResponse:
    topics = [FetchableTopicResponse(topic_id=TOPIC_ID, partitions=list(partitions))]
    return FetchResponse(
        error_code=error, session_id=session, responses=topics if partitions else []
    )


class Leader:
    """Keeps every request, and answers as long as it was told how; then it lets the asker wait."""

    def __init__(self) -> None:
        self.requests: list[FetchRequest] = []
        self.versions: list[int] = []
        """In which version each request came."""
        self.newest_version = APIS[ApiKey.FETCH].versions.last
        self.connections = 0
        self.address = Address("127.0.0.1", 0)
        self._script: deque[FetchResponse | None] = deque()
        self._told = asyncio.Event()

    def say(self, *responses: FetchResponse | None) -> None:
        """Answers the next requests so; None ends the connection."""
        self._script += responses
        self._told.set()

    async def asked(self, count: int) -> FetchRequest:
        """The request of that number, counted from one, once it has come."""
        await wait_until(lambda: len(self.requests) >= count)
        return self.requests[count - 1]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while await self._answer(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        size = int.from_bytes(await reader.readexactly(4), "big")
        frame = memoryview(await reader.readexactly(size))
        header, position = decode_request_header(frame)
        if header.api_key == ApiKey.API_VERSIONS:
            spoken = ApiVersionsResponse(
                api_keys=[ApiVersion(ApiKey.FETCH, 4, self.newest_version)]
            )
            api = APIS[ApiKey.API_VERSIONS]
            reply = encode_response(api, header.api_version, header.correlation_id, spoken)
            writer.write(reply.data)
            return True
        api = APIS[ApiKey.FETCH]
        request = decode_request(header, frame, position)
        assert isinstance(request, FetchRequest)
        self.requests.append(request)
        self.versions.append(header.api_version)
        while not self._script:
            self._told.clear()
            await self._told.wait()
        response = self._script.popleft()
        if response is None:
            return False
        reply = encode_response(api, header.api_version, header.correlation_id, response)
        writer.write(reply.data)
        return True


@asynccontextmanager
async def a_leader() -> AsyncIterator[Leader]:
    leader = Leader()
    server = await asyncio.start_server(leader.serve, "127.0.0.1", 0)
    leader.address = Address("127.0.0.1", server.sockets[0].getsockname()[1])
    try:
        yield leader
    finally:
        server.close()


def named(request: FetchRequest) -> dict[int, FetchPartition]:
    """The partitions a request names."""
    return {each.partition: each for topic in request.topics for each in topic.partitions}


def forgotten(request: FetchRequest) -> list[int]:
    return [each for topic in request.forgotten_topics_data for each in topic.partitions]
