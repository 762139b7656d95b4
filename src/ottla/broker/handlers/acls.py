"""DescribeAcls, CreateAcls, DeleteAcls: there is no authorizer, and that is what clients are told.

As Apache Kafka without an authorizer: SECURITY_DISABLED for every rule asked for.
"""

from __future__ import annotations

from typing import Final

from ottla.broker.handlers.refused import RefusedHandler
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


def describe_acls() -> RefusedHandler:
    """Tells that there are no rules."""

    def worded(_request: DescribeAclsRequest, code: ErrorCode) -> DescribeAclsResponse:
        return DescribeAclsResponse(error_code=code, error_message=_reason(code))

    return RefusedHandler(ErrorCode.SECURITY_DISABLED, worded)


def create_acls() -> RefusedHandler:
    """Adds no rule."""

    def worded(request: CreateAclsRequest, code: ErrorCode) -> CreateAclsResponse:
        return CreateAclsResponse(
            results=[AclCreationResult(code, _reason(code)) for _ in request.creations]
        )

    return RefusedHandler(ErrorCode.SECURITY_DISABLED, worded)


def delete_acls() -> RefusedHandler:
    """Finds no rule to delete."""

    def worded(request: DeleteAclsRequest, code: ErrorCode) -> DeleteAclsResponse:
        return DeleteAclsResponse(
            filter_results=[DeleteAclsFilterResult(code, _reason(code)) for _ in request.filters]
        )

    return RefusedHandler(ErrorCode.SECURITY_DISABLED, worded)


def _reason(code: ErrorCode) -> str:
    return NO_AUTHORIZER if code is ErrorCode.SECURITY_DISABLED else code.sentence
