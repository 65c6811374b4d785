"""The memory of a process and its children, and hard limits for it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import psutil

INTERVAL = 0.03  # seconds between two readings, at least
SHARE = 0.03  # of the time: a process cannot map or free memory while the kernel sums over its mappings


class Reading(NamedTuple):
    """The memory of a process tree at one time, in bytes, summed over its processes."""

    time: float  # time.monotonic(): one clock for all processes of a machine
    rss: int  # resident; pages that processes share count once for each
    pss: int  # resident; shared pages are divided among those who share them
    anonymous: int  # the part of rss that is no file: what cannot be dropped and read again
    data: int  # private writable address space: what RLIMIT_DATA limits
    processes: dict[int, int]  # rss of each


class MemoryWatch:
    """Reads the memory of a process and all its descendants for as long as it is entered."""

    def __init__(self, pid: int, interval: float = INTERVAL):
        self.pid = pid
        self.readings: list[Reading] = []
        self.seen: dict[int, psutil.Process] = {}
        self._root = psutil.Process(pid)
        self._interval = interval
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> MemoryWatch:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ended.set()
        self._thread.join()

    def peak(self, kind: str = "rss", start: float = -float("inf"), stop: float = float("inf")) -> int:
        """The largest reading between two times; 0 if there is none."""
        return max((getattr(r, kind) for r in self.readings if start <= r.time <= stop), default=0)

    def timeline(self, step: float = 1.0) -> list[tuple[float, int]]:
        """(time, largest rss) of each second."""
        peaks: dict[float, int] = {}
        for reading in self.readings:
            start = reading.time // step * step
            peaks[start] = max(peaks.get(start, 0), reading.rss)
        return sorted(peaks.items())

    def process_peaks(self) -> dict[int, int]:
        """The largest rss of each process."""
        peaks: dict[int, int] = {}
        for reading in self.readings:
            for pid, rss in reading.processes.items():
                peaks[pid] = max(peaks.get(pid, 0), rss)
        return peaks

    def end_survivors(self) -> None:
        """Kills what the process started and left behind: there is nobody else to do it if it was killed itself."""
        for process in self.seen.values():
            with suppress(psutil.NoSuchProcess):
                process.kill()

    def _watch(self) -> None:
        pause = self._interval
        while not self._ended.wait(pause):
            start = time.monotonic()
            with suppress(psutil.NoSuchProcess):
                processes = [self._root, *self._root.children(recursive=True)]
                self.seen.update({process.pid: process for process in processes})
                self.readings.append(read_tree(processes))
            pause = max(self._interval, (time.monotonic() - start) / SHARE)


def read_tree(processes: list[psutil.Process]) -> Reading:
    """The memory of these processes now; those that have ended take none."""
    totals = dict.fromkeys(("Rss", "Pss", "Anonymous"), 0)
    data, resident = 0, {}
    for process in processes:
        try:
            found = _rollup(process.pid)
            data += process.memory_info().data
        except (OSError, psutil.NoSuchProcess):  # it ended since
            continue
        resident[process.pid] = found["Rss"]
        for name in totals:
            totals[name] += found[name]
    return Reading(time.monotonic(), totals["Rss"], totals["Pss"], totals["Anonymous"], data, resident)


def _rollup(pid: int) -> dict[str, int]:
    """The sums over all mappings of a process, as the kernel makes them: psutil has no call that gives all three."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    fields = (line.split() for line in lines)
    return {name.rstrip(":"): int(kilobytes) * 1024 for name, kilobytes, _ in fields}


def peak_resident() -> int:
    """The most that this process had resident since it began, exactly (VmHWM: unlike ru_maxrss not its parent's)."""
    return _status("VmHWM")


def resident() -> int:
    """What this process has resident now."""
    return _status("VmRSS")


def _status(field: str) -> int:
    return int(Path("/proc/self/status").read_text().partition(f"{field}:")[2].split()[0]) * 1024


class MemoryGroup:
    """A control group whose processes cannot take more than a limit together (cgroup v2, or v1's memory controller).

    Page cache counts too, but is dropped before the limit is passed. A process that needs more is killed.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self._v2 = (folder / "memory.max").exists()

    def limit(self, n_bytes: int) -> None:
        self._write("memory.max" if self._v2 else "memory.limit_in_bytes", n_bytes)
        swap, amount = ("memory.swap.max", 0) if self._v2 else ("memory.memsw.limit_in_bytes", n_bytes)
        if (self.folder / swap).exists():  # nothing may move to swap space instead
            self._write(swap, amount)

    @property
    def members(self) -> Path:
        """A process that writes 0 to this file becomes a member, as do those that it starts."""
        return self.folder / "cgroup.procs"

    def peak(self) -> int | None:
        """The most that the group ever took; None where the kernel does not say (v2 before Linux 5.19)."""
        file = self.folder / ("memory.peak" if self._v2 else "memory.max_usage_in_bytes")
        return int(file.read_text()) if file.exists() else None

    def kills(self) -> int:
        """Processes killed at the limit."""
        file = self.folder / ("memory.events" if self._v2 else "memory.oom_control")
        fields = dict(line.split() for line in file.read_text().splitlines())
        return int(fields.get("oom_kill", 0))

    def _write(self, name: str, number: int) -> None:
        (self.folder / name).write_text(str(number))


@contextmanager
def memory_group(parent: Path, n_bytes: int) -> Iterator[MemoryGroup]:
    """A new group within another (v2: one that hands the memory controller on), removed when its members have ended."""
    folder = parent / f"distboost-benchmark-{os.getpid()}"
    folder.mkdir()
    try:
        group = MemoryGroup(folder)
        group.limit(n_bytes)
        yield group
    finally:
        _remove(folder)


def _remove(folder: Path, deadline: float = 10.0) -> None:
    """The kernel takes a moment to let go of members that have ended."""
    last = time.monotonic() + deadline
    while True:
        try:
            folder.rmdir()
            return
        except OSError:
            if time.monotonic() > last:
                raise
            time.sleep(0.1)
