"""The rows of a cross-validation: a binned store and the folds of its rows."""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from distboost.data.blocks import BinnedSet, Profile
from distboost.data.categories import resolved
from distboost.data.cells import Cells
from distboost.data.dataset import Dataset, RawDataset
from distboost.data.division import Divided, divided
from distboost.data.edges import load_merge
from distboost.data.folds import InFold, Numbering, folds_by_class, folds_by_group
from distboost.data.row_weights import WeightRule, class_weights
from distboost.data.source import ArraySource, Source
from distboost.data.store.store import BinnedStore
from distboost.data.store.writing import write_store
from distboost.errors import DataError
from distboost.estimators.fitting import runtime_of
from distboost.estimators.parameters import (
    CommonParameters,
    algorithm_of,
    check_methods,
    check_own,
    seed_of,
    settings_of,
)
from distboost.estimators.validation import Given, columns_named, set_features, training_data
from distboost.inputs.choose import adapter_of
from distboost.io.options import storage_options
from distboost.io.temporary import temporary_folder
from distboost.runtime.base import Runtime
from distboost.training.staging import Staging

log = logging.getLogger("distboost")

MOST_FOLDS = 255
TILES = "tiles"


class Fold(NamedTuple):
    """The rows of one fold, and those of the others.

    Attributes
    ----------
    learn, judge : BinnedSet
        The rows of the other folds, and those of this fold. The latter do not have class weights.
    profile : Profile
        The profile of the rows to learn from, with the bins of all rows.
    """

    learn: BinnedSet
    judge: BinnedSet
    profile: Profile


@dataclass(frozen=True)
class Ground:
    """A binned store whose rows are divided into folds.

    Attributes
    ----------
    store : BinnedStore
    profile : Profile
    numberings : list of Numbering
        Of each block.
    n_folds : int
    runtime : Runtime
    """

    store: BinnedStore
    profile: Profile
    numberings: list[Numbering]
    n_folds: int
    runtime: Runtime
    _divided: dict[tuple[int, bool], Divided] = field(default_factory=dict)

    @cached_property
    def identity(self) -> str:
        """A digest of the rows and their folds."""
        digest = hashlib.sha256(f"{self.store.identity} {self.n_folds} ".encode())
        for numbering in self.numberings:
            digest.update(numbering.identity())
        return digest.hexdigest()

    def fold(self, number: int, model: CommonParameters, keep_values: bool) -> Fold:
        """Return the rows of a fold, with the class weights of a model."""
        n_classes, store, profile = len(self.profile.classes), self.store, self.profile
        sides = [InFold(numbering, number) for numbering in self.numberings]
        parts = self._parts(number, sides, keep_values)
        scans = [
            replace(scan, n_rows=max(n, 1))  # no class weight is infinite
            for scan, n in zip(profile.class_scans, parts.n_learn.tolist(), strict=True)
        ]
        profile = replace(profile, n_rows=int(parts.n_learn.sum()), class_scans=scans)
        learn = parts.learn
        if model.class_weight is not None:
            rule = WeightRule.of(class_weights(model.class_weight, profile), scans)
            weighted = store.binned(profile, rule, self.runtime.n_parallel, keep_values)
            learn = divided(weighted, sides, n_classes, self.runtime).learn
        return Fold(learn, parts.judge, profile)

    def _parts(self, number: int, sides: list[InFold], keep_values: bool) -> Divided:
        """Return the rows outside of a fold, and in it, without class weights. They are counted once for all models."""
        if (number, keep_values) not in self._divided:
            rule = self.store.own_weights(len(self.profile.classes), self.runtime)
            own = self.store.binned(self.profile, rule, self.runtime.n_parallel, keep_values)
            parts = divided(own, sides, len(self.profile.classes), self.runtime)
            self._check(number, parts.n_learn, parts.n_judge)
            self._divided[number, keep_values] = parts
        return self._divided[number, keep_values]

    def _check(self, number: int, n_learn: np.ndarray, n_judge: np.ndarray) -> None:
        if not n_judge.any() or np.count_nonzero(n_learn) < 2:
            raise DataError(
                f"fold {number} of {self.n_folds} has {n_judge.sum()} rows, and the others have rows of "
                f"{np.count_nonzero(n_learn)} classes. A fold needs a row, and the others need two classes: use fewer folds"
                " or other groups."
            )


class Groups(NamedTuple):
    """The groups of rows: one for each row, or `TILES` of a cube; None if there are none.

    Attributes
    ----------
    given : array-like of shape (n_rows,), str or None
    tile_size : int, mapping of str to int, or None
    """

    given: Any
    tile_size: int | Mapping[str, int] | None = None

    def source(self, data: Dataset) -> Source | None:
        """Return the groups of the rows; raise DataError if tiles are asked for, but the rows are no cells of a cube."""
        are_tiles = isinstance(self.given, str) and self.given == TILES
        if are_tiles != (self.tile_size is not None):
            raise DataError(
                f"``groups={self.given!r:.100}`` and ``tile_size={self.tile_size!r}``.",
                remedy="Pass both for folds of tiles, such as ``groups='tiles'`` and ``tile_size=64``, or no tile_size.",
                value=self.given,
            )
        if not are_tiles:
            return None if self.given is None else adapter_of(self.given, "groups").column()
        cells = data.cells if isinstance(data, RawDataset) else None
        if cells is None:
            raise DataError(
                "``groups='tiles'``, but the rows are not the cells of a cube.",
                remedy="Pass a cube as ``X``, or one group for each row.",
            )
        return ArraySource(cells.tiles(self._sizes(cells)), "groups")

    def _sizes(self, cells: Cells) -> list[int]:
        """Return the cells of a tile along each dimension."""
        lengths = dict(zip(cells.dims, cells.shape, strict=True))
        size: Any = self.tile_size
        found: dict[str, Any] = dict(size) if isinstance(size, Mapping) else dict.fromkeys(lengths, size)
        if (
            not found
            or found.keys() - lengths.keys()
            or not all(isinstance(n, int | np.integer) and n > 0 for n in found.values())
        ):
            raise DataError.expected(
                "``tile_size``",
                size,
                "a whole number of at least 1, or such numbers by dimension: the "
                f"cube has {', '.join(lengths)}",
            )
        return [int(found.get(dim, length)) for dim, length in lengths.items()]


