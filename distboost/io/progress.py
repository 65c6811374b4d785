"""Progress: bars on a terminal, lines where the output goes to a file or a pipe."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from io import StringIO
from typing import Any, Protocol

from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from distboost.io.output import Output
from distboost.io.phases import SILENT, Phase, Phases
from distboost.io.text import amount, duration

WIDE, NARROW = 70, 40  # columns of a terminal: with the bar and the remaining time; without the title
PAGE = 100  # columns of a notebook's output
REFRESH_INTERVAL = 0.25  # seconds

_HTML = '<pre style="white-space:pre-wrap;line-height:normal;font-family:monospace">{code}</pre>'


class Bars(Progress):
    """Bars on a terminal. The numbers wrap: nothing of these is cut off, however narrow it is."""

    def get_renderables(self) -> Iterable[RenderableType]:
        """Return what is drawn."""
        for task in self.tasks:
            self.columns = _columns(self.console.width)
            yield self.make_tasks_table([task])
            yield Text(task.fields["numbers"], overflow="fold")

    def say(self, note: str) -> None:
        """Print a line above the bars."""
        self.console.print(note, markup=False, highlight=False, soft_wrap=True)


class NotebookBars(Bars):
    """Bars in the output of a notebook's cell, which is replaced as they grow.

    Rich draws a widget there. But that needs ipywidgets, is not in the file of a notebook, and is left as it was before the end.
    """

    def __init__(self) -> None:
        super().__init__(console=_page())
        self._notes: list[str] = []
        self._handle: Any = None  # IPython's, of the output
        self._shown = ""
        self._ended = threading.Event()
        # In the context of the cell: IPython finds the output of the cell by it.
        self._refreshing = threading.Thread(target=copy_context().run, args=(self._refresh,), daemon=True)

    def start(self) -> None:
        """Begin to show what there is."""
        self._refreshing.start()

    def stop(self) -> None:
        """Show the last state."""
        self._ended.set()
        self._refreshing.join()
        self._show()

    def say(self, note: str) -> None:
        """Show a line above the bars."""
        self._notes.append(note)

    def _refresh(self) -> None:
        while not self._ended.wait(REFRESH_INTERVAL):
            self._show()

    def _show(self) -> None:
        from IPython.display import display

        page = _page()
        for note in self._notes:
            page.print(note, markup=False, highlight=False, soft_wrap=True)
        if self.tasks:
            page.print(self.get_renderable())
        text = page.export_text(clear=False)
        if text == self._shown:
            return
        self._shown = text
        html = page.export_html(inline_styles=True, code_format=_HTML) if text else ""
        output = {"text/plain": text, "text/html": html}
        if self._handle is None:
            self._handle = display(output, raw=True, display_id=True)
        else:
            self._handle.update(output, raw=True)


def _page() -> Console:
    """Return a console that keeps what it prints."""
    return Console(
        file=StringIO(),
        record=True,
        width=PAGE,
        force_terminal=True,
        force_jupyter=False,
        color_system="standard",
    )


def _columns(width: int) -> tuple[ProgressColumn, ...]:
    """Return what there is room for above the numbers."""
    title = (TextColumn("{task.description}", markup=False),) if width >= NARROW else ()
    if width >= WIDE:
        return (*title, BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    return (*title, TimeElapsedColumn())


LINE_INTERVAL = 5.0  # seconds between two lines
RARER = 3  # by how much a display waits longer for a line about a phase than for its last one
SHORT = 1.0  # seconds: bars say nothing about phases that took less

Draw = Callable[..., None]

# Phases that nobody counts: all that is shown of them is that they begin.
_ANNOUNCED = {
    "compile": "compiling kernels (once per installation)",
    "compile on workers": "workers compile kernels (once per installation)",
}

_to_stderr = ContextVar("_to_stderr", default=False)


@contextmanager
def on_stderr() -> Iterator[None]:
    """Show progress on stderr: stdout has the results of a command."""
    token = _to_stderr.set(True)
    try:
        yield
    finally:
        _to_stderr.reset(token)


class Display(Protocol):
    """Where progress is shown."""

    def bar(
        self, total: int | None = None, interval: float = LINE_INTERVAL, parts: int | None = None
    ) -> Draw:
        """Return a function that updates the progress: draw(completed, text behind the numbers, total, note).

        A terminal or a notebook shows a bar, with the numbers below it. Other outputs get a line if `interval` seconds have
        passed since the last one, and a line at the end; or, with `parts`, a line at the first update, and one whenever another
        of so many parts of the total is done. A `note` is a line of its own, on all.
        """

    def phase(self, phase: Phase) -> None:
        """Show how far a phase is: a bar as long as it takes, or lines; and a line at its end."""


@contextmanager
def display(title: str, least: float = 0.0) -> Iterator[Display]:
    """Open the display of a call. The title precedes what it shows; "" if there is none.

    Nothing is said about the end of phases that took less than `least` seconds (or `SHORT`, where there are bars).
    """
    bars = _bars()
    if bars is not None:
        with bars:
            yield _AsBars(title, bars, max(least, SHORT))
    else:
        shown = _InLines(title, least)
        yield shown
        shown.end()


@contextmanager
def bar(title: str, total: int | None = None, interval: float = LINE_INTERVAL) -> Iterator[Draw]:
    """Open a display that has one bar; yield the function that updates it."""
    with display(title) as shown:
        yield shown.bar(total, interval)


@contextmanager
def phases_shown(verbose: int, title: str = "") -> Iterator[Phases]:
    """Yield phases that are shown if `verbose` is not 0."""
    if not verbose:
        yield SILENT
        return
    with display(title) as shown:
        yield Phases(shown.phase)


def _stream(is_stderr: bool) -> Any:
    return Output(sys.stderr if is_stderr else sys.stdout)


def _bars() -> Bars | None:
    """Return bars, where they can be drawn: not by FORCE_COLOR, by which rich takes a pipe for a terminal."""
    console = Console(file=_stream(_to_stderr.get()))
    if console.is_jupyter:
        return NotebookBars()
    drawn = console.is_terminal and not console.is_dumb_terminal and console.file.isatty()
    return Bars(console=console) if drawn else None


class _AsBars:
    """Bars, one below the other. That of a phase goes with its end."""

    def __init__(self, title: str, drawn: Bars, least: float):
        self._title, self._drawn, self._least = title, drawn, least
        self._phases: dict[str, TaskID] = {}

    def bar(
        self, total: int | None = None, interval: float = LINE_INTERVAL, parts: int | None = None
    ) -> Draw:
        task = self._drawn.add_task(self._title, total=total, numbers="")

        def draw(completed: int, beside: str = "", total: int | None = total, note: str = "") -> None:
            numbers = _numbers(completed, total, beside)
            self._drawn.update(task, completed=completed, total=total, numbers=numbers)
            if note:
                self._drawn.say(note)

        return draw

    def phase(self, phase: Phase) -> None:
        if phase.name in _ANNOUNCED:
            self._drawn.say(_ANNOUNCED[phase.name])
        elif phase.ended:
            if phase.name in self._phases:
                self._drawn.remove_task(self._phases.pop(phase.name))
            if phase.error is None and phase.seconds >= self._least:
                self._drawn.say(said(phase))
        else:
            if phase.name not in self._phases:
                name = f"{self._title}: {phase.name}" if self._title else phase.name
                self._phases[phase.name] = self._drawn.add_task(name, total=phase.total, numbers="")
            task = self._phases[phase.name]
            self._drawn.update(task, completed=phase.done, total=phase.total, numbers=said(phase))


class _InLines:
    """Lines, without control characters."""

    def __init__(self, title: str, least: float):
        self._title, self._least, self._stderr = title, least, _to_stderr.get()
        self._bars: list[_Lines] = []
        self._patience = LINE_INTERVAL  # the seconds of a phase after which it has a line

    def bar(
        self, total: int | None = None, interval: float = LINE_INTERVAL, parts: int | None = None
    ) -> Draw:
        self._bars.append(_Lines(self._print, total, interval, parts))
        return self._bars[-1]

    def phase(self, phase: Phase) -> None:
        if phase.name in _ANNOUNCED:
            self._print(_ANNOUNCED[phase.name])
        elif phase.ended:
            if phase.error is None and phase.seconds >= self._least:
                self._print(said(phase))
        elif phase.seconds >= self._patience:
            self._patience = RARER * phase.seconds
            self._print(said(phase))

    def end(self) -> None:
        """Print what was not printed yet."""
        for lines in self._bars:
            lines.end()

    def _print(self, text: str) -> None:
        prefix = f"{self._title}: " if self._title else ""
        print(f"{prefix}{text}", flush=True, file=_stream(self._stderr))


class _Lines:
    """Lines of numbers: at an update, if enough time has passed since the last one or enough is done, and at the end."""

    def __init__(self, say: Callable[[str], Any], total: int | None, interval: float, parts: int | None):
        self._say, self._total, self._interval, self._parts = say, total, interval, parts
        self._part = -1  # the part that was done at the last line
        self._printed = time.monotonic()
        self._waiting = ""  # the latest numbers, if they were not printed

    def __call__(self, completed: int, beside: str = "", total: int | None = None, note: str = "") -> None:
        total = self._total if total is None else total
        numbers = _numbers(completed, total, beside)
        if note:
            self.end()
            self._print(note)
        elif self._is_due(completed, total):
            self._print(numbers)
        else:
            self._waiting = numbers

    def _is_due(self, completed: int, total: int | None) -> bool:
        if self._parts is None or total is None:
            return time.monotonic() - self._printed >= self._interval
        before, self._part = self._part, completed * self._parts // total
        return self._part > before

    def end(self) -> None:
        """Print the latest numbers, unless they have been printed."""
        if self._waiting:
            self._print(self._waiting)

    def _print(self, text: str) -> None:
        self._printed, self._waiting = time.monotonic(), ""
        self._say(text)


def _numbers(completed: int, total: int | None, beside: str) -> str:
    return f"{completed}{'' if total is None else f'/{total}'} {beside}".rstrip()


def said(phase: Phase) -> str:
    """Return what is shown of a phase: "scan 1.2 of 3.4 GB, 250 MB/s, 8.8 s left".

    >>> said(Phase("scan", 1_200_000_000, 3_400_000_000, "bytes", 4.8, 2.5e8, 8.8))
    'scan 1.2 GB of 3.4 GB, 250 MB/s, 8.8 s left'
    >>> said(Phase("load", 2_000_000, 2_000_000, "rows", 90, 22222.2, 0.0, ended=True))
    'load 2,000,000 rows in 90 s, 22,222 rows/s'
    """
    done = amount(phase.done, phase.unit)
    rate = [] if phase.rate is None else [f"{amount(phase.rate, phase.unit)}/s"]
    if phase.ended:
        return ", ".join([f"{phase.name} {done} in {duration(phase.seconds)}", *rate])
    if phase.total is not None:
        done = f"{done} of {amount(phase.total, phase.unit)}"
    left = [] if phase.left is None else [f"{duration(phase.left)} left"]
    return ", ".join([f"{phase.name} {done}", *rate, *left])
