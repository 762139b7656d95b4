"""Which partitions a query reads: named topics, a pattern of names, or partitions one by one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ottla.clients.client import Client
from ottla.clients.failures import TopicNotFound, refusal
from ottla.clients.metadata import TopicInfo
from ottla.errors import ConfigError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.spark.offsets import parse_assignment
from ottla.spark.options import OptionTexts

_WAYS: Final = ("subscribe", "subscribePattern", "assign")


@dataclass(frozen=True, slots=True)
class Selection:
    """One of the three."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    assigned: frozenset[TopicPartition] = frozenset()


def selection_of(texts: OptionTexts) -> Selection:
    """What a person asked for; ConfigError unless exactly one way was used."""
    given = [way for way in _WAYS if texts.text(way) is not None]
    if len(given) != 1:
        raise ConfigError(
            " and ".join(given) or "subscribe",
            "exclude each other" if given else "is missing",
            "use one of subscribe, subscribePattern and assign",
        )
    text = texts.text(given[0]) or ""
    match given[0]:
        case "subscribe":
            topics = tuple(name.strip() for name in text.split(",") if name.strip())
            if not topics:
                raise ConfigError("subscribe", "names no topic")
            return Selection(topics=topics)
        case "subscribePattern":
            try:
                re.compile(text)
            except re.error as error:
                raise ConfigError("subscribePattern", f"{text!r}: {error}") from None
            return Selection(pattern=text)
        case _:
            return Selection(assigned=frozenset(parse_assignment("assign", text)))


async def partitions_of(client: Client, selection: Selection) -> set[TopicPartition]:
    """The partitions there are now. A topic that was named and is not there is an error."""
    if selection.pattern is not None:
        picture = await client.retrying(lambda: client.refresh(None))
        return _matching(picture.topics, re.compile(selection.pattern))
    names = selection.topics or tuple(sorted({each.topic for each in selection.assigned}))

    async def look() -> dict[str, TopicInfo]:
        picture = await client.refresh(names)
        return {name: _checked(name, picture.topics.get(name)) for name in names}

    topics = await client.retrying(look, topics=names)
    there = {
        TopicPartition(name, row.partition)
        for name, topic in topics.items()
        for row in topic.partitions
    }
    for missing in sorted(selection.assigned - there):
        raise TopicNotFound(missing.topic, missing.partition)
    return set(selection.assigned) or there


def _matching(topics: Mapping[str, TopicInfo], pattern: re.Pattern[str]) -> set[TopicPartition]:
    return {
        TopicPartition(name, row.partition)
        for name, topic in topics.items()
        if not topic.is_internal and not topic.error and pattern.fullmatch(name)
        for row in topic.partitions
    }


def _checked(name: str, topic: TopicInfo | None) -> TopicInfo:
    if topic is None or topic.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        raise TopicNotFound(name)
    if topic.error:
        raise refusal(topic.error, f"topic {name!r}")
    return topic
