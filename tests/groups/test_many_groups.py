"""Many groups and one large group, at the level of the protocol: the benchmark's load, smaller."""

import json
import subprocess
import sys

import pytest

from support.broker_process import REPOSITORY

LOAD_SECONDS_MAX = 90


def put_load(bootstrap: str, *, groups: int, members: int) -> dict[str, float]:
    """Form, beat, commit, rebalance and end; any error a broker answers fails the load."""
    command = [sys.executable, str(REPOSITORY / "bench" / "groups.py"), "--bootstrap", bootstrap]
    command += ["--groups", str(groups), "--members", str(members), "--seconds", "2"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LOAD_SECONDS_MAX)
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(json.loads(done.stdout))


@pytest.mark.slow
@pytest.mark.parametrize(("groups", "members"), [(100, 3), (1, 100)])
def test_every_group_forms_beats_commits_and_rebalances(
    groups: int, members: int, group_broker: str
) -> None:
    figures = put_load(group_broker, groups=groups, members=members)
    assert figures["members"] == groups * members
    assert figures["rebalances"] == groups
    assert figures["heartbeats"] >= groups * members, "each member's heartbeats were answered"
    assert figures["commits"] > 0
