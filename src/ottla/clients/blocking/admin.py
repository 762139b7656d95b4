"""Administration for threads and scripts: every broker API that changes or describes a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType

from ottla.clients import (
    acls,
    cluster,
    configs,
    features,
    group_offsets,
    groups,
    log_dirs,
    offsets,
    placement,
    quorum,
    quotas,
    scram,
    topics,
    transactions,
)
from ottla.clients.admin import Admin as AsyncAdmin
from ottla.clients.blocking.loop_thread import LoopThread, close_at_exit
from ottla.clients.client_metrics import ClientMetrics
from ottla.clients.failures import ClientClosed
from ottla.clients.metadata import TopicInfo
from ottla.clients.outcome import Outcome
from ottla.clients.settings_source import Config
from ottla.model.ids import Offset, TopicPartition


class Admin:
    """Describes and changes a cluster. Use it as a context; any thread may."""

    __slots__ = ("__weakref__", "_admin", "_loop")

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] | None = None,
        *,
        config: Config = None,
        **settings: object,
    ) -> None:
        self._admin = AsyncAdmin(bootstrap_servers, config=config, **settings)
        self._loop = LoopThread("admin")
        close_at_exit(self)

    def disown(self) -> None:
        """Called in a forked process, which cannot use its parent's."""
        # Every call goes through the loop, which notices.

    def __enter__(self) -> Admin:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self, timeout_s: float | None = None) -> None:
        """Disconnects. Once is enough."""
        del timeout_s  # nothing waits to be sent
        if self._loop.is_foreign:
            return
        try:
            self._loop.run(self._admin.close())
        except ClientClosed:
            return
        self._loop.stop()

    def metrics(self) -> ClientMetrics:
        """How the brokers served so far, in numbers."""
        return self._admin.metrics()

    # --- topics and records

    def create_topics(
        self, *new: topics.NewTopic | str, validate_only: bool = False
    ) -> list[topics.CreatedTopic]:
        """Creates topics, each with its own outcome; a name alone takes the broker's defaults."""
        return self._loop.run(self._admin.create_topics(*new, validate_only=validate_only))

    def delete_topics(self, *names: str) -> list[Outcome]:
        """Deletes topics with all their records."""
        return self._loop.run(self._admin.delete_topics(*names))

    def list_topics(self, *, internal: bool = False) -> list[TopicInfo]:
        """All topics by name."""
        return self._loop.run(self._admin.list_topics(internal=internal))

    def describe_topic(self, name: str) -> TopicInfo:
        """One topic as it is now."""
        return self._loop.run(self._admin.describe_topic(name))

    def wait_for_topic(self, name: str, *, timeout_s: float = 10.0) -> TopicInfo:
        """The topic as soon as all its partitions have a leader."""
        return self._loop.run(self._admin.wait_for_topic(name, timeout_s=timeout_s))

    def add_partitions(self, topic: str, count: int) -> None:
        """Raises a topic's number of partitions to `count`."""
        return self._loop.run(self._admin.add_partitions(topic, count))

    def list_offsets(
        self, topic: str, timestamps: Mapping[int, int], *, committed_only: bool = False
    ) -> dict[int, offsets.ListedOffset]:
        """By partition the first offset at or after a timestamp, or EARLIEST, LATEST."""
        return self._loop.run(
            self._admin.list_offsets(topic, timestamps, committed_only=committed_only)
        )

    def delete_records(self, topic: str, before: Mapping[int, int]) -> dict[int, Offset]:
        """Deletes what comes before an offset (-1: everything); returns the new first offsets."""
        return self._loop.run(self._admin.delete_records(topic, before))

    # --- configs

    def describe_configs(
        self, resource: configs.Resource, names: Sequence[str] = ()
    ) -> list[configs.ConfigEntry]:
        """The settings of a topic or broker."""
        return self._loop.run(self._admin.describe_configs(resource, names))

    def alter_configs(
        self,
        resource: configs.Resource,
        set_values: Mapping[str, str] | None = None,
        unset: Iterable[str] = (),
    ) -> None:
        """Sets and unsets settings of one resource: all of them or none."""
        return self._loop.run(self._admin.alter_configs(resource, set_values, unset))

    def list_config_resources(self, kinds: Iterable[int] = ()) -> list[tuple[int, str]]:
        """The resources that have settings, by the number of their kind and their name."""
        return self._loop.run(self._admin.list_config_resources(kinds))

    # --- the cluster

    def describe_cluster(self) -> cluster.Cluster:
        """The cluster's id, controller and brokers."""
        return self._loop.run(self._admin.describe_cluster())

    def describe_quorum(self) -> quorum.Quorum:
        """Who keeps the cluster's metadata, and how far each of them is."""
        return self._loop.run(self._admin.describe_quorum())

    def describe_features(self, broker: int | None = None) -> features.Features:
        """What a broker supports (whichever answers, unless one is named), and what is in force."""
        return self._loop.run(self._admin.describe_features(broker))

    def update_features(
        self,
        levels: Mapping[str, int],
        *,
        change: features.FeatureChange = features.FeatureChange.UPGRADE,
        validate_only: bool = False,
    ) -> None:
        """Sets the levels of features, all of them or none; a level of 0 turns one off."""
        return self._loop.run(
            self._admin.update_features(levels, change=change, validate_only=validate_only)
        )

    def describe_log_dirs(self, broker: int) -> list[log_dirs.LogDir]:
        """The data directories of a broker."""
        return self._loop.run(self._admin.describe_log_dirs(broker))

    def move_replicas(self, broker: int, paths: Mapping[TopicPartition, str]) -> placement.Refusals:
        """Moves replicas of one broker to other data directories of it."""
        return self._loop.run(self._admin.move_replicas(broker, paths))

    def elect_leaders(
        self,
        partitions: Iterable[TopicPartition] | None = None,
        election: placement.Election = placement.Election.PREFERRED,
    ) -> placement.Refusals:
        """Elects leaders, for all partitions unless some are named."""
        return self._loop.run(self._admin.elect_leaders(partitions, election))

    def reassign_partitions(
        self, replicas: Mapping[TopicPartition, Sequence[int] | None]
    ) -> placement.Refusals:
        """Begins to move partitions to these brokers; None cancels a move."""
        return self._loop.run(self._admin.reassign_partitions(replicas))

    def list_reassignments(self) -> list[placement.Reassignment]:
        """The moves under way."""
        return self._loop.run(self._admin.list_reassignments())

    # --- groups

    def list_groups(
        self, *, states: Sequence[str] = (), types: Sequence[str] = ()
    ) -> list[groups.GroupListing]:
        """The groups of all brokers."""
        return self._loop.run(self._admin.list_groups(states=states, types=types))

    def describe_group(self, group: str) -> groups.GroupDescription:
        """A group with its members."""
        return self._loop.run(self._admin.describe_group(group))

    def delete_groups(self, *names: str) -> list[Outcome]:
        """Deletes groups with their offsets; one with members stays."""
        return self._loop.run(self._admin.delete_groups(*names))

    def remove_members(self, group: str, instance_ids: Sequence[str] | None = None) -> None:
        """Takes static members out of a classic group; None takes out everybody."""
        return self._loop.run(self._admin.remove_members(group, instance_ids))

    def list_group_offsets(self, group: str) -> dict[TopicPartition, group_offsets.CommittedOffset]:
        """All offsets a group has committed."""
        return self._loop.run(self._admin.list_group_offsets(group))

    def alter_group_offsets(
        self, group: str, changes: Mapping[TopicPartition, group_offsets.CommittedOffset]
    ) -> None:
        """Sets where a group without members goes on."""
        return self._loop.run(self._admin.alter_group_offsets(group, changes))

    def delete_group_offsets(self, group: str, partitions: Iterable[TopicPartition]) -> None:
        """Forgets how far a group has read."""
        return self._loop.run(self._admin.delete_group_offsets(group, partitions))

    def group_lag(self, group: str) -> list[group_offsets.PartitionLag]:
        """How far a group is behind wherever it has committed."""
        return self._loop.run(self._admin.group_lag(group))

    # --- transactions

    def list_transactions(
        self, wanted: transactions.TransactionFilter | None = None
    ) -> list[transactions.TransactionListing]:
        """The transactional ids of all coordinators."""
        return self._loop.run(self._admin.list_transactions(wanted))

    def describe_transaction(self, transactional_id: str) -> transactions.TransactionDescription:
        """One transactional id as its coordinator has it."""
        return self._loop.run(self._admin.describe_transaction(transactional_id))

    def describe_producers(
        self, *partitions: TopicPartition
    ) -> list[transactions.PartitionProducer]:
        """The producers that partitions remember."""
        return self._loop.run(self._admin.describe_producers(*partitions))

    def fence_producer(self, transactional_id: str) -> None:
        """Aborts whatever is open under a transactional id, and fences its producer."""
        return self._loop.run(self._admin.fence_producer(transactional_id))

    def abort_transaction(self, partition: TopicPartition, start_offset: int) -> None:
        """Ends the open transaction that begins there, over its coordinator's head."""
        return self._loop.run(self._admin.abort_transaction(partition, start_offset))

    # --- access

    def describe_acls(self, wanted: acls.AclFilter | None = None) -> list[acls.Acl]:
        """The access rules that match."""
        return self._loop.run(self._admin.describe_acls(wanted))

    def create_acls(self, *new: acls.Acl) -> None:
        """Adds access rules."""
        return self._loop.run(self._admin.create_acls(*new))

    def delete_acls(self, *filters: acls.AclFilter) -> list[acls.Acl]:
        """Deletes the access rules that match, and returns them."""
        return self._loop.run(self._admin.delete_acls(*filters))

    def describe_quotas(
        self, types: Sequence[str] = (), *, exactly: quotas.Entity | None = None
    ) -> list[quotas.Quota]:
        """The quotas of entities that have all these types, or of exactly one; else all."""
        return self._loop.run(self._admin.describe_quotas(types, exactly=exactly))

    def alter_quotas(self, entity: quotas.Entity, values: Mapping[str, float | None]) -> None:
        """Sets the quotas of one entity; None takes one away."""
        return self._loop.run(self._admin.alter_quotas(entity, values))

    def describe_scram(self, *users: str) -> list[scram.ScramCredential]:
        """Which users have which passwords; never the passwords."""
        return self._loop.run(self._admin.describe_scram(*users))

    def set_scram_password(
        self,
        user: str,
        password: str,
        mechanism: scram.ScramMechanism = scram.ScramMechanism.SHA_256,
    ) -> None:
        """Gives a user a password."""
        return self._loop.run(self._admin.set_scram_password(user, password, mechanism))

    def delete_scram(self, user: str, mechanism: scram.ScramMechanism) -> None:
        """Takes a user's password away."""
        return self._loop.run(self._admin.delete_scram(user, mechanism))
