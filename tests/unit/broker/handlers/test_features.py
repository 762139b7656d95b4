"""What clients are told of the cluster's features, and what is refused until it has them."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from ottla.broker.handlers.api_versions import ApiVersionsHandler
from ottla.broker.handlers.featured import FeaturedHandler
from ottla.broker.request import RequestContext
from ottla.errors import ErrorCode
from ottla.net.server_connection import Peer
from ottla.protocol.api import ApiKey
from ottla.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.settings.protocol_level import GROUP_FEATURE, PROTOCOL_FEATURE, TRANSACTION_FEATURE
from unit.broker.cluster import Member, a_picture

ASKED = ApiVersionsRequest(client_software_name="test", client_software_version="1")
RAISED = {TRANSACTION_FEATURE: 2, GROUP_FEATURE: 1, PROTOCOL_FEATURE: 2}


def a_member(**features: int) -> Member:
    return Member(replace(a_picture(), features=features, features_version=4))


def told(member: Member, version: int) -> ApiVersionsResponse:
    served = [ApiKey.API_VERSIONS]
    handler = ApiVersionsHandler(served, member.view, offers_two_phase_commit=False)
    return asyncio.run(handler.handle(ASKED, RequestContext(version, "test", Peer("here", 1))))


@pytest.mark.parametrize(("version", "lowest"), [(3, 1), (4, 0)])
def test_clients_that_fail_at_a_level_of_zero_are_not_told_of_it(version: int, lowest: int) -> None:
    ranges = {
        each.name: (each.min_version, each.max_version)
        for each in told(a_member(**RAISED), version).supported_features
    }
    assert ranges == {TRANSACTION_FEATURE: (lowest, 2), GROUP_FEATURE: (lowest, 1)}


def test_clients_are_told_what_the_whole_cluster_has() -> None:
    answer = told(a_member(**RAISED), 4)
    levels = {each.name: each.max_version_level for each in answer.finalized_features}
    assert levels == {TRANSACTION_FEATURE: 2, GROUP_FEATURE: 1}
    assert answer.finalized_features_epoch == 4


def test_a_feature_nobody_has_raised_is_none() -> None:
    answer = told(a_member(**{TRANSACTION_FEATURE: 0, PROTOCOL_FEATURE: 1}), 4)
    assert answer.finalized_features == []


class Answering:
    """Answers heartbeats."""

    async def handle(self, _request: HeartbeatRequest, _context: object) -> HeartbeatResponse:
        return HeartbeatResponse()

    def refuse(self, _request: HeartbeatRequest, code: ErrorCode) -> HeartbeatResponse:
        return HeartbeatResponse(error_code=code)


@pytest.mark.parametrize(
    ("level", "code"), [(0, ErrorCode.UNSUPPORTED_VERSION), (1, ErrorCode.NONE)]
)
def test_what_belongs_to_a_feature_waits_for_it(level: int, code: ErrorCode) -> None:
    member = a_member(**{GROUP_FEATURE: level})
    handler = FeaturedHandler(Answering(), member.view, GROUP_FEATURE, at_least=1)
    context = RequestContext(0, "test", Peer("here", 1))
    answer = asyncio.run(handler.handle(HeartbeatRequest(), context))
    assert isinstance(answer, HeartbeatResponse)
    assert answer.error_code == code
