"""A line for every request, for those who want to see what clients do. Who asks for what, not what
is in it: that may be secret.

    ottla configs set logger 1 ottla.requests=DEBUG
"""

from __future__ import annotations

import logging
from typing import Final

from ottla.broker.request import RequestContext
from ottla.protocol.api import ApiKey

request_log: Final = logging.getLogger("ottla.requests")


def tell_request(api: ApiKey, context: RequestContext, frame_bytes: int) -> None:
    """Tells of a request, before it is answered."""
    request_log.debug(
        "%s v%d from %r at %s, %d bytes",
        api.name,
        context.version,
        context.client_id or "",
        context.peer,
        frame_bytes,
    )
