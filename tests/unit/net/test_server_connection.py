"""Frames in, replies out in order; and a client that is too fast or too slow loses nothing."""

from __future__ import annotations

import asyncio
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.errors import ProtocolError
from ottla.net.receive_budget import ReceiveBudget, Room
from ottla.net.receive_buffers import BUFFER_BYTES
from ottla.net.server_connection import UNSENT_BYTES_MAX
from ottla.net.turns import TURN_SECONDS, Turns
from ottla.protocol.frames import EncodedResponse
from unit.net.running import run, turns
from unit.net.served import connect, listening, wait_until
from unit.net.wire_end import (
    FRAME_BYTES_MAX,
    Answered,
    Guests,
    WireEnd,
    frames_in,
    reply,
    request,
)

Promise = asyncio.Future[EncodedResponse | None]


def names(count: int, size: int = 12) -> list[bytes]:
    return [f"{number:08}".encode().ljust(size, b".") for number in range(count)]


def stream(requests: list[bytes]) -> bytes:
    return b"".join(map(request, requests))


class Promises:
    """Answers every request by a promise that the test keeps when it likes."""

    def __init__(self) -> None:
        self.given: dict[bytes, Promise] = {}

    def __call__(self, name: bytes) -> Answered:
        promise = self.given[name] = asyncio.get_running_loop().create_future()
        return promise

    def keep(self, *requests: bytes) -> None:
        for name in requests:
            self.given[name].set_result(reply(name))


@given(st.data())
def test_replies_leave_in_the_order_of_their_requests(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(["at once", "later", "never"]), max_size=20))
    in_flight_max = data.draw(st.integers(1, 25))
    requests = names(len(kinds))
    kind_of = dict(zip(requests, kinds, strict=True))

    async def scenario() -> None:
        later: dict[bytes, Promise] = {}

        def answer(name: bytes) -> Answered:
            if kind_of[name] == "at once":
                return reply(name)
            if kind_of[name] == "never" and data.draw(st.booleans()):
                return None
            promise = later[name] = asyncio.get_running_loop().create_future()
            return promise

        wire = WireEnd(answer, in_flight_max=in_flight_max)
        wire.send(stream(requests))
        await turns()
        while later:
            name = data.draw(st.sampled_from(sorted(later)))
            later.pop(name).set_result(reply(name) if kind_of[name] == "later" else None)
            await turns()
        assert wire.handled == requests
        assert wire.replies == [name for name in requests if kind_of[name] != "never"]
        assert wire.connection.is_idle

    run(scenario())


def test_all_frames_of_a_read_are_handled_before_their_replies_leave_in_one_write() -> None:
    async def scenario() -> None:
        writes_when_handled = []

        def answer(name: bytes) -> Answered:
            writes_when_handled.append(len(wire.writes))
            return reply(name)

        wire = WireEnd(answer)
        wire.send(stream(names(5)))
        assert writes_when_handled == [0] * 5
        assert len(wire.writes) == 1
        assert wire.replies == names(5)

    run(scenario())


def test_no_more_requests_are_taken_in_than_may_be_in_flight() -> None:
    async def scenario() -> None:
        promises = Promises()
        wire = WireEnd(promises, in_flight_max=3)
        requests = names(10)
        wire.send(stream(requests))
        assert wire.handled == requests[:3]
        assert wire.is_paused
        promises.keep(requests[1])
        await turns()
        assert wire.handled == requests[:3], "the first one is still owed"
        promises.keep(requests[0])
        await turns()
        assert wire.handled == requests[:5]
        assert wire.replies == requests[:2]
        for name in requests[2:]:
            promises.keep(name)
            await turns()
        assert wire.replies == requests
        assert not wire.is_paused

    run(scenario())


def test_requests_that_get_no_reply_make_room_for_the_next() -> None:
    async def scenario() -> None:
        promises = Promises()
        wire = WireEnd(promises, in_flight_max=2)
        requests = names(4)
        wire.send(stream(requests))
        for name in requests[:2]:
            promises.given[name].set_result(None)
        await turns()
        assert wire.handled == requests
        promises.keep(*requests[2:])
        await turns()
        assert wire.replies == requests[2:]

    run(scenario())


def test_large_replies_do_not_strand_the_requests_that_came_with_theirs() -> None:
    async def scenario() -> None:
        wire = WireEnd(lambda name: reply(name.ljust(UNSENT_BYTES_MAX, b".")))
        wire.send(stream(names(5)))
        await turns()
        assert [each[:12] for each in wire.replies] == names(5)
        assert not wire.is_paused

    run(scenario())


