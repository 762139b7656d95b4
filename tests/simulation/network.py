"""Connections between machines, in memory: late, cut, one-way, half-open, but never out of order.

A connection is two pipes. A pipe whose way is blocked keeps what was sent, as TCP does by sending
again, and delivers it when the way is free. A killed process's connections are reset by its
machine; a machine without power says nothing, and answers with a reset once it has power again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any, Final
from zlib import crc32

from simulation.loop import KERNEL, PROCESS, Process, SimulatedLoop
from simulation.trace import Trace

KERNEL_BUFFER_BYTES: Final = 256 * 1024
CONNECT_AGAIN_SECONDS: Final = 1.0
FIRST_PORT: Final = 40_000

_OPENED: Final = "opened"
_END: Final = "end"
_RESET: Final = "reset"
Item = bytes | str


class Pipe:
    """One direction of a connection."""

    def __init__(self, network: Network, source: str, target: Transport) -> None:
        self._network = network
        self._source = source
        self._target = target
        self._items: deque[Item] = deque()
        self._last_due = 0.0
        self.is_blocked = False
        self.in_flight_bytes = 0

    @property
    def way(self) -> tuple[str, str]:
        return self._source, self._target.process.machine

    def send(self, item: Item) -> None:
        self._items.append(item)
        if isinstance(item, bytes):
            self.in_flight_bytes += len(item)
        if len(self._items) == 1:
            self.schedule()

    def schedule(self) -> None:
        """The first item sets out, or sets out again."""
        network = self._network
        self._last_due = max(self._last_due, network.loop.time() + network.delay(self.way))
        network.loop.call_at(self._last_due, self._arrive, context=KERNEL)

    def _arrive(self) -> None:
        network = self._network
        if network.is_blocked(*self.way):
            network.keep(self)
            return
        item = self._items.popleft()
        network.trace.add(network.loop.time(), *self.way, crc32(item) if _is_data(item) else item)
        if isinstance(item, bytes):
            self.in_flight_bytes -= len(item)
        self._target.arrived(item)
        if self._items:
            self.schedule()


def _is_data(item: Item) -> bool:
    return isinstance(item, bytes)


class Transport(asyncio.Transport):
    """One end of a connection, as asyncio's protocols see it."""

    def __init__(self, network: Network, process: Process, names: tuple[Any, Any]) -> None:
        super().__init__({"sockname": names[0], "peername": names[1]})
        self._network = network
        self.process = process
        self.pipe: Pipe = None  # type: ignore[assignment] - set when both ends are there
        self._protocol: Any = None
        self._received = bytearray()
        self._is_ended = False
        self._is_reading = True
        self._is_closing = False
        self._is_gone = False
        self._reads = False
        self._is_writing_paused = False
        self._high_bytes = 64 * 1024
        self.on_open: Callable[[Transport], None] | None = None

    def __repr__(self) -> str:
        return f"<Transport {self.get_extra_info('sockname')}>"

    # --- asyncio's side ---

    def begin(self, protocol: Any) -> None:
        self._protocol = protocol
        self._network.transports[self] = None
        protocol.connection_made(self)
        self._read_soon()

    def get_protocol(self) -> Any:
        return self._protocol

    def is_closing(self) -> bool:
        return self._is_closing

    def is_reading(self) -> bool:
        return self._is_reading

    def pause_reading(self) -> None:
        self._is_reading = False

    def resume_reading(self) -> None:
        self._is_reading = True
        self._read_soon()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        del low
        self._high_bytes = 64 * 1024 if high is None else high

    def get_write_buffer_size(self) -> int:
        return max(0, self.pipe.in_flight_bytes - KERNEL_BUFFER_BYTES)

    def write(self, data: Any) -> None:
        if self._is_closing or not data:
            return
        self.pipe.send(bytes(data))
        if not self._is_writing_paused and self.get_write_buffer_size() > self._high_bytes:
            self._is_writing_paused = True
            self._protocol.pause_writing()

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(list_of_data))

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            self.pipe.send(_END)
            self._soon(self._lose, None)

    def abort(self) -> None:
        if not self._is_gone:
            self._is_closing = True
            self.pipe.send(_RESET)
            self._soon(self._lose, None)

    # --- the network's side ---

    def arrived(self, item: Item) -> None:
        """Something came in at this end's machine."""
        if self.process.is_dead or self._is_gone:
            if item != _RESET and self._network.is_on(self.process.machine):
                self.pipe.send(_RESET)
        elif item == _OPENED:
            assert self.on_open is not None
            self.on_open(self)
        elif item == _RESET:
            self._is_closing = True
            self._soon(self._lose, ConnectionResetError(104, "Connection reset by peer"))
        else:
            if isinstance(item, bytes):
                self._received += item
            else:
                self._is_ended = True
            self._read_soon()

    def sent_some(self) -> None:
        """The other end's machine has taken some of what was written."""
        if self._is_writing_paused and not self.get_write_buffer_size():
            self._is_writing_paused = False
            self._soon(self._protocol.resume_writing)

    def reset_by_machine(self) -> None:
        """The process died; its machine tells the other end."""
        self.pipe.send(_RESET)

    def _soon(self, callback: Callable[..., Any], *args: Any) -> None:
        self._network.loop.call_soon(callback, *args, context=self.process.context)

    def _read_soon(self) -> None:
        if not self._reads and self._is_reading and self._protocol is not None:
            self._reads = True
            self._soon(self._read)

    def _read(self) -> None:
        self._reads = False
        if self._is_closing or not self._is_reading:
            return
        if self._received:
            buffer = self._protocol.get_buffer(-1)
            count = min(len(buffer), len(self._received))
            buffer[:count] = self._received[:count]
            del self._received[:count]
            self._protocol.buffer_updated(count)
            self._network.other_end(self).sent_some()
        elif self._is_ended:
            if not self._protocol.eof_received():
                self.close()
            return
        if self._received or self._is_ended:
            self._read_soon()

    def _lose(self, error: Exception | None) -> None:
        if self._is_gone:
            return
        self._is_gone = True
        self._network.transports.pop(self, None)
        if self._protocol is not None:
            self._protocol.connection_lost(error)


