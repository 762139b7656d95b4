"""Thousands of random lives of a group: what must always be true is, and peace brings rest."""

import pytest

from properties.coordination.group.simulation import Chances, Simulation

BLOCKS = 5
SEEDS_PER_BLOCK = 30


def seeds(block: int) -> range:
    return range(block * SEEDS_PER_BLOCK, (block + 1) * SEEDS_PER_BLOCK)


def run_all(block: int, chances: Chances) -> None:
    for seed in seeds(block):
        try:
            Simulation(seed, chances).run()
        except Exception as error:
            error.add_note(f"seed {seed} with {chances}")
            raise


@pytest.mark.parametrize("block", range(BLOCKS))
def test_classic_groups_survive_anything(block: int) -> None:
    run_all(block, Chances())


@pytest.mark.parametrize("block", range(BLOCKS))
def test_classic_groups_with_static_members_survive_anything(block: int) -> None:
    run_all(block, Chances(static_share=0.5))


@pytest.mark.parametrize("block", range(BLOCKS))
def test_consumer_groups_survive_anything(block: int) -> None:
    run_all(block, Chances(modern_share=1.0, topics_change=True))


@pytest.mark.parametrize("block", range(BLOCKS))
def test_consumer_groups_with_static_members_survive_anything(block: int) -> None:
    run_all(block, Chances(modern_share=1.0, static_share=0.5))


@pytest.mark.parametrize("block", range(BLOCKS))
def test_groups_of_both_protocols_survive_anything(block: int) -> None:
    run_all(block, Chances(modern_share=0.4, steps=80))


@pytest.mark.parametrize("block", range(BLOCKS))
def test_groups_of_both_protocols_with_static_members_survive_anything(block: int) -> None:
    run_all(block, Chances(modern_share=0.5, static_share=0.3, topics_change=True))
