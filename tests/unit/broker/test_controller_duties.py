"""The controller keeps partitions led, moves going and deletions finished, whoever it is."""

from __future__ import annotations

import pytest

from ottla.broker.controller_duties import FIRST_BALANCE_SECONDS, RETRY_SECONDS
from ottla.broker.leaderships import ElectionType
from ottla.cluster import layout
from ottla.cluster.changes import topic_node
from ottla.cluster.image import NO_BROKER, TopicImage
from ottla.cluster.layout import RECOVERING
from ottla.cluster.registration import ControllerMoved
from ottla.cluster.renunciation import renounce
from ottla.cluster.store import Create, Delete, SetData, StoreUnreachable
from ottla.errors import ErrorCode, RequestFailed
from ottla.model.ids import TopicId, TopicPartition
from unit.broker.brokers_and_controller import (
    FOUR,
    ONE,
    THREE,
    TWO,
    a_controlled_cluster,
    settled,
)
from unit.net.running import pass_time, run

T0 = TopicPartition("t", 0)
ALL = (ONE, TWO, THREE)
UNCLEAN = {"unclean.leader.election.enable": "true"}


# --- brokers come and go ---


def test_a_dead_leaders_partition_is_led_by_one_in_sync_and_the_dead_is_out() -> None:
    async def scenario() -> None:
        async with a_controlled_cluster(*ALL) as cluster:
            await cluster.topic("t", ALL)
            before = cluster.partition
            await cluster.go(ONE)
            assert cluster.state() == (TWO, (TWO, THREE))
            assert cluster.partition.leader_epoch > before.leader_epoch

    run(scenario())


def test_a_dead_follower_leaves_the_set_at_once() -> None:
    async def scenario() -> None:
        async with a_controlled_cluster(*ALL) as cluster:
            await cluster.topic("t", ALL)
            await cluster.go(THREE)
            assert cluster.state() == (ONE, (ONE, TWO))

    run(scenario())


def test_the_last_in_sync_stays_so_and_leads_when_it_is_back() -> None:
    async def scenario() -> None:
        async with a_controlled_cluster(*ALL) as cluster:
            await cluster.topic("t", ALL)
            await cluster.go(ONE)
            await cluster.go(TWO)
            await cluster.go(THREE)
            assert cluster.state() == (NO_BROKER, (THREE,))
            await cluster.come(ONE, TWO)
            assert cluster.state() == (NO_BROKER, (THREE,)), "they may lack what was committed"
            await cluster.come(THREE)
            assert cluster.state() == (THREE, (THREE,))

    run(scenario())


def test_those_that_die_together_stay_in_sync_together() -> None:
    async def scenario() -> None:
        async with a_controlled_cluster(*ALL) as cluster:
            await cluster.topic("t", ALL)
            await cluster.go(*ALL)
            assert cluster.state() == (NO_BROKER, ALL)
            await cluster.come(TWO)
            assert cluster.state() == (TWO, (TWO,))

    run(scenario())


def test_one_out_of_sync_leads_only_where_the_topic_allows_it() -> None:
    async def scenario() -> None:
        async with a_controlled_cluster(*ALL) as cluster:
            await cluster.topic("t", (ONE, TWO))
            await cluster.topic("u", (ONE, TWO), configs=UNCLEAN)
            for name in "tu":
                await cluster.in_sync(TopicPartition(name, 0), [ONE])
            await cluster.go(ONE)
            topics = cluster.metadata.image.topics
            assert topics["t"].partitions[0].leader == NO_BROKER
            unclean = topics["u"].partitions[0]
            assert (unclean.leader, unclean.isr) == (TWO, (TWO,))
            assert unclean.recovery_state == RECOVERING

    run(scenario())


