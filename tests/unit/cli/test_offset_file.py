"""Offsets of a group in a file."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.cli.offset_file import OffsetFormat, read_offsets, write_offsets
from ottla.clients.group_offsets import CommittedOffset
from ottla.errors import ConfigError
from ottla.model.ids import LeaderEpoch, Offset, TopicPartition

NUMBERS = st.integers(0, 2**31 - 1)
PARTITIONS = st.builds(
    TopicPartition, st.from_regex(r"[a-zA-Z0-9._-]{1,20}", fullmatch=True), NUMBERS
)
PLAIN = st.builds(CommittedOffset, st.integers(0, 2**63 - 1).map(Offset))
FULL = st.builds(
    CommittedOffset,
    st.integers(0, 2**63 - 1).map(Offset),
    st.integers(-1, 2**31 - 1).map(LeaderEpoch),
    st.text(st.characters(exclude_categories=["Cs"])),
)


@given(st.dictionaries(PARTITIONS, PLAIN, min_size=1))
def test_csv_comes_back_as_it_went(offsets: dict[TopicPartition, CommittedOffset]) -> None:
    assert read_offsets(write_offsets("g", offsets, OffsetFormat.CSV).encode(), "g", "f") == offsets


@given(st.dictionaries(PARTITIONS, FULL, min_size=1))
def test_json_comes_back_with_metadata_and_epochs(
    offsets: dict[TopicPartition, CommittedOffset],
) -> None:
    assert (
        read_offsets(write_offsets("g", offsets, OffsetFormat.JSON).encode(), "g", "f") == offsets
    )


@pytest.mark.parametrize(
    "text",
    [
        "orders,0,42\n",
        "topic,partition,offset\norders,0,42\n",
        "\ufefforders, 0, 42\r\n\r\n",
        '"g","orders",0,42\n"other","users",0,7\n',
        '[{"topic": "orders", "partition": 0, "offset": 42}]',
        '{"group": "h", "offsets": [{"topic": "orders", "partition": 0, "offset": 42}]}',
    ],
)
def test_every_shape_that_people_have_is_read(text: str) -> None:
    assert read_offsets(text.encode(), "g", "f") == {
        TopicPartition("orders", 0): CommittedOffset(Offset(42))
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no offsets of group 'g'"),
        ("other,orders,0,42\n", "no offsets of group 'g'"),
        ("orders,0\n", "line 1"),
        ("orders,0,1\norders,1,x\n", "line 2"),
        ("orders,0,-1\n", "line 1"),
        ("orders,0,1\norders,0,2\n", "twice"),
        ("caf\xe9,0,1\n", "not UTF-8"),
        ("[{]", "JSON"),
        ('{"offsets": []}', "JSON"),
        ('[{"topic": "orders", "partition": 0, "offset": -1}]', "no place"),
    ],
)
def test_what_cannot_be_read_is_named(text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_offsets(text.encode("latin-1"), "g", "offsets.csv")
    assert "offsets.csv" in str(caught.value)
    assert words in str(caught.value)
