"""Bars of progress, with their numbers below them: on a terminal, or in the output of a notebook's cell."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextvars import copy_context
from io import StringIO
from typing import Any

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
