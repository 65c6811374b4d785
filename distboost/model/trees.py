"""The fitted ensemble, and the arrays that it is kept as."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from distboost.algorithms.base import Algorithm
from distboost.errors import DataError, ModelFormatError
from distboost.kernels import predict
from distboost.model.damage import Intact
from distboost.model.similarities import SimilarityEnsemble
from distboost.rows.interface import BinnedTree, Step, TreeStep
from distboost.threads import Threads
from distboost.trees.grower import Tree

_ROWS_AT_ONCE = 4096

# Node arrays and leaf arrays of all trees, one tree after another; `roots` and `value_offsets` say where each begins.
_ARRAYS = {
    "feature": np.int32,
    "threshold": np.float64,
    "missing_left": np.bool_,
    "left": np.int32,
    "right": np.int32,
    "gain": np.float64,
    "roots": np.int64,
    "values": np.float64,
    "value_offsets": np.int64,
}


class TreeEnsemble:
    """Trees whose leaves add values to the scores, in a fixed order, so many per round.

    Parameters
    ----------
    n_features, n_scores : int
    per_round : int
    """

    def __init__(self, n_features: int, n_scores: int, per_round: int = 1):
        self.n_features = n_features
        self.n_scores = n_scores
        self.per_round = per_round
        self._trees: list[dict[str, np.ndarray]] = []
        self._joined: dict[str, np.ndarray] | None = None

    def __len__(self) -> int:
        """Rounds."""
        return len(self._trees) // self.per_round

    def append(self, trees: Sequence[Tree], values: Sequence[np.ndarray], edges: list[np.ndarray]) -> None:
        """Adds a round of trees; their thresholds are the edges of their bins (infinity where only missing values go right)."""
        for (binned, gain, *_), added in zip(trees, values, strict=True):
            threshold = [
                edges[d][b] if b < len(edges[d]) else np.inf
                for d, b in zip(binned.feature, binned.bin, strict=True)
            ]
            self._trees.append(
                {
                    "feature": binned.feature,
                    "threshold": np.array(threshold, np.float64),
                    "missing_left": binned.missing_left,
                    "left": binned.left,
                    "right": binned.right,
                    "gain": gain,
                    "values": added,
                }
            )
        self._joined = None

    def rewrite(self, values: Sequence[np.ndarray]) -> None:
        """New values for the leaves of every tree."""
        self._trees = [{**tree, "values": v} for tree, v in zip(self._trees, values, strict=True)]
        self._joined = None

    def copy(self, n_rounds: int | None = None) -> TreeEnsemble:
        """An ensemble of the same trees, or of those of the first rounds, to which others can be added."""
        return self.part(0, len(self) if n_rounds is None else n_rounds)

    def part(self, first: int, last: int) -> TreeEnsemble:
        """An ensemble of the trees of rounds first .. last - 1, as far as there are any."""
        other = TreeEnsemble(self.n_features, self.n_scores, self.per_round)
        other._trees = self._trees[first * self.per_round : last * self.per_round]
        return other

    def begins_with(self, other: Any) -> bool:
        """Whether the rounds of the other, an ensemble of the same kind, are the first of these."""
        alike = self.n_scores == other.n_scores and len(other) <= len(self)
        return alike and all(a is b for a, b in zip(self._trees, other._trees, strict=False))

    def extend(self, other: Any) -> None:
        """Adds the rounds of the other, an ensemble of the same kind."""
        self._trees = [*self._trees, *other._trees]
        self._joined = None

    def become(self, other: Any) -> None:
        """Holds the trees of the other, an ensemble of the same kind."""
        self._trees = list(other._trees)
        self._joined = None

    def steps(self, rounds: Iterable[int], edges: list[np.ndarray]) -> list[Step]:
        """What these rounds add to the scores, with the trees as they decide by bins of these edges."""
        numbers = [round * self.per_round + i for round in rounds for i in range(self.per_round)]
        return [
            TreeStep(self._binned(self._trees[number], edges), self._trees[number]["values"])
            for number in numbers
        ]

    @staticmethod
    def _binned(tree: dict[str, np.ndarray], edges: list[np.ndarray]) -> BinnedTree:
        bins = [np.searchsorted(edges[d], x) for d, x in zip(tree["feature"], tree["threshold"], strict=True)]
        return BinnedTree(
            tree["feature"], np.array(bins, np.int32), tree["missing_left"], tree["left"], tree["right"]
        )

    def scores(
        self, X: np.ndarray, threads: Threads, first: int = 0, scores: np.ndarray | None = None, last=None
    ):
        """F of the rows X (n, D), shape (n, n_scores): rounds first .. last - 1 added to `scores` (zeros if not given)."""
        if X.shape[1] != self.n_features:
            raise DataError(
                f"X has {X.shape[1]} features, but the model is expecting {self.n_features} features as input."
            )
        a = self.arrays()
        F = np.zeros((len(X), self.n_scores)) if scores is None else scores
        last = len(self) if last is None else last

        def add(start: int) -> None:
            rows = slice(start, start + _ROWS_AT_ONCE)
            predict.add_trees(
                X[rows], a["feature"], a["threshold"], a["missing_left"], a["left"], a["right"], a["roots"],
                a["values"], a["value_offsets"], first * self.per_round, last * self.per_round, F[rows],
            )  # fmt: skip

        threads.map(add, range(0, len(X), _ROWS_AT_ONCE))
        return F

    def gains(self) -> tuple[np.ndarray, np.ndarray]:
        """The features that trees split on, and the total gain of the splits on each: 2^-64 of it if that is no number."""
        a = self.arrays()
        features, place = np.unique(a["feature"], return_inverse=True)
        with np.errstate(over="ignore"):
            gain = a["gain"] if np.isfinite(np.abs(a["gain"]).sum()) else a["gain"] * 2.0**-64
        return features, np.bincount(place, weights=gain, minlength=len(features))

    def arrays(self) -> dict[str, np.ndarray]:
        """All trees, one after another."""
        if self._joined is None:
            joined: dict[str, np.ndarray] = {
                name: np.concatenate(
                    [
                        np.empty((0, self.n_scores) if name == "values" else 0, dtype),
                        *(t[name] for t in self._trees),
                    ]
                ).astype(dtype)
                for name, dtype in _ARRAYS.items()
                if name not in ("roots", "value_offsets")
            }
            joined["roots"] = np.cumsum([0, *(len(t["feature"]) for t in self._trees)], dtype=np.int64)
            joined["value_offsets"] = np.cumsum([0, *(len(t["values"]) for t in self._trees)], dtype=np.int64)
            self._joined = joined
        return self._joined

    @classmethod
    def from_arrays(
        cls, arrays: dict[str, np.ndarray], n_features: int, n_scores: int, per_round: int
    ) -> TreeEnsemble:
        """The ensemble of these arrays; raises ModelFormatError unless they describe trees."""
        _check_trees(arrays, n_features, n_scores)
        if (len(arrays["roots"]) - 1) % per_round:
            raise ModelFormatError(
                f"the model is damaged: {len(arrays['roots']) - 1} trees are not rounds of {per_round}."
            )
        ensemble = cls(n_features, n_scores, per_round)
        for a, b, c, d in zip(
            arrays["roots"],
            arrays["roots"][1:],
            arrays["value_offsets"],
            arrays["value_offsets"][1:],
            strict=False,
        ):
            nodes = {
                name: arrays[name][a:b]
                for name in ("feature", "threshold", "missing_left", "left", "right", "gain")
            }
            ensemble._trees.append({**nodes, "values": arrays["values"][c:d]})
        return ensemble


def _check_trees(arrays: dict[str, np.ndarray], n_features: int, n_scores: int) -> None:
    require = Intact("trees")
    require.arrays(arrays, _ARRAYS)
    roots, offsets, values = arrays["roots"], arrays["value_offsets"], arrays["values"]
    n_nodes = len(arrays["feature"])
    for name in ("feature", "threshold", "missing_left", "left", "right", "gain"):
        require(arrays[name].shape == (n_nodes,), f"array {name!r} has not one entry per node")
    require(values.ndim == 2 and values.shape[1] == n_scores, "leaf values are not one per score")
    for index, end in ((roots, n_nodes), (offsets, len(values))):
        require(
            index.ndim == 1 and len(index) >= 1 and len(index) == len(roots), "trees are not counted alike"
        )
        rises = (index[1:] >= index[:-1]).all()  # differences might overflow
        require(index[0] == 0 and index[-1] == end and rises, "tree offsets")
    inner = np.diff(roots)
    require(bool((np.diff(offsets) == inner + 1).all()), "a tree has not one leaf more than inner nodes")
    require(bool(((arrays["feature"] >= 0) & (arrays["feature"] < n_features)).all()), "a feature number")
    require(not np.isnan(arrays["threshold"]).any(), "a threshold is NaN")
    require(bool(np.isfinite(values).all()), "a leaf value is not finite")
    require(bool(np.isfinite(arrays["gain"]).all()), "a gain is not finite")
    number = np.arange(n_nodes) - np.repeat(roots[:-1], inner)
    size = np.repeat(inner, inner)
    for child in (arrays["left"].astype(np.int64), arrays["right"].astype(np.int64)):
        # A child comes after its parent, so that following children always ends.
        require(
            bool(np.where(child >= 0, (child > number) & (child < size), ~child <= size).all()), "a child"
        )


Ensemble = TreeEnsemble | SimilarityEnsemble


def new_ensemble(algorithm: Algorithm, n_features: int) -> Ensemble:
    """What the algorithm's learners are kept in."""
    n_scores = algorithm.weighting.n_scores(algorithm.n_classes)
    if algorithm.needs_values:
        return SimilarityEnsemble(n_features, n_scores)
    return TreeEnsemble(n_features, n_scores, algorithm.learners_per_round)


def read_ensemble(algorithm: Algorithm, arrays: dict[str, np.ndarray], n_features: int) -> Ensemble:
    """The ensemble of the algorithm in these arrays."""
    n_scores = algorithm.weighting.n_scores(algorithm.n_classes)
    if algorithm.needs_values:
        return SimilarityEnsemble.from_arrays(arrays, n_features, n_scores)
    return TreeEnsemble.from_arrays(arrays, n_features, n_scores, algorithm.learners_per_round)
