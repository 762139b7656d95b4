"""Whoever leads and whatever is lost on the way, replicas end up with one history, and nothing
that was committed is missing from it."""

from __future__ import annotations

import asyncio

from hypothesis import example, given
from hypothesis import strategies as st

from ottla.broker.fetch_sessions import FetchSessions
from ottla.broker.handlers.fetch import FetchHandler
from ottla.broker.partition import Partition, Services
from ottla.broker.partitions import Partitions
from ottla.broker.replica_fetcher import FETCH_VERSION_MIN, ReplicaFetcher
from ottla.broker.replica_reads import ReplicaReads
from ottla.broker.request import RequestContext
from ottla.broker.standing import Standing
from ottla.errors import ErrorCode
from ottla.model.file_region import FileRegion
from ottla.model.ids import BrokerId, TopicPartition
from ottla.net.listener import Address
from ottla.net.server_connection import Peer
from ottla.protocol.messages.fetch import FetchRequest, FetchResponse
from ottla.settings.replication import ReplicationSettings
from ottla.storage.disk import read_region
from unit.broker.stage import LAG_MS, TOPIC_ID, Flushes, Pleas, Wishes, an_image
from unit.broker.unthrottled import unthrottled
from unit.net.running import run
from unit.storage.logs import World, batch, values

BROKERS = (BrokerId(1), BrokerId(2), BrokerId(3))


class Replica:
    """One broker's copy of the partition, and what it asks of each other."""

    def __init__(self, broker: BrokerId) -> None:
        self.broker = broker
        world = World()
        services = Services(Standing(broker, world.clock, LAG_MS), Flushes(), Wishes(), Pleas())
        self.partition = Partition(TopicPartition("topic", 0), TOPIC_ID, world.open(), services)
        partitions = Partitions()
        partitions.add(self.partition)
        reads = ReplicaReads(broker, ReplicationSettings, dict)
        self._handler = FetchHandler(partitions, FetchSessions(10), reads, world.clock, 1 << 20)
        self._fetcher: ReplicaFetcher | None = None
        self._leader: BrokerId | None = None

    def take_role(self, leader: BrokerId, epoch: int) -> None:
        self.partition.take_role(an_image(leader, epoch=epoch, replicas=BROKERS))
        self._fetcher = None
        if leader != self.broker:
            self._fetcher = ReplicaFetcher(
                self.broker, leader, Address("nowhere", 1), unthrottled()
            )
            self._fetcher.follow(self.partition)
        self._leader = leader

    def fetch(self, replicas: dict[BrokerId, Replica], *, is_lost: bool = False) -> None:
        """Asks the leader it knows of once, and takes the answer unless that is lost."""
        fetcher = self._fetcher
        if fetcher is None or self._leader is None or fetcher.is_idle:
            return
        response = replicas[self._leader].answer(fetcher._request())
        if is_lost:
            fetcher._begin_session()
        else:
            fetcher._take(response)
            for key in tuple(fetcher._paused):
                fetcher._go_on(key)

    def answer(self, request: FetchRequest) -> FetchResponse:
        request.max_wait_ms = 0
        response = self._handler.handle(
            request, RequestContext(FETCH_VERSION_MIN, "broker", Peer("here", 1))
        )
        assert isinstance(response, FetchResponse), "it must not wait"
        for topic in response.responses:
            for data in topic.partitions:
                if isinstance(data.records, FileRegion):
                    data.records = memoryview(read_region(data.records))
        return response


steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 3)),
        st.tuples(st.just("fetch"), st.sampled_from(BROKERS)),
        st.tuples(st.just("lose"), st.sampled_from(BROKERS)),
        st.tuples(st.just("elect"), st.sampled_from(BROKERS)),
        st.tuples(st.just("hear"), st.sampled_from(BROKERS)),
        st.tuples(st.just("all fetch"), st.integers(1, 3)),
    ),
    min_size=5,
    max_size=60,
)


@given(steps)
@example([("append", 1), ("all fetch", 3), ("elect", 2), ("elect", 3)])
def test_replicas_agree_and_keep_what_was_committed(drawn: list[tuple[str, int]]) -> None:
    async def scenario() -> None:
        replicas = {broker: Replica(broker) for broker in BROKERS}
        leader, epoch, number = BROKERS[0], 0, 0
        committed: dict[int, bytes | None] = {}
        for replica in replicas.values():
            replica.take_role(leader, epoch)

        def note_committed() -> None:
            for replica in replicas.values():
                if replica.partition.is_leader and replica.partition.leader_epoch == epoch:
                    high_watermark = replica.partition.log.high_watermark
                    for offset, value in values(replica.partition.log).items():
                        if offset < high_watermark:
                            assert committed.setdefault(offset, value) == value

        for step, argument in drawn:
            if step == "append":
                for replica in replicas.values():
                    if replica.partition.is_leader:  # a deposed one that has not heard too
                        number += 1
                        replica.partition.append(batch(*[b"%d" % number] * argument))
            elif step in ("fetch", "lose"):
                replicas[BrokerId(argument)].fetch(replicas, is_lost=step == "lose")
            elif step == "all fetch":
                for _ in range(argument):
                    for replica in replicas.values():
                        replica.fetch(replicas)
            elif step == "elect":
                # All three are in sync throughout, so that any of them may lead.
                leader, epoch = BrokerId(argument), epoch + 1
                replicas[leader].take_role(leader, epoch)
            else:
                replica = replicas[BrokerId(argument)]
                if replica.partition.leader_epoch < epoch:
                    replica.take_role(leader, epoch)
            note_committed()
        for replica in replicas.values():
            if replica.partition.leader_epoch < epoch:
                replica.take_role(leader, epoch)
        replicas[leader].partition.append(batch(b"the last"))
        for _ in range(2 * len(drawn) + 6):
            for replica in replicas.values():
                replica.fetch(replicas)
        note_committed()
        histories = [values(replica.partition.log) for replica in replicas.values()]
        assert histories[0] == histories[1] == histories[2]
        assert committed.items() <= histories[0].items()
        leading = replicas[leader].partition.log
        assert leading.high_watermark == leading.end_offset
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    run(scenario())


def test_a_zombie_leader_commits_nothing_after_its_followers_moved_on() -> None:
    async def scenario() -> None:
        replicas = {broker: Replica(broker) for broker in BROKERS}
        one, two, three = replicas.values()
        for replica in replicas.values():
            replica.take_role(BROKERS[0], 0)
        for replica in (two, three):
            replica.take_role(BROKERS[1], 1)
        end_offset = one.partition.append(batch(b"of a zombie")).end_offset
        for replica in (two, three):
            request = replica._fetcher
            assert request is None or request._leader == BROKERS[1]
            replica.fetch(replicas)
        assert not one.partition.is_committed(end_offset)
        asked = ReplicaFetcher(BROKERS[2], BROKERS[0], Address("nowhere", 1), unthrottled())
        asked.follow(three.partition)
        response = one.answer(asked._request())
        assert response.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
        assert not one.partition.is_committed(end_offset)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    run(scenario())
