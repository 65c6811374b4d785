"""The progress of a training run, on a terminal or in a file."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

from distboost.io.phases import Phase
from distboost.io.progress import SHORT, Display, Draw, display
from distboost.model.history import ERROR, LOSS, Progress
from distboost.training.events import Ending
from distboost.training.loop import Callback

LEAST_DIGITS, MOST_DIGITS = 4, 16  # of the loss
PARTS = 4  # of the rounds: where there is no terminal, a line at the first round and at the end of each


class _Shown:
    """A callback that shows phases and the latest losses, and at the end the best round if it is not the last."""

    def __init__(self, shown: Display):
        self._display = shown
        self._draw: Draw | None = None  # from the first round on
        self._last: Progress | None = None
        self._digits = LEAST_DIGITS

    def phase(self, phase: Phase) -> None:
        self._display.phase(phase)

    def __call__(self, progress: Progress) -> None:
        if self._last is not None:
            self._digits = digits(progress.train_loss, self._last.train_loss, self._digits)
        self._last = progress
        self._show(progress)

    def end(self, ending: Ending) -> None:
        """Say why a training run ended early, and which round is the best."""
        last, best = self._last, ending.best_round
        if last is not None and ending.outcome == "early stopping":
            self._show(last, f"stopped early after round {ending.rounds_done}: round {best} is the best")

    def _show(self, progress: Progress, note: str = "") -> None:
        if self._draw is None:
            self._draw = self._display.bar(parts=PARTS)
        self._draw(progress.round, _losses(progress, self._digits), progress.n_rounds, note=note)


def digits(loss: float, before: float, otherwise: int) -> int:
    """Return how many digits of a loss show how it changes; `otherwise`, if that cannot be told.

    Many losses approach 1, not 0.

    >>> digits(2.8163, 3.4, 4), digits(1.0001385, 1.0001512, 4), digits(1.0, 1.0, 6)
    (4, 8, 6)
    """
    change = abs(loss - before)
    if not (loss and change and math.isfinite(loss) and math.isfinite(change)):
        return otherwise
    places = math.floor(math.log10(abs(loss))) - math.floor(math.log10(change))
    return min(max(places + 3, LEAST_DIGITS), MOST_DIGITS)


def _losses(progress: Progress, digits: int) -> str:
    losses = f"rounds, loss {progress.train_loss:.{digits}g}, error {progress.train_error:.2%}"
    for name, metrics in progress.evaluations.items():
        losses += f", {name} error {metrics[ERROR]:.2%}"
        losses += "".join(
            f", {name} {metric} {value:.4g}"
            for metric, value in metrics.items()
            if metric not in (LOSS, ERROR)
        )
    if progress.best_round not in (None, progress.round):
        losses += f", best round {progress.best_round}"
    return losses


@contextmanager
def progress_shown(title: str) -> Iterator[Callback]:
    """A callback that shows phases, and a bar with the latest losses; where there is no terminal, about ten lines.

    A phase that takes less than a second has no line.
    """
    with display(title, least=SHORT) as shown:
        yield _Shown(shown)
