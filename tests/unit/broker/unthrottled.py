"""Replication without limits, for tests of something else."""

from ottla.broker.follower_throttle import FollowerThrottle
from ottla.cluster.image import ClusterImage
from ottla.settings.replication import ReplicationSettings
from unit.broker.stage import ME


def unthrottled() -> FollowerThrottle:
    return FollowerThrottle(ME, ReplicationSettings, ClusterImage)
