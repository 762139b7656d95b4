"""Only changes are asked of a broker that remembers, and it always remembers what is wanted."""

import asyncio
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from ottla.clients.consumer.aio import Consumer
from ottla.clients.consumer.fetch_session import FetchPlace, FetchSession, Question
from ottla.errors import ErrorCode
from ottla.model.ids import TopicId, TopicPartition
from ottla.protocol.api import ApiKey
from ottla.protocol.message import Message
from ottla.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from ottla.records.builder import build_batch
from ottla.records.record import Record

LOST, REFUSED, NO_PLACE, FINE = "lost", "refused", "no place", "fine"
places = st.dictionaries(
    st.builds(TopicPartition, st.sampled_from("ab"), st.integers(0, 3)),
    st.builds(
        FetchPlace,
        st.sampled_from([TopicId(b"1" * 16), TopicId(b"2" * 16)]),
        st.integers(0, 3),
        st.integers(0, 1),
    ),
)
rounds = st.lists(st.tuples(places, st.sampled_from([FINE, FINE, FINE, LOST, REFUSED, NO_PLACE])))


@dataclass
class Memory:
    """What a broker remembers of its sessions, as KIP-227 has it."""

    sessions: dict[int, tuple[int, dict[TopicPartition, FetchPlace]]] = field(default_factory=dict)
    made: int = 0

    def take(self, question: Question) -> tuple[int, dict[TopicPartition, FetchPlace]] | None:
        """The session and what is fetched; None where the question does not fit."""
        if question.epoch == 0:
            assert not question.forgotten
            self.sessions.pop(question.session_id, None)
            self.made += 1
            self.sessions[self.made] = (1, dict(question.places))
            return self.made, dict(question.places)
        if question.session_id not in self.sessions:
            return None
        epoch, remembered = self.sessions[question.session_id]
        assert question.epoch == epoch
        for where in question.forgotten:
            del remembered[where]
        for where, place in question.places.items():
            assert remembered.get(where) != place, "it was asked what is remembered"
            assert where not in remembered or remembered[where].topic_id == place.topic_id
            remembered[where] = place
        self.sessions[question.session_id] = (epoch + 1, remembered)
        return question.session_id, remembered


@given(rounds)
def test_a_broker_fetches_exactly_what_is_wanted_whatever_happens(
    steps: list[tuple[dict[TopicPartition, FetchPlace], str]],
) -> None:
    broker, session = Memory(), FetchSession()
    for wanted, outcome in steps:
        if outcome == REFUSED:
            broker.sessions.clear()
        taken = broker.take(session.ask(wanted))
        if taken is None:
            assert outcome == REFUSED
            session.failed()
            taken = broker.take(session.ask(wanted))
        assert taken is not None
        number, fetched = taken
        assert fetched == wanted
        if outcome == LOST:
            session.failed()
        elif outcome == NO_PLACE:
            broker.sessions.clear()
            session.answered(0)
        else:
            session.answered(number)


class Shelf:
    """A broker with one record at each offset of partition 0, and none in the others."""

    def __init__(self, forgets_at: int) -> None:
        self.asked: list[tuple[int, int, list[int], list[int]]] = []
        self._forgets_at = forgets_at
        self._offset = 0

    def fetch(self, request: Message, version: int) -> Message:
        assert isinstance(request, FetchRequest)
        partitions = [each for topic in request.topics for each in topic.partitions]
        gone = [number for topic in request.forgotten_topics_data for number in topic.partitions]
        numbers = [each.partition for each in partitions]
        self.asked.append((request.session_id, request.session_epoch, numbers, gone))
        if len(self.asked) == self._forgets_at:
            return FetchResponse(error_code=int(ErrorCode.FETCH_SESSION_ID_NOT_FOUND))
        for each in partitions:
            if each.partition == 0:
                self._offset = each.fetch_offset
        offset = self._offset
        batch = build_batch([Record(offset, 0, None, b"%d" % offset)], base_offset=offset)
        row = PartitionData(partition_index=0, high_watermark=offset + 1, records=batch)
        topic = FetchableTopicResponse(topic_id=b"t" * 16, partitions=[row])
        return FetchResponse(session_id=9, responses=[topic])


async def read(a_broker: type, shelf: Shelf, count: int) -> list[bytes]:
    async with a_broker() as broker:
        broker.partition_count = 3
        broker.answers[ApiKey.FETCH] = shelf.fetch
        async with Consumer(bootstrap_servers=str(broker.address)) as consumer:
            parts = [TopicPartition("t", number) for number in range(3)]
            consumer.assign(parts)
            for part in parts:
                consumer.seek(part, 0)
            found: list[bytes] = []
            async with asyncio.timeout(20):
                while len(found) < count:
                    found += [record.value for record in await consumer.poll(5.0, max_records=1)]
                    if len(found) == 5:
                        consumer.pause(parts[2])
            return found


def test_a_consumer_asks_for_what_changed_only(a_broker: type) -> None:
    shelf = Shelf(forgets_at=12)
    found = asyncio.run(read(a_broker, shelf, 20))

    assert found == [b"%d" % number for number in range(20)]
    assert shelf.asked[:3] == [(0, 0, [0, 1, 2], []), (9, 1, [0], []), (9, 2, [0], [])]
    assert [asked for asked in shelf.asked if asked[3]] != []
    after = shelf.asked[12]
    assert (after[1], after[2][:2]) == (0, [0, 1])
    assert all(numbers in ([0], []) for _, _, numbers, _ in shelf.asked[13:])
