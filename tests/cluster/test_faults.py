"""Each fault once, under load from two client libraries, with three brokers and three replicas.

Some of every kind run each time, the others are marked long. `python tools/faults.py --times N`
runs them as often as one likes.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.testing import network_source
from ottla.testing.zookeeper import why_unavailable
from support.faults.battery import FAULTS, a_cluster_for, run_fault
from support.faults.disks import CannotMount

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(why_unavailable() is not None, reason=str(why_unavailable())),
    pytest.mark.skipif(
        not network_source.is_available(), reason="the network cannot be disturbed on this system"
    ),
]


ALWAYS = frozenset(
    {
        "kill -9 of a leader",
        "kill -9 of the controller",
        "kill -9 of all at once, started in another order",
        "SIGSTOP of a leader past its session",
        "rolling restart",
        "ZooKeeper without quorum until all sessions are over",
        "leader cut from ZooKeeper",
        "leader cut from the other brokers for 25 s",
        "all brokers cut from each other until one is alone in sync",
        "failover to another and back, with acks=1 besides",
        "moved to one replica and back to three, leaders killed",
        "disk of a leader full",
        "transactions: kill -9 of a coordinator",
    }
)
assert set(FAULTS) >= ALWAYS


@pytest.mark.parametrize(
    "name",
    [each if each in ALWAYS else pytest.param(each, marks=pytest.mark.long) for each in FAULTS],
)
def test_no_acknowledged_record_is_lost_or_doubled(name: str, tmp_path: Path) -> None:
    pytest.importorskip("kazoo", reason="kazoo is absent: pip install 'ottla[cluster]'")
    fault = FAULTS[name]
    try:
        with a_cluster_for(fault) as cluster:
            verdict = run_fault(cluster, fault, "orders", tmp_path)
    except CannotMount as error:
        pytest.skip(str(error))
    assert not verdict.problems, "\n".join(verdict.problems)
    assert verdict.acknowledged > 0
    assert (verdict.lost > 0) == getattr(fault, "may_lose", False), (
        "the fault did not bite, or the judge sleeps"
    )
