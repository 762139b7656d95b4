"""Random interleavings of clients, time, lost coordinators and late messages, on virtual time.

Each transaction is wholly committed or wholly aborted, and as its client was told; no zombie
commits; no delayed request ends another transaction than its own; nothing hangs past its time-out;
every request is answered once; a replayed log gives the live state. A failure names its seed.
"""

import pytest

from properties.coordination.transaction.clients import Book, Client
from properties.coordination.transaction.world import World

STEPS = 160
SEEDS_PER_TEST = 150
IDS_MAX = 3


def run(seed: int) -> World:
    world, book = World(seed), Book()
    rng = world.rng
    kinds = {
        f"id-{each}": rng.choice(["first", "second", "second", "two-phase"])
        for each in range(IDS_MAX)
    }
    for transactional_id in kinds:
        if rng.random() < 0.3:
            world.begin_at(transactional_id, rng.randint(32761, 32766))
    clients = [Client(world, book, each, kind) for each, kind in kinds.items()]
    actions = (
        [world.deliver_message] * 8
        + [world.commit_some] * 8
        + [world.deliver_marker, world.deliver_report] * 4
        + [world.fire_timer, world.pass_time, world.fail_over]
    )
    for _ in range(STEPS):
        rng.choice(actions)()
        rng.choice(clients).act()
        if rng.random() < 0.03:
            take_over(world, book, clients)
    finish(world, book, clients, kinds)
    return world


def take_over(world: World, book: Book, clients: list[Client]) -> None:
    """Another instance comes; the one before may be dead or go on as a zombie."""
    old = world.rng.choice(clients)
    if world.rng.random() < 0.5:
        old.is_dead = True
    kind = "two-phase" if old.is_two_phase else "second" if old.is_second else "first"
    clients.append(Client(world, book, old.transactional_id, kind))


def finish(world: World, book: Book, clients: list[Client], kinds: dict[str, str]) -> None:
    """Let everything come to rest, owners of prepared transactions decide, and check all."""
    for client in clients:
        client.is_dead = True
    world.settle()
    world.check_nothing_hangs()
    for transactional_id, kind in kinds.items():
        owner = Client(world, book, transactional_id, kind)
        for _ in range(6):
            owner.act()
            world.settle()
            if owner.producer is not None and owner.wanted is None:
                break
        assert owner.producer is not None
        assert owner.wanted is None
    world.check_replay()
    world.check_nothing_hangs()
    assert not world.waiting, "a request was never answered"
    book.check(world)
    for partition in world.partitions.values():
        assert not partition.outcomes()[1]


@pytest.mark.parametrize("block", range(10))
def test_transactions_are_atomic_through_any_interleaving(block):
    for seed in range(block * SEEDS_PER_TEST, (block + 1) * SEEDS_PER_TEST):
        try:
            run(seed)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error!r}") from error


def test_the_runs_reach_what_they_are_about():
    """The seeds see commits, aborts, take-overs of the last epoch and lost coordinators."""
    committed = aborted = rotated = fail_overs = 0
    for seed in range(100):
        world = run(seed)
        fail_overs += world.coordinator_epoch
        for partition in world.partitions.values():
            for data, is_commit in partition.outcomes()[0]:
                committed += is_commit
                aborted += not is_commit
                rotated += data.producer.epoch == 32766
    assert min(committed, aborted, fail_overs) > 100
    assert rotated > 10
