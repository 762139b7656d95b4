"""Which handler answers which API: one table a family, and all of them together.

`Parts` is what app.py has made; each handler is given those it needs and no more.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from ottla.broker.absences import Absences
from ottla.broker.cluster_view import ClusterView
from ottla.broker.controller import Controller
from ottla.broker.coordinator import Coordinator
from ottla.broker.fetch_sessions import FetchSessions
from ottla.broker.group_coordinator import GroupCoordinator
from ottla.broker.handlers.acls import create_acls, delete_acls, describe_acls
from ottla.broker.handlers.add_offsets_to_txn import AddOffsetsToTxnHandler
from ottla.broker.handlers.add_partitions_to_txn import AddPartitionsToTxnHandler
from ottla.broker.handlers.alter_configs import AlterConfigsHandler
from ottla.broker.handlers.alter_replica_log_dirs import AlterReplicaLogDirsHandler
from ottla.broker.handlers.api_versions import ApiVersionsHandler
from ottla.broker.handlers.client_quotas import (
    AlterClientQuotasHandler,
    DescribeClientQuotasHandler,
)
from ottla.broker.handlers.controlled_shutdown import ControlledShutdownHandler
from ottla.broker.handlers.create_partitions import CreatePartitionsHandler
from ottla.broker.handlers.create_topics import CreateTopicsHandler
from ottla.broker.handlers.delegation_tokens import (
    create_delegation_token,
    describe_delegation_token,
    expire_delegation_token,
    renew_delegation_token,
)
from ottla.broker.handlers.delete_records import DeleteRecordsHandler
from ottla.broker.handlers.delete_topics import DeleteTopicsHandler
from ottla.broker.handlers.describe_cluster import DescribeClusterHandler
from ottla.broker.handlers.describe_configs import DescribeConfigsHandler
from ottla.broker.handlers.describe_log_dirs import DescribeLogDirsHandler
from ottla.broker.handlers.describe_quorum import DescribeQuorumHandler
from ottla.broker.handlers.describe_topic_partitions import DescribeTopicPartitionsHandler
from ottla.broker.handlers.elect_leaders import ElectLeadersHandler
from ottla.broker.handlers.end_txn import EndTxnHandler
from ottla.broker.handlers.featured import FeaturedHandler
from ottla.broker.handlers.fetch import FetchHandler
from ottla.broker.handlers.find_coordinator import FindCoordinatorHandler, KeyType
from ottla.broker.handlers.group_administration import (
    ConsumerGroupDescribeHandler,
    DeleteGroupsHandler,
    DescribeGroupsHandler,
    ListGroupsHandler,
)
from ottla.broker.handlers.group_request import GroupRequestHandler
from ottla.broker.handlers.incremental_alter_configs import IncrementalAlterConfigsHandler
from ottla.broker.handlers.init_producer_id import InitProducerIdHandler
from ottla.broker.handlers.list_config_resources import ListConfigResourcesHandler
from ottla.broker.handlers.list_offsets import ListOffsetsHandler
from ottla.broker.handlers.metadata import MetadataHandler
from ottla.broker.handlers.offset_fetch import OffsetFetchHandler
from ottla.broker.handlers.offset_for_leader_epoch import OffsetForLeaderEpochHandler
from ottla.broker.handlers.partition_reassignments import (
    AlterPartitionReassignmentsHandler,
    ListPartitionReassignmentsHandler,
)
from ottla.broker.handlers.produce import ProduceHandler
from ottla.broker.handlers.sasl import sasl_authenticate, sasl_handshake
from ottla.broker.handlers.scram_credentials import (
    AlterUserScramCredentialsHandler,
    DescribeUserScramCredentialsHandler,
)
from ottla.broker.handlers.transaction_administration import (
    DescribeProducersHandler,
    DescribeTransactionsHandler,
    ListTransactionsHandler,
)
from ottla.broker.handlers.txn_offset_commit import TxnOffsetCommitHandler
from ottla.broker.handlers.unregister_broker import UnregisterBrokerHandler
from ottla.broker.handlers.update_features import UpdateFeaturesHandler
from ottla.broker.handlers.write_txn_markers import WriteTxnMarkersHandler
from ottla.broker.housekeeping import Housekeeping
from ottla.broker.partitions import Partitions
from ottla.broker.recent_deletions import RecentDeletions
from ottla.broker.replica_reads import ReplicaReads
from ottla.broker.request import Handler
from ottla.broker.topic_creation import TopicCreation
from ottla.broker.transaction_coordinator import TransactionCoordinator
from ottla.broker.transaction_guard import TransactionGuard
from ottla.broker.transaction_markers import MarkerWriter
from ottla.cluster.producer_ids import ProducerIds
from ottla.coordination.group.shard import GroupShard
from ottla.model.clock import Clock
from ottla.net.turns import Turns
from ottla.protocol.api import ApiKey
from ottla.settings.protocol_level import GROUP_FEATURE, NEWEST

HandlerTable = dict[ApiKey, Handler]


class Parts(msgspec.Struct, frozen=True):
    """The parts of a broker that its handlers speak to."""

    partitions: Partitions
    absences: Absences
    view: ClusterView
    controller: Controller
    creation: TopicCreation
    housekeeping: Housekeeping
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    markers: MarkerWriter
    guard: TransactionGuard
    producer_ids: ProducerIds
    data_directory: Path
    clock: Clock
    turns: Turns


def handler_table(parts: Parts) -> HandlerTable:
    """Every API this broker serves. ApiVersions tells of them, and so comes last."""
    table = {
        **_records(parts),
        **_topics(parts),
        **_configs(parts),
        **_cluster(parts),
        **_security(parts),
        **_groups(parts),
        **_transactions(parts),
    }
    settings = parts.view.settings.transactions
    table[ApiKey.API_VERSIONS] = ApiVersionsHandler(
        [*table, ApiKey.API_VERSIONS],
        parts.view,
        offers_two_phase_commit=settings.transaction_two_phase_commit_enable
        and parts.view.settings.replication.protocol_level == NEWEST,
    )
    return table


def _records(parts: Parts) -> HandlerTable:
    partitions, view, settings = parts.partitions, parts.view, parts.view.settings
    replica_reads = ReplicaReads(
        view.broker_id, lambda: view.settings.replication, lambda: view.image.brokers
    )
    sessions = FetchSessions(settings.max_incremental_fetch_session_cache_slots)
    return {
        ApiKey.PRODUCE: ProduceHandler(partitions, parts.guard),
        ApiKey.FETCH: FetchHandler(
            partitions, sessions, replica_reads, parts.clock, settings.fetch_max_bytes
        ),
        ApiKey.LIST_OFFSETS: ListOffsetsHandler(partitions, parts.turns),
        ApiKey.DELETE_RECORDS: DeleteRecordsHandler(partitions, parts.housekeeping),
        ApiKey.OFFSET_FOR_LEADER_EPOCH: OffsetForLeaderEpochHandler(partitions),
    }


def _topics(parts: Parts) -> HandlerTable:
    view, controller, settings = parts.view, parts.controller, parts.view.settings
    deletions = RecentDeletions()
    return {
        ApiKey.METADATA: MetadataHandler(
            view,
            parts.creation,
            deletions,
            may_create=settings.auto_create_topics_enable,
            turns=parts.turns,
        ),
        ApiKey.DESCRIBE_TOPIC_PARTITIONS: DescribeTopicPartitionsHandler(
            view, parts.partitions, parts.absences, settings.max_request_partition_size_limit
        ),
        ApiKey.CREATE_TOPICS: CreateTopicsHandler(controller, view),
        ApiKey.DELETE_TOPICS: DeleteTopicsHandler(
            controller, view, deletions, is_enabled=settings.delete_topic_enable
        ),
        ApiKey.CREATE_PARTITIONS: CreatePartitionsHandler(controller),
    }


def _configs(parts: Parts) -> HandlerTable:
    return {
        ApiKey.DESCRIBE_CONFIGS: DescribeConfigsHandler(parts.view),
        ApiKey.ALTER_CONFIGS: AlterConfigsHandler(parts.controller),
        ApiKey.INCREMENTAL_ALTER_CONFIGS: IncrementalAlterConfigsHandler(parts.controller),
        ApiKey.LIST_CONFIG_RESOURCES: ListConfigResourcesHandler(parts.view),
        ApiKey.DESCRIBE_CLIENT_QUOTAS: DescribeClientQuotasHandler(parts.view),
        ApiKey.ALTER_CLIENT_QUOTAS: AlterClientQuotasHandler(parts.controller),
    }


def _cluster(parts: Parts) -> HandlerTable:
    partitions, view, directory = parts.partitions, parts.view, parts.data_directory
    leaderships = parts.controller.leaderships
    return {
        ApiKey.DESCRIBE_CLUSTER: DescribeClusterHandler(view),
        ApiKey.DESCRIBE_QUORUM: DescribeQuorumHandler(view),
        ApiKey.UPDATE_FEATURES: UpdateFeaturesHandler(parts.controller),
        ApiKey.DESCRIBE_LOG_DIRS: DescribeLogDirsHandler(partitions, directory),
        ApiKey.ALTER_REPLICA_LOG_DIRS: AlterReplicaLogDirsHandler(partitions, directory),
        ApiKey.CONTROLLED_SHUTDOWN: ControlledShutdownHandler(leaderships),
        ApiKey.UNREGISTER_BROKER: UnregisterBrokerHandler(view),
        ApiKey.ELECT_LEADERS: ElectLeadersHandler(leaderships),
        ApiKey.ALTER_PARTITION_REASSIGNMENTS: AlterPartitionReassignmentsHandler(leaderships),
        ApiKey.LIST_PARTITION_REASSIGNMENTS: ListPartitionReassignmentsHandler(view),
    }


def _security(parts: Parts) -> HandlerTable:
    return {
        ApiKey.SASL_HANDSHAKE: sasl_handshake(),
        ApiKey.SASL_AUTHENTICATE: sasl_authenticate(),
        ApiKey.CREATE_DELEGATION_TOKEN: create_delegation_token(),
        ApiKey.RENEW_DELEGATION_TOKEN: renew_delegation_token(),
        ApiKey.EXPIRE_DELEGATION_TOKEN: expire_delegation_token(),
        ApiKey.DESCRIBE_DELEGATION_TOKEN: describe_delegation_token(),
        ApiKey.DESCRIBE_ACLS: describe_acls(),
        ApiKey.CREATE_ACLS: create_acls(),
        ApiKey.DELETE_ACLS: delete_acls(),
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: DescribeUserScramCredentialsHandler(parts.view),
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS: AlterUserScramCredentialsHandler(parts.controller),
    }


def _groups(parts: Parts) -> HandlerTable:
    groups = parts.groups
    coordinators: dict[KeyType, Coordinator[Any]] = {
        KeyType.GROUP: groups,
        KeyType.TRANSACTION: parts.transactions,
    }
    return {
        ApiKey.FIND_COORDINATOR: FindCoordinatorHandler(coordinators, parts.creation, parts.view),
        ApiKey.JOIN_GROUP: GroupRequestHandler(groups, GroupShard.join_group),
        ApiKey.SYNC_GROUP: GroupRequestHandler(groups, GroupShard.sync_group),
        ApiKey.HEARTBEAT: GroupRequestHandler(groups, GroupShard.heartbeat),
        ApiKey.LEAVE_GROUP: GroupRequestHandler(groups, GroupShard.leave_group),
        ApiKey.OFFSET_COMMIT: GroupRequestHandler(groups, GroupShard.offset_commit),
        ApiKey.OFFSET_DELETE: GroupRequestHandler(groups, GroupShard.offset_delete),
        ApiKey.OFFSET_FETCH: OffsetFetchHandler(groups),
        ApiKey.LIST_GROUPS: ListGroupsHandler(groups),
        ApiKey.DESCRIBE_GROUPS: DescribeGroupsHandler(groups),
        ApiKey.DELETE_GROUPS: DeleteGroupsHandler(groups),
        ApiKey.CONSUMER_GROUP_HEARTBEAT: FeaturedHandler(
            GroupRequestHandler(groups, GroupShard.consumer_group_heartbeat),
            parts.view,
            GROUP_FEATURE,
            at_least=1,
        ),
        ApiKey.CONSUMER_GROUP_DESCRIBE: ConsumerGroupDescribeHandler(groups),
    }


def _transactions(parts: Parts) -> HandlerTable:
    transactions, groups = parts.transactions, parts.groups
    return {
        ApiKey.INIT_PRODUCER_ID: InitProducerIdHandler(parts.producer_ids, transactions),
        ApiKey.ADD_PARTITIONS_TO_TXN: AddPartitionsToTxnHandler(transactions),
        ApiKey.ADD_OFFSETS_TO_TXN: AddOffsetsToTxnHandler(transactions, groups, parts.creation),
        ApiKey.TXN_OFFSET_COMMIT: TxnOffsetCommitHandler(groups, parts.guard),
        ApiKey.END_TXN: EndTxnHandler(transactions, parts.producer_ids),
        ApiKey.WRITE_TXN_MARKERS: WriteTxnMarkersHandler(parts.markers),
        ApiKey.DESCRIBE_TRANSACTIONS: DescribeTransactionsHandler(transactions),
        ApiKey.LIST_TRANSACTIONS: ListTransactionsHandler(transactions, parts.clock),
        ApiKey.DESCRIBE_PRODUCERS: DescribeProducersHandler(parts.partitions),
    }
