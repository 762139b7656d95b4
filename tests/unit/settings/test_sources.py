"""The notations settings are written in."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.errors import ConfigError
from ottla.settings.sources import from_pairs, from_properties, from_toml, read_file


def test_properties_know_comments_separators_and_blanks() -> None:
    content = "# one\n! two\n\n  a=1\nb : 2\r\nc 3\nd=\ne\n  f = x = y  \n"
    assert from_properties(content) == {
        "a": "1",
        "b": "2",
        "c": "3",
        "d": "",
        "e": "",
        "f": "x = y  ",
    }


def test_properties_know_escapes() -> None:
    content = r"a\ b=c\td" + "\n" + r"path=C:\\data\\x" + "\n" + r"u=\u00e9\=" + "\n"
    assert from_properties(content) == {"a b": "c\td", "path": "C:\\data\\x", "u": "é="}


def test_a_line_continues_after_an_odd_number_of_backslashes_only() -> None:
    content = "list=one,\\\n     two,\\\n     # three\nend=\\\\\nnext=1"
    assert from_properties(content) == {"list": "one,two,# three", "end": "\\", "next": "1"}


def test_the_last_of_several_wins() -> None:
    assert from_properties("a=1\na=2") == {"a": "2"}


@given(st.dictionaries(st.text(min_size=1), st.text()))
def test_any_text_survives_properties_when_escaped(texts: dict[str, str]) -> None:
    def escaped(text: str) -> str:
        return "".join(
            character if character.isascii() and character.isalnum() else _unit_escapes(character)
            for character in text
        )

    content = "\n".join(f"{escaped(name)}={escaped(text)}" for name, text in texts.items())
    expected = {_utf16(name): _utf16(text) for name, text in texts.items()}
    assert {_utf16(n): _utf16(t) for n, t in from_properties(content).items()} == expected


def _utf16(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")


def _unit_escapes(character: str) -> str:
    units = _utf16(character).hex()
    return "".join(f"\\u{units[place : place + 4]}" for place in range(0, len(units), 4))


def test_toml_tables_are_parts_of_a_name() -> None:
    content = """
    "node.id" = 3
    auto.create.topics.enable = false
    listeners = ["PLAINTEXT://:9092", "B://:1"]
    [log.cleaner]
    "min.cleanable.ratio" = 0.25
    """
    assert from_toml(content, source="x") == {
        "node.id": "3",
        "auto.create.topics.enable": "false",
        "listeners": "PLAINTEXT://:9092,B://:1",
        "log.cleaner.min.cleanable.ratio": "0.25",
    }


@pytest.mark.parametrize("content", ["a = ", "a = 2020-01-01", "a = [[1]]", "a = [{b = 1}]"])
def test_bad_toml_is_refused(content: str) -> None:
    with pytest.raises(ConfigError):
        from_toml(content, source="x.toml")


def test_pairs_of_the_command_line() -> None:
    assert from_pairs(["a=1", "b = x=y"]) == {"a": "1", "b": "x=y"}
    with pytest.raises(ConfigError, match="name=value"):
        from_pairs(["a"])


def test_a_file_is_read_by_its_extension(tmp_path: Path) -> None:
    (tmp_path / "server.properties").write_text("a=1")
    (tmp_path / "server.TOML").write_text("a = '1'")
    assert read_file(tmp_path / "server.properties") == read_file(tmp_path / "server.TOML")


def test_a_file_that_cannot_be_read_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        read_file(tmp_path / "absent")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="UTF-8"):
        read_file(tmp_path / "binary")