class Grounds:
    """The grounds for clones of an estimator: rows are binned once for each way to bin that these have.

    Parameters
    ----------
    first : CommonParameters
        A clone of the estimator that has the features of the rows.
    data : Dataset
        The rows, without evaluation rows.
    groups : Groups
    n_folds, seed : int
    runtime : Runtime
    stack : ExitStack
        Temporary stores are removed when it closes.
    """

    def __init__(
        self,
        first: CommonParameters,
        data: Dataset,
        *,
        groups: Groups,
        n_folds: int,
        seed: int,
        runtime: Runtime,
        stack: ExitStack,
    ):
        self._first, self._data = first, data
        self._n_folds, self._seed = n_folds, seed
        self._groups = groups.source(data)
        self._runtime, self._stack = runtime, stack
        self._known: dict[tuple[Any, ...], Ground] = {}

    def of(self, model: CommonParameters) -> Ground:
        """Return the ground for a model, and set the model's features."""
        self.name_features(model)
        keep_values = algorithm_of(model, 2).needs_values
        categorical = self._categorical(model)
        way = (model.max_bins, seed_of(model), keep_values, categorical)
        if way not in self._known:
            self._data.set_categorical(model.categorical_features, getattr(model, "feature_names_in_", None))
            self._known[way] = self._made(model, keep_values)
        return self._known[way]

    def _categorical(self, model: CommonParameters) -> tuple[int, ...]:
        """Return the features whose values are categories to a model."""
        names = getattr(model, "feature_names_in_", None)
        return resolved(model.categorical_features, model.n_features_in_, names)

    def name_features(self, model: CommonParameters) -> None:
        """Set the number and the names of the model's features."""
        set_features(model, self._first.n_features_in_, getattr(self._first, "feature_names_in_", None))

    def _made(self, model: CommonParameters, keep_values: bool) -> Ground:
        runtime, data = self._runtime, self._data
        plan = Staging(settings_of(model), runtime, data).first_plan()
        if isinstance(data, RawDataset):
            base = tempfile.gettempdir() if model.scratch is None else os.fspath(model.scratch)
            url = self._stack.enter_context(temporary_folder(base))
            runtime.check_shared(url)
            log.info("binning into %s", url)
            store = write_store(
                data,
                f"{url}/rows",
                model.max_bins,
                seed=seed_of(model),
                work=runtime,
                memory=plan.for_ingest,
                keep_values=keep_values,
            )
        else:
            assert isinstance(data, BinnedStore)
            store = data
        profile = store.profile(model.max_bins, seed_of(model), runtime)
        n_classes = len(profile.classes)
        part = store.binned(profile, store.own_weights(n_classes, runtime), runtime.n_parallel)
        if self._groups is None:
            numberings = folds_by_class(part, self._n_folds, self._seed, n_classes, runtime)
        else:
            numberings = folds_by_group(part, self._groups, self._n_folds, self._seed, runtime)
        return Ground(store, profile, numberings, self._n_folds, runtime)


@contextmanager
def opened(
    estimator: CommonParameters, given: Given, groups: Groups, n_folds: int, seed: int
) -> Iterator[Grounds]:
    """Open the place where the estimator trains, and divide the rows into folds there."""
    with ExitStack() as stack:
        stack.enter_context(storage_options(estimator.storage_options))
        first = clone(estimator)
        data = training_data(first, given)
        runtime = stack.enter_context(runtime_of(estimator, data.n_rows * data.n_features, [load_merge]))
        stack.enter_context(columns_named(first))
        yield Grounds(first, data, groups=groups, n_folds=n_folds, seed=seed, runtime=runtime, stack=stack)


def check_folds(n_folds: int, seed: int) -> None:
    """Raise DataError unless rows can be divided into so many folds, by this seed."""
    if not (isinstance(n_folds, Integral) and 2 <= n_folds <= MOST_FOLDS):
        raise DataError.expected("folds", n_folds, f"a whole number from 2 to {MOST_FOLDS}")
    if not isinstance(seed, Integral):
        raise DataError.expected("``random_state``", seed, "a whole number: equal calls give equal folds")


def check_estimator(estimator: Any) -> None:
    """Raise an error unless it is an estimator of distboost with valid parameters, and does not stop early."""
    check_own(estimator)
    estimator.validate()
    check_methods(estimator, "this function", "Use that of sklearn.model_selection, which calls them.")
    if estimator.early_stopping_rounds is not None:
        raise DataError(
            f"``early_stopping_rounds={estimator.early_stopping_rounds}``, but the only other rows are those to judge by.",
            remedy="Pass ``early_stopping_rounds=None``, and choose the number of rounds by the results.",
        )
    if estimator.validation_fraction is not None:
        raise DataError(
            f"``validation_fraction={estimator.validation_fraction}``, but the rows to judge by are those of the folds.",
            remedy="Pass ``validation_fraction=None``.",
        )
