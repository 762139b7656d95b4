"""Settings of topics, brokers and loggers: read them, set them, give them back their defaults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from ottla.clients.client import ANY_BROKER, Client
from ottla.clients.failures import TopicNotFound, check_answer
from ottla.errors import ErrorCode
from ottla.model.ids import BrokerId
from ottla.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from ottla.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from ottla.protocol.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)


class ResourceKind(IntEnum):
    """What has settings, by its number on the wire."""

    TOPIC = 2
    BROKER = 4
    LOGGER = 8


class ConfigSource(IntEnum):
    """Where a value comes from, by its number on the wire."""

    UNKNOWN = 0
    TOPIC = 1
    BROKER = 2
    DEFAULT_BROKER = 3
    STATIC = 4
    DEFAULT = 5
    LOGGER = 6

    @property
    def words(self) -> str:
        """For people."""
        return _SOURCE_WORDS[self]


_SOURCE_WORDS: Final = {
    ConfigSource.UNKNOWN: "unknown",
    ConfigSource.TOPIC: "topic",
    ConfigSource.BROKER: "broker, live",
    ConfigSource.DEFAULT_BROKER: "all brokers, live",
    ConfigSource.STATIC: "broker, at start",
    ConfigSource.DEFAULT: "default",
    ConfigSource.LOGGER: "logger",
}
_SET: Final = 0
_UNSET: Final = 1


@dataclass(frozen=True, slots=True)
class Resource:
    """A topic by name, or a broker or its loggers by number; no number means all brokers."""

    kind: ResourceKind
    name: str

    def __str__(self) -> str:
        if self.kind is ResourceKind.BROKER and not self.name:
            return "all brokers"
        if self.kind is ResourceKind.LOGGER:
            return f"the loggers of broker {self.name!r}"
        return f"{self.kind.name.lower()} {self.name!r}"

    @property
    def destination(self) -> BrokerId:
        """A broker answers for itself; any broker for a topic."""
        if self.kind is not ResourceKind.TOPIC and self.name.isdigit():
            return BrokerId(int(self.name))
        return ANY_BROKER


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One setting as a broker reports it; the value of a secret is None."""

    name: str
    value: str | None
    source: ConfigSource
    is_read_only: bool
    is_sensitive: bool
    doc: str | None

    @property
    def is_default(self) -> bool:
        """Whether nobody has set it."""
        return self.source is ConfigSource.DEFAULT


async def describe_configs(
    client: Client, resource: Resource, names: Sequence[str] = ()
) -> list[ConfigEntry]:
    """The settings of one resource by name; all of them unless some are named."""
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(
                resource_type=int(resource.kind),
                resource_name=resource.name,
                configuration_keys=list(names) or None,
            )
        ],
        include_documentation=True,
    )

    async def attempt() -> list[ConfigEntry]:
        response = await client.call(
            request, DescribeConfigsResponse, to=resource.destination, at_least=1
        )
        for result in response.results:
            _check(result.error_code, resource, result.error_message)
        return [_entry(config) for result in response.results for config in result.configs]

    return sorted(await client.retrying(attempt), key=lambda entry: entry.name)


async def alter_configs(
    client: Client,
    resource: Resource,
    *,
    set_values: Mapping[str, str] | None = None,
    unset: Iterable[str] = (),
    validate_only: bool = False,
) -> None:
    """Sets and unsets settings of one resource: all of them or none."""
    changes = [
        AlterableConfig(name=name, config_operation=_SET, value=value)
        for name, value in (set_values or {}).items()
    ] + [AlterableConfig(name=name, config_operation=_UNSET, value=None) for name in unset]
    request = IncrementalAlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=int(resource.kind), resource_name=resource.name, configs=changes
            )
        ],
        validate_only=validate_only,
    )

    async def attempt() -> None:
        response = await client.call(
            request, IncrementalAlterConfigsResponse, to=resource.destination
        )
        for result in response.responses:
            _check(result.error_code, resource, result.error_message)

    await client.retrying(attempt)


async def list_config_resources(client: Client, kinds: Iterable[int] = ()) -> list[tuple[int, str]]:
    """The resources that have settings, by the number of their kind and their name."""
    request = ListConfigResourcesRequest(resource_types=[int(kind) for kind in kinds])

    async def attempt() -> list[tuple[int, str]]:
        response = await client.call(request, ListConfigResourcesResponse, at_least=1)
        check_answer(response.error_code, "the resources with settings")
        return [(row.resource_type, row.resource_name) for row in response.config_resources]

    return sorted(await client.retrying(attempt))


def _check(code: int, resource: Resource, message: str | None) -> None:
    # Unknown topics are worth a retry elsewhere in the protocol, but not when a person names one.
    if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and resource.kind is ResourceKind.TOPIC:
        raise TopicNotFound(resource.name)
    check_answer(code, str(resource), message)


def _entry(config: DescribeConfigsResourceResult) -> ConfigEntry:
    try:
        source = ConfigSource(config.config_source)
    except ValueError:
        source = ConfigSource.UNKNOWN
    return ConfigEntry(
        name=config.name,
        value=config.value,
        source=source,
        is_read_only=config.read_only,
        is_sensitive=config.is_sensitive,
        doc=config.documentation,
    )
