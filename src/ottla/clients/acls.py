"""Access rules: who may do what to which resource. Describe, create, delete."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from ottla.clients.client import CONTROLLER, Client
from ottla.clients.failures import check_answer
from ottla.protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from ottla.protocol.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from ottla.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse


class AclResource(IntEnum):
    """What a rule is about, by its number on the wire."""

    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class AclPattern(IntEnum):
    """How a rule's name is meant."""

    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(IntEnum):
    """What is done."""

    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class AclPermission(IntEnum):
    """Whether it may be."""

    ANY = 1
    DENY = 2
    ALLOW = 3


@dataclass(frozen=True, slots=True)
class Acl:
    """One rule."""

    resource: AclResource
    name: str
    principal: str
    operation: AclOperation
    permission: AclPermission = AclPermission.ALLOW
    host: str = "*"
    pattern: AclPattern = AclPattern.LITERAL


@dataclass(frozen=True, slots=True)
class AclFilter:
    """Which rules: those that match everything said; what is None or ANY matches all."""

    resource: AclResource = AclResource.ANY
    name: str | None = None
    principal: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission: AclPermission = AclPermission.ANY
    host: str | None = None
    pattern: AclPattern = AclPattern.ANY


async def describe_acls(client: Client, wanted: AclFilter | None = None) -> list[Acl]:
    """The rules that match."""
    wanted = wanted or AclFilter()
    request = DescribeAclsRequest(
        resource_type_filter=wanted.resource,
        resource_name_filter=wanted.name,
        pattern_type_filter=wanted.pattern,
        principal_filter=wanted.principal,
        host_filter=wanted.host,
        operation=wanted.operation,
        permission_type=wanted.permission,
    )

    async def attempt() -> list[Acl]:
        response = await client.call(request, DescribeAclsResponse)
        check_answer(response.error_code, "the access rules", response.error_message)
        return [
            Acl(
                AclResource(row.resource_type),
                row.resource_name,
                acl.principal,
                AclOperation(acl.operation),
                AclPermission(acl.permission_type),
                acl.host,
                AclPattern(row.pattern_type),
            )
            for row in response.resources
            for acl in row.acls
        ]

    return await client.retrying(attempt)


async def create_acls(client: Client, acls: Sequence[Acl]) -> None:
    """Adds rules; raises the first refusal."""
    request = CreateAclsRequest(
        creations=[
            AclCreation(
                resource_type=acl.resource,
                resource_name=acl.name,
                resource_pattern_type=acl.pattern,
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission,
            )
            for acl in acls
        ]
    )

    async def attempt() -> None:
        response = await client.call(request, CreateAclsResponse, to=CONTROLLER)
        for row in response.results:
            check_answer(row.error_code, "an access rule", row.error_message)

    await client.retrying(attempt)


async def delete_acls(client: Client, filters: Sequence[AclFilter]) -> list[Acl]:
    """Deletes the rules that match, and returns them."""
    request = DeleteAclsRequest(
        filters=[
            DeleteAclsFilter(
                resource_type_filter=wanted.resource,
                resource_name_filter=wanted.name,
                pattern_type_filter=wanted.pattern,
                principal_filter=wanted.principal,
                host_filter=wanted.host,
                operation=wanted.operation,
                permission_type=wanted.permission,
            )
            for wanted in filters
        ]
    )

    async def attempt() -> list[Acl]:
        response = await client.call(request, DeleteAclsResponse, to=CONTROLLER)
        deleted: list[Acl] = []
        for result in response.filter_results:
            check_answer(result.error_code, "the access rules", result.error_message)
            for row in result.matching_acls:
                check_answer(row.error_code, "an access rule", row.error_message)
                deleted.append(
                    Acl(
                        AclResource(row.resource_type),
                        row.resource_name,
                        row.principal,
                        AclOperation(row.operation),
                        AclPermission(row.permission_type),
                        row.host,
                        AclPattern(row.pattern_type),
                    )
                )
        return deleted

    return await client.retrying(attempt)
