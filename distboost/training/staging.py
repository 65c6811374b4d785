"""Staging: bring the rows of a training run to the place where it runs, within its memory limit."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from distboost.algorithms.base import Algorithm
from distboost.data.blocks import BinnedSet, Profile
from distboost.data.dataset import Dataset, RawDataset
from distboost.data.ingest import bins_of_zero
from distboost.data.row_weights import WeightRule, class_weights
from distboost.data.store.store import BinnedStore
from distboost.data.store.writing import write_store
from distboost.errors import LimitError
from distboost.inputs.choose import adapter_of
from distboost.io.storage import local_path
from distboost.io.temporary import temporary_folder
from distboost.io.text import megabytes
from distboost.process import trim_heap
from distboost.rows.messages import Rows
from distboost.runtime.base import Layout, Runtime
from distboost.training.memory_plan import MemoryPlan, excess_warning, plan_memory, while_reading
from distboost.training.settings import Settings
from distboost.warn import warn_user

log = logging.getLogger("distboost")

COUNTING_BYTES = 2**26  # less than the kernels of a training run take


class Problem(NamedTuple):
    """What is to be learned from binned rows.

    Attributes
    ----------
    profile : Profile
    algorithm : Algorithm
    class_weight : ndarray of shape (n_classes,), float64
    """

    profile: Profile
    algorithm: Algorithm
    class_weight: np.ndarray

    @property
    def weights(self) -> WeightRule:
        """The rule for the weights of rows to learn from."""
        return WeightRule.of(self.class_weight, self.profile.class_scans)


@dataclass(frozen=True)
class Staging:
    """The rows of a training run, and the limits of their memory.

    Attributes
    ----------
    settings : Settings
    runtime : Runtime
    data : Dataset
    evaluations : sequence of Dataset
        The sets of evaluation rows.
    warned : list of str
        The warnings issued so far.
    """

    settings: Settings
    runtime: Runtime
    data: Dataset
    evaluations: Sequence[Dataset] = ()
    warned: list[str] = field(default_factory=list)

    def problem(self, profile: Profile) -> Problem:
        """Return what is to be learned; raise an error if the algorithm cannot learn with its parameters."""
        algorithm = self.settings.algorithm(len(profile.classes))
        algorithm.check()
        return Problem(profile, algorithm, class_weights(self.settings.class_weight, profile))

    @property
    def _sets(self) -> list[Dataset]:
        """The training rows, then the sets of evaluation rows."""
        return [self.data, *self.evaluations]

    @property
    def _is_remote(self) -> bool:
        """Whether rows that stream are read from a URL: that of a binned store, or of the folder where it is made."""
        places = {
            data.url if isinstance(data, BinnedStore) else self.settings.scratch or "" for data in self._sets
        }
        return any(local_path(place) is None for place in places)

    def first_plan(self) -> MemoryPlan:
        """Plan the memory for 2 classes, before any row is read."""
        algorithm = self.settings.algorithm
        try:
            found = self.plan(algorithm(2))
        except LimitError:
            n_classes = self._count_classes()  # so that the error names the memory for all classes
            self.plan(algorithm(n_classes or 2), may_have_more_classes=n_classes is None)
            raise
        self._warn(found)
        return found

    def _count_classes(self) -> int | None:
        """Count the classes, in the memory that a training run would leave for this, or in that of its kernels."""
        libraries = while_reading(self.runtime.on_cluster)
        limit = self.runtime.limit(self.settings.memory_limit) or 0
        return self.data.count_classes(self.runtime, max(limit - libraries, COUNTING_BYTES))

    def _warn(self, found: MemoryPlan) -> None:
        """Warn once if this process does not have the memory that it will need."""
        message = None if self.warned else excess_warning(found)
        if message is not None:
            self.warned.append(message)
            warn_user(message)

    def plan(
        self,
        algorithm: Algorithm,
        n_bins: int | None = None,
        may_have_more_classes: bool = False,
        n_rows: int | None = None,
        at_once: int | None = None,
    ) -> MemoryPlan:
        """Plan the memory; raise LimitError if the training does not fit even when all rows stream. `n_rows=None`: all rows.

        `at_once`: the blocks that are read together, if that is already decided.
        """
        runtime, keep = self.runtime, algorithm.needs_values
        max_bins, limit = self.settings.max_bins, self.settings.memory_limit
        raw = [data for data in self._sets if isinstance(data, RawDataset)]
        task = self.settings.task(
            algorithm,
            sum(data.n_rows for data in self._sets) if n_rows is None else n_rows,
            self.data.n_features,
            any(data.weighted for data in self._sets),
            n_bins=n_bins,
            ingest=max((data.least_ingest(max_bins, runtime, keep) for data in raw), default=0),
            may_have_more_classes=may_have_more_classes,
            is_remote=self._is_remote,
            at_once=at_once,
            bin_bytes=max(data.bin_bytes for data in self._sets),
        )
        n_threads = max(runtime.n_parallel // runtime.n_processes, 1)
        return plan_memory(
            task,
            runtime.limit(limit),
            runtime.n_processes,
            n_threads,
            on_cluster=runtime.on_cluster,
            binning=self.data.binning_bytes(n_threads) if isinstance(self.data, RawDataset) else 0,
            leader_limit=limit,
        )

    def profile(self, found: MemoryPlan) -> Profile:
        """Find classes, weights and bin edges within the limit of the plan."""
        return self.data.profile(self.settings.max_bins, self.settings.seed, self.runtime, found.for_ingest)

    @contextmanager
    def sets(self, problem: Problem) -> Iterator[tuple[list[BinnedSet], MemoryPlan]]:
        """Make the rows readable, binned, for all passes over them; those that do not fit in memory go to disk."""
        profile = problem.profile
        found = self.plan(problem.algorithm, int((profile.n_bins + 1).sum()))
        self._warn(found)
        log.info("memory: %s", _summary(found))
        with ExitStack() as stack:
            sets = [
                self._binned(stack, self.data, "train", found=found, problem=problem, rule=problem.weights)
            ]
            for n, data in enumerate(self.evaluations):
                rule = data.own_weights(len(profile.classes), self.runtime)
                sets.append(self._binned(stack, data, f"eval-{n}", found=found, problem=problem, rule=rule))
            yield sets, found

    @contextmanager
    def placed(self, sets: Sequence[BinnedSet], problem: Problem) -> Iterator[Rows]:
        """Hold these rows, all or a part of them, where the training runs: in memory as far as the limit allows."""
        profile, algorithm, rule = problem.profile, problem.algorithm, problem.weights
        n_rows = sum(sum(part.sizes) for part in sets)
        at_once = max(part.at_once for part in sets)
        found = self.plan(algorithm, int((profile.n_bins + 1).sum()), n_rows=n_rows, at_once=at_once)
        n_scores = algorithm.weighting.n_scores(algorithm.n_classes)
        layout = Layout(
            profile.n_bins,
            len(profile.classes),
            n_scores,
            self.settings.score_dtype,
            found.window_bytes,
            rule.scale,
            rule.whole,
            tuple(profile.categories),
            bins_of_zero(profile.edges, profile.categories),
        )
        # The rows of a lost worker may be more than the others have room for.
        may_grow = self.runtime.on_cluster and all(data.is_stored for data in self._sets)
        rows = self.runtime.place([*sets], layout, found.allotment(self._local_scratch(), may_grow))
        try:
            for data in self._sets:
                data.check_unchanged()  # between the passes that have read them
            trim_heap()
            yield rows
        finally:
            rows.close()

    def _binned(
        self,
        stack: ExitStack,
        data: Dataset,
        name: str,
        *,
        found: MemoryPlan,
        problem: Problem,
        rule: WeightRule,
    ) -> BinnedSet:
        """Return the blocks of one set. Raw rows that stream, or that are expensive to read, go to a binned store first."""
        settings, profile, keep = self.settings, problem.profile, problem.algorithm.needs_values
        if isinstance(data, RawDataset) and (found.streamed or self._is_costly(data)):
            url = f"{stack.enter_context(self._folder())}/{name}"
            data = write_store(
                data,
                url,
                settings.max_bins,
                seed=settings.seed,
                work=self.runtime,
                memory=found.for_ingest,
                keep_values=keep,
                profile=profile,
            )
        return data.binned(profile, rule, self.runtime.n_parallel, keep, found.at_once)

    def _is_costly(self, data: RawDataset) -> bool:
        """Whether a binned store pays off although all rows stay in memory. On a cluster it needs a shared directory."""
        return data.is_tall and not (self.runtime.on_cluster and self.settings.scratch is None)

    @contextmanager
    def _folder(self) -> Iterator[str]:
        """Make a folder for binned stores that all workers can access; remove it at the end."""
        with temporary_folder(self.settings.scratch or tempfile.gettempdir()) as url:
            self.runtime.check_shared(url)
            log.info("binning into %s", url)
            yield url

    def _local_scratch(self) -> str | None:
        """The directory for the scores of streamed rows; None if `scratch` is a URL: the system's temporary directory."""
        scratch = self.settings.scratch
        return os.path.abspath(scratch) if scratch is not None and "://" not in scratch else None


def sizes(x: Any) -> tuple[int, int, int | None]:
    """Return the numbers of rows, features and classes (None without reading the labels) of an array or a binned store."""
    rows = adapter_of(x, "X")
    store = rows.store()
    if store is not None:
        return store.n_rows, store.n_features, store.n_classes
    source = rows.features()
    return (*source.shape, None) if len(source.shape) == 2 else (source.n_rows, 1, None)


def _summary(found: MemoryPlan) -> str:
    if not found.streamed:
        return f"{megabytes(found.n_bytes)} per process, all {found.resident} rows in memory"
    return (
        f"{megabytes(found.n_bytes)} per process of {megabytes(found.limit or 0)}; {found.resident} of "
        f"{found.resident + found.streamed} rows stay in memory, the others are read from disk in each pass"
    )