def test_many_partitions_of_a_dead_broker_are_spread_over_the_others() -> None:
    async def scenario() -> None:
        async with a_controlled_cluster(*ALL) as cluster:
            await cluster.topic("t", *[(ONE, TWO, THREE)] * 300)
            await cluster.go(ONE)
            leaders = [each.leader for each in cluster.metadata.image.topics["t"].partitions]
            assert leaders.count(TWO) == leaders.count(THREE) == 150

    run(scenario())


def test_nothing_is_written_where_nothing_is_to_be_set_right() -> None:
    async def scenario() -> None:
        async with a_controlled_cluster(*ALL) as cluster:
            await cluster.topic("t", ALL)
            image = cluster.metadata.image
            await cluster.come(FOUR)
            assert cluster.metadata.image.topics["t"] == image.topics["t"]

    run(scenario())


def test_who_is_not_controller_decides_nothing() -> None:
    async def scenario() -> None:
        async with a_controlled_cluster(*ALL) as cluster:
            await cluster.topic("t", ALL)
            await cluster.metadata.resign()
            await cluster.go(ONE)
            assert cluster.partition.leader == ONE
            with pytest.raises(ControllerMoved):
                await cluster.leaderships.elect(ElectionType.PREFERRED, None)

    run(scenario())


def test_what_the_store_did_not_take_is_tried_again() -> None:
    async def scenario() -> None:
        async with a_controlled_cluster(*ALL) as cluster:
            await cluster.topic("t", ALL)
            store = cluster.metadata.store
            multi = store.multi
            gone = Delete(layout.broker_path(ONE))
            await multi([gone])

            async def fail(_operations: object) -> None:
                raise StoreUnreachable("no quorum")

            store.multi = fail  # type: ignore[method-assign,assignment]
            await settled()
            assert cluster.partition.leader == ONE
            store.multi = multi  # type: ignore[method-assign]
            await pass_time(RETRY_SECONDS)
            await settled()
            assert cluster.partition.leader == TWO

    run(scenario())


# --- what a predecessor left ---


def test_a_new_controller_elects_for_those_who_died_meanwhile() -> None:
    async def scenario() -> None:
        async with a_controlled_cluster(*ALL) as cluster:
            await cluster.topic("t", ALL)
            await cluster.duties.stop()
            await cluster.go(ONE)
            assert cluster.partition.leader == ONE
            await cluster.move_controller()
            assert cluster.state() == (TWO, (TWO, THREE))

    run(scenario())


def test_a_topic_half_made_gets_its_leaders() -> None:
    async def scenario() -> None:
        async with a_controlled_cluster(TWO, THREE) as cluster:
            made = TopicImage("t", TopicId(b"t".ljust(16)), ())
            node = layout.TopicNode(
                topic_id=topic_node(made).topic_id, partitions={0: ALL, 1: (THREE, TWO)}
            )
            await cluster.metadata.store.multi(
                [
                    Create(layout.topic_path("t"), layout.encode(node)),
                    Create(layout.partitions_path("t")),
                ]
            )
            await settled()
            zero, one = cluster.metadata.image.topics["t"].partitions
            assert (zero.leader, zero.isr) == (TWO, (TWO, THREE)), "one is not there"
            assert (one.leader, one.isr) == (THREE, (THREE, TWO))

    run(scenario())


def test_a_deletion_that_was_begun_is_finished() -> None:
    async def scenario() -> None:
        async with a_controlled_cluster(*ALL) as cluster:
            await cluster.topic("t", ALL, ALL)
            path = layout.partition_path("t", 0)
            await cluster.metadata.store.multi(
                [
                    Create(layout.topic_deletion_path("t")),
                    Delete(f"{path}/state"),
                    Delete(path),
                ]
            )
            await settled()
            assert not cluster.metadata.image.topics
            nodes = await cluster.metadata.store.read_all("/")
            assert not [path for path in nodes if path.endswith("/t")]

    run(scenario())


# --- preferred leaders ---


