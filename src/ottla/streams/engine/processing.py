"""Processors of the user's own: what they may ask of the task, and their timers.

A timer remembers when it is due in the task's numbers, by node and order of `schedule` calls, so
that a task that is put together anew goes on where the last one ended.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from ottla.streams.engine.progress import Cell
from ottla.streams.engine.records import Headers, Record
from ottla.streams.engine.wiring import Forward, Wiring
from ottla.streams.failures import TopologyError
from ottla.streams.operators import Process
from ottla.streams.windows import Duration, milliseconds

By = Literal["stream-time", "wall-clock"]


@dataclass(slots=True)
class Timer:
    """Calls back again and again. Missed times are made up for by one call."""

    interval_ms: int
    by: By
    callback: Callable[[int], Any]
    due: Cell
    cancelled: bool = False

    def cancel(self) -> None:
        self.cancelled = True

    def fire_if_due(self, now_ms: int) -> None:
        if self.by == "wall-clock" and self.due.value < 0:
            self.due.value = now_ms + self.interval_ms  # the first time this clock is read
            return
        due_ms = max(0, self.due.value)
        if self.cancelled or now_ms < due_ms:
            return
        self.due.value = due_ms + ((now_ms - due_ms) // self.interval_ms + 1) * self.interval_ms
        self.callback(now_ms)


class ProcessorContext:
    """What a processor may ask and do."""

    __slots__ = ("_keeps_key", "_key", "_timers", "_wiring", "stream_time")

    def __init__(self, wiring: Wiring, timers: list[Timer], *, keeps_key: bool) -> None:
        self._wiring = wiring
        self._timers = timers
        self._keeps_key = keeps_key
        self._key: Any = None
        self.stream_time: Cell = wiring.shared_cell("stream time")

    def forward(self, record: Record, *, to: str | None = None) -> None:
        """Sends a record to all nodes below, or to the one of that name."""
        if record.timestamp_ms < 0:
            raise TopologyError(f"a record cannot be from before 1970: {record.timestamp_ms} ms")
        if self._keeps_key and record.key != self._key:
            raise TopologyError("process_values must not change the key; use process for that")
        forward = self._wiring.forward if to is None else self._child(to)
        forward(record.key, record.value, record.timestamp_ms, record.headers)

    def store(self, name: str) -> Any:
        """A store that was named when the processor was drawn."""
        if name not in self._wiring.node.stores:
            raise TopologyError(
                f"{self._wiring.node.name} was not given the store {name!r}; name it in stores="
            )
        return self._wiring.stores.typed(name)

    def schedule(self, interval: Duration, by: By, callback: Callable[[int], Any]) -> Timer:
        """Calls `callback(now_ms)` every `interval` of stream time or of wall-clock time."""
        if by not in ("stream-time", "wall-clock"):
            raise TopologyError(f'time goes by "stream-time" or by "wall-clock", not by {by!r}')
        interval_ms = milliseconds(interval, "a timer's interval", least=1)
        due = self._wiring.cell(f"timer {len(self._timers)}")
        timer = Timer(interval_ms, by, callback, due)
        self._timers.append(timer)
        return timer

    @property
    def stream_time_ms(self) -> int:
        """The newest timestamp this task has seen; -1 before the first."""
        return self.stream_time.value

    @property
    def wall_clock_ms(self) -> int:
        return self._wiring.state.wall_clock_ms

    @property
    def topic(self) -> str:
        """The topic of the record that is being worked on."""
        return self._wiring.state.topic

    @property
    def partition(self) -> int:
        return self._wiring.state.partition

    @property
    def offset(self) -> int:
        """The offset of the record that is being worked on."""
        return self._wiring.state.offset

    def begin(self, key: Any) -> None:
        """Notes the key that a processor of values must keep."""
        self._key = key

    def _child(self, name: str) -> Forward:
        topology = self._wiring.topology
        names = [node.name for node in topology.nodes if self._wiring.node.name in node.parents]
        if name not in names:
            raise TopologyError(f"{name!r} is not below {self._wiring.node.name}: {names}")
        return self._wiring.children[names.index(name)]


def process(operator: Process, wiring: Wiring, timers: list[Timer]) -> Forward:
    """A class is made anew for each task, a function is called with record and context."""
    context = ProcessorContext(wiring, timers, keeps_key=operator.keeps_key)
    processor = operator.processor
    if isinstance(processor, type):
        made = processor()
        if not callable(getattr(made, "process", None)):
            raise TopologyError(f"{processor.__name__} needs a method process(record)")
        if hasattr(made, "init"):
            made.init(context)
        call: Callable[[Record], Any] = made.process
    else:

        def call(record: Record) -> Any:
            return processor(record, context)

    def processed(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        context.begin(key)
        call(Record(key, value, timestamp_ms, headers))

    return processed
