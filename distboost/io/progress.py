"""Progress bars."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


@contextmanager
def bar(title: str, total: int | None = None) -> Iterator[Callable[..., None]]:
    """Yield a function that updates the bar: draw(completed, text beside the bar, total)."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[beside]}", markup=False),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns) as drawn:
        task = drawn.add_task(title, total=total, beside="")

        def draw(completed: int, beside: str = "", total: int | None = total) -> None:
            drawn.update(task, completed=completed, total=total, beside=beside)

        yield draw
