"""The interface of the place where functions of this package run."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import Any, Protocol, TypeVar

from distboost.io.phases import Phases

Result = TypeVar("Result")


class TaskRunner(Protocol):
    """Runs functions over parts of sources, in this process or on a cluster.

    Attributes
    ----------
    n_parallel : int
        Functions that run at the same time, in all processes together.
    n_processes : int
        The number of processes that run them.
    on_cluster : bool
        Whether these are processes other than the caller's.
    phases : Phases
        Who is told how far the work is.
    """

    @property
    def n_parallel(self) -> int: ...

    @property
    def n_processes(self) -> int: ...

    @property
    def on_cluster(self) -> bool: ...

    @property
    def phases(self) -> Phases: ...

    def map(
        self,
        function: Callable[..., Result],
        calls: Iterable[tuple[Any, ...]],
        at_once: int | None = None,
    ) -> list[Result]:
        """Return function(*call) for each call, in order. Arguments may be parts of sources."""

    def each(
        self,
        function: Callable[..., Result],
        calls: Iterable[tuple[Any, ...]],
        at_once: int | None = None,
    ) -> Generator[Result, None, None]:
        """Yield the same results one after another.

        Each process has at most `at_once` calls that run or whose results are not yet taken.
        """

    def share(self, value: Any) -> Any:
        """Return what stands for a value among the arguments of many calls: it is sent once to each process that needs it."""
