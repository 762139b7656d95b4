"""Reads what a broker costs from outside, through /proc: CPU seconds, memory, threads. Linux only.

A broker is the process tree under its pid, so any broker can be metered. `other_share` tells how
much of the machine neither the broker nor this client used: a run where it is high was disturbed.
"""

from __future__ import annotations

import os
import resource
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
PROCESSORS = os.cpu_count() or 1
Figures = dict[str, float]
Pids = int | Sequence[int] | None
"""The process of a broker, those of a cluster, or none that is known."""


def process_tree(pid: int) -> list[int]:
    """The process and all its living descendants."""
    children: dict[int, list[int]] = defaultdict(list)
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))):
            children[int(fields[1])].append(int(entry.name))
    found, waiting = [], [pid]
    while waiting:
        one = waiting.pop()
        found.append(one)
        waiting += children[one]
    return found


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on; nothing when the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def cpu_seconds(pid: int) -> float:
    """User and system time of all threads of the tree so far."""
    return sum(cpu_by_process(pid).values())


def cpu_by_process(pid: int) -> dict[int, float]:
    """The same by process, for a tree of which processes end meanwhile."""
    return {one: sum(map(int, _stat(one)[11:13])) / TICKS_PER_SECOND for one in process_tree(pid)}


def resident_mib(pid: int) -> float:
    """Memory of the tree that is in RAM now."""
    return sum(_status_kib(one, "VmRSS") for one in process_tree(pid)) / 1024


def resident_peak_mib(pid: int) -> float:
    """The most memory of the tree that was ever in RAM."""
    return sum(_status_kib(one, "VmHWM") for one in process_tree(pid)) / 1024


def _status_kib(pid: int, field: str) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(field + ":")), 0)


def _machine_busy_seconds() -> float:
    with open("/proc/stat") as file:
        fields = [int(field) for field in file.readline().split()[1:]]
    user, nice, system, _idle, _wait, interrupts, soft_interrupts = fields[:7]
    return (user + nice + system + interrupts + soft_interrupts) / TICKS_PER_SECOND


def _own_seconds() -> float:
    who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(usage.ru_utime + usage.ru_stime for usage in map(resource.getrusage, who))


class Meter:
    """Meters a section of work from its construction to `stop`."""

    def __init__(self, pids: Pids) -> None:
        self._pids = (pids,) if isinstance(pids, int) else pids or ()
        self._broker_start = sum(map(cpu_seconds, self._pids))
        self._own_start = _own_seconds()
        self._machine_start = _machine_busy_seconds()
        self._start = time.perf_counter()

    def stop(self) -> Figures:
        """Wall time, CPU of both sides, and the share of the machine others used."""
        wall = time.perf_counter() - self._start
        own = _own_seconds() - self._own_start
        broker = sum(map(cpu_seconds, self._pids)) - self._broker_start
        others = max(0.0, _machine_busy_seconds() - self._machine_start - own - broker)
        figures = {"wall_s": wall, "client_cpu_s": own, "other_share": others / wall / PROCESSORS}
        if self._pids:
            figures["broker_cpu_s"] = broker
            figures["resident_mib"] = sum(map(resident_mib, self._pids))
        return figures


def with_rates(figures: Figures, *, records: int, requests: int, size_bytes: int) -> Figures:
    """Add throughput, and CPU per gigabyte, per million records and per request."""
    wall, gigabytes = figures["wall_s"], size_bytes / 1e9
    rates = {
        "records": records,
        "gigabytes": gigabytes,
        "records_per_s": records / wall,
        "mb_per_s": gigabytes * 1000 / wall,
    }
    if requests:
        rates["requests_per_s"] = requests / wall
    if "broker_cpu_s" in figures:
        cpu = figures["broker_cpu_s"]
        rates["cpu_s_per_gb"] = cpu / gigabytes
        rates["cpu_s_per_million"] = cpu / records * 1e6
        if requests:
            rates["cpu_us_per_request"] = cpu / requests * 1e6
    return figures | rates


def percentiles_us(samples_s: list[float], prefix: str) -> Figures:
    """The usual percentiles of a list of seconds, in microseconds."""
    ordered = sorted(samples_s)
    figures = {}
    for name, share in (("p50", 0.5), ("p99", 0.99), ("p999", 0.999)):
        chosen = ordered[min(len(ordered) - 1, int(share * len(ordered)))]
        figures[f"{prefix}_{name}_us"] = chosen * 1e6
    return figures
