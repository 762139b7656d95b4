"""Quotas: whom they can be for, what they can be, and who passes a filter."""

from __future__ import annotations

import math

import pytest

from ottla.cluster.client_quotas import (
    EntityKind,
    Match,
    QuotaAlteration,
    QuotaFilter,
    Quotas,
    alter_quotas,
    quota_entity,
    quotas_that_match,
)
from ottla.cluster.image import ClusterImage, Draft
from ottla.cluster.store import Create
from ottla.errors import ErrorCode, InvalidRequest, OttlaError

ALICE = [("user", "alice")]
EVERY_CLIENT = [("client-id", None)]
ALICE_WITH_APP = [("user", "alice"), ("client-id", "app")]
LOCAL = [("ip", "127.0.0.1")]

Parts = list[tuple[str, str | None]]


def with_quota(image: ClusterImage, parts: Parts, name: str, value: float | None) -> ClusterImage:
    draft = Draft(image)
    alter_quotas(draft, quota_entity(parts), [QuotaAlteration(name, value)])
    return draft.image()


def an_image_with_every_kind() -> ClusterImage:
    image = with_quota(ClusterImage(), ALICE, "producer_byte_rate", 1)
    image = with_quota(image, EVERY_CLIENT, "consumer_byte_rate", 2)
    image = with_quota(image, ALICE_WITH_APP, "request_percentage", 3.5)
    return with_quota(image, LOCAL, "connection_creation_rate", 4)


def matching(image: ClusterImage, *filters: QuotaFilter, strict: bool = False) -> list[float]:
    found: list[Quotas] = [*quotas_that_match(image, filters, is_strict=strict)]
    return sorted(value for quotas in found for value in quotas.values.values())


def test_no_filter_finds_everything() -> None:
    assert matching(an_image_with_every_kind()) == [1, 2, 3.5, 4]


def test_a_filter_finds_whoever_has_the_kind_and_the_name() -> None:
    image = an_image_with_every_kind()
    assert matching(image, QuotaFilter(EntityKind.USER, Match.EXACT, "alice")) == [1, 3.5]
    assert matching(image, QuotaFilter(EntityKind.USER, Match.EXACT, "bob")) == []
    assert matching(image, QuotaFilter(EntityKind.CLIENT, Match.ANY)) == [2, 3.5]
    assert matching(image, QuotaFilter(EntityKind.CLIENT, Match.DEFAULT)) == [2]


def test_a_strict_filter_leaves_out_who_has_another_kind_too() -> None:
    alice = QuotaFilter(EntityKind.USER, Match.EXACT, "alice")
    assert matching(an_image_with_every_kind(), alice, strict=True) == [1]


def test_a_quota_taken_away_is_gone() -> None:
    image = with_quota(an_image_with_every_kind(), ALICE, "producer_byte_rate", None)
    assert matching(image) == [2, 3.5, 4]


def test_the_client_of_a_user_lies_below_the_user_as_in_kafka() -> None:
    draft = Draft(ClusterImage())
    alter_quotas(draft, quota_entity(ALICE_WITH_APP), [QuotaAlteration("request_percentage", 1)])
    created = [each.path for each in draft.operations if isinstance(each, Create)]
    assert created == [
        "/config/users/alice",
        "/config/users/alice/clients",
        "/config/users/alice/clients/app",
    ]


def test_a_name_with_a_slash_or_called_default_is_written_safely() -> None:
    for name in ("a/b c*~", "<default>"):
        image = with_quota(ClusterImage(), [("user", name)], "producer_byte_rate", 7)
        assert matching(image, QuotaFilter(EntityKind.USER, Match.EXACT, name)) == [7]
        assert matching(image, QuotaFilter(EntityKind.USER, Match.DEFAULT)) == []


@pytest.mark.parametrize(
    ("parts", "name", "value"),
    [
        (ALICE, "producer_byte_rate", 0),
        (ALICE, "producer_byte_rate", -1),
        (ALICE, "producer_byte_rate", 1.5),
        (ALICE, "producer_byte_rate", math.inf),
        (ALICE, "request_percentage", math.nan),
        (ALICE, "connection_creation_rate", 1),
        (LOCAL, "producer_byte_rate", 1),
        (LOCAL, "connection_creation_rate", 2**31),
        (ALICE, "no_such_quota", 1),
    ],
)
def test_a_quota_that_cannot_be_is_refused(parts: Parts, name: str, value: float) -> None:
    with pytest.raises(InvalidRequest):
        with_quota(ClusterImage(), parts, name, value)


@pytest.mark.parametrize(
    "parts", [[], [*LOCAL, *ALICE], [*ALICE, *ALICE], [("user", "")], [("", "x")]]
)
def test_an_entity_that_cannot_be_is_refused(parts: Parts) -> None:
    with pytest.raises(InvalidRequest):
        quota_entity(parts)


def test_an_unknown_kind_of_entity_is_not_supported() -> None:
    with pytest.raises(OttlaError) as refused:
        quota_entity([("planet", "mars")])
    assert refused.value.code is ErrorCode.UNSUPPORTED_VERSION
