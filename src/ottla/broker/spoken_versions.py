"""The versions this broker uses towards other brokers: those that its level, its program and the
other broker's program allow.

Does not know connections beyond the one question each begins with: which versions do you speak?
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from ottla.cluster.features import begin_to_speak, check_others_understand, stay_with
from ottla.cluster.metadata import ClusterMetadata
from ottla.errors import ConfigError, UnsupportedVersion
from ottla.model.ids import BrokerId
from ottla.net.client_connection import ClientConnection
from ottla.protocol.api import APIS, Api, ApiKey
from ottla.protocol.frames import decode_response, decode_response_header, encode_request
from ottla.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.settings.protocol_level import NEWEST, ProtocolLevel

FIRST_VERSION: Final = 0
"""Every broker there ever was answers ApiVersions in this version."""
GREETING_SECONDS_MAX: Final = 2.0
_NEWEST_BY_LEVEL: Final[Mapping[int, Mapping[ApiKey, int]]] = {
    1: {ApiKey.FETCH: 16, ApiKey.ADD_PARTITIONS_TO_TXN: 4, ApiKey.WRITE_TXN_MARKERS: 1},
    2: {ApiKey.FETCH: 17},
}
"""By the level's number: APIs of which brokers of that level do not use the newest version."""

Versions = Mapping[int, int]
"""The newest version of each API, by its number."""


class SpokenVersions(msgspec.Struct, frozen=True):
    """What a broker of one level says to others."""

    newest: Mapping[ApiKey, int]
    """Of those APIs where it is not simply the newest that both know."""

    @classmethod
    def of(cls, level: ProtocolLevel) -> SpokenVersions:
        return cls(_NEWEST_BY_LEVEL[level.number])

    def version_for(self, api: Api, theirs: Versions) -> int:
        """The newest version that may be sent; UnsupportedVersion where there is none."""
        version = min(
            theirs.get(api.key, -1),
            api.versions.last,
            self.newest.get(api.key, api.versions.last),
        )
        if version < api.versions.first:
            raise UnsupportedVersion(api.name, version)
        return version


NEWEST_SPOKEN: Final = SpokenVersions.of(NEWEST)


async def ask_versions(connection: ClientConnection, client_id: str) -> Versions:
    """What the broker at the other end speaks."""
    api = APIS[ApiKey.API_VERSIONS]
    correlation_id = connection.next_correlation_id()
    frame = encode_request(api, FIRST_VERSION, correlation_id, client_id, ApiVersionsRequest())
    answer = await connection.request(frame, correlation_id, timeout_s=GREETING_SECONDS_MAX)
    _, position = decode_response_header(answer, api, FIRST_VERSION)
    response = decode_response(api, FIRST_VERSION, answer, position)
    assert isinstance(response, ApiVersionsResponse)
    return {each.api_key: each.max_version for each in response.api_keys}


async def speak(metadata: ClusterMetadata, broker_id: BrokerId, level: ProtocolLevel) -> None:
    """Makes known which level this broker speaks, before it says a word; ConfigError if it may not.

    A broker of an older program that registers at the same moment looks at the level afterwards,
    and this one at the brokers: one of the two sees the other.
    """
    before = metadata.image.features
    await metadata.change_as_leader(lambda draft: begin_to_speak(draft, broker_id, level))
    if metadata.image.features == before:
        return
    try:
        check_others_understand(await metadata.reload(), broker_id, level)
    except ConfigError:
        await metadata.change_as_leader(lambda draft: stay_with(draft, before, level))
        raise
