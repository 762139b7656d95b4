"""SaslHandshake, SaslAuthenticate: nobody is asked who they are, and that is what clients are told.

As Apache Kafka on a listener without SASL: ILLEGAL_SASL_STATE. Some tools tell a broker's age by
the APIs it has, and take one without these two for older than it is.
"""

from __future__ import annotations

from typing import Final

from ottla.broker.handlers.refused import RefusedHandler
from ottla.errors import ErrorCode
from ottla.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from ottla.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

NO_SASL: Final = "this broker asks nobody who they are: leave SASL out of the client's settings"


def sasl_handshake() -> RefusedHandler:
    """Offers no mechanism."""

    def worded(_request: SaslHandshakeRequest, code: ErrorCode) -> SaslHandshakeResponse:
        return SaslHandshakeResponse(error_code=code)

    return RefusedHandler(ErrorCode.ILLEGAL_SASL_STATE, worded)


def sasl_authenticate() -> RefusedHandler:
    """Takes no credentials."""

    def worded(_request: SaslAuthenticateRequest, code: ErrorCode) -> SaslAuthenticateResponse:
        message = NO_SASL if code is ErrorCode.ILLEGAL_SASL_STATE else code.sentence
        return SaslAuthenticateResponse(error_code=code, error_message=message)

    return RefusedHandler(ErrorCode.ILLEGAL_SASL_STATE, worded)
