"""Joins of tables by a foreign key: subscriptions one way, answers the other.

Subscriptions are kept as length(4), foreign key, primary key -> hash and partition, so that all who
want to know of one foreign row are found by a prefix.
"""

from __future__ import annotations

import struct
from typing import Any, Final

from ottla.streams.engine.changes import Change
from ottla.streams.engine.records import Headers
from ottla.streams.engine.stores import after_prefix
from ottla.streams.engine.subscriptions import Answer, Subscription, Wish, hash_of
from ottla.streams.engine.wiring import DropReason, Forward, Wiring
from ottla.streams.operators import AnswerSubscribers, ResolveAnswers, Subscribe, Subscriptions

_LENGTH: Final = struct.Struct(">I")
_KEPT: Final = struct.Struct(">?16si")


def subscribe(operator: Subscribe, wiring: Wiring) -> Forward:
    """Tells the foreign side of every change of a row: whom it leaves and whom it wants now."""
    forward, foreign_key_of = wiring.forward, operator.foreign_key_of
    encode = operator.value.serializer()

    def foreign_key(value: Any) -> Any:
        return None if value is None else foreign_key_of(value)

    def subscribed(key: Any, change: Change, timestamp_ms: int, headers: Headers) -> None:
        value_hash = None if change.new is None else hash_of(encode(change.new))
        old, new = foreign_key(change.old), foreign_key(change.new)
        wishes = (_left_wishes if operator.left else _inner_wishes)(change, old, new)
        if wishes is None:
            wiring.drop(DropReason.NULL_FOREIGN_KEY)
            return
        for foreign, wish in wishes:
            one = Subscription(key, wish, value_hash, wiring.state.partition)
            forward(foreign, one, timestamp_ms, headers)

    return subscribed


def _left_wishes(change: Change, old: Any, new: Any) -> list[tuple[Any, Wish]] | None:
    """A row without a foreign key asks nobody in particular, so that it comes alone."""
    if change.old is None and change.new is None:
        return []
    wishes = [(old, Wish.FORGET)] if old is not None and old != new else []
    return [*wishes, (new, Wish.ANSWER_ALWAYS)]


def _inner_wishes(change: Change, old: Any, new: Any) -> list[tuple[Any, Wish]] | None:
    """Only a row that had a result may need to be told that there is none now."""
    if change.old is None and change.new is None:
        return []
    if old is None and new is None:
        return None
    if old is None or old == new:
        return [(new, Wish.ANSWER_IF_FOUND)]
    if new is None:
        return [(old, Wish.FORGET_AND_ANSWER)]
    return [(old, Wish.FORGET), (new, Wish.ANSWER_ALWAYS)]


def subscriptions(operator: Subscriptions, wiring: Wiring) -> Forward:
    """Keeps or forgets a subscription, and answers it with the row as it is."""
    store, lookup = wiring.stores.raw(operator.store), wiring.lookup(operator.table)
    forward, encode_key = wiring.forward, operator.foreign_key.serializer()
    encode_primary = operator.primary_key.serializer()

    def answer(one: Subscription, found: tuple[Any, int] | None, at: tuple[int, Headers]) -> None:
        value = None if found is None or one.wish is Wish.FORGET_AND_ANSWER else found[0]
        if one.wish is Wish.FORGET or (one.wish is Wish.ANSWER_IF_FOUND and value is None):
            return
        timestamp_ms = at[0] if found is None else max(at[0], found[1])
        reply = Answer(value, one.value_hash, one.partition)
        forward(one.primary_key, reply, timestamp_ms, at[1])

    def subscribed(key: Any, one: Subscription, timestamp_ms: int, headers: Headers) -> None:
        if key is None:
            if one.wish is not Wish.ANSWER_ALWAYS:
                wiring.drop(DropReason.NULL_FOREIGN_KEY)
                return
            answer(one, None, (timestamp_ms, headers))
            return
        foreign = encode_key(key)
        name = _LENGTH.pack(len(foreign)) + foreign + encode_primary(one.primary_key)
        if one.wish in (Wish.FORGET, Wish.FORGET_AND_ANSWER):
            store.delete(name)
        else:
            store.put(name, _kept(one))
        answer(one, lookup(key), (timestamp_ms, headers))

    return subscribed


def _kept(one: Subscription) -> bytes:
    known = one.value_hash is not None
    return _KEPT.pack(known, one.value_hash or bytes(16), one.partition)


def answer_subscribers(operator: AnswerSubscribers, wiring: Wiring) -> Forward:
    """Tells everybody who subscribed that a row changed."""
    store, forward = wiring.stores.raw(operator.store), wiring.forward
    encode_key = operator.foreign_key.serializer()
    decode_primary = operator.primary_key.deserializer()

    def changed(key: Any, change: Change, timestamp_ms: int, headers: Headers) -> None:
        if key is None:
            wiring.drop(DropReason.NULL_KEY)
            return
        foreign = encode_key(key)
        prefix = _LENGTH.pack(len(foreign)) + foreign
        for name, data in list(store.range(prefix, after_prefix(prefix))):
            known, value_hash, partition = _KEPT.unpack(data)
            reply = Answer(change.new, value_hash if known else None, partition)
            forward(decode_primary(name[len(prefix) :]), reply, timestamp_ms, headers)

    return changed


def resolve_answers(operator: ResolveAnswers, wiring: Wiring) -> Forward:
    """Joins an answer with the row that asked, if it is still the same row."""
    lookup, forward = wiring.lookup(operator.table), wiring.forward
    encode, join = operator.value.serializer(), operator.joiner

    def resolved(key: Any, answer: Answer, timestamp_ms: int, headers: Headers) -> None:
        found = lookup(key)
        value = None if found is None else found[0]
        if answer.value_hash != (None if value is None else hash_of(encode(value))):
            wiring.drop(DropReason.OUTDATED_ANSWER)
            return
        result = None
        if answer.foreign_value is not None or (operator.left and value is not None):
            result = join(value, answer.foreign_value)
        forward(key, result, timestamp_ms, headers)

    return resolved
