"""A wheel is built with and without a C compiler, and installing never fails for lack of one."""

import importlib.util
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ottla import compiled

pytest.importorskip("hatchling")
ROOT = Path(__file__).parents[2]


class Metadata:
    """What the hook asks of the project."""

    class core:  # noqa: N801 - hatchling's name
        dependencies = ("msgspec>=0.19",)


class Application:
    """What the hook may say to whoever builds."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def display_warning(self, text: str) -> None:
        self.warnings.append(text)


@pytest.fixture(name="build")
def load_build() -> ModuleType:
    specification = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def a_hook(build: ModuleType) -> Any:
    return build.CompiledModules(str(ROOT), {}, None, Metadata, "", "wheel", Application())


def no_build_data() -> dict[str, Any]:
    return {"force_include": {}, "pure_python": True, "infer_tag": False}


@pytest.mark.parametrize(("name", "value"), [("OTTLA_PURE", "1"), ("CC", "/nowhere/cc")])
def test_without_a_compiler_nothing_is_needed_and_the_wheel_is_pure(
    build: ModuleType, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    hook = a_hook(build)
    data = no_build_data()
    hook.initialize("standard", data)
    hook.finalize("standard", data, "")
    assert hook.dependencies() == []
    assert data == no_build_data()


def test_where_compiling_fails_the_wheel_is_pure_and_a_warning_says_so(
    build: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise SystemExit("error: command 'cc' failed")

    monkeypatch.setattr(build, "can_compile", lambda: True)
    monkeypatch.setattr(build, "compile_loops", fail)
    monkeypatch.setattr(build, "compile_path", fail)
    hook = a_hook(build)
    data = no_build_data()
    hook.initialize("standard", data)
    hook.finalize("standard", data, "")
    assert data == no_build_data()
    assert "without compiled loops: error: command 'cc' failed" in hook.app.warnings[0]
    assert "without compiled request path" in hook.app.warnings[1]


def test_what_was_compiled_goes_into_the_wheel_under_its_package(
    build: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    loops, path = tmp_path / "decoding_compiled.so", tmp_path / "ottla.storage.log.so"
    monkeypatch.setattr(build, "can_compile", lambda: True)
    monkeypatch.setattr(build, "compile_loops", lambda *_: {"ottla/records/a.so": loops})
    monkeypatch.setattr(build, "compile_path", lambda *_: {"ottla/compiled/b.so": path})
    hook = a_hook(build)
    data = no_build_data()
    hook.initialize("standard", data)
    hook.finalize("standard", data, "")
    assert data == {
        "force_include": {str(loops): "ottla/records/a.so", str(path): "ottla/compiled/b.so"},
        "pure_python": False,
        "infer_tag": True,
    }
    assert hook.dependencies() == [*build.REQUIREMENTS, "msgspec>=0.19"]


def test_what_one_compiler_cannot_do_the_other_still_does(
    build: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(*_: object) -> None:
        raise SystemExit("mypy found errors")

    monkeypatch.setattr(build, "can_compile", lambda: True)
    monkeypatch.setattr(build, "compile_loops", lambda *_: {"ottla/records/a.so": tmp_path / "a"})
    monkeypatch.setattr(build, "compile_path", fail)
    hook = a_hook(build)
    data = no_build_data()
    hook.initialize("standard", data)
    hook.finalize("standard", data, "")
    assert [*data["force_include"].values()] == ["ottla/records/a.so"]


@pytest.mark.parametrize("can_compile", [True, False])
def test_an_editable_install_that_compiles_nothing_leaves_nothing_compiled(
    build: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, can_compile: bool
) -> None:
    folder = tmp_path / "src" / build.PATH_FOLDER
    folder.mkdir(parents=True)
    for name in (build.LISTING, f"ottla.storage.log{build.SUFFIX}", "__init__.py"):
        (folder / name).touch()
    monkeypatch.setattr(build, "can_compile", lambda: can_compile)
    monkeypatch.setattr(build, "compile_loops", lambda *_: {})
    monkeypatch.setattr(build, "compile_path", lambda *_: {})
    hook = build.CompiledModules(str(tmp_path), {}, None, Metadata, "", "wheel", Application())
    hook.initialize("editable", no_build_data())
    hook.finalize()
    assert [file.name for file in folder.iterdir()] == ["__init__.py"]


def test_what_is_built_is_what_the_package_looks_for(build: ModuleType) -> None:
    assert Path(compiled.FOLDER) == ROOT / "src" / build.PATH_FOLDER
    assert compiled.LISTING == build.LISTING
    assert EXTENSION_SUFFIXES[0] == build.SUFFIX


def test_every_module_that_is_to_be_compiled_is_there(build: ModuleType) -> None:
    modules = [name for names in build.groups_of_path(ROOT).values() for name in names]
    assert len(modules) == len({*modules})
    assert all((ROOT / "src" / f"{name.replace('.', '/')}.py").exists() for name in modules)


def test_what_is_compiled_knows_its_source(build: ModuleType, tmp_path: Path) -> None:
    copy = build._signed(ROOT / "src" / build.LOOPS_FOLDER / "decoding.py", tmp_path)
    namespace: dict[str, Any] = {}
    exec(copy.read_text().splitlines()[-1], namespace)
    assert len(namespace["SOURCE_DIGEST"]) == 64
    assert "hatch_build" not in sys.modules
