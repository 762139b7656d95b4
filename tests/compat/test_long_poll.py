"""A consumer that waits at the end of the log gets the next record when it is written."""

import threading
from collections.abc import Callable

from support.clients.face import Client, Reading, Received, ToSend

NewName = Callable[[], str]


def test_a_waiting_consumer_is_woken_by_a_record(client: Client, new_name: NewName) -> None:
    topic = new_name()
    client.create_topic(topic)
    received: list[Received] = []

    def read() -> None:
        received.extend(client.consume(topic, {0: 0}, Reading(count=3, wait_ms_max=20_000)))

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(3):
        client.produce(topic, [ToSend(b"%d" % number)])
    reader.join(15)  # below the wait: only a wake-up, never the deadline, ends it in time
    assert not reader.is_alive()
    assert [record.value for record in received] == [b"0", b"1", b"2"]