class Server:
    """A port that accepts connections."""

    def __init__(self, network: Network, process: Process, port: int, factory: Any) -> None:
        self._network = network
        self.process = process
        self.port = port
        self._factory = factory
        self.sockets = (self,)

    def getsockname(self) -> tuple[str, int]:
        return self.process.machine, self.port

    def close(self) -> None:
        self._network.shut(self)

    def accept(self, transport: Transport) -> None:
        transport.begin(self._factory())


class Network:
    """All machines and the ways between them."""

    def __init__(self, loop: SimulatedLoop, chance: Random, trace: Trace) -> None:
        self.loop = loop
        self.trace = trace
        self.transports: dict[Transport, None] = {}
        self.delay_seconds = (0.00005, 0.002)
        self.slow: dict[str, float] = {}
        """Seconds more that each message to or from a machine takes, at most."""
        self._chance = chance
        self._servers: dict[tuple[str, int], Server] = {}
        self._blocked: dict[tuple[str, str], None] = {}
        self._off: dict[str, None] = {}
        self._kept: dict[Pipe, None] = {}
        self._ends: dict[Transport, Transport] = {}
        self._next_port = FIRST_PORT

    # --- what goes wrong ---

    def block(self, source: str, target: str) -> None:
        """Nothing gets from one machine to the other."""
        self._blocked[source, target] = None

    def heal(self) -> None:
        """Everything gets everywhere again."""
        self._blocked.clear()
        self.slow.clear()
        kept, self._kept = self._kept, {}
        for pipe in kept:
            pipe.schedule()

    def kill(self, process: Process) -> None:
        """A process is dead; its machine closes its ports and resets its connections."""
        self._shut_ports(process)
        for transport in tuple(self.transports):
            if transport.process is process:
                del self.transports[transport]
                transport.reset_by_machine()

    def switch_off(self, process: Process) -> None:
        """The machine of a process has no power."""
        self._off[process.machine] = None
        self._shut_ports(process)

    def switch_on(self, machine: str) -> None:
        self._off.pop(machine, None)

    def cut_connections(self, machine: str, count: int) -> None:
        """Some connections of a machine are reset by something on the way."""
        own = [each for each in self.transports if each.process.machine == machine]
        for transport in self._chance.sample(own, min(count, len(own))):
            other = self._ends[transport]
            transport.arrived(_RESET)
            other.arrived(_RESET)

    # --- what is asked ---

    def is_on(self, machine: str) -> bool:
        return machine not in self._off

    def is_blocked(self, source: str, target: str) -> bool:
        return (source, target) in self._blocked

    def delay(self, way: tuple[str, str]) -> float:
        least, most = self.delay_seconds
        seconds = least + (most - least) * self._chance.random() ** 4
        for machine in way:
            if machine in self.slow:
                seconds += self.slow[machine] * self._chance.random()
        return seconds

    def keep(self, pipe: Pipe) -> None:
        self._kept[pipe] = None

    def other_end(self, transport: Transport) -> Transport:
        return self._ends[transport]

    def listen(self, factory: Any, host: str | None, port: int) -> Server:
        process = PROCESS.get()
        assert process is not None, "only a process listens"
        del host
        if (process.machine, port) in self._servers:
            raise OSError(98, "Address already in use")
        server = Server(self, process, port, factory)
        self._servers[process.machine, port] = server
        return server

    def shut(self, server: Server) -> None:
        self._servers.pop((server.process.machine, server.port), None)

    def _shut_ports(self, process: Process) -> None:
        for server in tuple(self._servers.values()):
            if server.process is process:
                self.shut(server)

    async def connect(self, factory: Any, host: str, port: int) -> tuple[Transport, Any]:
        process = PROCESS.get()
        assert process is not None, "only a process connects"
        self._next_port += 1
        attempt = _Attempt(self, process, (host, port), self._next_port)
        try:
            transport = await attempt.opened
        except BaseException:
            attempt.is_abandoned = True
            raise
        protocol = factory()
        transport.begin(protocol)
        return transport, protocol

    def server_at(self, address: tuple[str, int]) -> Server | None:
        return self._servers.get(address)

    def join(self, one: Transport, other: Transport) -> None:
        """Two ends become a connection."""
        one.pipe = Pipe(self, one.process.machine, other)
        other.pipe = Pipe(self, other.process.machine, one)
        self._ends[one], self._ends[other] = other, one


