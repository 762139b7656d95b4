"""Pairs on the command line: `name=value`."""

from __future__ import annotations

from collections.abc import Iterable

import click


def parse_pair(text: str) -> tuple[str, str]:
    """Splits at the first equals sign; a usage error where there is none."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise click.UsageError(f"{text!r} is not a pair; write it as NAME=VALUE.")
    return name.strip(), value


def parse_pairs(texts: Iterable[str]) -> dict[str, str]:
    """The values by name; the last of several wins."""
    return dict(parse_pair(text) for text in texts)
