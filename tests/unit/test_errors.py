"""The table of error codes is complete and every exception can say what it is about."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ottla import errors
from ottla.errors import ErrorCode, OffsetOutOfRange, RequestFailed, TopicExists, UnknownTopic

REFERENCE = Path(__file__).parents[3] / "shared" / "kafka" / "reference" / "errors.json"


def test_codes_and_retriability_are_those_of_the_reference() -> None:
    if not REFERENCE.exists():
        pytest.skip("the reference table is not beside this checkout")
    expected = {(e["name"], e["code"], e["retriable"]) for e in json.loads(REFERENCE.read_text())}
    assert {(code.name, int(code), code.retriable) for code in ErrorCode} == expected


def test_every_code_has_a_sentence_of_its_own() -> None:
    sentences = [code.sentence for code in ErrorCode]
    assert all(sentence.endswith(".") for sentence in sentences)
    assert len(set(sentences)) == len(sentences)


def test_a_code_is_found_by_its_number() -> None:
    assert ErrorCode(3) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert ErrorCode(-1) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_errors_keep_the_facts_they_are_about() -> None:
    error = OffsetOutOfRange(7, 10, 20)
    assert (error.offset, error.start, error.end) == (7, 10, 20)
    assert error.code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert "7" in str(error)
    assert "10" in str(error)


def test_a_failed_request_carries_the_code_it_was_given() -> None:
    error = RequestFailed(ErrorCode.NOT_CONTROLLER)
    assert error.code is ErrorCode.NOT_CONTROLLER
    assert str(error) == ErrorCode.NOT_CONTROLLER.sentence
    assert TopicExists("a").code is ErrorCode.TOPIC_ALREADY_EXISTS
    assert UnknownTopic("a", 3).code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_every_exception_is_drawn_in_the_tree() -> None:
    drawn = errors.__doc__ or ""
    public = [
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.OttlaError) and name[0] != "_"
    ]
    assert len(public) > 30
    assert [name for name in public if name not in drawn] == []