def test_a_client_that_does_not_read_is_not_read_from_and_loses_nothing() -> None:
    async def scenario() -> None:
        size = UNSENT_BYTES_MAX // 4
        wire = WireEnd(lambda name: reply(name.ljust(size, b".")))
        wire.takes = False
        requests = names(30)
        for name in requests:
            wire.send(request(name))
            await turns(2)
        assert wire.is_paused
        assert len(wire.handled) < 10, "its replies would fill the memory"
        wire.read()
        await turns(50)
        assert wire.handled == requests
        assert [each[:12] for each in wire.replies] == requests

    run(scenario())


def test_replies_that_were_promised_count_against_a_client_that_does_not_read() -> None:
    async def scenario() -> None:
        promises = Promises()
        wire = WireEnd(promises)
        wire.takes = False
        for name in names(3):
            wire.send(request(name))
        for name in names(3):
            promises.given[name].set_result(reply(name.ljust(UNSENT_BYTES_MAX, b".")))
            await turns()
        wire.send(stream([b"the late one"]))
        assert b"the late one" not in wire.handled
        wire.read()
        await turns()
        assert b"the late one" in wire.handled

    run(scenario())


def test_large_requests_wait_for_memory_in_line_and_come_whole() -> None:
    async def scenario() -> None:
        budget = ReceiveBudget(300_000)
        first, second = (WireEnd(lambda name: reply(name[:8]), budget=budget) for _ in range(2))
        large = [letter * 200_000 for letter in (b"a", b"b")]
        first.send(request(large[0])[:100_000])
        second.send(request(large[1])[:100_000])
        assert not first.is_paused
        assert second.is_paused
        second.send(request(large[1])[100_000:] + request(b"behind it"))
        first.send(request(large[0])[100_000:])
        await turns()
        assert first.handled == [large[0]]
        assert second.handled == [large[1], b"behind it"]
        assert budget.reserved_bytes == 0

    run(scenario())


@pytest.mark.parametrize("waits", [False, True])
def test_a_client_that_vanishes_gives_its_memory_back(waits: bool) -> None:
    async def scenario() -> None:
        budget = ReceiveBudget(300_000)
        other = Room(300_000, lambda: None)
        if waits:
            assert budget.reserve(other, 300_000)
        wire = WireEnd(lambda _name: None, budget=budget)
        wire.send(request(bytes(200_000))[:100_000])
        wire.vanish()
        await turns()
        if waits:
            budget.release(other)
        assert budget.reserved_bytes == 0
        assert not wire.guests.present

    run(scenario())


@pytest.mark.parametrize("frame", [b"\x7f\xff\xff\xff", b"GET / HTTP/1.1\r\n\r\n"])
def test_what_cannot_be_a_frame_ends_the_connection_after_the_replies_before_it(
    frame: bytes,
) -> None:
    async def scenario() -> None:
        wire = WireEnd(reply)
        wire.send(request(b"a request") + frame)
        await turns()
        assert wire.replies == [b"a request"]
        assert not wire.guests.present

    run(scenario())


def test_a_frame_over_the_limit_is_refused_at_its_size() -> None:
    async def scenario() -> None:
        wire = WireEnd(reply)
        wire.send((FRAME_BYTES_MAX + 1).to_bytes(4, "big"))
        assert wire.is_closing()

    run(scenario())


def test_a_request_that_cannot_be_understood_ends_the_connection() -> None:
    async def scenario() -> None:
        def answer(name: bytes) -> Answered:
            if name == b"nonsense":
                raise ProtocolError("that is not a request")
            return reply(name)

        wire = WireEnd(answer)
        wire.send(stream([b"a request", b"nonsense", b"the next one"]))
        await turns()
        assert wire.handled == [b"a request", b"nonsense"]
        assert wire.replies == [b"a request"]
        assert not wire.guests.present

    run(scenario())


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_no_reply_takes_the_place_of_one_that_failed(is_cancelled: bool) -> None:
    async def scenario() -> None:
        promises = Promises()
        wire = WireEnd(promises)
        requests = names(4)
        wire.send(stream(requests))
        wire.takes = False
        promises.keep(requests[0])
        await turns()
        if is_cancelled:
            promises.given[requests[1]].cancel()
        else:
            promises.given[requests[1]].set_exception(ProtocolError("cut off"))
        await turns()
        promises.keep(*requests[2:])
        await turns()
        wire.read()
        await turns()
        assert wire.replies == requests[:1]
        assert not wire.guests.present

    run(scenario())


def test_promises_to_a_client_that_is_gone_are_taken_back() -> None:
    async def scenario() -> None:
        promises = Promises()
        wire = WireEnd(promises)
        wire.send(stream(names(3)))
        wire.vanish()
        await turns()
        assert all(promise.cancelled() for promise in promises.given.values())

    run(scenario())


