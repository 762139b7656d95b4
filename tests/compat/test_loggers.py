"""How much a broker logs, changed while it runs.

Runs on Apache Kafka as well; that is where the expected answers come from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from compat.conftest import Ask
from ottla.errors import ErrorCode
from ottla.protocol.messages import alter_configs as replace
from ottla.protocol.messages import describe_configs as describe
from ottla.protocol.messages import incremental_alter_configs as alter
from ottla.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from ottla.protocol.messages.metadata import MetadataRequest, MetadataResponse

TOPIC, LOGGER = 2, 8
SET, DELETE, APPEND = 0, 1, 2
DYNAMIC_BROKER_LOGGER = 6
ROOT = "root"


class Loggers:
    """The loggers of the only broker there is."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        (only,) = ask(MetadataRequest(topics=[]), MetadataResponse).brokers
        self.broker = only.node_id

    def levels(self) -> dict[str, str | None]:
        (result,) = self.described(str(self.broker)).results
        assert result.error_code == ErrorCode.NONE
        assert {entry.config_source for entry in result.configs} == {DYNAMIC_BROKER_LOGGER}
        assert not any(entry.read_only or entry.synonyms for entry in result.configs)
        return {entry.name: entry.value for entry in result.configs}

    def described(self, name: str) -> describe.DescribeConfigsResponse:
        wanted = describe.DescribeConfigsRequest(
            [describe.DescribeConfigsResource(LOGGER, name, None)]
        )
        return self._ask(wanted, describe.DescribeConfigsResponse)

    def altered(
        self, *changes: alter.AlterableConfig, validate_only: bool = False, name: str | None = None
    ) -> int:
        resource = alter.AlterConfigsResource(LOGGER, name or str(self.broker), list(changes))
        (response,) = self.altered_resources(resource, validate_only=validate_only)
        return response.error_code

    def altered_resources(
        self, *resources: alter.AlterConfigsResource, validate_only: bool = False
    ) -> list[alter.AlterConfigsResourceResponse]:
        request = alter.IncrementalAlterConfigsRequest(list(resources), validate_only)
        return self._ask(request, alter.IncrementalAlterConfigsResponse).responses

    def replaced(self) -> int:
        change = replace.AlterableConfig(ROOT, "INFO")
        request = replace.AlterConfigsRequest(
            [replace.AlterConfigsResource(LOGGER, str(self.broker), [change])]
        )
        return self._ask(request, replace.AlterConfigsResponse).responses[0].error_code

    def listed(self) -> list[ConfigResource]:
        request = ListConfigResourcesRequest([LOGGER])
        return self._ask(request, ListConfigResourcesResponse).config_resources


@pytest.fixture
def loggers(ask: Ask) -> Iterator[Loggers]:
    """With the root logger's level as it was, afterwards."""
    found = Loggers(ask)
    before = found.levels()[ROOT]
    yield found
    found.altered(alter.AlterableConfig(ROOT, SET, before))


@pytest.mark.parametrize("level", ["FATAL", "ERROR", "WARN"])
def test_a_level_is_set_and_told(loggers: Loggers, level: str) -> None:
    change = alter.AlterableConfig(ROOT, SET, level)
    assert loggers.altered(change, validate_only=True) == ErrorCode.NONE
    assert loggers.levels()[ROOT] != level
    assert loggers.altered(change) == ErrorCode.NONE
    assert loggers.levels()[ROOT] == level


def test_a_logger_without_a_level_has_that_of_the_one_above(loggers: Loggers) -> None:
    name = next(name for name in loggers.levels() if "." in name)
    changes = [alter.AlterableConfig(ROOT, SET, "FATAL"), alter.AlterableConfig(name, SET, "WARN")]
    assert loggers.altered(*changes) == ErrorCode.NONE
    assert loggers.levels()[name] == "WARN"
    assert loggers.altered(alter.AlterableConfig(name, DELETE, None)) == ErrorCode.NONE
    assert loggers.levels()[name] != "WARN"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (alter.AlterableConfig(ROOT, SET, "LOUD"), ErrorCode.INVALID_CONFIG),
        (alter.AlterableConfig("no.such.logger", SET, "INFO"), ErrorCode.INVALID_CONFIG),
        (alter.AlterableConfig(ROOT, DELETE, None), ErrorCode.INVALID_REQUEST),
        (alter.AlterableConfig(ROOT, APPEND, "INFO"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_changed(
    loggers: Loggers, change: alter.AlterableConfig, code: ErrorCode
) -> None:
    before = loggers.levels()
    name = next(name for name in before if name != ROOT)
    good = alter.AlterableConfig(name, SET, "FATAL")
    assert loggers.altered(good, change) == code
    assert loggers.levels() == before


def test_loggers_of_another_broker_are_not_told_or_changed_here(loggers: Loggers) -> None:
    change = alter.AlterableConfig(ROOT, SET, "FATAL")
    assert loggers.altered(change, name="99999") == ErrorCode.INVALID_REQUEST
    assert loggers.described("99999").results[0].error_code == ErrorCode.INVALID_REQUEST


def test_levels_and_settings_are_changed_by_one_request(
    loggers: Loggers, new_name: Callable[[], str]
) -> None:
    nowhere = alter.AlterConfigsResource(TOPIC, new_name(), [])
    change = alter.AlterableConfig(ROOT, SET, "FATAL")
    root = alter.AlterConfigsResource(LOGGER, str(loggers.broker), [change])
    answers = {
        answer.resource_type: answer.error_code
        for answer in loggers.altered_resources(nowhere, root)
    }
    assert answers == {TOPIC: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, LOGGER: ErrorCode.NONE}
    assert loggers.levels()[ROOT] == "FATAL"


def test_levels_are_not_replaced_as_a_whole(loggers: Loggers) -> None:
    assert loggers.replaced() == ErrorCode.INVALID_REQUEST


def test_every_broker_is_listed_with_loggers(loggers: Loggers) -> None:
    assert ConfigResource(str(loggers.broker), LOGGER) in loggers.listed()
