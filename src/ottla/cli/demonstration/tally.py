"""What was ordered, what the pipeline made of it, and whether that is right. No I/O, no clock."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Final

from ottla.cli.demonstration.cafes import Order, Served, WindowCount, served, window_of

LATEST_KEPT: Final = 6
WINDOWS_KEPT: Final = 3
DELAYS_KEPT: Final = 50
Place = tuple[str, int]
"""A café and the start of a window."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """An order that came out of the join, and how long that took."""

    order: Served
    delay_ms: int


@dataclass(slots=True)
class Tally:
    """Counts of orders, joined rows and window results, and the latest of them."""

    ordered: int = 0
    joined: int = 0
    counted: int = 0
    latest: deque[Arrival] = field(default_factory=lambda: deque(maxlen=LATEST_KEPT))
    delays_ms: deque[int] = field(default_factory=lambda: deque(maxlen=DELAYS_KEPT))
    windows: dict[int, dict[str, int]] = field(default_factory=dict)
    """The orders of each café by the start of the window; of the latest windows."""
    _owed: dict[int, Served] = field(default_factory=dict)
    """What the join has not given yet."""
    _expected: Counter[Place] = field(default_factory=Counter)
    _found: dict[Place, int] = field(default_factory=dict)
    _wrong: list[str] = field(default_factory=list)

    def add_order(self, name: str, order: Order, timestamp_ms: int) -> None:
        """An order is written."""
        self.ordered += 1
        self._owed[order.order] = served(name, order)
        self._expected[name, window_of(timestamp_ms)] += 1

    def add_served(self, row: Served, delay_ms: int) -> None:
        """The join has given a row."""
        self.joined += 1
        self.latest.appendleft(Arrival(row, delay_ms))
        self.delays_ms.append(delay_ms)
        if self._owed.pop(row.order, None) != row:
            self._wrong.append(f"order {row.order} was joined twice or wrongly: {row}")

    def add_count(self, name: str, count: WindowCount) -> None:
        """The window has a new count: each order gives one, one higher than the last."""
        self.counted += 1
        place = (name, count.from_ms)
        before = self._found.get(place, 0)
        if count.orders != before + 1:
            self._wrong.append(f"{name} was counted from {before} to {count.orders}")
        self._found[place] = count.orders
        self.windows.setdefault(count.from_ms, {})[name] = count.orders
        for old in sorted(self.windows)[:-WINDOWS_KEPT]:
            del self.windows[old]

    def forget_before(self, timestamp_ms: int) -> None:
        """Windows that are long over are no longer looked at, so that memory stays small."""
        for place in [each for each in self._expected if each[1] < timestamp_ms]:
            if self._found.get(place) == self._expected[place]:
                del self._expected[place], self._found[place]

    @property
    def is_complete(self) -> bool:
        """Whether every order has been joined and counted."""
        return self.joined >= self.ordered and self.counted >= self.ordered

    def problems(self) -> list[str]:
        """What is not as it must be, once everything has been joined and counted."""
        missing = [f"order {number} was not joined" for number in self._owed]
        miscounted = [
            f"{name} had {count} orders, counted were {self._found.get((name, from_ms), 0)}"
            for (name, from_ms), count in self._expected.items()
            if self._found.get((name, from_ms), 0) != count
        ]
        return [*self._wrong, *missing, *miscounted]
