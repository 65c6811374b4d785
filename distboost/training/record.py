"""What a training run took. It depends on the machine, so model files do not hold it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from distboost.training.memory_plan import MemoryPlan


@dataclass(frozen=True)
class TrainingRecord:
    """What a call of `fit` took.

    Attributes
    ----------
    runtime : str
        Where it trained.
    seconds : float
        The whole call: reading, binning, the rounds and the calibration.
    n_rounds : int
        The rounds of this call, without those that it resumed.
    round_seconds : float
        These rounds, including checkpoints and callbacks.
    peak_bytes : int or None
        The most memory that this process has used since it began; None where the system does not tell.
    worker_peak_bytes : tuple of int
        On a cluster: the same of each worker that is left.
    workers_lost : int
        Workers that were lost during the rounds. Others took over their rows.
    n_rows : mapping of str to int, or None
        The number of rows with a weight above 0: of "train", and of each evaluation set by name. None: logs of 0.2 do not tell.
    """

    runtime: str
    seconds: float
    n_rounds: int
    round_seconds: float
    peak_bytes: int | None
    worker_peak_bytes: tuple[int, ...] = ()
    workers_lost: int = 0
    n_rows: Mapping[str, int] | None = None

    @property
    def rounds_per_second(self) -> float:
        """The rounds per second of `round_seconds`."""
        return self.n_rounds / max(self.round_seconds, 1e-9)


@dataclass(frozen=True)
class PlannedMemory:
    """The numbers of a memory plan.

    Attributes
    ----------
    n_bytes : int
        An upper bound of the memory of the process with the most rows.
    limit : int or None
        Bytes that it may take.
    resident, streamed : int
        Its rows that stay in memory, and those that stream from disk.
    leader_bytes : int or None
        An upper bound of the memory of the process that called `fit`, if others hold the rows.
    """

    n_bytes: int
    limit: int | None
    resident: int
    streamed: int
    leader_bytes: int | None = None

    @classmethod
    def of(cls, plan: MemoryPlan) -> PlannedMemory:
        """Return the numbers of a plan."""
        leader = plan.leader_bytes if plan.leader else None
        return cls(plan.n_bytes, plan.limit, plan.resident, plan.streamed, leader)
