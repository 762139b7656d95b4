"""The entry point: finds the command, and turns any error into a sentence and an exit code.

Imports nothing heavy: `ottla --help` must feel instant, so a command's module is imported when it
is run.
"""

from __future__ import annotations

import os
import sys
from difflib import get_close_matches
from importlib import import_module
from typing import Final, NoReturn

import click

from ottla import __version__, compiled
from ottla.cli.connection_options import bootstrap_option
from ottla.cli.exit_code import ExitCode
from ottla.cli.message import say_error

SECTIONS: Final[dict[str, dict[str, str]]] = {
    "Run a broker": {
        "demo": "Start a broker, and watch records flow through it and a pipeline.",
        "serve": "Run a broker.",
    },
    "Work with topics and records": {
        "topics": "Create, list, describe, alter and delete topics.",
        "produce": "Write records from standard input or a file.",
        "consume": "Read records of a topic.",
        "records": "Delete the oldest records of a topic.",
        "configs": "Read and change settings of topics and brokers, and what they log.",
    },
    "Run pipelines": {
        "streams": "Run a streams application on Spark, and show what it does.",
    },
    "Work with groups and transactions": {
        "groups": "See how far groups have read, and set where they go on.",
        "transactions": "See who writes in transactions, and end one that hangs.",
    },
    "Work with brokers": {
        "brokers": "List brokers, and empty one that is to leave.",
        "reassign": "Move partitions between brokers.",
    },
    "Find out what is going on": {
        "cluster": "See whether a cluster is well, or start one on this machine.",
        "doctor": "Find out why a broker cannot be used, and how to fix it.",
        "log": "Dump and verify segment files on disk.",
    },
}
COMPLETION_VARIABLE: Final = "_OTTLA_COMPLETE"
"""Set by the shell's completion script, which click writes."""
EPILOG: Final = (
    "Commands that talk to a broker find it by --bootstrap or OTTLA_BOOTSTRAP, "
    "else at 127.0.0.1:9092."
)


class LazyGroup(click.Group):
    """Commands that are imported when they are run, listed in sections. (Click is extended so.)"""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return [name for section in SECTIONS.values() for name in section]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        command = getattr(import_module(f"ottla.cli.{cmd_name}"), cmd_name)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in self.list_commands(ctx):
            near = get_close_matches(args[0], self.list_commands(ctx), n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise click.UsageError(f"There is no command {args[0]!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl(list(commands.items()), col_spacing=3)


def _show_version(ctx: click.Context, _option: click.Parameter, is_wanted: bool) -> None:
    if not is_wanted or ctx.resilient_parsing:
        return
    from platform import python_version

    form = "compiled" if compiled.MODULES.usable else "not compiled"
    click.echo(f"Ottla {__version__}, {form}, on Python {python_version()}")
    ctx.exit()


@click.group(
    cls=LazyGroup,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    "-V",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and exit.",
)
@click.option(
    "--debug", is_flag=True, envvar="OTTLA_DEBUG", help="Show a traceback with every error."
)
@bootstrap_option
@click.pass_context
def ottla(ctx: click.Context, debug: bool) -> None:
    """A broker that speaks Kafka's wire protocol, and tools for it and any other Kafka broker.

    \b
    Try it:
      ottla demo
      ottla serve --listen 127.0.0.1:9092 --data ./data
      echo hello | ottla produce greetings --create
      ottla consume greetings
    """
    ctx.meta["ottla.debug"] = debug


def main() -> NoReturn:
    """Runs the command line and exits."""
    _open_closed_streams()
    sys.exit(int(run(sys.argv[1:])))


def _open_closed_streams() -> None:
    """Whoever closed them (`>&-`, `<&-`) wants nothing shown and gives nothing to read; Python has
    None in their place."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: SIM115 - it stays open
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115


def run(arguments: list[str]) -> int:
    """Runs one command line; returns its exit code. Never lets an exception out."""
    wants_debug = "--debug" in arguments or bool(os.environ.get("OTTLA_DEBUG"))
    try:
        code = _invoke(arguments)
        sys.stdout.flush()
    except BaseException as error:
        if wants_debug and not isinstance(error, click.ClickException | SystemExit):
            import traceback

            traceback.print_exc()
        return exit_code_for(error)
    return code if isinstance(code, int) else ExitCode.OK


def _invoke(arguments: list[str]) -> object:
    if COMPLETION_VARIABLE in os.environ:
        ottla.main(arguments, prog_name="ottla", complete_var=COMPLETION_VARIABLE)
    # Not `ottla.main`: it has its own mind about broken pipes and Ctrl-C.
    with ottla.make_context("ottla", arguments) as context:
        return ottla.invoke(context)


def exit_code_for(error: BaseException) -> int:
    """Says on standard error what went wrong, unless it is not worth a word."""
    match error:
        case click.exceptions.NoArgsIsHelpError():
            error.show()
            return error.exit_code
        case click.ClickException():
            _show_usage_error(error)
            return error.exit_code
        case click.exceptions.Exit() | SystemExit():
            code = error.exit_code if isinstance(error, click.exceptions.Exit) else error.code
            return code if isinstance(code, int) else ExitCode.FAILED
        case KeyboardInterrupt() | click.Abort() | EOFError():
            if sys.stderr.isatty():
                click.echo(err=True)  # the prompt should not stand behind the terminal's ^C
            return ExitCode.INTERRUPTED
        case BrokenPipeError():
            _forget_output()
            return ExitCode.OK
    from ottla.cli.complaint import complain

    return complain(error)


def _show_usage_error(error: click.ClickException) -> None:
    """A sentence and where to read more, in the form of all other errors."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    fix = f"`{context.command_path} --help` shows what is possible" if context else None
    say_error(error.format_message(), fix)


def _forget_output() -> None:
    """The reader of our output has left: Python must not try to flush to it when it exits."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
