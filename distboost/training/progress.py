"""The progress bar of a training."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from distboost.io.progress import bar
from distboost.model.history import ERROR, LOSS, Progress
from distboost.training.loop import Callback


@contextmanager
def progress_bar(title: str) -> Iterator[Callback]:
    """A callback that draws a bar with the latest losses beside it."""
    with bar(title) as draw:

        def show(progress: Progress) -> None:
            losses = f"loss {progress.train_loss:.4g}, error {progress.train_error:.2%}"
            for name, metrics in progress.evaluations.items():
                losses += f", {name} error {metrics[ERROR]:.2%}"
                losses += "".join(
                    f", {name} {metric} {value:.4g}"
                    for metric, value in metrics.items()
                    if metric not in (LOSS, ERROR)
                )
            if progress.best_round not in (None, progress.round):
                losses += f", best round {progress.best_round}"
            draw(progress.round, losses, progress.n_rounds)

        yield show
