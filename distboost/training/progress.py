"""The progress of a training, on a terminal or in a file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from distboost.io.phases import Phase
from distboost.io.progress import Display, Draw, display
from distboost.model.history import ERROR, LOSS, Progress
from distboost.training.events import Ending
from distboost.training.loop import Callback


class _Shown:
    """A callback that shows phases and the latest losses, and at the end the best round if it is not the last."""

    def __init__(self, shown: Display):
        self._display = shown
        self._draw: Draw | None = None  # from the first round on
        self._last: Progress | None = None

    def phase(self, phase: Phase) -> None:
        self._display.phase(phase)

    def __call__(self, progress: Progress) -> None:
        self._last = progress
        self._show(progress)

    def end(self, ending: Ending) -> None:
        """Say why a training ended early, and which round is the best."""
        last, best = self._last, ending.best_round
        if last is not None and ending.outcome == "early stopping":
            self._show(last, f"stopped early after round {ending.rounds_done}: round {best} is the best")

    def _show(self, progress: Progress, note: str = "") -> None:
        if self._draw is None:
            self._draw = self._display.bar(interval=0.0)  # a line for each round
        self._draw(progress.round, _losses(progress), progress.n_rounds, note=note)


def _losses(progress: Progress) -> str:
    losses = f"rounds, loss {progress.train_loss:.4g}, error {progress.train_error:.2%}"
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
    """A callback that shows phases, and a bar with the latest losses; where there is no terminal, a line for each round."""
    with display(title) as shown:
        yield _Shown(shown)