class _Attempt:
    """A connection being opened; sent again for as long as nobody answers."""

    def __init__(
        self, network: Network, process: Process, address: tuple[str, int], port: int
    ) -> None:
        self._network = network
        self._process = process
        self._address = address
        self._own = (process.machine, port)
        self.is_abandoned = False
        self.opened: asyncio.Future[Transport] = network.loop.create_future()
        self._send(0.0)

    def _send(self, wait_seconds: float) -> None:
        loop, way = self._network.loop, (self._process.machine, self._address[0])
        due = loop.time() + wait_seconds + self._network.delay(way)
        loop.call_at(due, self._knock, context=KERNEL)

    def _knock(self) -> None:
        network, target = self._network, self._address[0]
        if self.is_abandoned or self._process.is_dead:
            return
        if network.is_blocked(self._process.machine, target) or not network.is_on(target):
            self._send(CONNECT_AGAIN_SECONDS)
            return
        server = network.server_at(self._address)
        if server is None:
            if not self.opened.done():
                self.opened.set_exception(ConnectionRefusedError(111, "Connection refused"))
            return
        near = Transport(network, self._process, (self._own, self._address))
        far = Transport(network, server.process, (self._address, self._own))
        network.join(near, far)
        near.on_open = self._open
        network.loop.call_soon(server.accept, far, context=server.process.context)
        far.pipe.send(_OPENED)

    def _open(self, transport: Transport) -> None:
        if self.is_abandoned or self.opened.done():
            transport.pipe.send(_RESET)
        else:
            self.opened.set_result(transport)
