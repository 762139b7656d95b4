"""What admin clients ask of a whole cluster: quotas, credentials, elections, moves.

Runs on Apache Kafka as well; that is where the expected answers come from.
"""

import asyncio
from collections.abc import Callable

import pytest

from compat.conftest import Ask
from ottla.clients.address import parse_addresses
from ottla.clients.client import Client
from ottla.errors import ErrorCode
from ottla.protocol.message import Message
from ottla.protocol.messages import alter_client_quotas as alter_quotas
from ottla.protocol.messages import alter_partition_reassignments as reassign
from ottla.protocol.messages import alter_replica_log_dirs as log_dirs
from ottla.protocol.messages import alter_user_scram_credentials as alter_scram
from ottla.protocol.messages import (
    create_acls,
    delete_acls,
    describe_acls,
    sasl_authenticate,
    sasl_handshake,
)
from ottla.protocol.messages import describe_client_quotas as describe_quotas
from ottla.protocol.messages import describe_configs as describe
from ottla.protocol.messages import describe_quorum as quorum
from ottla.protocol.messages import describe_user_scram_credentials as describe_scram
from ottla.protocol.messages import elect_leaders as elect
from ottla.protocol.messages import incremental_alter_configs as alter
from ottla.protocol.messages import update_features as features
from ottla.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ottla.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from ottla.protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from ottla.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from ottla.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from ottla.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from ottla.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from ottla.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from ottla.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from ottla.protocol.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from ottla.testing import Broker
from support.eventually import eventually
from support.requests import a_topic, metadata
from support.wire import Connection

NewName = Callable[[], str]

NO_SUCH_BROKER = 99_999
TOPIC_RESOURCE, UNKNOWN_RESOURCE, GROUP_RESOURCE = 2, 3, 32
PREFERRED, UNCLEAN = 0, 1
SET, DELETE = 0, 1
DYNAMIC_DEFAULT_BROKER = 3


def test_the_users_of_a_deleted_topic_hear_of_it_before_it_is_made_anew(
    ask: Ask, connection: Connection, new_name: NewName
) -> None:
    topic = a_topic(connection, new_name())
    doomed = [DeleteTopicState(topic)]
    ask(DeleteTopicsRequest(topics=doomed, timeout_ms=30_000), DeleteTopicsResponse)

    def asked() -> tuple[int, dict[int, int]]:
        return metadata(connection, [topic], auto_create=True).topics[topic]

    unknown = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, {})
    eventually(lambda: asked() == unknown, "the news of the deletion")
    eventually(lambda: asked()[0] == ErrorCode.NONE, "the topic's return")


def test_a_quota_is_kept_told_and_taken_away(ask: Ask, new_name: NewName) -> None:
    entity = [alter_quotas.EntityData("client-id", new_name())]

    def alter(wish: alter_quotas.OpData) -> int:
        entry = alter_quotas.RequestEntryData(entity, [wish])
        request = alter_quotas.AlterClientQuotasRequest([entry])
        return ask(request, alter_quotas.AlterClientQuotasResponse).entries[0].error_code

    def told() -> dict[str, float]:
        exactly = describe_quotas.ComponentData("client-id", 0, entity[0].entity_name)
        request = describe_quotas.DescribeClientQuotasRequest([exactly], strict=True)
        answer = ask(request, describe_quotas.DescribeClientQuotasResponse)
        return {each.key: each.value for entry in answer.entries or () for each in entry.values}

    assert alter(alter_quotas.OpData("consumer_byte_rate", 1000.0)) == ErrorCode.NONE
    eventually(lambda: told() == {"consumer_byte_rate": 1000.0}, "the new quota")
    assert alter(alter_quotas.OpData("consumer_byte_rate", -5.0)) == ErrorCode.INVALID_REQUEST
    assert alter(alter_quotas.OpData("consumer_byte_rate", remove=True)) == ErrorCode.NONE
    eventually(lambda: not told(), "the end of the quota")


