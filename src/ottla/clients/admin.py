"""Administration for asyncio: every broker API that changes or describes a cluster, typed.

One method a task. The work is done by the modules this one imports, one noun each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType

from ottla.clients import (
    acls,
    cluster,
    configs,
    features,
    group_members,
    group_offsets,
    groups,
    hanging_transactions,
    log_dirs,
    offsets,
    placement,
    quorum,
    quotas,
    scram,
    topics,
    transactions,
)
from ottla.clients.client import ANY_BROKER, Client
from ottla.clients.client_metrics import ClientMetrics
from ottla.clients.connection_settings import ConnectionSettings, client_for
from ottla.clients.metadata import TopicInfo
from ottla.clients.outcome import Outcome
from ottla.clients.settings_source import Config, SettingsSource
from ottla.model.ids import BrokerId, Offset, TopicPartition


def plan_admin(config: Config, keywords: Mapping[str, object]) -> ConnectionSettings:
    """Reads what a person wrote."""
    source = SettingsSource("admin", config, keywords)
    source.check_names((ConnectionSettings,))
    return source.read(ConnectionSettings)


class Admin:
    """Describes and changes a cluster. Use it as an asynchronous context."""

    __slots__ = ("_client",)

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] | None = None,
        *,
        config: Config = None,
        **settings: object,
    ) -> None:
        if bootstrap_servers is not None:
            settings["bootstrap_servers"] = bootstrap_servers
        self._client: Client = client_for(plan_admin(config, settings))

    async def __aenter__(self) -> Admin:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Disconnects."""
        await self._client.close()

    def metrics(self) -> ClientMetrics:
        """How the brokers served so far, in numbers."""
        return self._client.metrics()

    # --- topics and records

    async def create_topics(
        self, *new: topics.NewTopic | str, validate_only: bool = False
    ) -> list[topics.CreatedTopic]:
        """Creates topics, each with its own outcome; a name alone takes the broker's defaults."""
        wanted = [topics.wanted_topic(each) for each in new]
        return await topics.create_topics(self._client, wanted, validate_only=validate_only)

    async def delete_topics(self, *names: str) -> list[Outcome]:
        """Deletes topics with all their records."""
        return await topics.delete_topics(self._client, names)

    async def list_topics(self, *, internal: bool = False) -> list[TopicInfo]:
        """All topics by name."""
        return await topics.list_topics(self._client, internal=internal)

    async def describe_topic(self, name: str) -> TopicInfo:
        """One topic as it is now."""
        return await topics.describe_topic(self._client, name)

    async def wait_for_topic(self, name: str, *, timeout_s: float = 10.0) -> TopicInfo:
        """The topic as soon as all its partitions have a leader."""
        return await self._client.wait_for_topic(name, timeout_s=timeout_s)

    async def add_partitions(self, topic: str, count: int) -> None:
        """Raises a topic's number of partitions to `count`."""
        await topics.add_partitions(self._client, topic, count)

    async def list_offsets(
        self, topic: str, timestamps: Mapping[int, int], *, committed_only: bool = False
    ) -> dict[int, offsets.ListedOffset]:
        """By partition the first offset at or after a timestamp, or EARLIEST, LATEST."""
        return await offsets.list_offsets(
            self._client, topic, timestamps, committed_only=committed_only
        )

    async def delete_records(self, topic: str, before: Mapping[int, int]) -> dict[int, Offset]:
        """Deletes what comes before an offset (-1: everything); returns the new first offsets."""
        return await offsets.delete_records(self._client, topic, before)

    # --- configs

    async def describe_configs(
        self, resource: configs.Resource, names: Sequence[str] = ()
    ) -> list[configs.ConfigEntry]:
        """The settings of a topic or broker."""
        return await configs.describe_configs(self._client, resource, names)

    async def alter_configs(
        self,
        resource: configs.Resource,
        set_values: Mapping[str, str] | None = None,
        unset: Iterable[str] = (),
    ) -> None:
        """Sets and unsets settings of one resource: all of them or none."""
        await configs.alter_configs(self._client, resource, set_values=set_values, unset=unset)

    async def list_config_resources(self, kinds: Iterable[int] = ()) -> list[tuple[int, str]]:
        """The resources that have settings, by the number of their kind and their name."""
        return await configs.list_config_resources(self._client, kinds)

    # --- the cluster

    async def describe_cluster(self) -> cluster.Cluster:
        """The cluster's id, controller and brokers."""
        return await cluster.describe_cluster(self._client)

    async def describe_quorum(self) -> quorum.Quorum:
        """Who keeps the cluster's metadata, and how far each of them is."""
        return await quorum.describe_quorum(self._client)

    async def describe_features(self, broker: int | None = None) -> features.Features:
        """What a broker supports (whichever answers, unless one is named), and what is in force."""
        return await features.describe_features(
            self._client, ANY_BROKER if broker is None else BrokerId(broker)
        )

    async def update_features(
        self,
        levels: Mapping[str, int],
        *,
        change: features.FeatureChange = features.FeatureChange.UPGRADE,
        validate_only: bool = False,
    ) -> None:
        """Sets the levels of features, all of them or none; a level of 0 turns one off."""
        await features.update_features(
            self._client, levels, change=change, validate_only=validate_only
        )

    async def describe_log_dirs(self, broker: int) -> list[log_dirs.LogDir]:
        """The data directories of a broker."""
        return await log_dirs.describe_log_dirs(self._client, BrokerId(broker))

    async def move_replicas(
        self, broker: int, paths: Mapping[TopicPartition, str]
    ) -> placement.Refusals:
        """Moves replicas of one broker to other data directories of it."""
        return await placement.move_replicas(self._client, BrokerId(broker), paths)

    async def elect_leaders(
        self,
        partitions: Iterable[TopicPartition] | None = None,
        election: placement.Election = placement.Election.PREFERRED,
    ) -> placement.Refusals:
        """Elects leaders, for all partitions unless some are named."""
        return await placement.elect_leaders(self._client, partitions, election)

    async def reassign_partitions(
        self, replicas: Mapping[TopicPartition, Sequence[int] | None]
    ) -> placement.Refusals:
        """Begins to move partitions to these brokers; None cancels a move."""
        return await placement.reassign_partitions(self._client, replicas)

    async def list_reassignments(self) -> list[placement.Reassignment]:
        """The moves under way."""
        return await placement.list_reassignments(self._client)

    # --- groups

    async def list_groups(
        self, *, states: Sequence[str] = (), types: Sequence[str] = ()
    ) -> list[groups.GroupListing]:
        """The groups of all brokers."""
        return await groups.list_groups(self._client, states=states, types=types)

    async def describe_group(self, group: str) -> groups.GroupDescription:
        """A group with its members."""
        return await groups.describe_group(self._client, group)

    async def delete_groups(self, *names: str) -> list[Outcome]:
        """Deletes groups with their offsets; one with members stays."""
        return await groups.delete_groups(self._client, names)

    async def remove_members(self, group: str, instance_ids: Sequence[str] | None = None) -> None:
        """Takes static members out of a classic group; None takes out everybody."""
        await group_members.remove_members(self._client, group, instance_ids)

    async def list_group_offsets(
        self, group: str
    ) -> dict[TopicPartition, group_offsets.CommittedOffset]:
        """All offsets a group has committed."""
        return await group_offsets.committed_offsets(self._client, group)

    async def alter_group_offsets(
        self, group: str, changes: Mapping[TopicPartition, group_offsets.CommittedOffset]
    ) -> None:
        """Sets where a group without members goes on."""
        await group_offsets.commit_offsets(self._client, group, changes)

    async def delete_group_offsets(self, group: str, partitions: Iterable[TopicPartition]) -> None:
        """Forgets how far a group has read."""
        await group_offsets.delete_offsets(self._client, group, partitions)

    async def group_lag(self, group: str) -> list[group_offsets.PartitionLag]:
        """How far a group is behind wherever it has committed."""
        return await group_offsets.group_lag(self._client, group)

    # --- transactions

    async def list_transactions(
        self, wanted: transactions.TransactionFilter | None = None
    ) -> list[transactions.TransactionListing]:
        """The transactional ids of all coordinators."""
        return await transactions.list_transactions(self._client, wanted)

    async def describe_transaction(
        self, transactional_id: str
    ) -> transactions.TransactionDescription:
        """One transactional id as its coordinator has it."""
        return await transactions.describe_transaction(self._client, transactional_id)

    async def describe_producers(
        self, *partitions: TopicPartition
    ) -> list[transactions.PartitionProducer]:
        """The producers that partitions remember."""
        return await transactions.describe_producers(self._client, partitions)

    async def fence_producer(self, transactional_id: str) -> None:
        """Aborts whatever is open under a transactional id, and fences its producer."""
        found = await transactions.describe_transaction(self._client, transactional_id)
        await transactions.take_over(self._client, found)

    async def abort_transaction(self, partition: TopicPartition, start_offset: int) -> None:
        """Ends the open transaction that begins there, over its coordinator's head."""
        producer = await hanging_transactions.open_transaction_at(
            self._client, partition, Offset(start_offset)
        )
        await transactions.abort_in_partition(self._client, producer)

    # --- access

    async def describe_acls(self, wanted: acls.AclFilter | None = None) -> list[acls.Acl]:
        """The access rules that match."""
        return await acls.describe_acls(self._client, wanted)

    async def create_acls(self, *new: acls.Acl) -> None:
        """Adds access rules."""
        await acls.create_acls(self._client, new)

    async def delete_acls(self, *filters: acls.AclFilter) -> list[acls.Acl]:
        """Deletes the access rules that match, and returns them."""
        return await acls.delete_acls(self._client, filters)

    async def describe_quotas(
        self, types: Sequence[str] = (), *, exactly: quotas.Entity | None = None
    ) -> list[quotas.Quota]:
        """The quotas of entities that have all these types, or of exactly one; else all."""
        return await quotas.describe_quotas(self._client, types, exactly=exactly)

    async def alter_quotas(self, entity: quotas.Entity, values: Mapping[str, float | None]) -> None:
        """Sets the quotas of one entity; None takes one away."""
        await quotas.alter_quotas(self._client, entity, values)

    async def describe_scram(self, *users: str) -> list[scram.ScramCredential]:
        """Which users have which passwords; never the passwords."""
        return await scram.describe_scram(self._client, users)

    async def set_scram_password(
        self,
        user: str,
        password: str,
        mechanism: scram.ScramMechanism = scram.ScramMechanism.SHA_256,
    ) -> None:
        """Gives a user a password."""
        await scram.set_scram_password(self._client, user, password, mechanism=mechanism)

    async def delete_scram(self, user: str, mechanism: scram.ScramMechanism) -> None:
        """Takes a user's password away."""
        await scram.delete_scram(self._client, user, mechanism)
