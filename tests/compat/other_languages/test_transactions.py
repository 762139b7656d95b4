"""What the transactions of a client leave behind, for its own readers and for others."""

from collections.abc import Callable

import pytest

from compat.other_languages.client import OtherClient, Place, Transaction
from compat.other_languages.conftest import TRANSACTIONAL
from compat.other_languages.program import Refused
from support.clients.confluent import ConfluentClient
from support.clients.face import Reading, Received, ToSend

NewName = Callable[[], str]

pytestmark = pytest.mark.slow


def values(records: list[Received]) -> list[bytes | None]:
    return [record.value for record in records]


@pytest.mark.parametrize("client", TRANSACTIONAL, indirect=True)
def test_committed_records_are_read_and_aborted_ones_are_not(
    client: OtherClient, bootstrap: str, new_name: NewName
) -> None:
    python, topic, own_id = ConfluentClient(bootstrap), new_name(), new_name()
    python.create_topic(topic)
    for value, is_committed in ((b"kept", True), (b"dropped", False), (b"kept too", True)):
        client.transact(topic, [ToSend(value)] * 2, Transaction(own_id, is_committed))
    kept = [b"kept", b"kept", b"kept too", b"kept too"]
    committed = client.consume_committed(topic, count=4)
    assert values(committed) == kept
    assert [record.offset for record in committed] == [0, 1, 6, 7]  # an end mark after each
    assert values(python.consume(topic, {0: 0}, Reading(count=4))) == kept  # by default
    everything = client.consume(topic, {0: 0}, Reading(count=6))
    assert values(everything) == [*kept[:2], b"dropped", b"dropped", *kept[2:]]


@pytest.mark.parametrize("client", TRANSACTIONAL, indirect=True)
def test_offsets_are_committed_with_the_transaction_or_not_at_all(
    client: OtherClient, bootstrap: str, new_name: NewName
) -> None:
    python, target, own_id = ConfluentClient(bootstrap), new_name(), new_name()
    source = Place(group=new_name(), topic=new_name())
    for topic in (source.topic, target):
        python.create_topic(topic)
    sent = [b"%d" % number for number in range(5)]
    python.produce(source.topic, [ToSend(value) for value in sent])
    client.transform(source, target, 5, Transaction(own_id, is_committed=False))
    assert client.group_offsets(source) == {}
    client.transform(source, target, 5, Transaction(own_id, is_committed=True))
    assert client.group_offsets(source) == {0: 5}
    committed = client.consume_committed(target, count=5)
    assert values(committed) == sent
    assert committed[0].offset == 6  # five aborted records and their end mark stand before


@pytest.mark.parametrize("client", TRANSACTIONAL, indirect=True)
def test_a_producer_that_another_replaced_is_told_so_under_a_name_it_knows(
    client: OtherClient, bootstrap: str, new_name: NewName
) -> None:
    topic = new_name()
    ConfluentClient(bootstrap).create_topic(topic)
    with pytest.raises(Refused) as refused:
        client.be_replaced(topic, new_name())
    assert refused.value.name == "INVALID_PRODUCER_EPOCH"
