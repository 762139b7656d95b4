"""Which broker a command talks to."""

import click
import pytest

from ottla.cli.connection_options import DEFAULT_BOOTSTRAP, bootstrap, bootstrap_option


def asked(arguments: list[str]) -> str:
    """The address a command ends up with; the option may stand before it and after it."""
    seen: list[str] = []

    @click.group()
    @bootstrap_option
    def top() -> None: ...

    @top.command()
    @bootstrap_option
    def look() -> None:
        seen.append(bootstrap())

    top.main(arguments, standalone_mode=False)
    return seen[0]


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTTLA_BOOTSTRAP", raising=False)


def test_the_option_may_stand_before_or_after_the_command() -> None:
    assert asked(["-b", "a:1", "look"]) == "a:1"
    assert asked(["look", "-b", "b:2"]) == "b:2"
    assert asked(["-b", "a:1", "look", "-b", "b:2"]) == "b:2"


def test_without_an_option_the_environment_counts_then_the_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert asked(["look"]) == DEFAULT_BOOTSTRAP
    monkeypatch.setenv("OTTLA_BOOTSTRAP", "e:5")
    assert asked(["look"]) == "e:5"
    assert asked(["-b", "a:1", "look"]) == "a:1"
