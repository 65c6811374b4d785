"""The progress bar of a training."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from distboost.io.progress import bar
from distboost.model.history import Progress
from distboost.training.loop import Callback


@contextmanager
def progress_bar(title: str) -> Iterator[Callback]:
    """A callback that draws a bar with the latest losses beside it."""
    with bar(title) as draw:

        def show(progress: Progress) -> None:
            losses = f"loss {progress.train_loss:.4g}, error {progress.train_error:.2%}"
            if progress.eval_error is not None:
                losses += f", eval error {progress.eval_error:.2%}"
            draw(progress.round, losses, progress.n_rounds)

        yield show
