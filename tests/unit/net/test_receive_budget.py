"""Large requests wait in line for memory, and nobody waits for ever."""

from ottla.net.receive_budget import ReceiveBudget


def test_bytes_are_reserved_up_to_the_limit() -> None:
    budget = ReceiveBudget(100)
    assert budget.reserve(60)
    assert budget.reserve(40)
    assert not budget.reserve(1)


def test_one_frame_larger_than_the_limit_is_let_in_when_nothing_else_is() -> None:
    budget = ReceiveBudget(100)
    assert budget.reserve(500)
    assert not budget.reserve(1)


def test_who_waits_is_let_in_in_order_as_room_comes_back() -> None:
    budget = ReceiveBudget(100)
    let_in: list[str] = []
    assert budget.reserve(90)
    budget.wait(50, lambda: let_in.append("first"))
    budget.wait(60, lambda: let_in.append("second"))
    assert not budget.reserve(5), "nobody overtakes the line"
    budget.release(90)
    assert let_in == ["first"]
    budget.release(50)
    assert let_in == ["first", "second"]
    assert budget.reserved_bytes == 60


def test_who_gives_up_its_place_is_not_let_in() -> None:
    budget = ReceiveBudget(100)
    let_in: list[str] = []

    def first() -> None:
        let_in.append("first")

    assert budget.reserve(100)
    budget.wait(10, first)
    budget.wait(20, lambda: let_in.append("second"))
    budget.leave(first)
    budget.release(100)
    assert let_in == ["second"]