def test_a_credential_is_kept_told_and_taken_away(ask: Ask, new_name: NewName) -> None:
    user = new_name()

    def alter(request: alter_scram.AlterUserScramCredentialsRequest) -> int:
        return ask(request, alter_scram.AlterUserScramCredentialsResponse).results[0].error_code

    def told() -> describe_scram.DescribeUserScramCredentialsResult:
        request = describe_scram.DescribeUserScramCredentialsRequest(
            [describe_scram.UserName(user)]
        )
        return ask(request, describe_scram.DescribeUserScramCredentialsResponse).results[0]

    def upsertion(iterations: int) -> alter_scram.AlterUserScramCredentialsRequest:
        wish = alter_scram.ScramCredentialUpsertion(user, 1, iterations, b"salt", b"password")
        return alter_scram.AlterUserScramCredentialsRequest(upsertions=[wish])

    deletion = alter_scram.AlterUserScramCredentialsRequest(
        [alter_scram.ScramCredentialDeletion(user, 1)]
    )
    assert told().error_code == ErrorCode.RESOURCE_NOT_FOUND
    assert alter(upsertion(1)) == ErrorCode.UNACCEPTABLE_CREDENTIAL
    assert alter(upsertion(4096)) == ErrorCode.NONE
    kept = [describe_scram.CredentialInfo(1, 4096)]
    eventually(lambda: told().credential_infos == kept, "the new credential")
    assert alter(deletion) == ErrorCode.NONE
    assert alter(deletion) == ErrorCode.RESOURCE_NOT_FOUND


def test_quotas_and_credentials_survive_a_restart() -> None:
    entity = [alter_quotas.EntityData("user", "alice"), alter_quotas.EntityData("client-id", "a/b")]
    entry = alter_quotas.RequestEntryData(entity, [alter_quotas.OpData("request_percentage", 2.5)])
    credential = alter_scram.ScramCredentialUpsertion("alice", 2, 4096, b"salt", b"password")

    async def store(broker: Broker) -> None:
        async with Client(parse_addresses([broker.bootstrap_servers])) as client:
            request = alter_scram.AlterUserScramCredentialsRequest(upsertions=[credential])
            await client.call(request, alter_scram.AlterUserScramCredentialsResponse)
            quotas = alter_quotas.AlterClientQuotasRequest([entry])
            await client.call(quotas, alter_quotas.AlterClientQuotasResponse)

    async def told(broker: Broker) -> tuple[list[str], list[str | None]]:
        async with Client(parse_addresses([broker.bootstrap_servers])) as client:
            scram = await client.call(
                describe_scram.DescribeUserScramCredentialsRequest(None),
                describe_scram.DescribeUserScramCredentialsResponse,
            )
            quotas = await client.call(
                describe_quotas.DescribeClientQuotasRequest(),
                describe_quotas.DescribeClientQuotasResponse,
            )
        names = [part.entity_name for entry in quotas.entries or () for part in entry.entity]
        return [each.user for each in scram.results], names

    with Broker() as broker:
        asyncio.run(store(broker))
        broker.restart()
        assert asyncio.run(told(broker)) == (["alice"], ["alice", "a/b"])


