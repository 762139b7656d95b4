"""Runs of files among bytes arrive in order, from a cold disk and to a slow reader too."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import threading

import pytest

from ottla.model.file_region import FileRegion
from ottla.net import file_sender, reply_sender
from ottla.net.file_sender import TURN_BYTES_MAX
from ottla.net.reply_sender import COPIED_BYTES_MAX
from ottla.net.residency import warm
from unit.net.running import run, turns
from unit.net.served import (
    SMALL_BUFFER,
    DataFile,
    connect,
    listening,
    receive,
    wait_until,
    with_regions,
)
from unit.net.wire_end import Answered, reply, request

MEGABYTE = 1 << 20


def let_disk_be_cold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of a file is in memory, until it was read."""
    monkeypatch.setattr(reply_sender, "is_resident", lambda _region: False)
    monkeypatch.setattr(reply_sender, "read_resident", lambda _region: None)


def mixed_replies(file: DataFile) -> tuple[dict[bytes, Answered], bytes]:
    """Replies of several shapes by the name of their request, and the stream they make."""
    regions = [(0, 10), (100_000, 3 * MEGABYTE), (7, 1), (MEGABYTE, 4 * MEGABYTE), (5, 70_000)]
    a, b, c, d, e = (file.region(*place) for place in regions)
    replies: dict[bytes, Answered] = {
        b"request5": with_regions(bytes(3 * MEGABYTE), a, bytes(3 * MEGABYTE), c),
        b"request0": reply(b"bytes alone"),
        b"request1": with_regions(b"head", a, b"between", b, b"tail"),
        b"request2": with_regions(c, d),
        b"request3": reply(b"more bytes"),
        b"request4": with_regions(b"only a head", e),
    }
    held = [file.data[place : place + size] for place, size in regions]
    stream = b"".join(
        struct.pack(">i", len(body)) + body
        for body in (
            bytes(3 * MEGABYTE) + held[0] + bytes(3 * MEGABYTE) + held[2],
            b"bytes alone",
            b"head" + held[0] + b"between" + held[1] + b"tail",
            held[2] + held[3],
            b"more bytes",
            b"only a head" + held[4],
        )
    )
    return replies, stream


async def exchange(file: DataFile, *, buffer_bytes: int | None, at_a_time: int) -> None:
    replies, expected = mixed_replies(file)
    async with listening(replies.__getitem__) as listener:
        client = await connect(listener, buffer_bytes=buffer_bytes)
        with client:
            await asyncio.get_running_loop().sock_sendall(client, b"".join(map(request, replies)))
            assert await receive(client, len(expected), at_a_time=at_a_time) == expected
            # The connection is whole after it: the next request is answered.
            await asyncio.get_running_loop().sock_sendall(client, request(b"request3"))
            assert await receive(client, 14) == request(b"more bytes")


def test_bytes_and_runs_of_files_arrive_in_order(data_file: DataFile) -> None:
    run(exchange(data_file, buffer_bytes=None, at_a_time=MEGABYTE))


