"""SCRAM credentials: derived as RFC 5802 says, told without secrets, refused when weak."""

from __future__ import annotations

import base64
import hashlib

import pytest

from ottla.cluster.client_quotas import QuotaAlteration, alter_quotas, quota_entity
from ottla.cluster.image import ClusterImage, Draft
from ottla.cluster.scram_credentials import (
    CredentialInfo,
    Deletion,
    Mechanism,
    Upsertion,
    alter_credentials,
    credentials,
)
from ottla.errors import ErrorCode, OttlaError


def an_upsertion(mechanism: int = Mechanism.SHA_256, iterations: int = 4096) -> Upsertion:
    return Upsertion(mechanism, iterations, b"salt", b"salted password")


def with_credentials(image: ClusterImage, user: str, *wishes: Upsertion | Deletion) -> ClusterImage:
    draft = Draft(image)
    alter_credentials(draft, user, wishes)
    return draft.image()


def test_the_keys_are_those_of_the_example_in_rfc_7677() -> None:
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    salted = hashlib.pbkdf2_hmac("sha256", b"pencil", salt, 4096)
    image = with_credentials(ClusterImage(), "user", Upsertion(1, 4096, salt, salted))
    kept = image.entity_configs["users/user"].configs["SCRAM-SHA-256"]
    assert kept == (
        "salt=W22ZaJ0SNY7soEsUEjb6gQ==,"
        "stored_key=WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=,"
        "server_key=wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=,"
        "iterations=4096"
    )


def test_what_is_told_is_the_mechanism_and_its_iterations() -> None:
    image = with_credentials(
        ClusterImage(), "alice", an_upsertion(), an_upsertion(Mechanism.SHA_512, 8192)
    )
    assert credentials(image) == {
        "alice": [CredentialInfo(Mechanism.SHA_256, 4096), CredentialInfo(Mechanism.SHA_512, 8192)]
    }


def test_a_deleted_credential_is_not_told_and_the_users_quotas_stay() -> None:
    draft = Draft(ClusterImage())
    alter_quotas(draft, quota_entity([("user", "a")]), [QuotaAlteration("producer_byte_rate", 1)])
    image = with_credentials(draft.image(), "a", an_upsertion())
    image = with_credentials(image, "a", Deletion(Mechanism.SHA_256))
    assert credentials(image) == {}
    assert image.entity_configs["users/a"].configs == {"producer_byte_rate": "1"}


@pytest.mark.parametrize(
    ("user", "wishes", "code"),
    [
        ("", [an_upsertion()], ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ("a", [an_upsertion(iterations=4095)], ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ("a", [an_upsertion(iterations=16385)], ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ("a", [Upsertion(1, 4096, b"", b"x")], ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ("a", [an_upsertion(mechanism=0)], ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        ("a", [an_upsertion(), an_upsertion()], ErrorCode.DUPLICATE_RESOURCE),
        ("a", [Deletion(Mechanism.SHA_512)], ErrorCode.RESOURCE_NOT_FOUND),
    ],
)
def test_a_wish_that_cannot_be_granted_changes_nothing(
    user: str, wishes: list[Upsertion | Deletion], code: ErrorCode
) -> None:
    draft = Draft(ClusterImage())
    with pytest.raises(OttlaError) as refused:
        alter_credentials(draft, user, wishes)
    assert refused.value.code is code
    assert draft.operations == []
