"""What made a query fail, in a sentence; and which reasons pass."""

import pytest

from ottla.streams.spark.failure_sentence import is_passing, sentence

PYTHON = """An exception was thrown from the Python worker: Traceback (most recent call last):
  File "fetch.py", line 1, in fetch
{error}
	at org.apache.spark.api.python.BasePythonRunner.handle(PythonRunner.scala:1)
"""
NO_BROKER = "ottla.clients.failures.NoBrokerReachable: cannot connect to h:1: nothing listens there"


@pytest.mark.parametrize(
    "text",
    [
        PYTHON.format(error=NO_BROKER),
        "org.apache.spark.SparkException: Python worker failed to connect back.",
        "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed): SIGKILL",
    ],
)
def test_processes_and_brokers_come_back_so_the_query_is_started_again(text: str) -> None:
    assert is_passing(text)


def test_what_a_function_raises_does_not_pass() -> None:
    assert not is_passing(PYTHON.format(error="ValueError: no number: 'seven'"))


def test_the_sentence_is_what_was_raised_and_names_only_classes_that_are_not_ours() -> None:
    assert (
        sentence(PYTHON.format(error=NO_BROKER)) == "cannot connect to h:1: nothing listens there"
    )
    assert sentence(PYTHON.format(error="ValueError: no number")) == "ValueError: no number"