@pytest.mark.parametrize("kind", [PREFERRED, UNCLEAN])
def test_no_election_is_needed_where_the_leader_is_well(
    ask: Ask, connection: Connection, new_name: NewName, kind: int
) -> None:
    topic = a_topic(connection, new_name())
    wanted = [elect.TopicPartitions(topic, [0, 7])]
    answer = ask(elect.ElectLeadersRequest(kind, wanted), elect.ElectLeadersResponse)
    codes = {
        result.partition_id: result.error_code
        for result in answer.replica_election_results[0].partition_result
    }
    assert codes == {0: ErrorCode.ELECTION_NOT_NEEDED, 7: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_an_election_everywhere_tells_only_of_those_that_were_needed(
    ask: Ask, connection: Connection, new_name: NewName
) -> None:
    a_topic(connection, new_name())
    answer = ask(elect.ElectLeadersRequest(PREFERRED, None), elect.ElectLeadersResponse)
    assert answer.error_code == ErrorCode.NONE
    assert not any(result.partition_result for result in answer.replica_election_results)


def test_partitions_can_be_assigned_only_to_brokers_that_are_there(
    ask: Ask, connection: Connection, new_name: NewName
) -> None:
    topic = a_topic(connection, new_name())
    leader = metadata(connection, [topic]).topics[topic][1][0]
    outcomes: list[int] = []
    for index, replicas in [
        (0, [leader]),
        (0, [NO_SUCH_BROKER]),
        (0, [leader, leader]),
        (0, []),
        (0, None),
        (7, [leader]),
    ]:
        wish = reassign.ReassignableTopic(topic, [reassign.ReassignablePartition(index, replicas)])
        answer = ask(
            reassign.AlterPartitionReassignmentsRequest(topics=[wish]),
            reassign.AlterPartitionReassignmentsResponse,
        )
        outcomes.append(answer.responses[0].partitions[0].error_code)
    assert outcomes == [
        ErrorCode.NONE,
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    moving = ask(ListPartitionReassignmentsRequest(), ListPartitionReassignmentsResponse)
    assert (moving.error_code, moving.topics) == (ErrorCode.NONE, [])


def test_partitions_cannot_move_to_a_directory_that_is_not_the_brokers(
    ask: Ask, connection: Connection, new_name: NewName
) -> None:
    wanted = [log_dirs.AlterReplicaLogDirTopic(a_topic(connection, new_name()), [0])]
    request = log_dirs.AlterReplicaLogDirsRequest([log_dirs.AlterReplicaLogDir("/none", wanted)])
    answer = ask(request, log_dirs.AlterReplicaLogDirsResponse)
    assert answer.results[0].partitions[0].error_code == ErrorCode.LOG_DIR_NOT_FOUND


def test_without_an_authorizer_security_is_disabled(ask: Ask) -> None:
    disabled = ErrorCode.SECURITY_DISABLED
    read, allow, topic, literal = 3, 3, 2, 3
    creation = create_acls.AclCreation(topic, "t", literal, "User:alice", "*", read, allow)
    created = ask(create_acls.CreateAclsRequest([creation]), create_acls.CreateAclsResponse)
    assert created.results[0].error_code == disabled
    wanted = delete_acls.DeleteAclsFilter(topic, "t", literal, None, None, read, allow)
    deleted = ask(delete_acls.DeleteAclsRequest([wanted]), delete_acls.DeleteAclsResponse)
    assert deleted.filter_results[0].error_code == disabled
    question = describe_acls.DescribeAclsRequest(topic, None, literal, None, None, read, allow)
    assert ask(question, describe_acls.DescribeAclsResponse).error_code == disabled


def test_without_sasl_nobody_authenticates(ask: Ask) -> None:
    shaken = ask(sasl_handshake.SaslHandshakeRequest("PLAIN"), sasl_handshake.SaslHandshakeResponse)
    given = sasl_authenticate.SaslAuthenticateRequest(b"\0alice\0secret")
    authenticated = ask(given, sasl_authenticate.SaslAuthenticateResponse)
    assert shaken.error_code == authenticated.error_code == ErrorCode.ILLEGAL_SASL_STATE


@pytest.mark.parametrize(
    ("question", "answer_class"),
    [
        (CreateDelegationTokenRequest(), CreateDelegationTokenResponse),
        (RenewDelegationTokenRequest(b"token", 1000), RenewDelegationTokenResponse),
        (ExpireDelegationTokenRequest(b"token", 1000), ExpireDelegationTokenResponse),
        (DescribeDelegationTokenRequest(), DescribeDelegationTokenResponse),
    ],
    ids=["create", "renew", "expire", "describe"],
)
def test_on_a_plain_listener_there_are_no_tokens(
    ask: Ask, question: Message, answer_class: type[Message]
) -> None:
    answer = ask(question, answer_class)
    assert answer.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


def test_a_broker_that_is_not_there_cannot_be_unregistered(ask: Ask) -> None:
    answer = ask(UnregisterBrokerRequest(NO_SUCH_BROKER), UnregisterBrokerResponse)
    assert answer.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED


def test_a_broker_that_runs_stays_registered() -> None:
    """Kafka would unregister it, for it keeps those that do not run."""

    async def asked(broker: Broker) -> tuple[int, int]:
        async with Client(parse_addresses([broker.bootstrap_servers])) as client:
            (own,) = (await client.refresh()).brokers
            answer = await client.call(UnregisterBrokerRequest(own), UnregisterBrokerResponse)
            return answer.error_code, len((await client.refresh()).brokers)

    with Broker() as broker:
        assert asyncio.run(asked(broker)) == (ErrorCode.INVALID_REQUEST, 1)


def test_the_resources_with_settings_can_be_listed(
    ask: Ask, connection: Connection, new_name: NewName
) -> None:
    topic = ConfigResource(a_topic(connection, new_name()), TOPIC_RESOURCE)
    for kinds in ([], [TOPIC_RESOURCE]):
        answer = ask(ListConfigResourcesRequest(kinds), ListConfigResourcesResponse)
        assert topic in answer.config_resources
    refused = ask(ListConfigResourcesRequest([UNKNOWN_RESOURCE]), ListConfigResourcesResponse)
    assert refused.error_code == ErrorCode.UNSUPPORTED_VERSION


def test_the_controller_is_told_as_a_quorum(ask: Ask) -> None:
    wanted = quorum.TopicRequestData("__cluster_metadata", [quorum.PartitionRequestData(0)])
    answer = ask(quorum.DescribeQuorumRequest([wanted]), quorum.DescribeQuorumResponse)
    [partition] = answer.topics[0].partitions
    assert partition.error_code == ErrorCode.NONE
    assert partition.leader_id in [voter.replica_id for voter in partition.current_voters]
    assert partition.leader_id in [node.node_id for node in answer.nodes]


def test_a_feature_nobody_knows_cannot_be_updated(ask: Ask) -> None:
    update = features.FeatureUpdateKey("no.such.feature", 1)
    answer = ask(
        features.UpdateFeaturesRequest(feature_updates=[update]), features.UpdateFeaturesResponse
    )
    assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION


def test_a_group_is_held_to_its_own_settings(ask: Ask, new_name: NewName) -> None:
    group = new_name()
    wish = alter.AlterableConfig("consumer.heartbeat.interval.ms", 0, "6000")
    resource = alter.AlterConfigsResource(GROUP_RESOURCE, group, [wish])
    altered = ask(
        alter.IncrementalAlterConfigsRequest([resource]), alter.IncrementalAlterConfigsResponse
    )
    assert altered.responses[0].error_code == ErrorCode.NONE

    def listed() -> bool:
        answer = ask(ListConfigResourcesRequest([GROUP_RESOURCE]), ListConfigResourcesResponse)
        return ConfigResource(group, GROUP_RESOURCE) in answer.config_resources

    def interval_ms() -> int:
        ask(FindCoordinatorRequest(coordinator_keys=[group]), FindCoordinatorResponse)
        joining = ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id="member",
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=["none"],
            topic_partitions=[],
        )
        return ask(joining, ConsumerGroupHeartbeatResponse).heartbeat_interval_ms

    eventually(listed, "the group's place in the list")
    eventually(lambda: interval_ms() == 6000, "the new interval")


def test_a_setting_nobody_knows_can_be_deleted_but_not_set(
    ask: Ask, connection: Connection, new_name: NewName
) -> None:
    topic = a_topic(connection, new_name())
    outcomes = []
    for operation, value in [(DELETE, None), (SET, "1")]:
        wish = alter.AlterableConfig("no.such.setting", operation, value)
        resource = alter.AlterConfigsResource(TOPIC_RESOURCE, topic, [wish])
        request = alter.IncrementalAlterConfigsRequest([resource])
        answer = ask(request, alter.IncrementalAlterConfigsResponse)
        outcomes.append(answer.responses[0].error_code)
    assert outcomes == [ErrorCode.NONE, ErrorCode.INVALID_CONFIG]


def test_min_insync_replicas_is_told_as_the_clusters(
    ask: Ask, connection: Connection, new_name: NewName
) -> None:
    wanted = describe.DescribeConfigsResource(
        TOPIC_RESOURCE, a_topic(connection, new_name()), ["min.insync.replicas"]
    )
    answer = ask(describe.DescribeConfigsRequest([wanted]), describe.DescribeConfigsResponse)
    [setting] = answer.results[0].configs
    assert (setting.value, setting.config_source) == ("1", DYNAMIC_DEFAULT_BROKER)
