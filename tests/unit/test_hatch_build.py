"""A wheel is built with and without a C compiler, and installing never fails for lack of one."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("hatchling")
ROOT = Path(__file__).parents[2]


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
    return build.CompiledLoops(str(ROOT), {}, None, None, "", "wheel", Application())


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
    hook = a_hook(build)
    data = no_build_data()
    hook.initialize("standard", data)
    hook.finalize("standard", data, "")
    assert data == no_build_data()
    assert "command 'cc' failed" in hook.app.warnings[0]


def test_compiled_loops_go_into_the_wheel_under_their_package(
    build: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    module = tmp_path / "decoding_compiled.so"
    monkeypatch.setattr(build, "can_compile", lambda: True)
    monkeypatch.setattr(build, "compile_loops", lambda *_: [module])
    hook = a_hook(build)
    data = no_build_data()
    hook.initialize("standard", data)
    hook.finalize("standard", data, "")
    assert data == {
        "force_include": {str(module): "ottla/records/accelerated/decoding_compiled.so"},
        "pure_python": False,
        "infer_tag": True,
    }
    assert hook.dependencies() == build.REQUIREMENTS


def test_what_is_compiled_knows_its_source(build: ModuleType, tmp_path: Path) -> None:
    copy = build._signed(ROOT / "src" / build.FOLDER / "decoding.py", tmp_path)
    namespace: dict[str, Any] = {}
    exec(copy.read_text().splitlines()[-1], namespace)
    assert len(namespace["SOURCE_DIGEST"]) == 64
    assert "hatch_build" not in sys.modules