def test_leaders_go_back_to_their_places_when_their_broker_is_in_sync_again() -> None:
    async def scenario() -> None:
        async with a_controlled_cluster(*ALL) as cluster:
            await cluster.topic("t", ALL)
            await cluster.go(ONE)
            await cluster.come(ONE)
            await pass_time(FIRST_BALANCE_SECONDS)
            await settled()
            assert cluster.partition.leader == TWO, "one has not caught up"
            await cluster.in_sync(T0, ALL)
            await pass_time(300)
            await settled()
            assert cluster.state() == (ONE, ALL)

    run(scenario())


def test_elections_on_request_say_what_came_of_them() -> None:
    async def scenario() -> None:
        async with a_controlled_cluster(*ALL) as cluster:
            await cluster.topic("t", ALL, (TWO, ONE, THREE))
            await cluster.go(ONE)
            await cluster.come(ONE)
            elect = cluster.leaderships.elect
            keys = [TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("x", 0)]
            assert await elect(ElectionType.PREFERRED, keys) == {
                keys[0]: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
                keys[1]: ErrorCode.ELECTION_NOT_NEEDED,
                keys[2]: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            }
            await cluster.in_sync(T0, ALL)
            assert (await elect(ElectionType.PREFERRED, [T0]))[T0] is ErrorCode.NONE
            assert cluster.partition.leader == ONE

    run(scenario())


def test_an_unclean_election_is_held_on_request_only_where_nobody_leads() -> None:
    async def scenario() -> None:
        async with a_controlled_cluster(*ALL) as cluster:
            await cluster.topic("t", (ONE, TWO))
            elect = cluster.leaderships.elect
            assert (await elect(ElectionType.UNCLEAN, [T0]))[T0] is ErrorCode.ELECTION_NOT_NEEDED
            await cluster.in_sync(T0, [ONE])
            await cluster.go(ONE)
            assert cluster.partition.leader == NO_BROKER
            assert (await elect(ElectionType.UNCLEAN, [T0]))[T0] is ErrorCode.NONE
            assert cluster.state() == (TWO, (TWO,))

    run(scenario())


# --- a broker stops ---


def test_a_broker_that_stops_leads_nothing_and_is_in_sync_with_nothing() -> None:
    async def scenario() -> None:
        async with a_controlled_cluster(*ALL) as cluster:
            await cluster.topic("t", ALL)
            await cluster.topic("u", (TWO, ONE))
            await cluster.topic("v", (ONE,))
            epoch = cluster.metadata.image.brokers[ONE].epoch
            assert await cluster.leaderships.release(ONE, epoch) == []
            zero, one, alone = cluster.first_partitions()
            assert (zero.leader, zero.isr) == (TWO, (TWO, THREE))
            assert (one.leader, one.isr) == (TWO, (TWO,))
            assert alone.leader == ONE, "nobody else could"

    run(scenario())


def test_a_broker_that_stops_is_told_what_nobody_else_can_lead_yet() -> None:
    async def scenario() -> None:
        async with a_controlled_cluster(*ALL) as cluster:
            await cluster.topic("t", (ONE, TWO))
            await cluster.in_sync(T0, [ONE])
            epoch = cluster.metadata.image.brokers[ONE].epoch
            assert await cluster.leaderships.release(ONE, epoch) == [T0]
            await cluster.in_sync(T0, [ONE, TWO])
            assert await cluster.leaderships.release(ONE, epoch) == []
            assert cluster.state() == (TWO, (TWO,))

    run(scenario())


def test_a_broker_that_stops_gets_no_leadership_until_it_is_there_anew() -> None:
    async def scenario() -> None:
        async with a_controlled_cluster(*ALL) as cluster:
            await cluster.topic("t", ALL)
            await cluster.leaderships.release(ONE, -1)
            await cluster.in_sync(T0, ALL)
            outcome = await cluster.leaderships.elect(ElectionType.PREFERRED, [T0])
            assert outcome[T0] is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
            await cluster.go(ONE)
            await cluster.come(ONE)
            await cluster.in_sync(T0, ALL)
            outcome = await cluster.leaderships.elect(ElectionType.PREFERRED, [T0])
            assert outcome[T0] is ErrorCode.NONE

    run(scenario())


