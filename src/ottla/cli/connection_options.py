"""Which broker a command talks to: by option, here or before the command, or by environment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click
from click.core import ParameterSource

DEFAULT_BOOTSTRAP: Final = "127.0.0.1:9092"
_BOOTSTRAP: Final = "ottla.bootstrap"
_TIMEOUT: Final = "ottla.timeout_s"
TIMEOUT_S: Final = 30.0

Command = TypeVar("Command", bound=Callable[..., Any])


def bootstrap_option(command: Command) -> Command:
    """Adds --bootstrap; what stands nearest to the command wins."""
    return click.option(
        "--bootstrap",
        "-b",
        metavar="HOST:PORT",
        envvar="OTTLA_BOOTSTRAP",
        default=DEFAULT_BOOTSTRAP,
        show_default=True,
        expose_value=False,
        callback=_remember_bootstrap,
        help="Broker to connect to first; several are separated by commas.",
    )(command)


def broker_options(command: Command) -> Command:
    """Adds --bootstrap and --timeout."""
    with_timeout = click.option(
        "--timeout",
        metavar="SECONDS",
        type=click.FloatRange(min=0.1),
        default=TIMEOUT_S,
        show_default=True,
        expose_value=False,
        callback=_remember_timeout,
        help="Give up on a broker that does not answer for so long.",
    )(command)
    return bootstrap_option(with_timeout)


def json_option(command: Command) -> Command:
    """Adds --json."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")(command)


def bootstrap() -> str:
    """The addresses given, as text."""
    return str(click.get_current_context().meta.get(_BOOTSTRAP, DEFAULT_BOOTSTRAP))


def timeout_s() -> float:
    """How long to wait for an answer."""
    return float(click.get_current_context().meta.get(_TIMEOUT, TIMEOUT_S))


def _remember_bootstrap(ctx: click.Context, param: click.Parameter, value: str) -> None:
    is_written_here = ctx.get_parameter_source(param.name or "") is ParameterSource.COMMANDLINE
    if is_written_here or _BOOTSTRAP not in ctx.meta:
        ctx.meta[_BOOTSTRAP] = value


def _remember_timeout(ctx: click.Context, param: click.Parameter, value: float) -> None:
    del param
    ctx.meta[_TIMEOUT] = value
