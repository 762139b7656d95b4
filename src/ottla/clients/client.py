"""The way into a cluster: finds its brokers, and sends each call where it belongs.

Does not know what the calls mean; the other files of this package say that, one noun each.

Invariants:
1. There is at most one connection to a broker in each lane; whoever needs it while it is being
   opened waits for the same one. A broker answers a connection's requests in order, so what waits
   long (a fetch, joining a group) has a lane of its own.
2. A call is sent again only by `retry`, within its policy's limits; every wait has a limit.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from ottla.clients.address import Address
from ottla.clients.broker_connection import BrokerConnection, ConnectionOptions, Response
from ottla.clients.broker_search import search_broker
from ottla.clients.client_metrics import ClientCounters, ClientMetrics
from ottla.clients.failures import BrokerNotThere, NoBrokerReachable, TopicNotFound, refusal
from ottla.clients.leader_hints import LeaderHint, newer, with_hint
from ottla.clients.metadata import NO_BROKER, ClusterPicture, PartitionInfo, TopicInfo, picture_from
from ottla.clients.retry import RetryPolicy, retry
from ottla.errors import ErrorCode, OttlaError, RequestFailed
from ottla.model.ids import BrokerId, TopicPartition
from ottla.net.client_connection import ConnectionFailed
from ottla.protocol.message import VERSION_MAX, Message
from ottla.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)

CONTROLLER: Final = BrokerId(-2)
"""As a destination: whichever broker is the controller."""
ANY_BROKER: Final = BrokerId(-3)
"""As a destination: whichever broker answers."""
METADATA_VERSION_MIN: Final = 1
TOPIC_POLL_S: Final = 0.05
MAIN_LANE: Final = "main"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """How a client behaves towards all brokers of a cluster."""

    connection: ConnectionOptions = field(default_factory=ConnectionOptions)
    retries: RetryPolicy = field(default_factory=RetryPolicy)


class Client:
    """A cluster as its clients see it. Use it as an asynchronous context."""

    __slots__ = (
        "_bootstrap",
        "_connections",
        "_counters",
        "_locks",
        "_may_be_ancient",
        "_picture",
        "options",
    )

    def __init__(self, bootstrap: Sequence[Address], options: ClientOptions | None = None) -> None:
        self.options = options or ClientOptions()
        self._bootstrap = tuple(bootstrap)
        self._picture = ClusterPicture()
        self._counters = ClientCounters()
        self._connections: dict[tuple[Address, str], BrokerConnection] = {}
        self._may_be_ancient = True
        """No broker of the cluster has said its versions yet."""
        self._locks: dict[tuple[Address, str], asyncio.Lock] = {}

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes every connection."""
        connections = list(self._connections.values())
        self._connections.clear()
        for connection in connections:
            connection.close()
        for connection in connections:
            await connection.wait_closed()

    def metrics(self) -> ClientMetrics:
        """How it was served so far."""
        return self._counters.snapshot()

    # --- what is known of the cluster

    @property
    def picture(self) -> ClusterPicture:
        """The cluster as last seen; empty before the first call."""
        return self._picture

    async def refresh(
        self,
        topics: Sequence[str] | None = (),
        *,
        may_create: bool = False,
        to: BrokerId = ANY_BROKER,
    ) -> ClusterPicture:
        """Asks for the brokers and the named topics; None asks for all topics."""
        wanted = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=may_create)
        connection = await self.connection_to(to)
        with self._counters.requests.timed():
            response = await connection.call(
                request, MetadataResponse, at_least=METADATA_VERSION_MIN
            )
        self._counters.throttled_ms += response.throttle_time_ms
        picture = picture_from(response)
        known = self._picture.topics
        told = {name: newer(known.get(name), topic) for name, topic in picture.topics.items()}
        self._picture = replace(picture, topics=told if topics is None else {**known, **told})
        return self._picture

    def learn_leader(self, hint: LeaderHint) -> TopicInfo | None:
        """Takes a broker's word on who leads; the topic as it is now, or None if it is no news."""
        picture = with_hint(self._picture, hint)
        if picture is None:
            return None
        self._picture = picture
        return picture.topics[hint.where.topic]

    async def topic(
        self, name: str, *, refresh: bool = False, may_create: bool = False
    ) -> TopicInfo:
        """The topic with its partitions; TopicNotFound if there is none."""
        known = self._picture.topics.get(name)
        if refresh or known is None or known.error:
            known = (await self.refresh([name], may_create=may_create)).topics.get(name)
        if known is None or known.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise TopicNotFound(name)
        if known.error:
            raise refusal(known.error, f"topic {name!r}")
        return known

    async def wait_for_topic(self, name: str, *, timeout_s: float = 10.0) -> TopicInfo:
        """The topic as soon as it is known and all its partitions have a leader."""
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                topic = await self.topic(name, refresh=True)
                if all(partition.leader >= 0 for partition in topic.partitions):
                    return topic
                error = RequestFailed(ErrorCode.LEADER_NOT_AVAILABLE)
            except RequestFailed as refused:
                error = refused
            if time.monotonic() > deadline:
                raise error
            await asyncio.sleep(TOPIC_POLL_S)

    async def partition(self, partition: TopicPartition) -> PartitionInfo:
        """The partition with its leader; TopicNotFound if there is none."""
        is_known = partition.topic in self._picture.topics
        found = _find(await self.topic(partition.topic), partition.partition)
        if found is None and is_known:  # partitions may have been added since
            found = _find(await self.topic(partition.topic, refresh=True), partition.partition)
        if found is None:
            raise TopicNotFound(partition.topic, partition.partition)
        return found

    async def leader(self, partition: TopicPartition) -> BrokerId:
        """The broker that leads the partition; the error is worth a retry while there is none."""
        leader = (await self.partition(partition)).leader
        if leader == NO_BROKER:
            await self.topic(partition.topic, refresh=True)
            leader = (await self.partition(partition)).leader
        if leader == NO_BROKER:
            raise refusal(ErrorCode.LEADER_NOT_AVAILABLE, f"partition {partition}")
        return leader

    # --- calls

    async def call(
        self,
        request: Message,
        response_class: type[Response],
        *,
        to: BrokerId = ANY_BROKER,
        at_least: int = 0,
        at_most: int = VERSION_MAX,
        timeout_s: float | None = None,
        lane: str = MAIN_LANE,
    ) -> Response:
        """Sends one request once, and returns its answer."""
        connection = await self.connection_to(to, lane=lane)
        with self._counters.requests.timed():
            response = await connection.call(
                request, response_class, at_least=at_least, at_most=at_most, timeout_s=timeout_s
            )
        self._counters.throttled_ms += getattr(response, "throttle_time_ms", 0)
        return response

    async def retrying(
        self, attempt: Callable[[], Awaitable[T]], *, topics: Sequence[str] = ()
    ) -> T:
        """Runs an attempt by the client's policy, with a look at the cluster in between."""

        async def look_again(_: OttlaError) -> None:
            try:
                await self.refresh(topics)
            except (ConnectionFailed, NoBrokerReachable):
                pass  # the next attempt meets the same trouble and counts it

        return await retry(self.options.retries, attempt, before_again=look_again)

    async def connection_to(self, to: BrokerId, *, lane: str = MAIN_LANE) -> BrokerConnection:
        """An open connection to the destination."""
        if to == ANY_BROKER:
            return await self._any_connection()
        if not self._picture.brokers:
            await self.refresh()
        if to == CONTROLLER:
            to = self._picture.controller
            if to == NO_BROKER:
                return await self._any_connection()
        broker = self._picture.brokers.get(to)
        if broker is None:
            # It may come back, or what was asked of it may be another's by then.
            raise BrokerNotThere(to)
        return await self._connection_at(broker.address, lane)

    async def _any_connection(self) -> BrokerConnection:
        for (_, lane), connection in self._connections.items():
            if connection.is_open and lane == MAIN_LANE and self._is_credible(connection):
                return connection
        advertised = [broker.address for broker in self._picture.brokers.values()]
        addresses = dict.fromkeys((*advertised, *self._bootstrap))
        search = await search_broker(addresses, lambda at: self._connection_at(at, MAIN_LANE))
        if search.found is not None:
            return search.found
        if search.silent is None or not self._is_credible(search.silent):
            raise NoBrokerReachable(search.failed, was_reachable=bool(advertised))
        return search.silent

    def _is_credible(self, connection: BrokerConnection) -> bool:
        """Where one broker has said what it offers, none is too old to do so."""
        return self._may_be_ancient or not connection.versions.is_assumed

    async def _connection_at(self, address: Address, lane: str) -> BrokerConnection:
        place = (address, lane)
        connection = self._connections.get(place)
        if connection is not None and connection.is_open:
            return connection
        lock = self._locks.setdefault(place, asyncio.Lock())
        async with lock:
            connection = self._connections.get(place)
            if connection is None or not connection.is_open:
                with self._counters.connects.timed():
                    connection = await BrokerConnection.open(
                        address, self.options.connection, may_be_ancient=self._may_be_ancient
                    )
                if not connection.versions.is_assumed:
                    self._may_be_ancient = False
                self._connections[place] = connection
            return connection


def _find(topic: TopicInfo, partition: int) -> PartitionInfo | None:
    return next((info for info in topic.partitions if info.partition == partition), None)
