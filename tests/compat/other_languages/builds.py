"""Builds the programs once for all test processes, into a cache outside the checkout.

A build is kept under a digest of its sources and of this file, so that a changed program is built
anew and an unchanged one never again. Does not know what the programs do.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

SOURCES = Path(__file__).parent
OLD_JAVA = SOURCES / "old_java"
CACHE = (
    Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    / "ottla-tests"
    / "other-languages"
)
FETCH_SECONDS_MAX = 120
BUILD_SECONDS_MAX = 300
REASON_CHARACTERS_MAX = 200
BUILDS_KEPT_MAX = 3
COMPLETE = ".complete"
GO_BESIDE_PATH = Path("/usr/local/go/bin")
GO_SETTINGS = {
    "CGO_ENABLED": "0",
    "GOFLAGS": "-mod=readonly -buildvcs=false",
    "GOTOOLCHAIN": "local",
    "GOWORK": "off",
}
GO_OPTIONS = ["-gcflags=all=-N -l", "-ldflags=-s -w"]
"""Built rather than run quickly: without optimising it takes two thirds of the time."""
JAVA_OPTIONS = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Xlog:disable"]
"""To start soon, and without what Java would say on stdout of an archive that does not fit."""

Build = Callable[[Path, Path], None]


class CannotBuild(Exception):
    """A tool is not on this machine, or the packages cannot be fetched; nobody's mistake."""


def go_programs() -> Path:
    """The folder with the programs of the Go clients, one executable for each."""
    return _built(SOURCES / "go", _build_go)


def kafkajs_command() -> list[str]:
    """Node with the program of kafkajs."""
    node = _tool("node")
    return [node, str(_built(SOURCES / "kafkajs", _build_kafkajs) / "program.js")]


def java_command() -> list[str]:
    """Java with the program of Apache Kafka's own client, and the archive of its classes."""
    java = _tool("java")
    folder = _built(SOURCES / "java", _build_java)
    return [java, *JAVA_OPTIONS, f"-XX:SharedArchiveFile={folder}/classes.jsa", *_classes(folder)]


def old_java_command(version: str, chapters: Sequence[Path]) -> list[str]:
    """Java with the program for a version of Kafka's client, and the chapters it can do."""

    def build(source: Path, target: Path) -> None:
        _fetch_jars(source, target, f"-Dkafka.version={version}")
        _compile_java([*source.glob("*.java"), *chapters], target)

    java = _tool("java")
    folder = _built(OLD_JAVA, build, name=f"{OLD_JAVA.name}-{version}")
    return [java, *JAVA_OPTIONS, *_classes(folder)]


def _build_go(source: Path, target: Path) -> None:
    go = _tool("go", beside=GO_BESIDE_PATH)
    _fetch([go, "mod", "download"], source, GO_SETTINGS)
    clients = ["./franzgo", "./kafkago", "./sarama"]
    _make([go, "build", *GO_OPTIONS, "-o", f"{target}/", *clients], source, GO_SETTINGS)


def _build_kafkajs(source: Path, target: Path) -> None:
    for file in source.iterdir():
        shutil.copy(file, target)
    quickly = ["--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1"]
    _fetch([_tool("npm"), "ci", "--loglevel=error", *quickly], target, {})


def _build_java(source: Path, target: Path) -> None:
    _fetch_jars(source, target)
    _compile_java(sorted(source.glob("*.java")), target)
    archive = f"-XX:ArchiveClassesAtExit={target}/classes.jsa"
    command = [_tool("java"), *JAVA_OPTIONS, archive, *_classes(target)]
    _make([*command, "load_classes", "nowhere"], target, said="{}\n")


def _fetch_jars(source: Path, target: Path, *more: str) -> None:
    pom = f"--file={shutil.copy(source / 'pom.xml', target)}"
    quietly = ["--batch-mode", "--quiet"]
    copying = ["dependency:copy-dependencies", f"-DoutputDirectory={target}", *more]
    with _locked(CACHE / "maven.lock"):  # its own cache is not for several at once
        _fetch([_tool("mvn"), *quietly, pom, *copying], target, {})


def _compile_java(sources: Sequence[Path], target: Path) -> None:
    """Into a jar, for the classes of a mere folder cannot be archived."""
    classes = target / "classes"
    options = ["-nowarn", "-proc:none", "-classpath", f"{target}/*", "-d", str(classes)]
    _make([_tool("javac"), *options, *map(str, sources)], target)
    _make([_tool("jar"), "cf", str(target / "program.jar"), "-C", str(classes), "."], target)


def _classes(folder: Path) -> list[str]:
    """The class to run and where Java finds it: always in this order, or no archive fits."""
    jars = sorted(str(jar) for jar in folder.glob("*.jar"))
    return ["-classpath", os.pathsep.join(jars), "Main"]


def _tool(name: str, *, beside: Path | None = None) -> str:
    searched = os.pathsep.join([os.environ.get("PATH", ""), *([str(beside)] if beside else [])])
    found = shutil.which(name, path=searched)
    if found is None:
        raise CannotBuild(f"{name} is not on this machine")
    return found


def _fetch(command: Sequence[str], folder: Path, settings: dict[str, str]) -> None:
    try:
        done = _run(command, folder, settings, seconds_max=FETCH_SECONDS_MAX)
    except subprocess.TimeoutExpired as problem:
        raise CannotBuild(f"the packages do not come: {problem}") from problem
    if done.returncode:
        lines = (line for line in done.stdout.splitlines() if "WARNING" not in line)
        reason = " ".join(" ".join(lines).split())[:REASON_CHARACTERS_MAX]
        raise CannotBuild(f"the packages cannot be fetched: {reason}")


def _make(
    command: Sequence[str], folder: Path, settings: dict[str, str] | None = None, *, said: str = ""
) -> None:
    done = _run(command, folder, settings or {}, seconds_max=BUILD_SECONDS_MAX, said=said)
    assert done.returncode == 0, done.stdout


def _run(
    command: Sequence[str],
    folder: Path,
    settings: dict[str, str],
    *,
    seconds_max: float,
    said: str = "",
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **settings},
        input=said,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=seconds_max,
        check=False,
    )


def _built(source: Path, build: Build, *, name: str = "") -> Path:
    """The folder a build filled, now or before.

    It is filled in its place, which Java's archives must not leave, and marked when complete.
    """
    name = name or source.name
    target = CACHE / f"{name}-{_digest(source)}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with _locked(CACHE / f"{name}.lock"):
        if not (target / COMPLETE).exists():
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir()
            build(source, target)
            (target / COMPLETE).touch()
        target.touch()
        _forget_all_but_the_last_used(name)
    return target


def _forget_all_but_the_last_used(name: str) -> None:
    builds = sorted(CACHE.glob(f"{name}-*"), key=lambda path: path.stat().st_mtime)
    for old in builds[:-BUILDS_KEPT_MAX]:
        shutil.rmtree(old)


def _digest(source: Path) -> str:
    digest = hashlib.sha256(Path(__file__).read_bytes())
    for path in sorted(path for path in source.rglob("*") if path.is_file()):
        digest.update(f"{path.relative_to(source)}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Alone among all processes of this machine."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