def test_the_head_of_a_reply_shares_packets_with_the_run_behind_it(
    data_file: DataFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead: list[bytes] = []
    really_send = file_sender.FileSender.send_ahead

    def send_ahead(sender: file_sender.FileSender, data: bytes) -> int:
        ahead.append(bytes(data))
        return really_send(sender, data[: len(data) // 2])  # the rest must follow even so

    monkeypatch.setattr(file_sender.FileSender, "send_ahead", send_ahead)
    size, end = MEGABYTE // 8, MEGABYTE // 4
    parts = (b"head", data_file.region(0, size), b"between", data_file.region(size, size), b"tail")
    expected = b"head" + data_file.data[:size] + b"between" + data_file.data[size:end] + b"tail"
    answers: dict[bytes, Answered] = {
        b"the file": with_regions(*parts),
        b"the text": reply(b"a text"),
    }

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        async with listening(answers.__getitem__) as listener:
            with await connect(listener) as client:
                await loop.sock_sendall(client, request(b"the file"))
                assert await receive(client, 4 + len(expected)) == request(expected)
                assert ahead == [request(expected)[:8], b"between"]
                await loop.sock_sendall(client, request(b"the text") + request(b"the file"))
                both = request(b"a text") + request(expected)
                assert await receive(client, len(both)) == both
                assert ahead[2:] == [b"between"], "no other reply is kept back for a run"

    run(scenario())


def test_a_short_run_leaves_with_its_reply_in_one_write(
    data_file: DataFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_sender.os, "sendfile", None)  # a call would fail
    longest = data_file.region(3, COPIED_BYTES_MAX)
    held = data_file.data[3 : 3 + COPIED_BYTES_MAX]

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        async with listening(lambda _name: with_regions(b"head", longest, b"tail")) as listener:
            with await connect(listener) as client:
                await loop.sock_sendall(client, request(b"the run please") * 3)
                expected = request(b"head" + held + b"tail") * 3
                assert await receive(client, len(expected)) == expected

    run(scenario())


def test_short_runs_that_a_client_does_not_read_are_not_piled_up(data_file: DataFile) -> None:
    count = 1000
    answered: list[bytes] = []
    run_of_it = data_file.region(0, COPIED_BYTES_MAX)

    def answer(name: bytes) -> Answered:
        answered.append(name)
        return with_regions(run_of_it)

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        async with listening(answer) as listener:
            with await connect(listener, buffer_bytes=SMALL_BUFFER) as client:
                await loop.sock_sendall(client, request(b"the run please") * count)
                await wait_until(lambda: bool(answered))
                await turns(100)
                assert len(answered) < count // 2, "what the kernel takes, and a megabyte"
                expected = request(data_file.data[:COPIED_BYTES_MAX]) * count
                assert await receive(client, len(expected)) == expected
                assert len(answered) == count

    run(scenario())


def test_a_slow_reader_gets_megabytes_of_a_file_whole(data_file: DataFile) -> None:
    run(exchange(data_file, buffer_bytes=SMALL_BUFFER, at_a_time=20_000))


def test_runs_of_files_arrive_where_there_is_no_sendfile(
    data_file: DataFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reply_sender, "HAS_SENDFILE", False)
    run(exchange(data_file, buffer_bytes=SMALL_BUFFER, at_a_time=50_000))


def test_what_is_not_in_memory_is_read_in_a_thread_before_it_is_sent(
    data_file: DataFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    warmed: list[tuple[FileRegion, int]] = []

    def note(region: FileRegion) -> None:
        warmed.append((region, threading.get_ident()))
        warm(region)

    let_disk_be_cold(monkeypatch)
    monkeypatch.setattr(reply_sender, "warm", note)
    run(exchange(data_file, buffer_bytes=None, at_a_time=MEGABYTE))
    assert len(warmed) == 7, "each run once"
    assert threading.get_ident() not in {thread for _, thread in warmed}


def test_other_clients_are_served_while_a_cold_run_is_read(
    data_file: DataFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_reading, disk_goes_on = threading.Event(), threading.Event()

    def read_slowly(_region: FileRegion) -> None:
        is_reading.set()
        disk_goes_on.wait(20)

    let_disk_be_cold(monkeypatch)
    monkeypatch.setattr(reply_sender, "warm", read_slowly)
    answers: dict[bytes, Answered] = {
        b"the cold": with_regions(data_file.region(0, 100)),
        b"the warm": reply(b"at once"),
    }

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        async with listening(answers.__getitem__) as listener:
            with await connect(listener) as cold, await connect(listener) as other:
                await loop.sock_sendall(cold, request(b"the cold"))
                await wait_until(is_reading.is_set)
                await loop.sock_sendall(cold, request(b"the warm"))
                await loop.sock_sendall(other, request(b"the warm"))
                assert await receive(other, 11) == request(b"at once")
                disk_goes_on.set()
                expected = request(data_file.data[:100]) + request(b"at once")
                assert await receive(cold, len(expected)) == expected

    run(scenario())


def test_a_client_that_vanishes_while_its_run_is_read_harms_nobody(
    data_file: DataFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_reading, disk_goes_on = threading.Event(), threading.Event()

    def read_slowly(_region: FileRegion) -> None:
        is_reading.set()
        disk_goes_on.wait(20)

    let_disk_be_cold(monkeypatch)
    monkeypatch.setattr(reply_sender, "warm", read_slowly)

    async def scenario() -> None:
        async with listening(lambda _name: with_regions(data_file.region(0, 9))) as listener:
            with await connect(listener) as client:
                await asyncio.get_running_loop().sock_sendall(client, request(b"the cold"))
                await wait_until(is_reading.is_set)
            await wait_until(lambda: listener.connection_count == 0)
            disk_goes_on.set()

    run(scenario())


def test_a_peer_that_resets_in_the_middle_of_a_run_frees_all_it_had(data_file: DataFile) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        before = len(os.listdir("/proc/self/fd"))

        def answer(name: bytes) -> Answered:
            if name == b"the file":
                return with_regions(data_file.region(0, 5 * MEGABYTE))
            return reply(name)

        async with listening(answer) as listener:
            client = await connect(listener, buffer_bytes=SMALL_BUFFER)
            await loop.sock_sendall(client, request(b"the file"))
            await receive(client, 10_000)
            reset = struct.pack("ii", 1, 0)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
            client.close()
            await wait_until(lambda: listener.connection_count == 0)
            with await connect(listener) as other:
                await loop.sock_sendall(other, request(b"a request"))
                assert await receive(other, 13) == request(b"a request")
            await wait_until(lambda: listener.connection_count == 0)
            listening_now = 1
            await wait_until(lambda: len(os.listdir("/proc/self/fd")) <= before + listening_now)

    run(scenario())


@pytest.mark.parametrize("has_sendfile", [True, False])
def test_a_file_that_ends_inside_a_run_ends_the_connection(
    data_file: DataFile, monkeypatch: pytest.MonkeyPatch, has_sendfile: bool
) -> None:
    monkeypatch.setattr(reply_sender, "HAS_SENDFILE", has_sendfile)
    beyond = data_file.region(5 * MEGABYTE - 100, 200)

    async def scenario() -> None:
        async with listening(lambda _name: with_regions(b"head", beyond, b"tail")) as listener:
            with await connect(listener) as client:
                await asyncio.get_running_loop().sock_sendall(client, request(b"the file"))
                try:
                    received = await receive(client, 1000)
                except ConnectionResetError:
                    received = b""
                assert len(received) <= 108, "nothing may follow where bytes are missing"
            await wait_until(lambda: listener.connection_count == 0)

    run(scenario())


def test_a_fast_reader_of_a_large_run_gives_way_after_each_turn(
    data_file: DataFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[int] = []

    def sendfile(_out: int, _in: int, _position: int, wanted: int) -> int:
        sent.append(wanted)
        return wanted

    class Loop:
        """A loop that a writer is never ready on."""

        def add_writer(self, _descriptor: int, _resume: object) -> None: ...

        def remove_writer(self, _descriptor: int) -> None: ...

    monkeypatch.setattr(file_sender.os, "sendfile", sendfile)
    with socket.socket() as connected:
        sender = file_sender.FileSender(Loop(), connected)  # type: ignore[arg-type]
        assert not sender.send(data_file.region(0, 5 * MEGABYTE))
        assert sum(sent) == TURN_BYTES_MAX
        assert sender.is_busy
        assert not sender.advance()
        assert sender.advance()
        assert sum(sent) == 5 * MEGABYTE
        assert not sender.is_busy
        sender.close()
