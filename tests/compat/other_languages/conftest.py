"""The clients of other languages as one parameter; each program is built when first asked for."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from compat.other_languages.builds import CannotBuild, go_programs, java_command, kafkajs_command
from compat.other_languages.client import OtherClient, Traits
from compat.other_languages.program import Program

Built = TypeVar("Built")
CLIENTS = {
    traits.name: traits
    for traits in (
        Traits("kafkajs", "kafkajs", codecs=("none", "gzip"), sends_null_headers=False),
        Traits("franz-go", "franzgo"),
        Traits("sarama", "sarama"),
        Traits("sarama-2.8", "sarama", release="2.8.0"),  # its default, which few change
        Traits("kafka-go", "kafkago", tells_empty_from_null=False, has_transactions=False),
        Traits("java", "java"),
    )
}
TRANSACTIONAL = [name for name, traits in CLIENTS.items() if traits.has_transactions]

ClientNamed = Callable[[str], OtherClient]


@pytest.fixture(scope="session")
def kafkajs() -> list[str]:
    return _or_skip(kafkajs_command)


@pytest.fixture(scope="session")
def java() -> list[str]:
    return _or_skip(java_command)


@pytest.fixture(scope="session")
def go_folder() -> Path:
    return _or_skip(go_programs)


@pytest.fixture(scope="session")
def franzgo(go_folder: Path) -> list[str]:
    return [str(go_folder / "franzgo")]


@pytest.fixture(scope="session")
def sarama(go_folder: Path) -> list[str]:
    return [str(go_folder / "sarama")]


@pytest.fixture(scope="session")
def kafkago(go_folder: Path) -> list[str]:
    return [str(go_folder / "kafkago")]


@pytest.fixture
def client_named(request: pytest.FixtureRequest, bootstrap: str) -> ClientNamed:
    """Gives a client by its name; a program is the fixture of its name, built when first needed."""

    def client_named(name: str) -> OtherClient:
        traits = CLIENTS[name]
        command: list[str] = request.getfixturevalue(traits.program)
        return OtherClient(traits, Program(command, bootstrap))

    return client_named


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest, client_named: ClientNamed) -> OtherClient:
    """Each client in turn, or those that a test names."""
    return client_named(request.param)


def _or_skip(build: Callable[[], Built]) -> Built:
    try:
        return build()
    except CannotBuild as reason:
        pytest.skip(str(reason))
