"""Leaders that change fast, and leaders that lack what was acknowledged."""

from __future__ import annotations

from support.faults.load import HASTY
from support.faults.moves import insist
from support.faults.stage import RECORDS_BEFORE, Stage

OFFLINE_SECONDS = 3.0
"""For so long nobody may serve a partition whose only replica in sync is away."""
LOSS_WARNING = "committed records may be lost"


def fail_over_and_back(stage: Stage) -> None:
    """From A to others and back to A, which has records that nobody else ever got."""
    first, *others = stage.rows()[0].replicas
    assert stage.leader == first
    for follower in others:
        stage.cluster.network.hold(first, follower)
    stage.load.wait_acknowledged(RECORDS_BEFORE, to=HASTY)
    stage.cluster.kill(first)
    second = stage.wait_other_leader(first)
    stage.cluster.heal()
    stage.cluster.start_brokers([first])
    stage.wait_in_sync(first)
    stage.cluster.kill(second)
    stage.wait_other_leader(second)
    refused = insist(stage, lambda admin: (admin.elect_leaders(stage.partitions()),))
    assert refused == ({},), refused
    stage.wait_rows(lambda rows: all(row.leader == first for row in rows), "the first to lead")
    stage.cluster.start_brokers([second])


def lose_the_last_in_sync(stage: Stage) -> None:
    """Those who come back lack what only the dead one has: they must wait for it."""
    last = _leave_one_in_sync(stage)
    stage.wait_rows(lambda rows: all(row.leader < 0 for row in rows), "no leader")
    stage.load.wait_outage(OFFLINE_SECONDS)
    assert all(row.leader < 0 for row in stage.rows()), stage.rows()
    stage.cluster.start_brokers([last])


def elect_one_out_of_sync(stage: Stage) -> None:
    """Where that is allowed, partitions serve again at once, and it is told what that may cost."""
    last = _leave_one_in_sync(stage)
    epochs = [row.leader_epoch for row in stage.rows()]
    stage.wait_rows(lambda rows: all(row.leader in stage.others(last) for row in rows), "leaders")
    stage.go_on()
    stage.cluster.start_brokers([last])
    stage.wait_in_sync(last)
    after = stage.rows()
    assert all(row.leader_epoch >= old for row, old in zip(after, epochs, strict=True)), after
    logs = [broker.log_path.read_text(errors="replace") for broker in stage.cluster.brokers]
    assert any(LOSS_WARNING in log for log in logs), "nobody was told of what may be lost"


def _leave_one_in_sync(stage: Stage) -> int:
    """The others die, records are written, and it dies too; then the others come back."""
    last = stage.leader
    for other in stage.others(last):
        stage.cluster.kill(other)
    stage.wait_rows(lambda rows: all(row.in_sync == (last,) for row in rows), "one in sync")
    stage.go_on()
    stage.cluster.kill(last)
    stage.cluster.start_brokers(stage.others(last))
    return last
