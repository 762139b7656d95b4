"""The events of the demonstration: cafés around the world, and what people order there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Final

WINDOW_MS: Final = 10_000
"""The pipeline's windows."""


@dataclass(frozen=True, slots=True)
class Cafe:
    """A row of the table that orders are joined with; its key is the city in small letters."""

    city: str
    country: str
    barista: str


CAFES: Final[Mapping[str, Cafe]] = {
    cafe.city.lower(): cafe
    for cafe in (
        Cafe("Oslo", "Norway", "Ingrid"),
        Cafe("Lima", "Peru", "Mateo"),
        Cafe("Kyoto", "Japan", "Haruka"),
        Cafe("Cairo", "Egypt", "Salma"),
        Cafe("Perth", "Australia", "Jack"),
        Cafe("Quito", "Ecuador", "Lucía"),
    )
}
BUSY: Final = (5, 2, 4, 3, 1, 2)
"""How much is ordered in each."""
MENU: Final[Mapping[str, float]] = {
    "espresso": 2.4,
    "flat white": 3.9,
    "filter coffee": 2.8,
    "green tea": 3.1,
    "cinnamon bun": 3.5,
    "cheesecake": 4.8,
}


@dataclass(frozen=True, slots=True)
class Order:
    """Something ordered in a café; the record's key is the café."""

    order: int
    item: str
    price: float


@dataclass(frozen=True, slots=True)
class Served:
    """An order joined with its café, as the pipeline writes it."""

    order: int
    item: str
    price: float
    city: str
    country: str
    barista: str


@dataclass(frozen=True, slots=True)
class WindowCount:
    """How many orders a café has had in a window so far, as the pipeline writes it."""

    from_ms: int
    orders: int


def orders(random: Random) -> Iterator[tuple[str, Order]]:
    """Orders without end, each with its café's key."""
    number = 0
    names = list(CAFES)
    items = list(MENU)
    while True:
        number += 1
        (name,) = random.choices(names, BUSY)
        item = random.choice(items)
        yield name, Order(number, item, MENU[item])


def served(name: str, order: Order) -> Served:
    """What the join must give for an order."""
    cafe = CAFES[name]
    return Served(order.order, order.item, order.price, cafe.city, cafe.country, cafe.barista)


def window_of(timestamp_ms: int) -> int:
    """The start of the window a moment is in."""
    return timestamp_ms - timestamp_ms % WINDOW_MS
