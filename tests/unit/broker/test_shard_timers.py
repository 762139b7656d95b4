"""Timers fire once, when they are due by what was said of them last."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ottla.broker.shard_timers import ShardTimers
from ottla.coordination.decision import StartTimer, StopTimer, TimerKey
from unit.net.running import pass_time, run

KEY: TimerKey = ("session", "member")
OTHER: TimerKey = ("session", "other")


def with_timers(scenario: Callable[[ShardTimers, list[TimerKey]], object]) -> None:
    async def on_a_loop() -> None:
        fired: list[TimerKey] = []
        timers = ShardTimers(fired.append)
        await scenario(timers, fired)  # type: ignore[misc]

    run(on_a_loop())


def test_a_timer_fires_once_and_can_be_started_again() -> None:
    async def scenario(timers: ShardTimers, fired: list[TimerKey]) -> None:
        timers.change(StartTimer(KEY, 1000))
        await pass_time(0.9)
        assert fired == []
        await pass_time(0.2)
        assert fired == [KEY]
        await pass_time(10)
        timers.change(StartTimer(KEY, 1000))
        await pass_time(1.1)
        assert fired == [KEY, KEY]

    with_timers(scenario)


def test_a_timer_that_is_put_off_again_and_again_fires_when_it_is_not_any_more() -> None:
    async def scenario(timers: ShardTimers, fired: list[TimerKey]) -> None:
        for _ in range(20):
            timers.change(StartTimer(KEY, 1000))
            await pass_time(0.4)
        assert fired == []
        await pass_time(0.5)
        assert fired == []
        await pass_time(0.2)
        assert fired == [KEY]

    with_timers(scenario)


def test_a_timer_that_is_put_off_is_scheduled_only_once() -> None:
    async def scenario(timers: ShardTimers, fired: list[TimerKey]) -> None:
        loop = asyncio.get_running_loop()
        before = len(loop._scheduled)  # type: ignore[attr-defined]
        for delay_ms in range(1000, 2000):
            timers.change(StartTimer(KEY, delay_ms))
        assert len(loop._scheduled) == before + 1  # type: ignore[attr-defined]
        await pass_time(1.9)
        assert fired == []
        await pass_time(0.2)
        assert fired == [KEY]

    with_timers(scenario)


def test_a_timer_that_is_due_sooner_than_before_fires_sooner() -> None:
    async def scenario(timers: ShardTimers, fired: list[TimerKey]) -> None:
        timers.change(StartTimer(KEY, 5000))
        timers.change(StartTimer(KEY, 9000))
        timers.change(StartTimer(KEY, 1000))
        timers.change(StartTimer(OTHER, 6000))
        await pass_time(1.1)
        assert fired == [KEY]
        await pass_time(10)
        assert fired == [KEY, OTHER]

    with_timers(scenario)


def test_a_timer_that_was_stopped_does_not_fire_however_often_it_was_put_off() -> None:
    async def scenario(timers: ShardTimers, fired: list[TimerKey]) -> None:
        timers.change(StopTimer(KEY))
        timers.change(StartTimer(KEY, 1000))
        timers.change(StartTimer(KEY, 2000))
        await pass_time(1.5)
        timers.change(StopTimer(KEY))
        timers.change(StartTimer(OTHER, 1000))
        timers.stop()
        await pass_time(10)
        assert fired == []

    with_timers(scenario)
