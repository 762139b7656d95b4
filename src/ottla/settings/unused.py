"""Names of Kafka's broker settings that are understood and have no effect here, and why.

A configuration file written for Kafka is accepted with a line for each of these. Settings that
would make a reader believe in a protection that is not there are refused instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

_REFUSED: Final[Mapping[str, str]] = {
    "authorizer.class.name": "asks for access control, which this version does not have",
}

_KRAFT: Final = (
    "there is no controller quorum: a single node keeps its metadata in a file of its own"
)
_ZOOKEEPER: Final = "it is given as an option of the address in zookeeper.connect, after a ?"
_THREADS: Final = "the broker is one event loop and sizes its few helper threads itself"
_JAVA: Final = "it names a Java class or belongs to the Java runtime"
_PURGATORY: Final = "waiting requests are coroutines and need no purging"
_REPLICAS: Final = "a single node has no other brokers to talk to"
_SECURITY: Final = "this version serves plain-text listeners only"
_QUOTAS: Final = "this version keeps quotas and does not hold clients to them"
_TIERED: Final = "there is no tiered storage"
_QUEUES: Final = "this version has no share groups and no streams groups"
_GROUPS: Final = "the group coordinator has no such knob"
_TRANSACTIONS: Final = "the transaction coordinator has no such knob"
_OLD: Final = "Kafka itself has dropped it"
_LOG: Final = "the log has no such knob"
_FORMAT: Final = "records are kept in format 2 only, which every broker there is can read"
_NETWORK: Final = "the network layer has no such knob"

_PREFIXES: Final[tuple[tuple[str, str], ...]] = (
    ("controller.quorum.", _KRAFT),
    ("metadata.", _KRAFT),
    ("internal.metadata.", _KRAFT),
    ("zookeeper.", _ZOOKEEPER),
    ("kafka.metrics.", _JAVA),
    ("metrics.", _JAVA),
    ("replica.", _REPLICAS),
    ("replication.quota.", _QUOTAS),
    ("alter.log.dirs.", _REPLICAS),
    ("ssl.", _SECURITY),
    ("sasl.", _SECURITY),
    ("listener.name.", _SECURITY),
    ("delegation.token.", _SECURITY),
    ("quota.", _QUOTAS),
    ("controller.quota.", _QUOTAS),
    ("remote.", _TIERED),
    ("group.share.", _QUEUES),
    ("group.streams.", _QUEUES),
    ("share.", _QUEUES),
    ("group.coordinator.", _GROUPS),
    ("password.encoder.", _OLD),
)

_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    _KRAFT: (
        "process.roles",
        "broker.heartbeat.interval.ms",
        "broker.session.timeout.ms",
        "controller.socket.timeout.ms",
        "controller.performance.always.log.threshold.ms",
        "controller.performance.sample.period.ms",
        "early.start.listeners",
        "initial.broker.registration.timeout.ms",
        "server.max.startup.time.ms",
        "unstable.api.versions.enable",
        "unstable.feature.versions.enable",
    ),
    _THREADS: (
        "background.threads",
        "log.cleaner.threads",
        "num.io.threads",
        "num.network.threads",
        "num.recovery.threads.per.data.dir",
        "num.replica.alter.log.dirs.threads",
        "num.replica.fetchers",
    ),
    _JAVA: (
        "alter.config.policy.class.name",
        "auto.include.jmx.reporter",
        "client.quota.callback.class",
        "config.providers",
        "create.topic.policy.class.name",
        "metric.reporters",
        "principal.builder.class",
        "security.providers",
        "telemetry.max.bytes",
    ),
    _PURGATORY: (
        "delete.records.purgatory.purge.interval.requests",
        "fetch.purgatory.purge.interval.requests",
        "producer.purgatory.purge.interval.requests",
    ),
    _REPLICAS: (
        "inter.broker.listener.name",
        "request.timeout.ms",
        "security.inter.broker.protocol",
        "socket.connection.setup.timeout.max.ms",
        "socket.connection.setup.timeout.ms",
        "unclean.leader.election.interval.ms",
    ),
    _SECURITY: ("connection.failed.authentication.delay.ms", "connections.max.reauth.ms"),
    _TIERED: (
        "follower.fetch.last.tiered.offset.enable",
        "log.remote.storage.enable",
    ),
    _GROUPS: (
        "group.consumer.assignment.interval.ms",
        "group.consumer.max.assignment.interval.ms",
        "group.consumer.max.heartbeat.interval.ms",
        "group.consumer.max.session.timeout.ms",
        "group.consumer.min.assignment.interval.ms",
        "group.consumer.min.heartbeat.interval.ms",
        "group.consumer.min.session.timeout.ms",
        "group.consumer.regex.refresh.interval.ms",
        "offsets.load.buffer.size",
        "offsets.topic.compression.codec",
    ),
    _TRANSACTIONS: (
        "add.partitions.to.txn.retry.backoff.max.ms",
        "add.partitions.to.txn.retry.backoff.ms",
        "transaction.state.log.load.buffer.size",
    ),
    _LOG: (
        "cordoned.log.dirs",
        "log.cleaner.io.buffer.load.factor",
        "log.cleaner.io.buffer.size",
        "log.dir.failure.timeout.ms",
        "log.initial.task.delay.ms",
    ),
    _FORMAT: ("log.message.format.version",),
    _NETWORK: ("max.connection.creation.rate", "max.connections.per.ip.overrides"),
    _OLD: (
        "broker.id.generation.enable",
        "log.message.downconversion.enable",
        "log.message.timestamp.difference.max.ms",
        "offsets.commit.required.acks",
        "reserved.broker.max.id",
    ),
}
UNUSED: Final = {name: reason for reason, names in _NAMES.items() for name in names}


def why_unused(name: str) -> str | None:
    """Why Kafka's setting `name` has no effect here; None for a name that is not in the table."""
    reason = UNUSED.get(name)
    if reason is not None:
        return reason
    return next((reason for prefix, reason in _PREFIXES if name.startswith(prefix)), None)


def refusal(name: str) -> str | None:
    """Why a configuration with `name` is not accepted at all, or None."""
    return _REFUSED.get(name)


def warnings(names: Iterable[str], declared: Mapping[str, object]) -> list[str]:
    """One line for each name that is accepted without effect."""
    return [
        f"{name} has no effect: {reason}"
        for name in names
        if name not in declared and (reason := why_unused(name)) is not None
    ]
