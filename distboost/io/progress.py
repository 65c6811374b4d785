"""Progress: a bar on a terminal, lines where the output goes to a file or a pipe."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec

from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

LINE_INTERVAL = 5.0  # seconds between two lines
WIDE, NARROW = 70, 40  # columns of a terminal: with the bar and the remaining time; without the title

Draw = Callable[..., None]


@contextmanager
def bar(title: str, total: int | None = None, interval: float = LINE_INTERVAL) -> Iterator[Draw]:
    """Yield a function that updates the progress: draw(completed, text behind the numbers, total, note).

    A terminal shows a bar, with the numbers below it. Other outputs get a line if `interval` seconds have passed since the last
    one, and a line at the end. A `note` is a line of its own, on both.
    """
    console = Console()
    if _shows_bars(console):
        with _Bar(console=console) as drawn:
            yield _on_bar(drawn, title, total)
    else:
        lines = _Lines(title, total, interval)
        yield lines
        lines.end()


def _shows_bars(console: Console) -> bool:
    """Whether bars can be drawn: not by FORCE_COLOR, by which rich takes a pipe for a terminal."""
    if console.is_jupyter:
        return find_spec("ipywidgets") is not None
    return console.is_terminal and not console.is_dumb_terminal and console.file.isatty()


class _Bar(Progress):
    """Bars with their numbers below them, which wrap: nothing of these is cut off, however narrow the terminal is."""

    def get_renderables(self) -> Iterable[RenderableType]:
        for task in self.tasks:
            self.columns = _columns(self.console.width)
            yield self.make_tasks_table([task])
            yield Text(task.fields["numbers"], overflow="fold")


def _columns(width: int) -> tuple[ProgressColumn, ...]:
    """Return what there is room for above the numbers."""
    title = (TextColumn("{task.description}", markup=False),) if width >= NARROW else ()
    if width >= WIDE:
        return (*title, BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    return (*title, TimeElapsedColumn())


def _on_bar(drawn: Progress, title: str, total: int | None) -> Draw:
    task = drawn.add_task(title, total=total, numbers="")

    def draw(completed: int, beside: str = "", total: int | None = total, note: str = "") -> None:
        drawn.update(task, completed=completed, total=total, numbers=_numbers(completed, total, beside))
        if note:
            drawn.console.print(note, markup=False, highlight=False, soft_wrap=True)

    return draw


class _Lines:
    """Lines of numbers: at an update, if enough time has passed since the last one, and at the end."""

    def __init__(self, title: str, total: int | None, interval: float):
        self._title, self._total, self._interval = title, total, interval
        self._printed = time.monotonic()
        self._waiting = ""  # the latest numbers, if they were not printed

    def __call__(self, completed: int, beside: str = "", total: int | None = None, note: str = "") -> None:
        numbers = _numbers(completed, self._total if total is None else total, beside)
        if note:
            self.end()
            self._print(note)
        elif time.monotonic() - self._printed >= self._interval:
            self._print(numbers)
        else:
            self._waiting = numbers

    def end(self) -> None:
        """Print the latest numbers, unless they have been printed."""
        if self._waiting:
            self._print(self._waiting)

    def _print(self, text: str) -> None:
        self._printed, self._waiting = time.monotonic(), ""
        # A reader that has gone, such as `head`, does not end a training.
        with suppress(BrokenPipeError):
            print(f"{self._title}: {text}", flush=True)


def _numbers(completed: int, total: int | None, beside: str) -> str:
    return f"{completed}{'' if total is None else f'/{total}'} {beside}".rstrip()
