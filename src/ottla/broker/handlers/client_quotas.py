"""DescribeClientQuotas and AlterClientQuotas. Quotas are kept and told, not yet held."""

from __future__ import annotations

from ottla.broker.cluster_view import ClusterView
from ottla.broker.controller import Controller
from ottla.broker.request import RequestContext
from ottla.cluster.client_quotas import (
    Match,
    QuotaAlteration,
    QuotaFilter,
    Quotas,
    alter_quotas,
    entity_kind,
    quota_entity,
    quotas_that_match,
)
from ottla.errors import ErrorCode, InvalidRequest, OttlaError
from ottla.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    RequestEntryData,
    ResponseEntryData,
)
from ottla.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)


class DescribeClientQuotasHandler:
    """Tells who has which quotas."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view

    async def handle(
        self, request: DescribeClientQuotasRequest, _context: RequestContext
    ) -> DescribeClientQuotasResponse:
        try:
            filters = [_filter(component) for component in request.components]
            found = [*quotas_that_match(self._view.image, filters, is_strict=request.strict)]
        except OttlaError as error:
            return _undescribed(error.code, str(error))
        return DescribeClientQuotasResponse(
            error_message=None, entries=[_entry(quotas) for quotas in found]
        )

    def refuse(
        self, _request: DescribeClientQuotasRequest, code: ErrorCode
    ) -> DescribeClientQuotasResponse:
        return _undescribed(code, code.sentence)


class AlterClientQuotasHandler:
    """Changes quotas, entity by entity."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    async def handle(
        self, request: AlterClientQuotasRequest, _context: RequestContext
    ) -> AlterClientQuotasResponse:
        return AlterClientQuotasResponse(
            entries=[
                await self._alter(entry, validate_only=request.validate_only)
                for entry in request.entries
            ]
        )

    def refuse(
        self, request: AlterClientQuotasRequest, code: ErrorCode
    ) -> AlterClientQuotasResponse:
        return AlterClientQuotasResponse(
            entries=[
                ResponseEntryData(code, code.sentence, entry.entity) for entry in request.entries
            ]
        )

    async def _alter(self, entry: RequestEntryData, *, validate_only: bool) -> ResponseEntryData:
        try:
            entity = quota_entity([(part.entity_type, part.entity_name) for part in entry.entity])
            alterations = [
                QuotaAlteration(wish.key, None if wish.remove else wish.value) for wish in entry.ops
            ]
            await self._controller.change(
                lambda draft: alter_quotas(draft, entity, alterations), validate_only=validate_only
            )
        except OttlaError as error:
            return ResponseEntryData(error.code, str(error), entry.entity)
        return ResponseEntryData(ErrorCode.NONE, None, entry.entity)


def _filter(component: ComponentData) -> QuotaFilter:
    try:
        match = Match(component.match_type)
    except ValueError:
        raise InvalidRequest(f"{component.match_type} is no way to match a name") from None
    return QuotaFilter(entity_kind(component.entity_type), match, component.match)


def _entry(quotas: Quotas) -> EntryData:
    return EntryData(
        [EntityData(kind.value, name) for kind, name in quotas.entity.items()],
        [ValueData(name, value) for name, value in quotas.values.items()],
    )


def _undescribed(code: ErrorCode, message: str) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(error_code=code, error_message=message, entries=None)
