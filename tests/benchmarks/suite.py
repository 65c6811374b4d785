"""The data sets of the comparison, by name, and how long each is trained on."""

from __future__ import annotations

from typing import NamedTuple

from tests.benchmarks.datasets import NAMES, Split, official
from tests.benchmarks.made import made


class Plan(NamedTuple):
    """Rounds and repeats of the comparison on one data set."""

    rounds: int  # of the other libraries
    own: int  # of distboost
    longest: int  # of distboost, if it is not as accurate as every other library after `own`
    repeats: int
    slowest: int | None = (
        None  # rounds of HistGradientBoosting, if fewer: its rounds take several times LightGBM's
    )

    def rounds_of(self, library: str) -> int:
        """Rounds of a library other than distboost."""
        return self.slowest or self.rounds if library == "HistGradientBoosting" else self.rounds


PLANS: dict[str, Plan] = {
    **dict.fromkeys(NAMES, Plan(rounds=100, own=200, longest=400, repeats=3)),
    "spheres-10": Plan(rounds=50, own=100, longest=150, repeats=1, slowest=20),
    "spheres-64": Plan(rounds=30, own=50, longest=100, repeats=1, slowest=10),
    "images": Plan(rounds=30, own=60, longest=120, repeats=1, slowest=10),
    "mixture": Plan(rounds=20, own=40, longest=80, repeats=1, slowest=10),
}


def data(name: str) -> Split:
    """A data set by its name."""
    return official(name) if name in NAMES else made(name)