def test_only_a_living_broker_of_that_epoch_can_be_let_go() -> None:
    async def scenario() -> None:
        async with a_controlled_cluster(ONE) as cluster:
            with pytest.raises(RequestFailed) as absent:
                await cluster.leaderships.release(TWO, -1)
            assert absent.value.code is ErrorCode.BROKER_NOT_AVAILABLE
            with pytest.raises(RequestFailed) as stale:
                await cluster.leaderships.release(
                    ONE, cluster.metadata.image.brokers[ONE].epoch - 1
                )
            assert stale.value.code is ErrorCode.STALE_BROKER_EPOCH

    run(scenario())


# --- a broker comes back from a crash ---


@pytest.mark.parametrize("may_lack_records", [True, False])
def test_a_broker_that_crashed_gives_up_its_leadership(may_lack_records: bool) -> None:
    async def scenario() -> None:
        async with a_controlled_cluster(*ALL) as cluster:
            await cluster.topic("t", ALL)
            await cluster.topic("u", (TWO, ONE))
            await cluster.topic("v", (ONE,))
            await cluster.duties.stop()
            before = cluster.first_partitions()
            await cluster.metadata.change_as_leader(
                lambda draft: renounce(draft, ONE, may_lack_records=may_lack_records)
            )
            zero, one, alone = cluster.first_partitions()
            assert zero.leader == alone.leader == NO_BROKER
            assert one.leader == TWO
            assert one.leader_epoch == before[1].leader_epoch, "its leader need not notice"
            assert zero.leader_epoch > before[0].leader_epoch
            assert alone.isr == (ONE,), "nobody has more"
            assert (zero.isr, one.isr) == (
                ((TWO, THREE), (TWO,)) if may_lack_records else (ALL, (TWO, ONE))
            )
            await cluster.metadata.reload()
            assert cluster.first_partitions() == [zero, one, alone]
            await cluster.move_controller()
            zero, one, alone = cluster.first_partitions()
            assert zero.leader != NO_BROKER
            assert alone.leader == ONE

    run(scenario())


# --- moves ---


def test_a_move_goes_on_by_itself_once_the_new_replicas_are_in_sync() -> None:
    async def scenario() -> None:
        async with a_controlled_cluster(*ALL, FOUR) as cluster:
            await cluster.topic("t", (ONE, TWO))
            outcome = await cluster.leaderships.reassign({T0: (THREE, FOUR)})
            assert outcome == {T0: None}
            await settled()
            moving = cluster.partition
            assert moving.replicas == (THREE, FOUR, ONE, TWO)
            assert (moving.adding_replicas, moving.removing_replicas) == (
                (THREE, FOUR),
                (ONE, TWO),
            )
            await cluster.in_sync(T0, [ONE, TWO, THREE])
            assert cluster.partition.replicas == moving.replicas, "four is still copying"
            await cluster.in_sync(T0, [ONE, TWO, THREE, FOUR])
            arrived = cluster.partition
            assert (arrived.leader, arrived.isr, arrived.replicas) == (
                THREE,
                (THREE, FOUR),
                (THREE, FOUR),
            )
            assert not arrived.adding_replicas
            assert not arrived.removing_replicas
            assert arrived.leader_epoch > moving.leader_epoch
            assert (await cluster.metadata.reload()).topics["t"].partitions[0] == arrived

    run(scenario())


def test_a_move_is_carried_on_by_the_next_controller() -> None:
    async def scenario() -> None:
        async with a_controlled_cluster(*ALL) as cluster:
            await cluster.topic("t", (ONE, TWO))
            await cluster.leaderships.reassign({T0: (TWO, THREE)})
            await cluster.duties.stop()
            await cluster.in_sync(T0, ALL)
            assert cluster.partition.adding_replicas
            await cluster.move_controller()
            assert cluster.state() == (TWO, (TWO, THREE))
            assert cluster.partition.replicas == (TWO, THREE)

    run(scenario())


