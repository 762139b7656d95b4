"""Large requests wait in line for memory, and nobody waits for ever."""

from __future__ import annotations

from ottla.net.receive_budget import ReceiveBudget, Room
from ottla.net.receive_buffers import BUFFER_BYTES

LONG = BUFFER_BYTES + 1


class Line:
    """Makes room for requests and notes who was let in after a wait."""

    def __init__(self) -> None:
        self.let_in: list[str] = []

    def room(self, name: str = "", request_bytes: int = 1) -> Room:
        return Room(request_bytes, lambda: self.let_in.append(name))


def test_bytes_are_reserved_up_to_the_limit() -> None:
    budget, line = ReceiveBudget(100), Line()
    assert budget.reserve(line.room(), 60)
    assert budget.reserve(line.room(), 40)
    assert not budget.is_waited_for
    assert not budget.reserve(line.room(), 1)
    assert budget.is_waited_for


def test_one_request_larger_than_the_limit_is_let_in_when_nothing_else_is() -> None:
    budget, line = ReceiveBudget(100), Line()
    assert budget.reserve(line.room(), 500)
    assert not budget.reserve(line.room(), 1)


def test_who_waits_is_let_in_in_order_as_room_comes_back() -> None:
    budget, line = ReceiveBudget(100), Line()
    holder, first, second = line.room(), line.room("first"), line.room("second")
    assert budget.reserve(holder, 90)
    assert not budget.reserve(first, 50)
    assert not budget.reserve(second, 60)
    assert not budget.reserve(line.room("third"), 5), "nobody overtakes the line"
    budget.release(holder)
    assert line.let_in == ["first"]
    budget.release(first)
    assert line.let_in == ["first", "second", "third"]
    assert budget.reserved_bytes == 65


def test_who_gives_up_its_place_is_not_let_in() -> None:
    budget, line = ReceiveBudget(100), Line()
    holder, first, second = line.room(), line.room("first"), line.room("second")
    assert budget.reserve(holder, 100)
    assert not budget.reserve(first, 10)
    assert not budget.reserve(second, 20)
    budget.release(first)
    budget.release(holder)
    assert line.let_in == ["second"]


def test_long_requests_leave_a_part_to_those_of_the_usual_size() -> None:
    budget, line = ReceiveBudget(100), Line()
    assert budget.reserve(line.room("long", LONG), 70)
    assert not budget.reserve(line.room("another", LONG), 10)
    assert budget.reserve(line.room(), 25), "it does not wait behind the long one"


def test_the_first_of_the_long_requests_can_always_go_on() -> None:
    budget, line = ReceiveBudget(100), Line()
    first, second = line.room("first", LONG), line.room("second", LONG)
    assert budget.reserve(first, 35)
    assert budget.reserve(second, 35)
    assert not budget.reserve(second, 30)
    assert budget.reserve(first, 30), "else both would wait for ever"
    budget.release(first)
    assert line.let_in == ["second"]
    assert budget.reserved_bytes == 65
    budget.release(second)
    assert budget.reserved_bytes == 0
