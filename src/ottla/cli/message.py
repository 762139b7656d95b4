"""Lines for people: what was done, notes, errors with their fix; coloured where that is wanted."""

from __future__ import annotations

import os

import click


def say(text: str) -> None:
    """A line on standard output."""
    click.echo(text)


def note(text: str) -> None:
    """A line on standard error: for people, not part of the output."""
    click.echo(paint(text, dim=True), err=True)


def say_error(sentence: str, fix: str | None = None) -> None:
    """An error and its fix on standard error."""
    click.echo(paint("error: ", "red", bold=True) + sentence, err=True)
    if fix:
        click.echo(paint("  fix: ", "green", bold=True) + fix, err=True)


def paint(
    text: str, color: str | None = None, *, bold: bool | None = None, dim: bool | None = None
) -> str:
    """The text in a colour, for a terminal (click removes it in a pipe); plain under NO_COLOR."""
    if os.environ.get("NO_COLOR"):
        return text
    return click.style(text, fg=color, bold=bold, dim=dim)
