"""The version to use is the highest that both sides know."""

import pytest

from ottla.clients.failures import BrokerTooOld
from ottla.clients.versions import ASSUMED_RANGES, BrokerVersions
from ottla.protocol.message import VersionRange


def test_the_highest_common_version_is_chosen() -> None:
    broker = BrokerVersions("b:1", {3: VersionRange(1, 9)})
    assert broker.choose(3, "Metadata", VersionRange(0, 13)) == 9
    assert broker.choose(3, "Metadata", VersionRange(0, 4)) == 4


@pytest.mark.parametrize("ours", [VersionRange(10, 13), VersionRange(0, 0)])
def test_without_a_common_version_the_error_names_both_ranges(ours: VersionRange) -> None:
    with pytest.raises(BrokerTooOld, match="versions 1 to 9"):
        BrokerVersions("b:1", {3: VersionRange(1, 9)}).choose(3, "Metadata", ours)


def test_an_api_the_broker_lacks_is_an_error_that_names_it() -> None:
    with pytest.raises(BrokerTooOld, match="DescribeCluster"):
        BrokerVersions("b:1", {}).choose(60, "DescribeCluster", VersionRange(0, 2))


def test_a_broker_that_said_nothing_is_suspected_of_tls() -> None:
    broker = BrokerVersions("b:1", ASSUMED_RANGES, is_assumed=True)
    with pytest.raises(BrokerTooOld, match="TLS"):
        broker.choose(3, "Metadata", VersionRange(1, 13))
