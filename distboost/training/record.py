"""What a training took. It depends on the machine, so model files do not hold it."""

from __future__ import annotations

from dataclasses import dataclass


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
    """

    runtime: str
    seconds: float
    n_rounds: int
    round_seconds: float
    peak_bytes: int | None
    worker_peak_bytes: tuple[int, ...] = ()
    workers_lost: int = 0

    @property
    def rounds_per_second(self) -> float:
        """The rounds per second of `round_seconds`."""
        return self.n_rounds / max(self.round_seconds, 1e-9)
