"""Every start of a query with timers by the wall clock has an offset to read up to."""

from ottla.streams.spark.starts import Starts, without_count

TOPIC = {"topic": {"0": 7}}


def test_each_start_counts_one_more_and_keeps_to_it() -> None:
    first = Starts()
    begun = first.counted(TOPIC, TOPIC)
    assert begun != TOPIC
    assert first.counted(TOPIC, begun) == begun
    again = Starts().counted(TOPIC, begun)
    assert again not in (TOPIC, begun)
    assert Starts().counted(TOPIC, again) not in (TOPIC, begun, again)


def test_the_count_is_no_topic() -> None:
    assert without_count(Starts().counted(TOPIC, TOPIC)) == TOPIC
