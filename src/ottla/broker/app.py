"""The broker put together. Only here everything is seen; each part is handed what it needs."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from ottla.broker.cluster_follower import ClusterFollower
from ottla.broker.cluster_view import ClusterView
from ottla.broker.compactor import Compactor
from ottla.broker.controller import Controller
from ottla.broker.controller_duties import ControllerDuties
from ottla.broker.departure import depart
from ottla.broker.dispatch import Dispatch, Interception
from ottla.broker.flusher import Flusher
from ottla.broker.forwarding import forwarding
from ottla.broker.group_coordinator import GroupCoordinator, GroupDuties
from ottla.broker.handler_table import HandlerTable, Parts, handler_table
from ottla.broker.handlers.logger_configs import with_own_loggers
from ottla.broker.housekeeping import Housekeeping
from ottla.broker.in_sync_changes import InSyncChanges
from ottla.broker.leader_hints import with_leader_hints
from ottla.broker.marker_delivery import MarkerDelivery
from ottla.broker.membership import Membership
from ottla.broker.metadata_store import is_shared, open_store, refusal
from ottla.broker.partition import Services
from ottla.broker.partitions import Partitions
from ottla.broker.peers import Peers
from ottla.broker.relief import Relief
from ottla.broker.replicas import Replicas
from ottla.broker.replication import Replication
from ottla.broker.spoken_versions import speak
from ottla.broker.standing import Standing
from ottla.broker.system_clock import SystemClock
from ottla.broker.topic_creation import TopicCreation
from ottla.broker.transaction_coordinator import TransactionCoordinator, TransactionDuties
from ottla.broker.transaction_guard import TransactionGuard
from ottla.broker.transaction_markers import MarkerWriter
from ottla.broker.unique_ids import new_cluster_id
from ottla.cluster.changes import change_leader
from ottla.cluster.config_changes import settle_shared_settings
from ottla.cluster.features import confirm_understood, registered_features
from ottla.cluster.image import Draft
from ottla.cluster.layout import BrokerNode
from ottla.cluster.metadata import ClusterMetadata
from ottla.cluster.producer_ids import ProducerIds
from ottla.cluster.renunciation import renounce, renounce_lost
from ottla.cluster.store import MetadataLost
from ottla.errors import ConfigError
from ottla.model.clock import Clock
from ottla.model.ids import BrokerId
from ottla.net.direct_loop import DirectLoop
from ottla.net.listener import Address, Listener, ListenerLimits
from ottla.net.server_connection import ConnectionLimits
from ottla.net.turns import Turns
from ottla.settings.broker import BrokerSettings
from ottla.settings.describe import BrokerLayers
from ottla.settings.listeners import parse_endpoint
from ottla.storage.directory_identity import Identity
from ottla.storage.disk import LocalDisk
from ottla.storage.flush import FlushJob
from ottla.storage.log_directory import LogDirectory

STOP_GRACE_SECONDS: Final = 5.0
"""How long clients may take to receive the replies they are owed when the broker stops."""
SYNC_THREADS: Final = 1
CLOSING_THREADS: Final = 16

log = logging.getLogger(__name__)


class Broker:
    """One broker on one data directory."""

    def __init__(
        self, layers: BrokerLayers, clock: Clock, *, interception: Interception | None = None
    ) -> None:
        self._static = layers.static
        self._settings = layers.settings()
        self._is_member = is_shared(self._settings)
        """Whether this broker is one of a cluster; else it stands alone."""
        self._membership: Membership | None = None
        self._clock = clock
        self._interception = interception
        self._executor = ThreadPoolExecutor(SYNC_THREADS, thread_name_prefix="ottla-disk")
        self.partitions = Partitions()
        self._turns = Turns()

    @property
    def address(self) -> Address:
        """Where clients connect."""
        return self._listener.address

    @property
    def data_directory(self) -> Path:
        return Path(self._directory.root)

    async def start(self) -> Address:
        """Opens the data and then the port; returns the address once clients can connect."""
        settings = self._settings
        root = _only_directory(settings)
        self._directory = LogDirectory.open(LocalDisk(), root, self._clock)
        try:
            self._store = await open_store(settings, Path(root), self._clock)
        except BaseException:
            self._directory.abandon()
            raise
        try:
            await self._open_metadata(settings)
            await self._open_logs()
            dispatch = Dispatch(
                self._handler_table(), settings.socket_request_max_bytes, self._interception
            )
            await self._listen(settings, dispatch)
            if self._is_member:
                await self._join_cluster()
            self._start_duties()
        except BaseException:
            self._directory.abandon()
            await self._store.close()
            raise
        return self.address

    async def stop(self, grace_seconds: float = STOP_GRACE_SECONDS) -> None:
        """Answers what is owed, makes everything durable and lets go of the directory."""
        if self._membership is not None:
            await self._leave_cluster(self._membership)
        self._listener.drain()
        # Whoever waits for something is told at once that it will not come from here.
        self._groups.stop()
        self._transactions.stop()
        self._delivery.stop()
        for partition in self.partitions:
            partition.close()
        await self._listener.close(grace_seconds)
        await self._controller_duties.stop()
        await self._controller.finish()
        await self._transaction_duties.stop()
        await self._group_duties.stop()
        await self._compactor.stop()
        await self._housekeeping.stop()
        await self._in_sync.stop()
        await self._relief.stop()
        await self._metadata.stop_following()
        await self._follower.stop()
        self._peers.close()
        await self._flusher.wait_idle()
        # A checkpoint still being written must not overtake the last one.
        self._executor.shutdown()
        self._close_directory()
        await self._store.close()

    def _close_directory(self) -> None:
        try:
            self._directory.close(
                on_failure=lambda partition, error: log.error(
                    "closing %s failed: %s", partition, error
                ),
                run=_run_in_threads,
            )
        except OSError as error:
            log.error("the stop could not be noted, the next start will recover: %s", error)
            self._directory.abandon()

    async def _open_metadata(self, settings: BrokerSettings) -> None:
        broker_id = BrokerId(settings.node_id)
        known = self._directory.identity
        is_new = known is None and not self._directory.partitions()
        cluster_id = known.cluster_id if known is not None else new_cluster_id()
        try:
            self._metadata = await ClusterMetadata.open(
                self._store, cluster_id=cluster_id, may_be_new=is_new
            )
        except MetadataLost as error:
            raise refusal(settings, self._directory.root) from error
        self._directory.claim(Identity(broker_id, self._metadata.image.cluster_id))
        await speak(self._metadata, broker_id, settings.replication.protocol_level)
        if not self._is_member:
            endpoints = settings.advertised_endpoints()
            await self._metadata.register(broker_id, self._node(tuple(map(str, endpoints))))
            await self._metadata.become_controller(broker_id, self._clock.now_ms())
            await self._metadata.change(self._settle_settings)
        self._view = ClusterView(self._metadata, broker_id, self._static)
        self.partitions.image = lambda: self._metadata.image

    async def _join_cluster(self) -> None:
        """Makes this broker known to the others, now that they can connect to it."""
        if not self._directory.was_closed_cleanly:
            doubtful = self._directory.may_lack_records
            await self._metadata.change_as_leader(
                lambda draft: renounce(draft, self._view.broker_id, may_lack_records=doubtful)
            )
            self._directory.note_boot()
        if lost := frozenset(self._replicas.lost):
            await self._metadata.change_as_leader(
                lambda draft: renounce_lost(draft, self._view.broker_id, lost)
            )
        self._metadata.follow()
        advertised = self._view.advertised
        host = advertised.host or socket.gethostname()
        endpoint = f"PLAINTEXT://{Address(host, advertised.port)}"
        self._membership = Membership(
            self._metadata,
            self._standing,
            self._node((endpoint,)),
            stood=self._stood,
            begin=self._settle_settings,
        )
        await self._membership.join()
        try:
            await confirm_understood(self._store, self._settings.replication.protocol_level)
        except BaseException:
            await self._membership.leave()
            raise
        self._stood()

    async def _leave_cluster(self, membership: Membership) -> None:
        """Lets others lead what this broker leads, while clients are still served."""
        registered = self._view.image.brokers.get(self._view.broker_id)
        if registered is not None and self._standing.is_certain:
            settings = self._view.settings.replication
            stop_following = self._replication.stop
            await depart(registered.id, registered.epoch, self._peers, settings, stop_following)
        await membership.leave()

    def _node(self, endpoints: tuple[str, ...]) -> BrokerNode:
        first = parse_endpoint(endpoints[0])
        assert first is not None
        return BrokerNode(
            host=first.host,
            port=first.port,
            endpoints=endpoints,
            listener_security_protocol_map={"PLAINTEXT": "PLAINTEXT"},
            rack=self._settings.broker_rack,
            timestamp=str(self._clock.now_ms()),
            features=registered_features(self._settings.replication.protocol_level),
        )

    def _settle_settings(self, draft: Draft) -> None:
        settle_shared_settings(draft, self._settings)

    def _stood(self) -> None:
        """This broker's right to lead has changed."""
        for partition in self.partitions:
            partition.stood()
        self._groups.update()
        self._transactions.update()

    async def _open_logs(self) -> None:
        self._flusher = Flusher(self._executor, self._directory)
        lag_ms_max = self._settings.replica_lag_time_max_ms
        session = self._store.session if self._is_member else None
        self._standing = Standing(self._view.broker_id, self._clock, lag_ms_max, session)
        self._standing.is_registered = not self._is_member
        self._in_sync = InSyncChanges(self._metadata, self.partitions, self._standing)
        self._relief = Relief(
            self._metadata, self._standing, lambda: self._flusher.run(self._directory.has_room)
        )
        services = Services(self._standing, self._flusher, self._in_sync, self._relief)
        self._replicas = Replicas(self.partitions, self._directory, self._view, services)
        self._replicas.settle_unknown_logs()
        if self._is_member:
            self._replicas.note_lost_logs()
        if not self._is_member and not self._directory.was_closed_cleanly:
            # What was not synced may be gone. A new epoch lets readers who saw it notice.
            await self._metadata.change(_lead_anew)
            self._directory.note_boot()
        self._replication = Replication(self._view)
        self._follower = ClusterFollower(
            self._metadata,
            self._view,
            self.partitions,
            self._replicas,
            self._replication,
        )
        await self._follower.start()
        self._housekeeping = Housekeeping(
            self.partitions, self._directory, self._flusher, self._view, self._clock
        )
        self._groups = GroupCoordinator(self.partitions, self._view, self._clock)
        self._markers = MarkerWriter(self.partitions, self._groups, self._clock)
        self._peers = Peers(self._view)
        self._delivery = MarkerDelivery(self._markers, self._view, self._peers, self._store)
        self._transactions = TransactionCoordinator(
            self.partitions, self._view, self._clock, self._delivery
        )
        for coordinator in (self._groups, self._transactions):
            coordinator.turns = self._turns
            coordinator.update()
            self._follower.observers.append(coordinator.changed)
        self._transaction_duties = TransactionDuties(
            self._transactions, self._settings.transactions, self._clock
        )
        self._group_duties = GroupDuties(self._groups, self._settings.groups, self._clock)

    def _handler_table(self) -> HandlerTable:
        partitions, view = self.partitions, self._view
        self._controller = Controller(self._metadata, view, self._follower)
        self._follower.observers.append(self._group_duties.topics_changed)
        guard = TransactionGuard(
            self._transactions,
            partitions,
            self._peers,
            self._markers,
            lambda: view.settings.transactions.transaction_partition_verification_enable,
        )
        table = handler_table(
            Parts(
                partitions=partitions,
                absences=self._in_sync.absences,
                view=view,
                controller=self._controller,
                creation=TopicCreation(
                    self._metadata, self._controller, self._peers, self._follower
                ),
                housekeeping=self._housekeeping,
                groups=self._groups,
                transactions=self._transactions,
                markers=self._markers,
                guard=guard,
                producer_ids=ProducerIds(self._store, view.broker_id),
                data_directory=self.data_directory,
                clock=self._clock,
                turns=self._turns,
            )
        )
        if self._is_member:
            table = with_leader_hints(forwarding(table, self._metadata, self._peers), view)
        return with_own_loggers(table, view.broker_id)

    def _start_duties(self) -> None:
        self._housekeeping.start()
        self._in_sync.start()
        self._compactor = Compactor(self.partitions, self._view, self._clock)
        self._compactor.start()
        self._group_duties.start()
        self._transaction_duties.start()
        self._controller_duties = ControllerDuties(
            self._metadata, self._controller.leaderships, self._view
        )
        self._controller_duties.start()

    async def _listen(self, settings: BrokerSettings, dispatch: Dispatch) -> None:
        endpoint = settings.endpoints()[0]
        idle_ms = settings.connections_max_idle_ms
        limits = ListenerLimits(
            ConnectionLimits(settings.socket_request_max_bytes, settings.queued_max_requests),
            settings.max_connections,
            settings.max_connections_per_ip,
            idle_ms if idle_ms >= 0 else sys.maxsize,
            settings.queued_max_request_bytes
            if settings.queued_max_request_bytes >= 0
            else sys.maxsize,
        )
        self._listener = Listener(
            Address(endpoint.host, endpoint.port), dispatch, limits, self._turns
        )
        try:
            bound = await self._listener.open()
        except OSError as error:
            reason = error.strerror or str(error)
            if error.errno and not isinstance(error, socket.gaierror):
                reason = os.strerror(error.errno)  # asyncio puts the address and more before it
            raise ConfigError(
                "listeners",
                f"{endpoint} cannot be opened ({reason})",
                "choose another address or port, or stop the program that uses it",
            ) from error
        advertised = settings.advertised_endpoints()[0]
        host = "" if advertised.host in ("0.0.0.0", "::") else advertised.host
        self._view.advertised = Address(host, advertised.port or bound.port)


