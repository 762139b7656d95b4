"""Records as lines: what is written can be read back."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.cli.record_input import InputRules, NewRecord, TextFormat, parse_line
from ottla.cli.record_output import OutputRules, render
from ottla.clients.consumer.record import ConsumerRecord
from ottla.errors import InvalidRecord
from ottla.records.record import Record

data = st.none() | st.binary(max_size=20) | st.text(max_size=20).map(str.encode)
headers = st.lists(st.tuples(st.text(max_size=5), data), max_size=4).map(tuple)


def read_from(partition: int, record: Record) -> ConsumerRecord:
    """The record as a consumer hands it out."""
    return ConsumerRecord(
        topic="t",
        partition=partition,
        leader_epoch=0,
        timestamp_type=0,
        offset=record.offset,
        timestamp_ms=record.timestamp,
        key=record.key,
        value=record.value,
        headers=record.headers,
    )


@given(data, data, headers, st.integers(0, 2**41))
def test_json_output_is_valid_json_input(key, value, pairs, timestamp) -> None:
    record = read_from(3, Record(7, timestamp, key, value, pairs))
    (line,) = render([record], OutputRules(TextFormat.JSON)).splitlines()
    assert parse_line(line, InputRules(TextFormat.JSON)) == NewRecord(
        value=value, key=key, headers=pairs, partition=3, timestamp_ms=timestamp
    )


@given(st.binary(max_size=30), st.binary(max_size=30))
@pytest.mark.parametrize("form", [TextFormat.HEX, TextFormat.BASE64])
def test_hex_and_base64_carry_any_bytes(form: TextFormat, key: bytes, value: bytes) -> None:
    rules = OutputRules(form, separator=b" ", with_keys=True)
    line = render([read_from(0, Record(0, 0, key, value))], rules).removesuffix(b"\n")
    read = parse_line(line, InputRules(form, key_separator=b" "))
    assert (read.key, read.value) == (key, value)


def test_a_line_of_text_is_the_value() -> None:
    assert parse_line(b"a:b", InputRules()) == NewRecord(b"a:b")


def test_the_first_separator_divides_key_and_value() -> None:
    rules = InputRules(key_separator=b":")
    assert parse_line(b"k:v:w", rules) == NewRecord(b"v:w", b"k")
    assert parse_line(b"no key here", rules) == NewRecord(b"no key here")


def test_the_null_marker_stands_for_null_in_keys_and_values() -> None:
    rules = InputRules(key_separator=b":", null_marker=b"NULL")
    assert parse_line(b"k:NULL", rules) == NewRecord(None, b"k")
    assert parse_line(b"NULL:NULLABLE", rules) == NewRecord(b"NULLABLE", None)


def test_headers_and_partition_of_the_command_line_go_to_every_record() -> None:
    rules = InputRules(headers=(("h", b"1"),), partition=2)
    assert parse_line(b"v", rules) == NewRecord(b"v", headers=(("h", b"1"),), partition=2)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ('"text"', b"text"),
        ("null", None),
        ('{"a": 1}', b'{"a": 1}'),
        ("[1,2]", b"[1,2]"),
        ("4.50", b"4.50"),
    ],
)
def test_a_json_value_that_is_no_string_is_sent_as_its_own_text(value, expected) -> None:
    line = f'{{"value": {value}}}'.encode()
    assert parse_line(line, InputRules(TextFormat.JSON)).value == expected


def test_a_json_timestamp_may_be_a_time() -> None:
    line = b'{"value": "v", "timestamp": "1970-01-01T00:00:01Z"}'
    assert parse_line(line, InputRules(TextFormat.JSON)).timestamp_ms == 1000


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"plain",
        b"{}",
        b'{"valeu": 1}',
        b'{"value": 1, "partition": "one"}',
        b'{"value_base64": "?"}',
        b'{"value": "v", "value_base64": "dg=="}',
        b'{"value": "v", "timestamp": "soon"}',
        b'{"value": "v", "timestamp": "0001-01-01T00:00"}',
        b'{"value": "v", "timestamp": -5}',
        b'{"value": "v", "timestamp": 99999999999999999999}',
        b"\xff\xfe",
    ],
)
def test_a_line_that_is_no_json_record_is_refused(line: bytes) -> None:
    with pytest.raises(InvalidRecord):
        parse_line(line, InputRules(TextFormat.JSON))


@pytest.mark.parametrize("form", [TextFormat.HEX, TextFormat.BASE64])
def test_a_line_that_is_not_of_the_format_is_refused(form: TextFormat) -> None:
    with pytest.raises(InvalidRecord, match=form.value):
        parse_line(b"what?", InputRules(form))


def test_columns_stand_in_a_fixed_order() -> None:
    rules = OutputRules(
        separator=b"|",
        null_marker=b"-",
        with_offsets=True,
        with_timestamps=True,
        with_headers=True,
        with_keys=True,
    )
    record = read_from(2, Record(5, 1000, b"k", None, (("a", b"1"), ("b", None))))
    assert render([record], rules) == b"2:5|1970-01-01T00:00:01.000Z|a=1,b=-|k|-\n"


def test_no_records_are_no_lines() -> None:
    assert render([], OutputRules()) == b""


def test_json_output_has_everything_by_name() -> None:
    record = read_from(2, Record(5, 1000, b"\xff", b"v", (("a", b"1"), ("a", b"2"))))
    assert json.loads(render([record], OutputRules(TextFormat.JSON))) == {
        "topic": "t",
        "partition": 2,
        "offset": 5,
        "timestamp": 1000,
        "key_base64": "/w==",
        "value": "v",
        "headers": [{"key": "a", "value": "1"}, {"key": "a", "value": "2"}],
    }
