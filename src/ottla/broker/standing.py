"""This broker's place in the cluster, as all its partitions see it."""

from __future__ import annotations

from ottla.cluster.in_sync import InSync
from ottla.cluster.session import Session
from ottla.model.clock import Clock
from ottla.model.ids import BrokerId


class Standing:
    """Who this broker is, and whether it may still act as leader."""

    __slots__ = ("_session", "broker_id", "clock", "is_registered", "lag_ms_max")

    def __init__(
        self, broker_id: BrokerId, clock: Clock, lag_ms_max: int, session: Session | None = None
    ) -> None:
        self.broker_id = broker_id
        self.clock = clock
        self.lag_ms_max = lag_ms_max
        self.is_registered = True
        """Whether the cluster counts this broker among the living."""
        self._session = session
        """With the metadata store; None where nobody else can lead."""

    @property
    def is_fenced(self) -> bool:
        """Whether the cluster has given this broker up: it leads nothing."""
        return not self.is_registered

    @property
    def is_certain(self) -> bool:
        """Whether nobody else can lead by now what this broker leads.

        The clock is asked each time: a process that was stopped for a minute must not act on what
        it believed before.
        """
        if not self.is_registered:
            return False
        return self._session is None or self._session.is_alive(self.clock.monotonic_ms())

    def may_be_deposed(self, in_sync: InSync) -> bool:
        """Whether another may lead already and this broker would commit records all the same.

        While the metadata store is silent, a leader goes on as long as its commits need others:
        those who follow somebody else by now do not ask it any more, and nothing is committed.
        """
        if self.is_certain:
            return False
        return self.is_fenced or (bool(in_sync.followers) and len(in_sync.maximal) == 1)
