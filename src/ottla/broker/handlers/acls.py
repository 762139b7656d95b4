"""DescribeAcls, CreateAcls, DeleteAcls: there is no authorizer, and that is what clients are told.

As Apache Kafka without an authorizer: SECURITY_DISABLED for every rule asked for.
"""

from __future__ import annotations

from typing import Final

from ottla.broker.request import RequestContext
from ottla.errors import ErrorCode
from ottla.protocol.messages.create_acls import (
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from ottla.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from ottla.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse

NO_AUTHORIZER: Final = "this broker has no authorizer: everybody may do everything"


class DescribeAclsHandler:
    """Tells that there are no rules."""

    async def handle(
        self, request: DescribeAclsRequest, _context: RequestContext
    ) -> DescribeAclsResponse:
        return self.refuse(request, ErrorCode.SECURITY_DISABLED)

    def refuse(self, _request: DescribeAclsRequest, code: ErrorCode) -> DescribeAclsResponse:
        return DescribeAclsResponse(error_code=code, error_message=_reason(code))


class CreateAclsHandler:
    """Adds no rule."""

    async def handle(
        self, request: CreateAclsRequest, _context: RequestContext
    ) -> CreateAclsResponse:
        return self.refuse(request, ErrorCode.SECURITY_DISABLED)

    def refuse(self, request: CreateAclsRequest, code: ErrorCode) -> CreateAclsResponse:
        return CreateAclsResponse(
            results=[AclCreationResult(code, _reason(code)) for _ in request.creations]
        )


class DeleteAclsHandler:
    """Finds no rule to delete."""

    async def handle(
        self, request: DeleteAclsRequest, _context: RequestContext
    ) -> DeleteAclsResponse:
        return self.refuse(request, ErrorCode.SECURITY_DISABLED)

    def refuse(self, request: DeleteAclsRequest, code: ErrorCode) -> DeleteAclsResponse:
        return DeleteAclsResponse(
            filter_results=[DeleteAclsFilterResult(code, _reason(code)) for _ in request.filters]
        )


def _reason(code: ErrorCode) -> str:
    return NO_AUTHORIZER if code is ErrorCode.SECURITY_DISABLED else code.sentence