def serve(texts: Mapping[str, str], *, ready: Callable[[Broker], None]) -> None:
    """Runs a broker with the settings of `texts` until SIGTERM or SIGINT; `ready` is told once."""
    layers = BrokerLayers(static=texts)
    layers.settings()
    _raise_descriptor_limit()
    with asyncio.Runner(loop_factory=DirectLoop) as runner:
        runner.run(_serve(layers, ready))


async def _serve(layers: BrokerLayers, ready: Callable[[Broker], None]) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _signalled, stopped)
    broker = Broker(layers, SystemClock())
    if not await _start(broker, stopped):
        return
    # What is there now stays: the collector need not look at it ever again.
    gc.collect()
    gc.freeze()
    ready(broker)
    await stopped.wait()
    log.info("stopping")
    await broker.stop()


async def _start(broker: Broker, stopped: asyncio.Event) -> bool:
    """Starts it, unless somebody asks to stop before clients can connect: a broker may wait for its
    metadata store for long. Whether it has started."""
    starting = asyncio.ensure_future(broker.start())
    asked = asyncio.ensure_future(stopped.wait())
    await asyncio.wait((starting, asked), return_when=asyncio.FIRST_COMPLETED)
    asked.cancel()
    if not starting.done():
        log.info("asked to stop while starting")
        starting.cancel()
    try:
        await starting
    except asyncio.CancelledError:
        return False
    return True


