"""Compiled modules stand in for their sources, all or none, and never for sources that changed."""

import os
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from zlib import crc32

import pytest

from ottla.compiled import FOLDER, LISTING, MODULES, CompiledModules

REPORT = "import ottla.compiled, ottla.storage.log as log; print(log.__file__)"
BUILT = Path(FOLDER, LISTING).exists()


def write(sources: Path, name: str, text: str) -> None:
    file = sources / f"{name.replace('.', '/')}.py"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.fixture(name="modules")
def two_modules(tmp_path: Path) -> CompiledModules:
    """A folder that says that `ottla.one` and `ottla.deep.two` were compiled as they are."""
    texts = {"ottla.one": "one = 1\n", "ottla.deep.two": "two = 2\n"}
    for name, text in texts.items():
        write(tmp_path, name, text)
        (tmp_path / f"{name}{EXTENSION_SUFFIXES[0]}").touch()
    listing = (f"{name} {crc32(text.encode())}\n" for name, text in texts.items())
    (tmp_path / LISTING).write_text("".join(listing))
    return CompiledModules(str(tmp_path), str(tmp_path))


def test_compiled_modules_are_found_in_their_folder(
    modules: CompiledModules, tmp_path: Path
) -> None:
    specification = modules.find_spec("ottla.deep.two")

    assert specification is not None
    assert str(specification.origin).startswith(str(tmp_path / "ottla.deep.two."))


@pytest.mark.parametrize("name", ["ottla.deep", "ottla.three", "one", "ottla"])
def test_other_modules_are_left_to_others(modules: CompiledModules, name: str) -> None:
    assert modules.find_spec(name) is None


def test_one_changed_source_is_enough_to_use_none(modules: CompiledModules, tmp_path: Path) -> None:
    write(tmp_path, "ottla.one", "one = 11\n")

    assert modules.find_spec("ottla.one") is None
    assert modules.find_spec("ottla.deep.two") is None


def test_without_their_sources_none_are_used(modules: CompiledModules, tmp_path: Path) -> None:
    (tmp_path / "ottla/deep/two.py").unlink()

    assert modules.find_spec("ottla.one") is None


def test_one_missing_module_is_enough_to_use_none(modules: CompiledModules, tmp_path: Path) -> None:
    (tmp_path / f"ottla.one{EXTENSION_SUFFIXES[0]}").unlink()

    assert modules.find_spec("ottla.deep.two") is None


def test_nothing_compiled_is_no_trouble(tmp_path: Path) -> None:
    assert CompiledModules(str(tmp_path), str(tmp_path)).usable == frozenset()


def test_python_can_be_asked_for(modules: CompiledModules, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTTLA_PURE", "1")

    assert modules.find_spec("ottla.one") is None


def test_a_process_can_decline(modules: CompiledModules) -> None:
    modules.decline()

    assert modules.find_spec("ottla.one") is None


def test_these_tests_run_python() -> None:
    from ottla.storage import log

    assert MODULES in sys.meta_path
    assert log.__file__.endswith(".py")


def imported(**environment: str) -> str:
    """Where another process imports the log from."""
    done = subprocess.run(
        [sys.executable, "-c", REPORT],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.mark.skipif(not BUILT or "OTTLA_PURE" in os.environ, reason="nothing was compiled")
def test_other_processes_run_what_was_compiled_and_it_is_up_to_date() -> None:
    assert imported().endswith(".so"), "sources have changed: run `pip install --editable .`"
    assert imported(OTTLA_PURE="1").endswith(".py")