def test_a_client_that_is_not_let_in_is_cut_off_at_once() -> None:
    async def scenario() -> None:
        wire = WireEnd(reply, guests=Guests(admits=False))
        assert wire.is_aborted
        await turns()

    run(scenario())


def test_draining_closes_a_client_that_is_owed_nothing() -> None:
    async def scenario() -> None:
        wire = WireEnd(reply)
        wire.send(request(b"a request")[:6])
        wire.connection.drain()
        await turns()
        assert not wire.guests.present

    run(scenario())


def test_draining_pays_every_reply_that_is_owed_and_takes_no_new_request() -> None:
    async def scenario() -> None:
        promises = Promises()
        wire = WireEnd(promises, in_flight_max=2)
        requests = names(3)
        wire.send(stream(requests))
        wire.takes = False
        wire.connection.drain()
        promises.keep(*requests[:2])
        await turns()
        assert wire.guests.present, "the client has not read its replies yet"
        wire.read()
        await turns()
        assert wire.handled == requests[:2]
        assert wire.replies == requests[:2]
        assert not wire.guests.present

    run(scenario())


def test_draining_ends_when_the_last_request_turns_out_to_have_no_reply() -> None:
    async def scenario() -> None:
        promises = Promises()
        wire = WireEnd(promises)
        wire.send(stream([b"acks none"]))
        wire.connection.drain()
        promises.given[b"acks none"].set_result(None)
        await turns()
        assert not wire.guests.present

    run(scenario())


class Slow:
    """Answers at once, after so long that a turn is over."""

    def __init__(self) -> None:
        self.order: list[bytes] = []

    def __call__(self, name: bytes) -> Answered:
        end = perf_counter() + 2 * TURN_SECONDS
        while perf_counter() < end:
            pass
        self.order.append(name)
        return reply(name)


def test_a_turn_ends_by_time_and_the_rest_follows_in_order() -> None:
    async def scenario() -> None:
        wire = WireEnd(Slow())
        wire.send(stream(names(5)))
        assert wire.handled == names(1)
        assert wire.replies == names(1), "what is done leaves before the next turn"
        assert wire.is_paused
        await turns(30)
        assert wire.replies == names(5)
        assert not wire.is_paused

    run(scenario())


def test_connections_with_many_requests_have_their_turns_by_turns() -> None:
    async def scenario() -> None:
        slow, line = Slow(), Turns()
        ends = [WireEnd(slow, line=line) for _ in range(3)]
        for letter, end in zip(b"abc", ends, strict=True):
            end.send(stream([bytes([letter]) * 8] * 3))
        await turns(60)
        assert bytes(name[0] for name in slow.order) == b"abcabcabc"

    run(scenario())


def test_one_request_alone_does_not_wait_behind_long_queues() -> None:
    async def scenario() -> None:
        line = Turns()
        busy, alone = WireEnd(Slow(), line=line), WireEnd(reply, line=line)
        busy.send(stream(names(50)))
        alone.send(request(b"just one"))
        assert alone.replies == [b"just one"]
        assert len(busy.handled) == 1

    run(scenario())


def test_requests_of_a_client_that_has_gone_are_not_worked_off() -> None:
    async def scenario() -> None:
        slow = Slow()
        async with listening(slow) as listener:
            client = await connect(listener)
            await asyncio.get_running_loop().sock_sendall(client, stream(names(1_000)))
            await wait_until(lambda: len(slow.order) > 0)
            client.close()
            await wait_until(lambda: not listener.connection_count)
        assert len(slow.order) < 100

    run(scenario())


def test_two_requests_that_announce_much_and_send_little_do_not_stop_others() -> None:
    async def scenario() -> None:
        budget = ReceiveBudget(2 * BUFFER_BYTES)
        slow = [WireEnd(lambda _name: None, budget=budget) for _ in range(2)]
        for wire in slow:
            wire.send(request(bytes(FRAME_BYTES_MAX))[:100_000])
        other = WireEnd(lambda name: reply(name[:8]), budget=budget)
        other.send(request(b"a" * 500_000)[:200_000])
        other.send(request(b"a" * 500_000)[200_000:])
        await turns()
        assert other.replies == [b"a" * 8]

    run(scenario())


def test_a_half_sent_request_is_told_from_one_that_waits_for_the_broker() -> None:
    async def scenario() -> None:
        promises = Promises()
        wire = WireEnd(promises, in_flight_max=1)
        wire.send(request(b"a request")[:6])
        assert wire.connection.is_mid_request
        wire.send(request(b"a request")[6:] + request(b"the second"))
        assert not wire.connection.is_mid_request, "it is the broker that does not go on"
        promises.keep(b"a request")
        await turns()
        promises.keep(b"the second")
        await turns()
        assert frames_in(b"".join(wire.writes)) == [b"a request", b"the second"]

    run(scenario())
