"""Successive halving on rounds: all settings are trained for few rounds, and the best of them go on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from distboost.errors import DataError
from distboost.estimators.parameters import CommonParameters, algorithm_of


class Rung(NamedTuple):
    """A stage of a search: the number of settings, and the part of their rounds that they are trained for."""

    n_settings: int
    divisor: int

    def rounds(self, n_estimators: int) -> int:
        """Return the rounds of a setting with so many in all."""
        return math.ceil(n_estimators / self.divisor)


def rungs_of(n_settings: int, halving: int | None) -> list[Rung]:
    """Return the stages of a search. `halving`: one of so many settings goes on; None: all have all rounds.

    The last stage has at most `halving` settings, with all rounds.

    >>> rungs_of(12, 3)
    [Rung(n_settings=12, divisor=9), Rung(n_settings=4, divisor=3), Rung(n_settings=2, divisor=1)]
    >>> rungs_of(12, None)
    [Rung(n_settings=12, divisor=1)]
    """
    if halving is None:
        return [Rung(n_settings, 1)]
    if not (isinstance(halving, int) and halving >= 2):
        raise DataError.expected("``halving``", halving, "a whole number of at least 2, or None")
    left = [n_settings]
    while left[-1] > halving:
        left.append(math.ceil(left[-1] / halving))
    return [Rung(n, halving ** (len(left) - 1 - number)) for number, n in enumerate(left)]


def check_halving(models: Sequence[CommonParameters]) -> None:
    """Raise DataError if a training run of one of them cannot go on with more rounds."""
    for model in models:
        if "n_estimators" in algorithm_of(model, 2).fixed_parameters:
            raise DataError(
                f"``halving`` trains few rounds first, but ``{type(model).__name__}`` with these parameters depends on the "
                "number of all rounds.",
                remedy="``no_halving|Set halving=None``.",
            )
