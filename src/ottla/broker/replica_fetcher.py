"""Pulls from one leader what this broker follows it in, over one connection with a fetch session.

Invariants:
1. A response is applied to a partition only if its log still ends where the request said, and the
   partition still follows in the epoch the request was sent in.
2. Batches of a later epoch than the one the fetch was sent in are not appended: a leader may have
   been deposed and have truncated while the fetch was under way.
3. Where the leader says that histories part, the log is cut to where they do, and nothing of that
   response is appended.
4. What the leader was asked for in the session is in `_asked` until it was told to forget it, or
   it would go on to answer it.
5. Where each message is to be synced, the leader is told only of what is on the disk; and after a
   cut nothing is asked for before the cut is.
6. What may differ from what was asked is in `_moved`; what is not there is not looked at, so that
   partitions at rest cost nothing. A partition tells of all that happens to it.
7. A partition that cannot go on rests for a while, so that no error becomes a storm of requests.
   Only one with a fenced epoch waits for news: they are on their way.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

import msgspec

from ottla.broker.follower_throttle import FollowerThrottle
from ottla.broker.partition import Partition
from ottla.broker.spoken_versions import NEWEST_SPOKEN, SpokenVersions, ask_versions
from ottla.errors import ErrorCode, OttlaError, RequestFailed, UnsupportedVersion
from ottla.model.ids import NO_LEADER_EPOCH, BrokerId, LeaderEpoch, Offset, TopicId
from ottla.net.client_connection import ClientConnection, ConnectionFailed
from ottla.net.listener import Address
from ottla.protocol.api import APIS, ApiKey
from ottla.protocol.frames import decode_response, decode_response_header, encode_request
from ottla.protocol.messages.fetch import (
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)
from ottla.records.batch import split

FETCH_VERSION_MIN: Final = 15
"""The first in which a follower says who it is the way this one does."""
PARTITION_BYTES_MAX: Final = 1024 * 1024
RESPONSE_BYTES_MAX: Final = 10 * 1024 * 1024
WAIT_MS_MAX: Final = 500
CONNECT_SECONDS_MAX: Final = 2.0
ANSWER_SECONDS_MAX: Final = 10.0
BACKOFF_SECONDS: Final = 0.2

log = logging.getLogger(__name__)

Key = tuple[TopicId, int]


class Asked(msgspec.Struct, frozen=True):
    """What a partition's log was when a fetch was sent."""

    offset: Offset
    leader_epoch: LeaderEpoch


_OUTDATED: Final = Asked(Offset(-1), NO_LEADER_EPOCH)
"""Stands for what was asked before the partition moved: no answer to it counts."""
_SESSION_ERRORS: Final = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)


class _Followed:
    """Notes that something happened to a partition, whoever did it."""

    __slots__ = ("_key", "_moved", "partition")

    def __init__(self, key: Key, partition: Partition, moved: set[Key]) -> None:
        self.partition = partition
        self._key = key
        self._moved = moved
        partition.watch(self)

    def added(self, _size_bytes: int) -> None:
        self.wake()

    def wake(self) -> None:
        self._moved.add(self._key)


