"""Progress bars over long work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from distboost.training.loop import Callback, Progress


@contextmanager
def bar(title: str, total: int | None = None) -> Iterator[Callable[..., None]]:
    """A function that draws how much is done: draw(completed, text beside the bar, total)."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[beside]}", markup=False),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Bar(*columns) as drawn:
        task = drawn.add_task(title, total=total, beside="")

        def draw(completed: int, beside: str = "", total: int | None = total) -> None:
            drawn.update(task, completed=completed, total=total, beside=beside)

        yield draw


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
