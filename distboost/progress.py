"""A progress bar over the rounds of a training."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from distboost.training import Callback, Progress


@contextmanager
def progress_bar(title: str) -> Iterator[Callback]:
    """A callback that draws a bar with the latest losses beside it."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[losses]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Bar(*columns) as bar:
        task = bar.add_task(title, total=None, losses="")

        def show(progress: Progress) -> None:
            losses = f"loss {progress.train_loss:.4g}, error {progress.train_error:.2%}"
            if progress.eval_error is not None:
                losses += f", eval error {progress.eval_error:.2%}"
            bar.update(task, completed=progress.round, total=progress.n_rounds, losses=losses)

        yield show
