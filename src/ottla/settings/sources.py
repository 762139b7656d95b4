"""Where the texts of settings come from: a Java .properties file, a TOML file, name=value pairs.

Knows the notation, not the settings: what a name means is decided by whoever reads the texts.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime, time
from pathlib import Path
from typing import Final

from ottla.errors import ConfigError

FILE_BYTES_MAX: Final = 4 << 20

_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_KEY: Final = re.compile(r"((?:[^\\=:\s]|\\.)*)[ \t\f]*[=:]?[ \t\f]*")
_LINE_END: Final = re.compile(r"\r\n|\r|\n")


def read_file(path: Path) -> dict[str, str]:
    """The texts by name in a configuration file: TOML by its extension, else Java properties."""
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            raise ConfigError(str(path), "is too large for a configuration file", "check the path")
        content = path.read_text(encoding="utf-8")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ConfigError(str(path), f"cannot be read ({reason})", "check the path") from error
    except UnicodeDecodeError as error:
        raise ConfigError(str(path), "is not UTF-8 text", "check the path") from error
    if path.suffix.lower() == ".toml":
        return from_toml(content, source=str(path))
    return from_properties(content)


def from_properties(content: str) -> dict[str, str]:
    """The texts by name in a Java properties file; the last of several wins."""
    texts: dict[str, str] = {}
    for line in _logical_lines(content):
        match = _KEY.match(line)
        assert match is not None, "the pattern matches an empty key too"
        texts[_unescaped(match[1])] = _unescaped(line[match.end() :])
    return texts


def from_toml(content: str, *, source: str) -> dict[str, str]:
    """The texts by name in a TOML file; tables are the parts of a dotted name."""
    try:
        tree = tomllib.loads(content)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(source, f"is not valid TOML ({error})", "correct the line") from error
    return dict(_flattened(tree, ""))


def from_pairs(pairs: Iterable[str]) -> dict[str, str]:
    """The texts of name=value pairs, as given on the command line."""
    texts: dict[str, str] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name.strip():
            raise ConfigError(pair, "is not a setting", "write name=value")
        texts[name.strip()] = text.strip()
    return texts


def _logical_lines(content: str) -> Iterator[str]:
    """Lines without comments, joined where one ends in an odd number of backslashes."""
    waiting = ""
    is_continued = False
    for natural in _LINE_END.split(content):
        line = natural.lstrip(" \t\f")
        if not is_continued and (not line or line[0] in "#!"):
            continue
        is_continued = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        waiting += line[:-1] if is_continued else line
        if not is_continued:
            yield waiting
            waiting = ""
    if waiting:
        yield waiting


def _unescaped(text: str) -> str:
    def plain(match: re.Match[str]) -> str:
        escape = match[1]
        if len(escape) == 5:
            return chr(int(escape[1:], 16))
        return _ESCAPED.get(escape, escape)

    return _ESCAPE.sub(plain, text)


def _flattened(tree: Mapping[str, object], prefix: str) -> Iterator[tuple[str, str]]:
    for key, value in tree.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            yield from _flattened(value, f"{name}.")
        elif isinstance(value, list):
            yield name, ",".join(_scalar(name, each) for each in value)
        else:
            yield name, _scalar(name, value)


def _scalar(name: str, value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list | datetime | date | time):
        raise ConfigError(name, "holds a table, a nested list or a date", "write one plain value")
    return str(value)
