"""Stores: an overlay over a store is always what a dict would be, in order."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.streams.engine.progress import UNKNOWN, Progress
from ottla.streams.engine.stores import MemoryStore, OverlayStore, SortedKeys, after_prefix

KEYS = st.binary(max_size=2)
ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), KEYS, st.binary(max_size=2)),
        st.tuples(st.just("delete"), KEYS),
        st.tuples(st.just("range"), KEYS, st.none() | KEYS),
        st.tuples(st.just("flush")),
    ),
    max_size=60,
)


@given(ACTIONS)
def test_an_overlay_answers_as_a_dict_would(actions: list[tuple[object, ...]]) -> None:
    below = MemoryStore()
    store, model = OverlayStore(below), dict[bytes, bytes]()
    for action in actions:
        match action:
            case ("put", bytes() as key, bytes() as value):
                store.put(key, value)
                model[key] = value
            case ("delete", bytes() as key):
                store.delete(key)
                model.pop(key, None)
            case ("range", bytes() as start, end):
                expected = [
                    (key, model[key])
                    for key in sorted(model)
                    if key >= start and (end is None or key < end)  # type: ignore[operator]
                ]
                assert list(store.range(start, end)) == expected  # type: ignore[arg-type]
            case _:
                store.flush()
                assert not store.changes
                assert dict(below.range(b"", None)) == model
        assert all(store.get(key) == value for key, value in model.items())
    assert dict(store.range(b"", None)) == model


def test_nothing_reaches_the_store_below_before_the_batch_ends() -> None:
    below = MemoryStore()
    store = OverlayStore(below)
    store.put(b"a", b"1")
    assert below.get(b"a") is None
    store.flush()
    assert below.get(b"a") == b"1"


def test_only_what_changed_is_written_down() -> None:
    below = MemoryStore()
    below.put(b"a", b"1")
    below.put(b"b", b"2")
    store = OverlayStore(below)
    store.get(b"a")
    store.delete(b"b")
    assert store.changes == {b"b": None}


def test_many_keys_stay_in_order() -> None:
    keys = SortedKeys()
    numbers = [(number * 7919) % 5003 for number in range(5003)]
    for number in numbers:
        keys.add(number.to_bytes(2, "big"))
    for number in range(0, 5003, 2):
        keys.remove(number.to_bytes(2, "big"))
    found = keys.between((100).to_bytes(2, "big"), (4000).to_bytes(2, "big"))
    assert found == [number.to_bytes(2, "big") for number in range(101, 4000, 2)]


def test_the_key_after_a_prefix_is_the_first_behind_it() -> None:
    assert after_prefix(b"ab") == b"ac"
    assert after_prefix(b"a\xff") == b"b"
    assert after_prefix(b"\xff\xff") is None
    assert after_prefix(b"") is None


def test_numbers_survive_and_only_changed_ones_are_written() -> None:
    below = MemoryStore()
    store = OverlayStore(below)
    progress = Progress(store)
    progress.cell("seen").value = 7
    progress.cell("never")
    progress.save()
    assert list(store.changes) == [b"seen"]
    store.flush()
    again = Progress(OverlayStore(below))
    assert (again.cell("seen").value, again.cell("never").value) == (7, UNKNOWN)
