"""What is said of replicas that are not in sync: as they are, and why they left. Pure.

Leaders tell why, where they are Ottla's and led already when it happened. Else there is what
anybody can see: whether the broker is there, and how many bytes it holds beside its leader's.
A text may be about one replica of many partitions at once, to which the same has happened.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from ottla.cli.output import bytes_text, time_text
from ottla.clients.absences import Absence
from ottla.model.ids import BrokerId
from ottla.protocol.messages.describe_topic_partitions import AbsenceCause

SILENT_MS_MIN: Final = 5_000
"""A replica that has not asked for so long does not ask: those that do ask twice a second."""
ROOM_BYTES_MIN: Final = 1 << 20
"""A disk with less room than that is full."""


@dataclass(frozen=True, slots=True)
class Missing:
    """A replica that should be in sync and is not."""

    broker: BrokerId
    is_there: bool
    """Whether the cluster counts its broker among the living."""
    absence: Absence | None = None
    """What its leader says."""
    behind_bytes: int | None = None
    """Than its leader holds; None where nobody says."""
    lacks_log: bool = False
    has_full_disk: bool = False

    @property
    def kind(self) -> tuple[object, ...]:
        """The same for all that the same has happened to, whatever the numbers."""
        cause = None if self.absence is None else self.absence.cause
        return self.broker, self.is_there, cause, self.has_full_disk, _state(self)

    @property
    def text(self) -> str:
        return text_of([self])


def text_of(group: Sequence[Missing]) -> str:
    """One sentence of replicas of the same kind."""
    first = group[0]
    told = [f"broker {first.broker} {_now(group)}"]
    if first.has_full_disk:
        told.append("its disk is full")
    if first.absence is not None:
        told.append(_why(first.absence.cause, [each.absence for each in group if each.absence]))
    return "; ".join(told)


def _state(each: Missing) -> str:
    """What holds of a replica now, in a word."""
    if not each.is_there:
        return "gone"
    if each.lacks_log:
        return "without"
    absence = each.absence
    if absence is not None:
        if absence.silent_now_ms < 0:
            return "unheard"
        if absence.silent_now_ms >= SILENT_MS_MIN:
            return "silent"
        return "behind" if absence.lag_records_now else "soon"
    if each.behind_bytes is None:
        return "there"
    return "behind" if each.behind_bytes > 0 else "soon"


def _now(group: Sequence[Missing]) -> str:
    silent = _longest(each.absence.silent_now_ms for each in group if each.absence)
    return {
        "gone": "is not there",
        "without": "is there and does not hold it",
        "unheard": "is there and has not asked its leader for anything",
        "silent": f"is there, has not asked its leader for {silent} and is {_behind(group)}",
        "behind": f"is there and {_behind(group)}",
        "soon": "is there, has as much as its leader, and will be in sync soon",
        "there": "is there and not in sync",
    }[_state(group[0])]


def _behind(group: Sequence[Missing]) -> str:
    parts = []
    records = [each.absence.lag_records_now for each in group if each.absence]
    if records and max(records) >= 0:
        parts.append(_up_to(len(group)) + _records(max(records)))
    sizes = [each.behind_bytes for each in group if each.behind_bytes is not None]
    if sizes and max(sizes) > 0:
        parts.append(_up_to(len(group)) + bytes_text(max(sizes)))
    return f"{', '.join(parts) or 'not as far'} behind its leader"


def _why(cause: AbsenceCause, absences: Sequence[Absence]) -> str:
    if cause is AbsenceCause.UNKNOWN:
        return "why it left is not known, its leader was not yet there"
    when = _when([each.left_ms for each in absences])
    silent = _longest(each.silent_ms for each in absences)
    lag = _longest(each.lag_ms for each in absences)
    lacking = max(each.lag_records for each in absences)
    behind = f" and was {_up_to(len(absences))}{_records(lacking)} behind" if lacking >= 0 else ""
    reason = {
        AbsenceCause.SESSION_ENDED: "its session with the metadata ended",
        AbsenceCause.STOPPED: "it was being stopped",
        AbsenceCause.SILENT: f"it had not asked its leader for {silent}{behind}",
        AbsenceCause.BEHIND: f"it had not caught up for {lag}{behind}",
    }[cause]
    return f"it left {when}, when {reason}"


def _when(moments_ms: Sequence[int]) -> str:
    first, last = (_second(moment) for moment in (min(moments_ms), max(moments_ms)))
    return f"at {first}" if first == last else f"from {first} to {last}"


def _second(moment_ms: int) -> str:
    return time_text(moment_ms // 1000 * 1000).replace(".000", "")


def _longest(times_ms: Iterable[int]) -> str:
    return f"{max(times_ms, default=0) / 1000:.1f} s"


def _records(count: int) -> str:
    return "1 record" if count == 1 else f"{count:,} records"


def _up_to(size: int) -> str:
    return "up to " if size > 1 else ""
