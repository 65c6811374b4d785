"""Machines and links in virtual time, on SimPy."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Generator
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
import simpy

Steps = Generator[simpy.Event, Any, Any]


@dataclass(frozen=True)
class Link:
    """The network: each process has a link of its own to a switch that does not limit.

    Attributes
    ----------
    gbit : float
        Gbit/s in each direction; infinite between processes of one machine.
    latency : float
        Seconds from one process to another.
    """

    gbit: float = float("inf")
    latency: float = 0.0

    def seconds(self, n_bytes: float) -> float:
        """The time that bytes take to pass."""
        return 8 * n_bytes / (1e9 * self.gbit)


class Cores:
    """Cores that all work that is there shares equally, but no piece of it has more than one core.

    Parameters
    ----------
    env : simpy.Environment
    n : float
        What other processes leave of them may be no whole number.
    """

    def __init__(self, env: simpy.Environment, n: float):
        self.env, self._n = env, n
        self._ends: list[tuple[float, int, simpy.Event]] = []
        self._numbers = count()
        self._served = 0.0  # seconds of a core that each piece of work has had that began at time 0
        self._since = 0.0
        self._version = 0

    def work(self, seconds: float, done: simpy.Event | None = None) -> simpy.Event:
        """Return an event that occurs when so much work is done: the given one, or a new one."""
        done = done or self.env.event()
        self._advance()
        heapq.heappush(self._ends, (self._served + seconds, next(self._numbers), done))
        self._plan()
        return done

    @property
    def _rate(self) -> float:
        return min(1.0, self._n / max(len(self._ends), 1))

    def _advance(self) -> None:
        self._served += (self.env.now - self._since) * self._rate
        self._since = self.env.now

    def _plan(self) -> None:
        """Wait for the end of the work that ends first, unless other work begins before."""
        self._version += 1
        if self._ends:
            version = self._version
            wait = max(self._ends[0][0] - self._served, 0.0) / self._rate
            self.env.timeout(wait).callbacks.append(lambda _: self._end(version))

    def _end(self, version: int) -> None:
        if version == self._version:
            self._advance()
            self._served = max(self._served, self._ends[0][0])  # whatever rounding says
            while self._ends and self._ends[0][0] <= self._served:
                heapq.heappop(self._ends)[2].succeed()
            self._plan()


class Lane:
    """One direction of a link: messages pass one after another."""

    def __init__(self) -> None:
        self._free = 0.0
        self.n_bytes = 0.0

    def reserve(self, now: float, seconds: float, n_bytes: float) -> float:
        """Return when the passage begins."""
        begins = max(now, self._free)
        self._free = begins + seconds
        self.n_bytes += n_bytes
        return begins


class Threads:
    """Threads of a process that take pieces of work in order."""

    def __init__(self, cores: Cores, n: int):
        self._cores, self._free = cores, n
        self._waiting: deque[tuple[float, int, simpy.Event]] = deque()
        self.busy = 0.0

    def work(self, seconds: float, n_parts: int = 1) -> simpy.Event:
        """Return an event that occurs when the work is done: one thread hands its parts to as many cores."""
        done = self._cores.env.event()
        done.callbacks.append(self._end)
        self.busy += seconds
        self._waiting.append((seconds, n_parts, done))
        self._begin()
        return done

    def _begin(self) -> None:
        while self._free and self._waiting:
            self._free -= 1
            seconds, n_parts, done = self._waiting.popleft()
            if n_parts == 1:
                self._cores.work(seconds, done)
            else:
                parts = simpy.AllOf(
                    self._cores.env, [self._cores.work(seconds / n_parts) for _ in range(n_parts)]
                )
                parts.callbacks.append(lambda _, done=done: done.succeed())

    def _end(self, _: simpy.Event) -> None:
        self._free += 1
        self._begin()


class Node:
    """A process: an event loop, which sends and receives, and a pool of threads."""

    def __init__(self, env: simpy.Environment, cores: Cores, n_threads: int, pool: int):
        self.env, self._n_threads = env, n_threads
        self._loop, self._pool = Threads(cores, 1), Threads(cores, pool)
        self.up, self.down = Lane(), Lane()
        self.n_sent = 0  # pieces of histograms

    def on_loop(self, seconds: float) -> simpy.Event:
        """Work of the event loop."""
        return self._loop.work(seconds)

    def compute(self, seconds: float, parallel: bool = False) -> simpy.Event:
        """Work of one thread of the pool, or of all kernels' threads."""
        return self._pool.work(seconds, self._n_threads if parallel else 1)

    @property
    def busy(self) -> float:
        """Seconds of a core that were worked."""
        return self._loop.busy + self._pool.busy


def transfer(sender: Node, receiver: Node, link: Link, n_bytes: float) -> Steps:
    """The way of a message: it arrives at the receiver's link while it leaves the sender's."""
    env, seconds = sender.env, link.seconds(n_bytes)
    begins = sender.up.reserve(env.now, seconds, n_bytes)
    yield env.timeout(begins - env.now + link.latency)
    begins = receiver.down.reserve(env.now, seconds, n_bytes)
    yield env.timeout(begins - env.now + seconds)


class Jitter:
    """Factors around 1: no two pieces of work take the same time."""

    def __init__(self, deviation: float, seed: int = 0):
        self._deviation, self._random = deviation, np.random.default_rng(seed)

    def __call__(self, seconds: float) -> float:
        """Return the time that work takes of which the mean time is known."""
        return seconds * float(np.exp(self._deviation * self._random.standard_normal()))