class ReplicaFetcher:
    """One leader, and the partitions this broker follows it in."""

    def __init__(
        self,
        broker_id: BrokerId,
        leader: BrokerId,
        address: Address,
        throttle: FollowerThrottle,
        spoken: SpokenVersions = NEWEST_SPOKEN,
    ) -> None:
        self._broker_id = broker_id
        self._leader = leader
        self._address = address
        self._throttle = throttle
        self._spoken = spoken
        self._client_id = f"broker-{broker_id}"
        self._followed: dict[Key, _Followed] = {}
        self._moved: set[Key] = set()
        self._paused: set[Key] = set()
        self._asked: dict[Key, Asked] = {}
        self._withdrawn: set[Key] = set()
        """Left or paused: to be forgotten in the session, if asked for and not taken up again."""
        self._session_id = 0
        self._session_epoch = 0
        self._changed = asyncio.Event()
        self._task = asyncio.get_running_loop().create_task(self._run())

    def __len__(self) -> int:
        return len(self._followed)

    @property
    def partitions(self) -> list[Partition]:
        """Those that are followed now."""
        return [each.partition for each in self._followed.values()]

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to ask for now."""
        return len(self._paused) == len(self._followed)

    def follow(self, partition: Partition) -> None:
        """Begins to replicate a partition, or goes on with it in a new epoch."""
        key = (partition.topic_id, partition.id.partition)
        known = self._followed.get(key)
        if known is None or known.partition is not partition:
            self._forget(key)
            self._followed[key] = _Followed(key, partition, self._moved)
        self._paused.discard(key)
        self._outdate(key)
        self._moved.add(key)
        self._changed.set()

    def leave(self, partition: Partition) -> None:
        """Replicates the partition no more."""
        key = (partition.topic_id, partition.id.partition)
        self._forget(key)
        self._paused.discard(key)
        self._withdrawn.add(key)
        self._changed.set()

    async def stop(self) -> None:
        """Ends the connection."""
        for key in tuple(self._followed):
            self._forget(key)
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def _forget(self, key: Key) -> None:
        known = self._followed.pop(key, None)
        if known is not None:
            known.partition.unwatch(known)
            self._moved.discard(key)

    async def _run(self) -> None:
        while True:
            try:
                await self._replicate()
            except ConnectionFailed as failure:
                log.info("replication from broker %d stopped: %s", self._leader, failure)
            except OttlaError as error:
                log.warning("replication from broker %d failed: %s", self._leader, error)
            await asyncio.sleep(BACKOFF_SECONDS)

    async def _replicate(self) -> None:
        connection = await ClientConnection.open(
            self._address.host, self._address.port, timeout_s=CONNECT_SECONDS_MAX
        )
        async with connection:
            self._begin_session()
            version = await self._agree(connection)
            while True:
                self._spare_ailing()
                await self._sync()
                self._hold_back()
                if self.is_idle:
                    self._changed.clear()
                    await self._changed.wait()
                    continue
                response = await self._fetch(connection, version)
                self._take(response)

    async def _sync(self) -> None:
        """Syncs what must be on the disk before the leader is told that it is here."""
        moved = {key: self._followed[key].partition for key in self._moved - self._paused}
        unsynced = {key: each for key, each in moved.items() if each.is_unsynced}
        if not unsynced:
            return
        await asyncio.gather(*(partition.sync() for partition in unsynced.values()))
        for key, partition in unsynced.items():
            if key in self._followed and partition.is_unsynced:
                self._rest(key)

    def _outdate(self, key: Key) -> None:
        if key in self._asked:
            self._asked[key] = _OUTDATED

    def _rest(self, key: Key) -> None:
        """Asks for the partition again, but not at once."""
        self._pause(key)
        asyncio.get_running_loop().call_later(BACKOFF_SECONDS, self._go_on, key)

    def _pause(self, key: Key) -> None:
        self._paused.add(key)
        self._withdrawn.add(key)

    def _spare_ailing(self) -> None:
        """Lets those rest whose disk takes nothing: who asks and has everything would be in sync,
        and might be elected."""
        for key in self._moved - self._paused:
            if self._followed[key].partition.is_ailing:
                self._rest(key)

    def _hold_back(self) -> None:
        """Lets those rest that have had as much as they may for now."""
        if self._throttle.is_off:
            return
        for key in self._followed.keys() - self._paused:
            if self._throttle.holds_back(self._followed[key].partition):
                self._rest(key)

    def _go_on(self, key: Key) -> None:
        self._paused.discard(key)
        if key in self._followed:
            self._moved.add(key)
        self._changed.set()

    # --- asking ---

    def _begin_session(self) -> None:
        """The next request names everything."""
        self._session_id = self._session_epoch = 0
        self._asked.clear()
        self._moved.update(self._followed)

    async def _agree(self, connection: ClientConnection) -> int:
        """The version of Fetch that both brokers speak."""
        versions = await ask_versions(connection, self._client_id)
        version = self._spoken.version_for(APIS[ApiKey.FETCH], versions)
        if version < FETCH_VERSION_MIN:
            raise UnsupportedVersion(APIS[ApiKey.FETCH].name, version)
        return version

    async def _fetch(self, connection: ClientConnection, version: int) -> FetchResponse:
        api = APIS[ApiKey.FETCH]
        correlation_id = connection.next_correlation_id()
        frame = encode_request(api, version, correlation_id, self._client_id, self._request())
        answer = await connection.request(frame, correlation_id, timeout_s=ANSWER_SECONDS_MAX)
        _, position = decode_response_header(answer, api, version)
        response = decode_response(api, version, answer, position)
        assert isinstance(response, FetchResponse)
        return response

    def _request(self) -> FetchRequest:
        """Names in a session only what is new or has moved since the last request."""
        looked_at = self._moved if self._session_epoch else self._followed.keys()
        wanted: dict[TopicId, list[FetchPartition]] = {}
        for key in looked_at - self._paused:
            partition = self._followed[key].partition
            asked = Asked(partition.log.end_offset, partition.leader_epoch)
            if self._session_epoch and self._asked.get(key) == asked:
                continue
            self._asked[key] = asked
            wanted.setdefault(key[0], []).append(
                FetchPartition(
                    key[1],
                    asked.leader_epoch,
                    asked.offset,
                    partition.log.epochs.latest if asked.offset else -1,
                    partition.log.start_offset,
                    PARTITION_BYTES_MAX,
                )
            )
        self._moved.clear()
        return FetchRequest(
            replica_state=ReplicaState(self._broker_id),
            max_wait_ms=WAIT_MS_MAX,
            min_bytes=1,
            max_bytes=RESPONSE_BYTES_MAX,
            session_id=self._session_id,
            session_epoch=self._session_epoch,
            topics=[FetchTopic(topic_id=topic, partitions=each) for topic, each in wanted.items()],
            forgotten_topics_data=[
                ForgottenTopic(topic_id=topic, partitions=each)
                for topic, each in self._gone().items()
            ],
        )

    def _gone(self) -> dict[TopicId, list[int]]:
        """What the leader was asked for and is not any more."""
        gone: dict[TopicId, list[int]] = {}
        withdrawn, self._withdrawn = self._withdrawn, set()
        for key in withdrawn:
            is_active = key in self._followed and key not in self._paused
            if not is_active and self._asked.pop(key, None) is not None:
                gone.setdefault(key[0], []).append(key[1])
        return gone

    # --- taking what came ---

    def _take(self, response: FetchResponse) -> None:
        if response.error_code:
            code = ErrorCode.of(response.error_code)
            if code not in _SESSION_ERRORS:
                raise RequestFailed(code)
            # The session is unknown or out of step: begin another.
            self._begin_session()
            return
        self._session_id = response.session_id
        self._session_epoch = self._session_epoch % (2**31 - 1) + 1 if response.session_id else 0
        for topic in response.responses:
            for data in topic.partitions:
                key = (TopicId(topic.topic_id), data.partition_index)
                followed, asked = self._followed.get(key), self._asked.get(key)
                if followed is None or asked is None:
                    continue
                self._moved.add(key)
                partition = followed.partition
                if asked != Asked(partition.log.end_offset, partition.leader_epoch):
                    continue
                try:
                    self._apply(key, partition, data)
                except (OttlaError, OSError) as error:
                    log.error("replicating %s failed: %s", partition.id, error)
                    self._rest(key)

    def _apply(self, key: Key, partition: Partition, data: PartitionData) -> None:
        if data.error_code:
            self._handle_error(key, partition, data)
            return
        if data.diverging_epoch is not None:
            _cut_to_common_history(partition, data.diverging_epoch)
            self._outdate(key)  # Even where only an epoch went and the log's end stayed.
            return
        records = data.records
        if isinstance(records, memoryview) and len(records):
            self._throttle.received(partition, len(records))
            _append(partition, records)
        partition.follow_watermarks(Offset(data.high_watermark), Offset(data.log_start_offset))

    def _handle_error(self, key: Key, partition: Partition, data: PartitionData) -> None:
        code = ErrorCode.of(data.error_code)
        if code is ErrorCode.OFFSET_OUT_OF_RANGE:
            if data.log_start_offset > partition.log.end_offset:
                # All that this log has was deleted at the leader: there is nothing to go on from.
                partition.log.restart_at(data.log_start_offset)
            elif data.log_start_offset >= 0:
                partition.log.truncate_to(partition.log.high_watermark)
            self._outdate(key)
        elif code is ErrorCode.FENCED_LEADER_EPOCH:
            # The metadata has moved on; its news will say whom to follow.
            self._pause(key)
        else:
            # The leader may not have heard of its role or of the topic yet.
            log.info("the leader of %s answers %s", partition.id, code.name)
            self._rest(key)


def _cut_to_common_history(partition: Partition, diverging: EpochEndOffset) -> None:
    """Cuts the log to where the leader's history and its own are still the same."""
    own = partition.log.epoch_end(diverging.epoch)
    end = diverging.end_offset
    if own is not None:
        end = min(end, own.end_offset)
    log.info("%s parts from its leader's history: cut to %d", partition.id, end)
    partition.log.truncate_to(Offset(end))


def _append(partition: Partition, records: memoryview) -> None:
    batches = split(records, ignore_torn_tail=True)
    size_bytes = 0
    for batch in batches:
        if batch.leader_epoch > partition.leader_epoch:
            break
        size_bytes += batch.size_bytes
    if size_bytes:
        partition.log.append_as_follower(records[:size_bytes])
