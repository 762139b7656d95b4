"""Apache Kafka's own client from 0.9 on does what it could in its years.

Its program has chapters, which check by themselves, in folders named by the first version that has
the calls for them; a version is compiled with its own and all older ones.
"""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from compat.other_languages.builds import OLD_JAVA, CannotBuild, old_java_command
from support.clients.confluent import ConfluentClient
from support.clients.face import Reading, Sending, ToSend
from support.requests import FETCH, supported_versions
from support.wire import Connection

NewName = Callable[[], str]
Version = tuple[int, ...]

VERSIONS = ["0.9.0.1", "0.10.2.2", "0.11.0.3", "1.1.1", "2.1.1", "3.0.2"]
OLDEST_OF_KAFKA_4 = "2.1"
ZSTD_SINCE = "2.1"
SECONDS_MAX = 120
COUNT = 100
WRITTEN_BEFORE = [b"before %d" % number for number in range(3)]

pytestmark = pytest.mark.slow


def numbers(version: str) -> Version:
    return tuple(map(int, version.split(".")))


def chapters_of(version: str) -> list[Path]:
    """Those that the version has the calls for, the oldest first."""
    eras = sorted((path for path in OLD_JAVA.iterdir() if path.is_dir()), key=era_of)
    own = [era for era in eras if era_of(era) <= numbers(version)]
    return [chapter for era in own for chapter in sorted(era.glob("*.java"))]


def era_of(folder: Path) -> Version:
    return numbers(folder.name)


def codecs_of(version: str) -> list[str]:
    newest = ["zstd"] if numbers(version) >= numbers(ZSTD_SINCE) else []
    return ["none", "gzip", "snappy", "lz4", *newest]


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest, connection: Connection) -> str:
    lowest, _ = supported_versions(connection)[FETCH]
    if lowest >= 4 and numbers(request.param) < numbers(OLDEST_OF_KAFKA_4):
        pytest.skip("this broker no longer speaks with clients older than 2.1")
    return str(request.param)


@pytest.fixture
def command(version: str) -> list[str]:
    try:
        return old_java_command(version, chapters_of(version))
    except CannotBuild as reason:
        pytest.skip(str(reason))


def test_an_old_java_client_does_all_it_can(
    command: list[str], version: str, bootstrap: str, new_name: NewName
) -> None:
    python, topic = ConfluentClient(bootstrap), new_name()
    python.create_topic(topic, partitions=2)
    new_style = [ToSend(value, headers=(("h", b"1"),)) for value in WRITTEN_BEFORE]
    python.produce(topic, new_style, Sending(codec="gzip"))
    codecs, chapters = codecs_of(version), [path.stem for path in chapters_of(version)]
    done = subprocess.run(
        [*command, bootstrap, topic, ",".join(codecs), *chapters],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert (done.stdout.split(), done.returncode) == (chapters, 0), done.stderr
    wished = [b"%s %d" % (codec.encode(), at) for codec in [*codecs, "none"] for at in range(COUNT)]
    reading = Reading(count=len(wished))
    received = python.consume(topic, {0: len(WRITTEN_BEFORE)}, reading)
    assert [record.value for record in received] == wished
