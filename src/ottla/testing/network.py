"""The network of a local cluster: every connection passes a relay here, and can be disturbed.

Each broker and each ZooKeeper server has an address in this network beside its real one. A broker
advertises the former, so that clients and other brokers come through here. Who opened a connection
is read from the kernel (`network_source`); whoever is no broker is a client. ZooKeeper's servers
speak to each other directly.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any, Final, TypeVar

from ottla.testing import network_source
from ottla.testing.network_relay import Relay, Way

Node = int | str
"""A broker by its number, or one of the two names below."""
CLIENTS: Final = "clients"
ZOOKEEPER: Final = "zookeeper"
HOST: Final = "127.0.0.1"
CONNECT_SECONDS_MAX: Final = 10.0

T = TypeVar("T")


class Network:
    """Relays in a thread of their own, and the switches between each two nodes."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="ottla-test-network", daemon=True
        )
        self._servers: list[asyncio.Server] = []
        self._process_ids: dict[int, int] = {}
        self._ways: dict[tuple[Node, Node], Way] = {}
        self._relays: dict[Relay, frozenset[Node]] = {}
        self._refused: set[frozenset[Node]] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Ends every connection and the thread."""
        if self._loop.is_closed():
            return
        if self._thread.is_alive():
            self._run(self._close())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        self._loop.close()

    def address_of(self, node: Node, port: int, *, caller: Node | None = None) -> str:
        """A new address that leads to this port of a node, for one caller or for whoever comes."""
        return f"{HOST}:{self._run(self._listen(node, port, caller))}"

    def know(self, broker: int, process_id: int) -> None:
        """From now on connections of this process are the broker's."""
        self._loop.call_soon_threadsafe(self._process_ids.__setitem__, broker, process_id)

    def hold(self, sender: Node, receiver: Node) -> None:
        """Nothing that one sends reaches the other; connections stay open, new ones seem to be."""
        self._run(self._set_flowing(sender, receiver, is_flowing=False))

    def cut(self, one: Node, other: Node) -> None:
        """Connections between the two break, and new ones are closed at once."""
        self._run(self._cut(frozenset((one, other))))

    def delay(self, sender: Node, receiver: Node, seconds: float) -> None:
        """What one sends to the other arrives so much later, in order."""
        self._run(self._set_delay(sender, receiver, seconds))

    def partition(self, groups: Sequence[Iterable[Node]], *, breaks: bool = False) -> None:
        """Nodes of different groups do not reach each other; those in no group reach everybody."""
        sides = [tuple(group) for group in groups]
        for index, side in enumerate(sides):
            for other_side in sides[index + 1 :]:
                for one in side:
                    for other in other_side:
                        self._separate(one, other, breaks=breaks)

    def heal(self) -> None:
        """Everything gets through again, also what was held back."""
        self._run(self._heal())

    def _separate(self, one: Node, other: Node, *, breaks: bool) -> None:
        if breaks:
            self.cut(one, other)
        else:
            self.hold(one, other)
            self.hold(other, one)

    # --- in the thread of the loop

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def _way(self, sender: Node, receiver: Node) -> Way:
        return self._ways.setdefault((sender, receiver), Way())

    async def _set_flowing(self, sender: Node, receiver: Node, *, is_flowing: bool) -> None:
        flowing = self._way(sender, receiver).flowing
        flowing.set() if is_flowing else flowing.clear()

    async def _set_delay(self, sender: Node, receiver: Node, seconds: float) -> None:
        self._way(sender, receiver).delay_seconds = seconds

    async def _cut(self, pair: frozenset[Node]) -> None:
        self._refused.add(pair)
        for relay, nodes in tuple(self._relays.items()):
            if nodes == pair:
                relay.abort()

    async def _heal(self) -> None:
        self._refused.clear()
        for way in self._ways.values():
            way.delay_seconds = 0.0
            way.flowing.set()

    async def _close(self) -> None:
        for server in self._servers:
            server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _listen(self, node: Node, port: int, caller: Node | None) -> int:
        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            source = self._caller_of(writer) if caller is None else caller
            await self._carry((reader, writer), (source, node), port)

        server = await asyncio.start_server(accept, HOST, 0)
        self._servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    def _caller_of(self, writer: asyncio.StreamWriter) -> Node:
        ours, theirs = (writer.get_extra_info(name) for name in ("sockname", "peername"))
        if theirs is None or not network_source.is_available():
            return CLIENTS
        brokers = {process_id: broker for broker, process_id in self._process_ids.items()}
        return brokers.get(network_source.opener(ours, theirs, brokers), CLIENTS)

    async def _carry(
        self,
        caller: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        nodes: tuple[Node, Node],
        port: int,
    ) -> None:
        source, node = nodes
        pair = frozenset(nodes)
        there, back = self._way(source, node), self._way(node, source)
        relay: Relay | None = None
        try:
            await there.flowing.wait()
            if pair in self._refused:
                return
            target = await asyncio.wait_for(
                asyncio.open_connection(HOST, port), CONNECT_SECONDS_MAX
            )
            relay = Relay(caller, target)
            self._relays[relay] = pair
            await relay.run(there, back)
        except (OSError, TimeoutError):
            pass  # Nobody is there, as the caller will notice.
        except asyncio.CancelledError:
            if relay is not None:
                relay.abort()
            raise
        finally:
            caller[1].close()
            if relay is not None:
                del self._relays[relay]
