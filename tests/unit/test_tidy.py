"""The house rules of tools/tidy.py: each is broken once on purpose, and kept once beside it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "tidy.py"


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("ottla_tools_tidy", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


tidy = _load()


def messages(
    text: str, *, path: str = "src/ottla/example.py", documented: bool = True
) -> list[str]:
    """What tidy says about a file with this text."""
    if documented:
        text = f'"""An example."""\n{text}'
    return [finding.message for finding in tidy.findings([tidy.SourceFile.parse(path, text)])]


def a_function(lines: int) -> str:
    return "def work():\n" + "    pass\n" * (lines - 1)


def test_a_function_of_seventy_lines_passes_and_one_more_does_not() -> None:
    assert messages(a_function(70)) == []
    assert messages(a_function(71)) == ["work has 71 lines, 70 are allowed"]


def test_a_class_of_three_hundred_lines_passes_and_one_more_does_not() -> None:
    assert messages("class Log:\n" + "    x = 1\n" * 299) == []
    assert messages("class Log:\n" + "    x = 1\n" * 300) == [
        "class Log has 301 lines, 300 are allowed"
    ]


def test_a_file_of_seven_hundred_lines_passes_and_one_more_does_not() -> None:
    assert messages("x = 1\n" * 699) == []
    assert messages("x = 1\n" * 700) == ["the file has 701 lines, 700 are allowed"]


@pytest.mark.parametrize(
    "parameters",
    [
        "a, b, c, d, e",
        "self, a, b, c, d, e",
        "cls, a, b, c, d, *, e",
        "a, *, b=1, c=1, d=1, e=1, f=1",
    ],
)
def test_five_parameters_pass_besides_self_and_flags(parameters: str) -> None:
    assert messages(f"def work({parameters}): pass") == []


@pytest.mark.parametrize(
    "parameters",
    ["a, b, c, d, e, f", "a, b, c, d, e, f=1", "a, b, *, c, d, e, f", "a, b, c, d, *e, **f"],
)
def test_six_parameters_are_too_many(parameters: str) -> None:
    assert messages(f"def work({parameters}): pass") == ["work takes 6 parameters, 5 are allowed"]


def test_the_options_of_a_command_and_the_fields_of_a_dataclass_are_not_counted() -> None:
    assert messages("@click.command()\ndef serve(a, b, c, d, e, f): pass") == []
    fields = "".join(f"    field_{number}: int\n" for number in range(9))
    assert messages(f"@dataclass\nclass Options:\n{fields}") == []


@pytest.mark.parametrize(
    "path", ["src/ottla/utils.py", "src/ottla/common/log.py", "src/ottla/log_helpers.py"]
)
def test_a_module_name_that_says_nothing_is_refused(path: str) -> None:
    assert len(messages("", path=path)) == 1


@pytest.mark.parametrize(
    "code", ["class LogManager: pass", "def helper(): pass", "class Misc: pass"]
)
def test_a_class_or_function_name_that_says_nothing_is_refused(code: str) -> None:
    assert len(messages(code)) == 1


def test_the_empty_words_may_stand_inside_a_name() -> None:
    assert messages("def common_prefix(): pass\nclass Commonplace: pass") == []


def test_a_file_without_a_docstring_is_refused_even_when_it_is_empty() -> None:
    expected = ["the file does not say what it is for: it needs a docstring"]
    assert messages("", documented=False) == expected
    assert messages("x = 1", documented=False) == expected


def test_inheritance_within_the_project_is_for_protocols_messages_enums_and_exceptions() -> None:
    allowed = (
        "class LogError(Exception): pass\nclass Fenced(LogError): pass\nclass Late(Fenced): pass"
    )
    assert messages(allowed) == []
    assert messages("class Log: pass\nclass CleanedLog(Log): pass") == [
        "class CleanedLog inherits from Log"
    ]


def test_a_metaclass_is_refused() -> None:
    assert messages("class Log(metaclass=Meta): pass") == ["class Log names a metaclass"]


@pytest.mark.parametrize("call", ["time.sleep(1)", "sleep(1)", "await asyncio.sleep(0.1)"])
def test_a_test_that_sleeps_is_refused(call: str) -> None:
    refused = ["a test waits for a condition, it does not sleep"]
    assert messages(f"async def test_it():\n    {call}", path="tests/test_x.py") == refused


def test_a_loop_that_waits_for_a_condition_and_a_bare_yield_may_sleep() -> None:
    waiting = "def wait():\n    while not ready():\n        time.sleep(0.01)"
    assert messages(waiting, path="tests/test_x.py") == []
    yielding = "async def test_it():\n    await asyncio.sleep(0)"
    assert messages(yielding, path="tests/test_x.py") == []


def test_sleeping_outside_the_tests_is_not_its_business() -> None:
    assert messages("import time\ntime.sleep(1)", path="bench/run.py") == []


def test_the_findings_name_the_file_and_the_line() -> None:
    file = tidy.SourceFile.parse("src/a.py", '"""An example."""\n\n\ndef misc(): pass\n')
    assert [str(finding) for finding in tidy.findings([file])] == [
        "src/a.py:4: the name misc says nothing about what it does"
    ]
