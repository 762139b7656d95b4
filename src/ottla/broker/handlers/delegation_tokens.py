"""CreateDelegationToken and its kin: tokens stand for somebody who has logged in, and nobody does.

As Apache Kafka on a plain listener: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ottla.broker.handlers.refused import RefusedHandler
from ottla.errors import ErrorCode
from ottla.protocol.message import Message
from ottla.protocol.messages.create_delegation_token import CreateDelegationTokenResponse
from ottla.protocol.messages.describe_delegation_token import DescribeDelegationTokenResponse
from ottla.protocol.messages.expire_delegation_token import ExpireDelegationTokenResponse
from ottla.protocol.messages.renew_delegation_token import RenewDelegationTokenResponse

USER: Final = "User"
ANYBODY: Final = "ANONYMOUS"
NEVER_MS: Final = -1


def create_delegation_token() -> RefusedHandler:
    """Makes no token."""
    return _refused(
        lambda code: CreateDelegationTokenResponse(
            error_code=code,
            principal_type=USER,
            principal_name=ANYBODY,
            token_requester_principal_type=USER,
            token_requester_principal_name=ANYBODY,
            issue_timestamp_ms=NEVER_MS,
            expiry_timestamp_ms=NEVER_MS,
            max_timestamp_ms=NEVER_MS,
        )
    )


def renew_delegation_token() -> RefusedHandler:
    """Makes no token last longer."""
    return _refused(
        lambda code: RenewDelegationTokenResponse(error_code=code, expiry_timestamp_ms=NEVER_MS)
    )


def expire_delegation_token() -> RefusedHandler:
    """Ends no token."""
    return _refused(
        lambda code: ExpireDelegationTokenResponse(error_code=code, expiry_timestamp_ms=NEVER_MS)
    )


def describe_delegation_token() -> RefusedHandler:
    """Tells of no token."""
    return _refused(lambda code: DescribeDelegationTokenResponse(error_code=code))


def _refused(worded: Callable[[ErrorCode], Message]) -> RefusedHandler:
    return RefusedHandler(
        ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, lambda _request, code: worded(code)
    )
