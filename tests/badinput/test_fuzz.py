"""Damaged requests of every API: truncated, random, mutated, and arrays that claim to be huge."""

from random import Random

import pytest

from ottla.protocol.api import Api, ApiKey, api_of
from support.examples import damaged, example_body
from support.good_client import GoodClient
from support.requests import supported_versions
from support.wire import Connection, PeerClosed, frame, int16, int32, request_header, string

SEED = 20
CUTS_PER_VERSION = 6
MUTATIONS_PER_VERSION = 12
RANDOM_BODIES_PER_API = 15
OBEYED = {  # whole examples of these would do what they say: remove the broker, slow everybody
    ApiKey.UNREGISTER_BROKER,
    ApiKey.ALTER_CLIENT_QUOTAS,
    ApiKey.UPDATE_FEATURES,
}
HUGE_COUNTS = (b"\x7f\xff\xff\xff", b"\x00\x10\x00\x00", b"\xff\xff\xff\xff\x07")

Version = tuple[Api, int]


@pytest.fixture
def versions(bootstrap: str) -> list[Version]:
    """Of every served API the lowest, the highest and both sides of the flexible border."""
    with Connection(bootstrap) as connection:
        ranges = supported_versions(connection)
    chosen: list[Version] = []
    known = {key for key in ranges if key in set(ApiKey) - OBEYED}
    for api_key in sorted(known):
        api, (lowest, highest) = api_of(api_key), ranges[api_key]
        border = {api.flexible_from - 1, api.flexible_from}
        wanted = {lowest, highest, *border} & set(range(lowest, highest + 1))
        wanted &= set(api.versions.numbers())
        chosen.extend((api, version) for version in sorted(wanted))
    assert len(chosen) > 30
    return chosen


def request(api: Api, version: int, body: bytes) -> bytes:
    header = request_header(api.key, version, 9, flexible=version >= api.flexible_from)
    return frame(header + body)


def ends(bootstrap: str, data: bytes) -> None:
    """Send and hang up: the broker must close too, whatever it makes of the bytes."""
    with Connection(bootstrap) as connection:
        try:
            connection.send_bytes(data)
            connection.socket.shutdown(1)
            while connection.socket.recv(1 << 16):
                pass
        except ConnectionError:
            pass


def test_truncated_bodies_are_refused_not_awaited(
    bootstrap: str, versions: list[Version], good_client: GoodClient
) -> None:
    random = Random(SEED)
    for api, version in versions:
        body = example_body(api, version)
        cuts = random.sample(range(len(body)), min(CUTS_PER_VERSION, len(body)))
        for cut in cuts:
            with Connection(bootstrap) as connection:
                connection.send_bytes(request(api, version, body[:cut]))
                try:
                    connection.receive_frame()
                except (PeerClosed, ConnectionError):
                    pass
                except TimeoutError:
                    pytest.fail(f"{api.name} v{version} cut at {cut} of {len(body)}: silence")


def test_mutated_requests_harm_nobody(
    bootstrap: str, versions: list[Version], good_client: GoodClient
) -> None:
    random = Random(SEED)
    for api, version in versions:
        body = example_body(api, version)
        for _ in range(MUTATIONS_PER_VERSION):
            ends(bootstrap, request(api, version, damaged(body, random)))


def test_random_bodies_harm_nobody(
    bootstrap: str, versions: list[Version], good_client: GoodClient
) -> None:
    random = Random(SEED)
    for api, version in versions:
        for _ in range(RANDOM_BODIES_PER_API):
            body = random.randbytes(random.randint(0, 300))
            ends(bootstrap, request(api, version, body))


def test_arrays_that_claim_to_be_huge_are_refused(
    bootstrap: str, versions: list[Version], good_client: GoodClient
) -> None:
    for api, version in versions:
        body = example_body(api, version)
        for count in HUGE_COUNTS:
            for at in range(0, len(body), max(1, len(body) // 10)):
                ends(bootstrap, request(api, version, body[:at] + count + body[at + len(count) :]))


def test_an_array_of_a_million_empty_elements_stays_within_memory(
    bootstrap: str, good_client: GoodClient
) -> None:
    metadata_of_empty_names = int32(1_000_000) + int16(0) * 1_000_000
    ends(bootstrap, frame(request_header(ApiKey.METADATA, 1, 1) + metadata_of_empty_names))
    ends(bootstrap, frame(request_header(ApiKey.METADATA, 9, 1) + b"\0" + b"\1" * 2_000_000))


@pytest.mark.parametrize("partitions", [100_000_000, (1 << 31) - 1, -5])
def test_a_topic_of_too_many_partitions_is_refused(
    bootstrap: str, partitions: int, good_client: GoodClient
) -> None:
    wish = string("enormous") + int32(partitions) + int16(1) + int32(0) + int32(0)
    body = int32(1) + wish + int32(1000) + b"\0"
    with Connection(bootstrap) as connection:
        reader = connection.call(ApiKey.CREATE_TOPICS, 4, body)
        reader.int32()
        assert (reader.count(), reader.string()) == (1, "enormous")
        assert reader.int16() != 0
