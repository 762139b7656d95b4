"""DescribeConfigs: settings of topics, brokers, groups and loggers, and where a value is from."""

from __future__ import annotations

from collections.abc import Iterable

from ottla.broker.cluster_view import ClusterView
from ottla.broker.loggers import describe_loggers
from ottla.broker.request import RequestContext
from ottla.broker.resources import (
    BROKER_LOGGER,
    CLUSTER_DEFAULT,
    ResourceType,
    check_own,
    resource_type,
)
from ottla.errors import ErrorCode, OttlaError, UnknownTopic
from ottla.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from ottla.settings.describe import (
    ConfigSource,
    DescribedSetting,
    describe_broker,
    describe_group,
    describe_topic,
)


class DescribeConfigsHandler:
    """Describes settings."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view

    async def handle(
        self, request: DescribeConfigsRequest, _context: RequestContext
    ) -> DescribeConfigsResponse:
        return DescribeConfigsResponse(
            results=[self._result(resource, request) for resource in request.resources]
        )

    def refuse(self, request: DescribeConfigsRequest, code: ErrorCode) -> DescribeConfigsResponse:
        return DescribeConfigsResponse(
            results=[
                DescribeConfigsResult(
                    code, code.sentence, resource.resource_type, resource.resource_name
                )
                for resource in request.resources
            ]
        )

    def _result(
        self, resource: DescribeConfigsResource, request: DescribeConfigsRequest
    ) -> DescribeConfigsResult:
        try:
            described = self._described(resource)
        except OttlaError as error:
            return DescribeConfigsResult(
                error.code, str(error), resource.resource_type, resource.resource_name
            )
        wanted = resource.configuration_keys
        return DescribeConfigsResult(
            0,
            None,
            resource.resource_type,
            resource.resource_name,
            [
                _entry(setting, request)
                for setting in described
                if wanted is None or setting.name in wanted
            ],
        )

    def _described(self, resource: DescribeConfigsResource) -> Iterable[DescribedSetting]:
        name = resource.resource_name
        image, layers = self._view.image, self._view.layers
        if resource.resource_type == BROKER_LOGGER:
            check_own(name, self._view.broker_id)
            return describe_loggers()
        kind = resource_type(resource.resource_type)
        if kind is ResourceType.TOPIC:
            topic = image.topics.get(name)
            if topic is None:
                raise UnknownTopic(name)
            return describe_topic(topic.configs, layers)
        if kind is ResourceType.GROUP:
            return describe_group(image.group_configs(name), layers)
        described = describe_broker(layers)
        if name == CLUSTER_DEFAULT:
            shared = ConfigSource.DYNAMIC_DEFAULT_BROKER
            return [setting for setting in described if setting.source is shared]
        check_own(name, self._view.broker_id)
        return described


def _entry(
    setting: DescribedSetting, request: DescribeConfigsRequest
) -> DescribeConfigsResourceResult:
    value = None if setting.is_sensitive else setting.value
    entry = DescribeConfigsResourceResult(
        setting.name,
        value,
        setting.is_read_only,
        setting.is_default,
        setting.source,
        setting.is_sensitive,
        config_type=setting.kind,
        documentation=setting.doc if request.include_documentation else None,
    )
    if request.include_synonyms:
        entry.synonyms = [
            DescribeConfigsSynonym(synonym.name, synonym.value, synonym.source)
            for synonym in setting.synonyms
        ]
    return entry
