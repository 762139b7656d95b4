"""Holds the house rules that ruff and mypy do not know: sizes, names, inheritance, sleeping tests.

    python tools/tidy.py [FILE...]        all Python files of the project when none is named

The rules, without exemptions:

1. A file has at most 700 lines, a class 300, a function 70, from its `def` or `class` to its end.
2. A function takes at most 5 parameters. Not counted: `self` and `cls`; keyword-only ones with a
   default, for a call reads well without them; and the parameters of a function that click calls,
   for those are the options of a command. The fields of a dataclass are not parameters.
3. No module is called utils, helpers, common, manager or misc, or has one of them as a word of its
   name; no class or function has one as its last word.
4. Every file says in a docstring what it is for.
5. In `src`, a class of the project inherits from another one only where its line of bases ends in a
   Protocol, a Message (msgspec's Struct), an Enum or an exception. No class names a metaclass.
6. A test does not sleep, other than inside a `while` loop that waits for a condition.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("src", "tests", "tools", "bench", "examples")
FILE_LINES_MAX = 700
CLASS_LINES_MAX = 300
FUNCTION_LINES_MAX = 70
PARAMETERS_MAX = 5
EMPTY_NAMES = frozenset({"util", "utils", "helper", "helpers", "common", "manager", "misc"})
ROOTS_ENDINGS = ("Protocol", "Struct", "Message", "Enum", "Flag", "Exception", "Error")

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One broken rule and where it was broken."""

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One parsed file under its path from the project's root."""

    path: str
    text: str
    tree: ast.Module

    @classmethod
    def parse(cls, path: str, text: str) -> SourceFile:
        return cls(path, text, ast.parse(text))

    def functions(self) -> Iterator[Function]:
        return (node for node in ast.walk(self.tree) if isinstance(node, Function))

    def classes(self) -> Iterator[ast.ClassDef]:
        return (node for node in ast.walk(self.tree) if isinstance(node, ast.ClassDef))

    def finding(self, line: int, message: str) -> Finding:
        return Finding(self.path, line, message)


def findings(files: Iterable[SourceFile]) -> list[Finding]:
    """Everything in the files that breaks a rule, in reading order."""
    files = list(files)
    found: list[Finding] = []
    for file in files:
        found += _sizes(file)
        found += _parameters(file)
        found += _names(file)
        found += _docstring(file)
        if file.path.startswith("tests/"):
            found += _sleeps(file)
    found += _inheritance([file for file in files if file.path.startswith("src/")])
    return sorted(found)


def _sizes(file: SourceFile) -> Iterator[Finding]:
    file_lines = len(file.text.splitlines())
    if file_lines > FILE_LINES_MAX:
        yield file.finding(1, f"the file has {file_lines} lines, {FILE_LINES_MAX} are allowed")
    for node in file.classes():
        if (lines := _lines_of(node)) > CLASS_LINES_MAX:
            yield file.finding(
                node.lineno, f"class {node.name} has {lines} lines, {CLASS_LINES_MAX} are allowed"
            )
    for function in file.functions():
        if (lines := _lines_of(function)) > FUNCTION_LINES_MAX:
            yield file.finding(
                function.lineno,
                f"{function.name} has {lines} lines, {FUNCTION_LINES_MAX} are allowed",
            )


def _lines_of(node: ast.ClassDef | Function) -> int:
    assert node.end_lineno is not None
    return node.end_lineno - node.lineno + 1


def _parameters(file: SourceFile) -> Iterator[Finding]:
    for function in file.functions():
        count = _parameter_count(function)
        if count > PARAMETERS_MAX and not _is_called_by_click(function):
            yield file.finding(
                function.lineno,
                f"{function.name} takes {count} parameters, {PARAMETERS_MAX} are allowed",
            )


def _parameter_count(function: Function) -> int:
    parameters = function.args
    positional = [one.arg for one in parameters.posonlyargs + parameters.args]
    if positional[:1] in (["self"], ["cls"]):
        positional = positional[1:]
    required = sum(default is None for default in parameters.kw_defaults)
    return len(positional) + required + bool(parameters.vararg) + bool(parameters.kwarg)


def _is_called_by_click(function: Function) -> bool:
    ends = (".command", ".option", ".argument", ".group")
    return any(_dotted(decorator).endswith(ends) for decorator in function.decorator_list)


def _names(file: SourceFile) -> Iterator[Finding]:
    for part in Path(file.path).with_suffix("").parts:
        if EMPTY_NAMES & set(_words(part)):
            yield file.finding(1, f"the name {part} says nothing about what is in it")
    for node in (*file.classes(), *file.functions()):
        if _words(node.name)[-1:] and _words(node.name)[-1] in EMPTY_NAMES:
            yield file.finding(node.lineno, f"the name {node.name} says nothing about what it does")


def _words(name: str) -> list[str]:
    """The words of a snake_case or CamelCase name, in lower case."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def _docstring(file: SourceFile) -> Iterator[Finding]:
    if ast.get_docstring(file.tree) is None:
        yield file.finding(1, "the file does not say what it is for: it needs a docstring")


def _sleeps(file: SourceFile) -> Iterator[Finding]:
    waiting = {
        id(inner)
        for loop in ast.walk(file.tree)
        if isinstance(loop, ast.While)
        for inner in ast.walk(loop)
    }
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Call) and _is_sleep(node) and id(node) not in waiting:
            yield file.finding(node.lineno, "a test waits for a condition, it does not sleep")


def _is_sleep(call: ast.Call) -> bool:
    """A call of some sleep; `asyncio.sleep(0)` only lets others run."""
    yields_only = (
        bool(call.args) and isinstance(call.args[0], ast.Constant) and not call.args[0].value
    )
    return _dotted(call.func).rpartition(".")[2] == "sleep" and not yields_only


def _inheritance(files: list[SourceFile]) -> Iterator[Finding]:
    bases = {
        node.name: [_dotted(base) for base in node.bases]
        for file in files
        for node in file.classes()
    }
    for file in files:
        for node in file.classes():
            if any(keyword.arg == "metaclass" for keyword in node.keywords):
                yield file.finding(node.lineno, f"class {node.name} names a metaclass")
            for base in bases[node.name]:
                if base in bases and not _ends_in_a_root(base, bases, frozenset()):
                    yield file.finding(node.lineno, f"class {node.name} inherits from {base}")


def _ends_in_a_root(name: str, bases: dict[str, list[str]], seen: frozenset[str]) -> bool:
    if name.endswith(ROOTS_ENDINGS):
        return True
    above = set(bases.get(name, ())) - seen
    return any(_ends_in_a_root(base, bases, seen | {name}) for base in above)


def _dotted(node: ast.expr) -> str:
    """The dotted name of an expression such as `click.option(...)`, or what is named of it."""
    if isinstance(node, ast.Call):
        return _dotted(node.func)
    if isinstance(node, ast.Subscript):
        return _dotted(node.value)
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def main(arguments: list[str]) -> int:
    """Print every finding and return 1 when there is one."""
    named = [Path(argument).resolve() for argument in arguments]
    paths = named or [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    files = [SourceFile.parse(str(path.relative_to(ROOT)), path.read_text()) for path in paths]
    found = findings(files)
    for finding in found:
        print(finding)
    print(f"tidy: {len(files)} files, {len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