def _signalled(stopped: asyncio.Event) -> None:
    """Stops in order when asked once, at once when asked again: as after a crash, nothing
    acknowledged is lost."""
    if stopped.is_set():
        log.warning("asked to stop a second time: leaving at once")
        os._exit(1)
    stopped.set()


def _run_in_threads(jobs: Iterable[FlushJob]) -> None:
    """Syncs many files at once: one by one, a stop with thousands of logs takes minutes."""
    with ThreadPoolExecutor(CLOSING_THREADS, thread_name_prefix="ottla-close") as threads:
        for _ in threads.map(FlushJob.run, jobs):
            pass


def _lead_anew(draft: Draft) -> None:
    """Every partition with a leader gets a new leader epoch, as after any election."""
    for topic in tuple(draft.topics.values()):
        for partition in topic.partitions:
            if partition.has_leader:
                change_leader(
                    draft, topic.name, partition.index, leader=partition.leader, isr=partition.isr
                )


def _only_directory(settings: BrokerSettings) -> str:
    directories = settings.data_directories()
    if len(directories) != 1:
        raise ConfigError(
            "log.dirs", f"{len(directories)} directories are named", "name exactly one"
        )
    return directories[0]


def _raise_descriptor_limit() -> None:
    """Connections and segment files need descriptors: take as many as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