def test_a_cancelled_move_leaves_all_as_it_was_and_nobody_new_in_sync() -> None:
    async def scenario() -> None:
        async with a_controlled_cluster(*ALL, FOUR) as cluster:
            await cluster.topic("t", (ONE, TWO))
            await cluster.leaderships.reassign({T0: (THREE, FOUR)})
            await cluster.in_sync(T0, [ONE, TWO, THREE])
            assert await cluster.leaderships.reassign({T0: None}) == {T0: None}
            back = cluster.partition
            assert (back.leader, back.isr, back.replicas) == (ONE, (ONE, TWO), (ONE, TWO))
            assert not back.adding_replicas
            assert not back.removing_replicas
            again = await cluster.leaderships.reassign({T0: None})
            error = again[T0]
            assert error is not None
            assert error.code is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS

    run(scenario())


def test_a_leader_that_missed_a_cancellation_cannot_take_the_dropped_one_in() -> None:
    async def scenario() -> None:
        async with a_controlled_cluster(*ALL) as cluster:
            await cluster.topic("t", (ONE, TWO))
            await cluster.leaderships.reassign({T0: ALL})
            led = cluster.partition
            await cluster.leaderships.reassign({T0: None})
            state = layout.PartitionStateNode(
                leader=ONE, leader_epoch=led.leader_epoch, controller_epoch=1, isr=ALL
            )
            stale = SetData(
                layout.partition_state_path("t", 0), layout.encode(state), led.partition_epoch
            )
            with pytest.raises(Exception, match="version"):
                await cluster.metadata.store.multi([stale])

    run(scenario())


def test_bad_wishes_are_refused_one_by_one() -> None:
    async def scenario() -> None:
        async with a_controlled_cluster(*ALL) as cluster:
            await cluster.topic("t", (ONE, TWO), (TWO, THREE))
            wishes = {
                TopicPartition("t", 0): (ONE, FOUR),
                TopicPartition("t", 1): (TWO, ONE),
                TopicPartition("t", 7): (ONE,),
            }
            outcome = await cluster.leaderships.reassign(wishes)
            codes = {
                key.partition: None if error is None else error.code
                for key, error in outcome.items()
            }
            assert codes == {
                0: ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                1: None,
                7: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            }
            assert cluster.metadata.image.topics["t"].partitions[1].adding_replicas == (ONE,)
            fewer = await cluster.leaderships.reassign({T0: (ONE,)}, may_change_factor=False)
            error = fewer[T0]
            assert error is not None
            assert error.code is ErrorCode.INVALID_REPLICATION_FACTOR

    run(scenario())


def test_the_number_of_replicas_can_shrink_at_once() -> None:
    async def scenario() -> None:
        async with a_controlled_cluster(*ALL) as cluster:
            await cluster.topic("t", ALL)
            await cluster.leaderships.reassign({T0: (TWO,)})
            await settled()
            assert cluster.state() == (TWO, (TWO,))
            assert cluster.partition.replicas == (TWO,)

    run(scenario())


def test_a_topic_of_many_partitions_is_moved_in_one_wish() -> None:
    async def scenario() -> None:
        async with a_controlled_cluster(*ALL) as cluster:
            await cluster.topic("t", *[(ONE, TWO)] * 2_500)
            keys = [TopicPartition("t", index) for index in range(2_500)]
            outcome = await cluster.leaderships.reassign(dict.fromkeys(keys, (TWO, ONE)))
            assert not any(outcome.values())
            await settled()
            topic = cluster.metadata.image.topics["t"]
            assert {each.replicas for each in topic.partitions} == {(TWO, ONE)}
            assert (await cluster.metadata.reload()).topics["t"] == topic

    run(scenario())
