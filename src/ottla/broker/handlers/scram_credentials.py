"""DescribeUserScramCredentials and AlterUserScramCredentials. Kept and told; nobody logs in yet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from ottla.broker.cluster_view import ClusterView
from ottla.broker.controller import Controller
from ottla.broker.request import RequestContext
from ottla.cluster.scram_credentials import (
    CredentialInfo,
    Deletion,
    Upsertion,
    alter_credentials,
    credentials,
)
from ottla.errors import ErrorCode, OttlaError
from ottla.protocol.messages import describe_user_scram_credentials as describe
from ottla.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)


class DescribeUserScramCredentialsHandler:
    """Tells which mechanisms users have."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view

    async def handle(
        self, request: describe.DescribeUserScramCredentialsRequest, _context: RequestContext
    ) -> describe.DescribeUserScramCredentialsResponse:
        known = credentials(self._view.image)
        asked = Counter(user.name for user in request.users or ())
        return describe.DescribeUserScramCredentialsResponse(
            error_message=None,
            results=[_result(user, asked[user], known) for user in asked or known],
        )

    def refuse(
        self, _request: describe.DescribeUserScramCredentialsRequest, code: ErrorCode
    ) -> describe.DescribeUserScramCredentialsResponse:
        return describe.DescribeUserScramCredentialsResponse(
            error_code=code, error_message=code.sentence
        )


class AlterUserScramCredentialsHandler:
    """Changes credentials, user by user."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    async def handle(
        self, request: AlterUserScramCredentialsRequest, _context: RequestContext
    ) -> AlterUserScramCredentialsResponse:
        return AlterUserScramCredentialsResponse(
            results=[await self._alter(user, wishes) for user, wishes in _by_user(request).items()]
        )

    def refuse(
        self, request: AlterUserScramCredentialsRequest, code: ErrorCode
    ) -> AlterUserScramCredentialsResponse:
        return AlterUserScramCredentialsResponse(
            results=[
                AlterUserScramCredentialsResult(user, code, code.sentence)
                for user in _by_user(request)
            ]
        )

    async def _alter(
        self, user: str, wishes: Sequence[Upsertion | Deletion]
    ) -> AlterUserScramCredentialsResult:
        try:
            await self._controller.change(lambda draft: alter_credentials(draft, user, wishes))
        except OttlaError as error:
            return AlterUserScramCredentialsResult(user, error.code, str(error))
        return AlterUserScramCredentialsResult(user, ErrorCode.NONE, None)


def _by_user(request: AlterUserScramCredentialsRequest) -> dict[str, list[Upsertion | Deletion]]:
    wishes: dict[str, list[Upsertion | Deletion]] = {}
    for gone in request.deletions:
        wishes.setdefault(gone.name, []).append(Deletion(gone.mechanism))
    for kept in request.upsertions:
        wishes.setdefault(kept.name, []).append(
            Upsertion(
                kept.mechanism, kept.iterations, bytes(kept.salt), bytes(kept.salted_password)
            )
        )
    return wishes


def _result(
    user: str, times_asked: int, known: Mapping[str, Sequence[CredentialInfo]]
) -> describe.DescribeUserScramCredentialsResult:
    if times_asked > 1:
        return describe.DescribeUserScramCredentialsResult(
            user, ErrorCode.DUPLICATE_RESOURCE, f"{user!r} is asked for {times_asked} times"
        )
    if user not in known:
        return describe.DescribeUserScramCredentialsResult(
            user, ErrorCode.RESOURCE_NOT_FOUND, f"{user!r} has no SCRAM credential"
        )
    infos = [describe.CredentialInfo(info.mechanism, info.iterations) for info in known[user]]
    return describe.DescribeUserScramCredentialsResult(user, ErrorCode.NONE, None, infos)
