"""The entry point: help, errors as sentences, exit codes."""

import subprocess
import sys
from platform import python_version

import click
import pytest

from ottla import __version__
from ottla.cli import main as main_module
from ottla.cli.exit_code import ExitCode
from ottla.cli.main import SECTIONS, exit_code_for, run
from ottla.clients.address import Address
from ottla.clients.failures import (
    BrokerNotThere,
    BrokerTooOld,
    DeliveryTimedOut,
    GroupHasMembers,
    GroupNotFound,
    NoBrokerReachable,
    NoOpenTransaction,
    TopicNotFound,
    TransactionNotFound,
)
from ottla.errors import ConfigError, ErrorCode, RequestFailed
from ottla.model.ids import BrokerId, Offset, TopicPartition
from ottla.net.client_connection import CannotConnect, NotABroker, ResponseTimedOut

COMMANDS = [name for section in SECTIONS.values() for name in section]


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == ExitCode.OK
    shown = capsys.readouterr().out
    for name in COMMANDS:
        assert f"  {name} " in shown


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([name, "--help"]) == ExitCode.OK
    assert f"Usage: ottla {name}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "example"),
    [
        ("produce", "ottla produce users users.txt --key-separator :"),
        ("consume", "ottla consume orders --from -1h --keys --timestamps"),
        ("serve", "ottla serve --config server.properties --set log.retention.hours=24"),
    ],
)
def test_examples_in_help_stand_on_lines_of_their_own(
    name: str, example: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run([name, "--help"])
    assert f"  {example}\n" in capsys.readouterr().out


def test_help_imports_nothing_heavy() -> None:
    """Or it would not be instant."""
    check = (
        "import sys; from ottla.cli.main import run; run(['--help']); "
        "heavy = {'asyncio', 'rich', 'msgspec', 'ssl', 'ottla.protocol.api'} & set(sys.modules); "
        "sys.exit(','.join(heavy) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", check], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_version_is_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == ExitCode.OK
    version = f"Ottla {__version__}, not compiled, on Python {python_version()}\n"
    assert capsys.readouterr().out == version


@pytest.mark.parametrize(
    "arguments",
    [
        ["nosuch"],
        ["consume"],
        ["topics", "create"],
        ["topics", "create", "t", "--partitions", "0"],
        ["topics", "alter", "t"],
        ["configs", "set", "topic", "t", "no-equals-sign"],
        ["configs", "get", "broker", "one"],
        ["consume", "t", "--from", "sometime"],
        ["produce", "t", "--key-separator", ""],
        ["produce", "t", "--format", "json", "--key-separator", ":"],
        ["groups", "reset", "g", "--topic", "t"],
        ["groups", "reset", "g", "--to", "latest"],
        ["groups", "reset", "g", "--topic", "t", "--to", "latest", "--shift", "1"],
        ["groups", "reset", "g", "--topic", "t:x", "--to", "latest"],
        ["groups", "reset", "g", "--topic", "t", "--to", "sometime"],
        ["groups", "list", "--state", "sleepy"],
        ["transactions", "abort"],
        ["transactions", "abort", "id", "--topic", "t"],
        ["transactions", "abort", "--topic", "t", "--partition", "0"],
        ["transactions", "find-hanging", "--older-than", "long"],
        ["topics", "list", "--bootstrap", "host:port:port"],
        ["serve", "--listen", "nowhere:x"],
        ["serve", "--set", "no.such.setting=1"],
    ],
)
def test_a_wrong_command_line_is_a_sentence_and_exit_code_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == ExitCode.USAGE
    said = capsys.readouterr()
    assert said.err.startswith("error: ")
    assert "Traceback" not in said.err
    assert said.out == ""


def test_a_mistyped_command_gets_a_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    run(["topcs"])
    assert "Did you mean 'topics'?" in capsys.readouterr().err


def test_what_cannot_be_undone_needs_yes_where_nobody_can_be_asked(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    assert run(["topics", "delete", "t"]) == ExitCode.USAGE
    assert "--yes" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (TopicNotFound("orders"), 1, "ottla topics create orders"),
        (TopicNotFound("orders", 9), 1, "ottla topics describe orders"),
        (RequestFailed(ErrorCode.TOPIC_ALREADY_EXISTS), 1, "--if-not-exists"),
        (GroupNotFound("g"), 1, "ottla groups list"),
        (GroupHasMembers("g"), 1, "ottla groups describe g"),
        (TransactionNotFound("id"), 1, "ottla transactions list"),
        (
            NoOpenTransaction(TopicPartition("t", 0), Offset(1)),
            1,
            "ottla transactions producers t",
        ),
        (ConfigError("listeners", "is wrong", "write it right"), 2, "write it right"),
        (CannotConnect("127.0.0.1:9092", ConnectionRefusedError()), 3, "ottla serve"),
        (BrokerNotThere(BrokerId(9)), 3, "ottla brokers list"),
        (
            NoBrokerReachable([(Address("h", 1), CannotConnect("h:1", TimeoutError()))]),
            3,
            "ottla doctor h:1",
        ),
        (NotABroker("h:1", b"HTTP/1.1"), 3, "HTTP server"),
        (ResponseTimedOut("h:1", 30.0), 3, "--timeout"),
        (
            DeliveryTimedOut(TopicPartition("t", 0), 1, CannotConnect("h:1", TimeoutError())),
            3,
            "ottla doctor h:1",
        ),
        (DeliveryTimedOut(TopicPartition("t", 0), 1, None), 1, "not acknowledged"),
        (BrokerTooOld("h:1", "Fetch", "is too old"), 1, "upgrade"),
        (FileNotFoundError(2, "No such file", "x.txt"), 1, "x.txt"),
    ],
)
def test_an_error_is_a_sentence_with_the_fix_and_an_exit_code(
    error: BaseException, code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code_for(error) == code
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert words in said


@pytest.mark.parametrize(
    ("error", "code"),
    [(KeyboardInterrupt(), 130), (click.Abort(), 130), (click.exceptions.Exit(4), 4)],
)
def test_leaving_on_purpose_says_nothing(
    error: BaseException, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code_for(error) == code
    assert capsys.readouterr() == ("", "")


def test_a_bug_is_called_a_bug_and_shows_no_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(main_module.ottla, "invoke", broken)
    assert run(["topics", "list"]) == ExitCode.BUG
    said = capsys.readouterr().err
    assert "this is a bug" in said
    assert "Traceback" not in said
    run(["--debug", "topics", "list"])
    assert "Traceback" in capsys.readouterr().err
