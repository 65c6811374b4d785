"""The ensemble of trees, and the arrays that files store of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from distboost.data.categories import Categories, coded
from distboost.errors import ModelFormatError
from distboost.kernels import predict
from distboost.kernels.categories import SET_WORDS
from distboost.kernels.row_lanes import MOST_LEAVES
from distboost.model.compact import CompactTrees
from distboost.model.damage import Requirement
from distboost.model.ensemble import Ensemble, kernel_rows
from distboost.rows.messages import Step
from distboost.trees.grower import Tree
from distboost.trees.tree import BinnedTree, TreeStep

_NODES = ("feature", "threshold", "missing_left", "left", "right", "gain")
_COVERS = ("leaf_rows", "leaf_weight")

# Node arrays and leaf arrays of all trees, concatenated; tree t begins at `roots[t]` and `value_offsets[t]`.
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
    "leaf_rows": np.int64,
    "leaf_weight": np.float64,
}
FEWEST_RANKED = 16  # rows: fewer descend the trees sooner than their values are ranked; in larger trees, more
_MOST_ROWS = 2**53  # of a leaf, so that sums over leaves are exact
_SETS = "sets"
# More arrays, if features have categories: the place of a node's set in `categories`, or -1; the bins that go left, one bit each.
_CATEGORIES = {"category_set": np.int32, "categories": np.uint64}
NO_CATEGORIES = {"category_set": np.zeros(0, np.int32), "categories": np.zeros((0, SET_WORDS), np.uint64)}


class TreeEnsemble(Ensemble):
    """Trees whose leaves add values to the scores.

    A learner is the arrays of a tree, by name, with the values of its leaves, (n_leaves, n_scores) float64. Its covers are the
    arrays of its leaves (`trees.tree.Cover`): either all learners have them, or none, as in files of earlier versions. If some
    feature has categories, each node has one of the `sets`; the threshold of a split of categories is NaN.
    """

    @property
    def has_covers(self) -> bool:
        """Whether the ensemble knows how many rows each leaf had in training."""
        return not self._learners or _COVERS[0] in self._learners[-1][0]

    def scale_weights(self, weight_scale: float) -> None:
        """Accept by what the weights of further rounds' rows are multiplied; the weights of covers are then, too.

        Weights so extreme that their sums might leave the range of a float64 count as they are multiplied.
        """
        scale = weight_scale if 2.0**-900 <= weight_scale <= 2.0**900 else 1.0
        if self.has_covers and scale != self.weight_scale:
            ratio, weight = scale / self.weight_scale, "leaf_weight"
            self._set(
                [({**nodes, weight: nodes[weight] * ratio}, values) for nodes, values in self._learners]
            )
        self.weight_scale = scale

    def append(self, learners: Sequence[Tree], values: Sequence[np.ndarray], edges: list[np.ndarray]) -> None:
        """Append a round of trees. Bin edges become thresholds; a threshold is infinite if only missing values go right."""
        added = []
        for tree, of_leaves in zip(learners, values, strict=True):
            binned = tree.binned
            threshold = [
                np.nan if b < 0 else edges[d][b] if b < len(edges[d]) else np.inf
                for d, b in zip(binned.feature.tolist(), binned.bin.tolist(), strict=True)
            ]
            nodes = {
                "feature": binned.feature,
                "threshold": np.array(threshold, np.float64),
                "missing_left": binned.missing_left,
                "left": binned.left,
                "right": binned.right,
                "gain": tree.gain,
            }
            if self.has_covers:
                nodes |= {"leaf_rows": tree.cover.rows, "leaf_weight": tree.cover.weight}
            if self.categories:
                nodes[_SETS] = binned.sets
            added.append((nodes, of_leaves))
        self._set([*self._learners, *added])

    def steps(self, rounds: Iterable[int], edges: list[np.ndarray]) -> list[Step]:
        """Return the steps of these rounds, with trees that split on bins of these edges."""
        numbers = [round * self.per_round + i for round in rounds for i in range(self.per_round)]
        return [
            TreeStep(_binned(nodes, edges), values)
            for nodes, values in (self._learners[number] for number in numbers)
        ]

    def adder(self, X: np.ndarray, first: int, last: int) -> Callable[[int, int, np.ndarray], None]:
        """Return a function that adds learners to the scores of rows.

        Few rows descend the trees. Of more, it compares ranks, which are computed here, once.
        """
        X = kernel_rows(self.coded(X))
        trees = self._compact if len(X) >= FEWEST_RANKED else None
        if trees is None or len(X) < FEWEST_RANKED * (len(trees.leaves) // MOST_LEAVES):
            a = {**NO_CATEGORIES, **self.arrays()}
            names = ("feature", "threshold", "missing_left", "left", "right", *_CATEGORIES)
            nodes = (a[name] for name in names)
            return partial(predict.add_trees, X, *nodes, a["roots"], a["values"], a["value_offsets"])
        return partial(trees.add, trees.ranked(X, first, last))

    def coded(self, X: np.ndarray) -> np.ndarray:
        """Return rows X (n, n_features) with the bins of categories, as float64, in place of these.

        Missing and unknown ones are NaN. If no feature has categories, this is X itself.
        """
        return coded(X, self.categories) if self.categories else X

    def left_categories(self, row: int, feature: int) -> list[Any]:
        """Return the known categories of a feature in the set of this number, which go left, ascending: labels, or numbers."""
        known, words = self.categories[feature], self.arrays()["categories"][row]
        is_left = (words[known.bins >> 6] >> (known.bins & 63).astype(np.uint64)) & np.uint64(1) == 1
        return [known.named[place] for place in np.flatnonzero(is_left)]

    @cached_property
    def _compact(self) -> CompactTrees | None:
        return CompactTrees.of(self.arrays())

    def _set(self, learners: list[tuple[Any, np.ndarray]]) -> None:
        super()._set(learners)
        self.__dict__.pop("_compact", None)

    def __getstate__(self) -> dict[str, Any]:
        # Each process lays the trees out by itself: the layout would double what is sent.
        return {name: value for name, value in self.__dict__.items() if name != "_compact"}

    def gains(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the features that trees split on, and the total gain of the splits on each.

        If the sum of all gains overflows, all of them are multiplied by 2^-64.
        """
        a = self.arrays()
        features, place = np.unique(a["feature"], return_inverse=True)
        with np.errstate(over="ignore"):
            gain = a["gain"] if np.isfinite(np.abs(a["gain"]).sum()) else a["gain"] * 2.0**-64
        return features, np.bincount(place, weights=gain, minlength=len(features))

    def _joined(self) -> dict[str, np.ndarray]:
        def joined(parts: Iterable[np.ndarray], name: str, empty: int | tuple[int, int] = 0) -> np.ndarray:
            return np.concatenate([np.empty(empty, _ARRAYS[name]), *parts]).astype(_ARRAYS[name])

        stored = (*_NODES, *_COVERS) if self.has_covers else _NODES
        arrays = {name: joined((nodes[name] for nodes, _ in self._learners), name) for name in stored}
        arrays["values"] = joined((values for _, values in self._learners), "values", (0, self.n_scores))
        n_nodes = [len(nodes["feature"]) for nodes, _ in self._learners]
        n_leaves = [len(values) for _, values in self._learners]
        arrays["roots"] = np.cumsum([0, *n_nodes], dtype=np.int64)
        arrays["value_offsets"] = np.cumsum([0, *n_leaves], dtype=np.int64)
        if self.categories:
            is_set = np.isnan(arrays["threshold"])
            sets = np.concatenate(
                [np.empty((0, SET_WORDS), np.uint64), *(n[_SETS] for n, _ in self._learners)]
            )
            arrays["category_set"] = np.where(is_set, np.cumsum(is_set) - 1, -1).astype(np.int32)
            arrays["categories"] = sets[is_set]
        return arrays

    @classmethod
    def from_arrays(
        cls,
        arrays: dict[str, np.ndarray],
        n_features: int,
        n_scores: int,
        per_round: int,
        *,
        has_covers: bool,
        categories: Mapping[int, Categories] | None = None,
    ) -> TreeEnsemble:
        """Make the ensemble of these arrays; raise ModelFormatError if they do not describe trees.

        `has_covers`: whether covers are among them, as in files since version 3.
        """
        categories = categories or {}
        _check_trees(arrays, n_features, n_scores, categories)
        of_nodes = {name: arrays[name] for name in _NODES}
        if categories:
            of_nodes[_SETS] = _sets(arrays)
        if has_covers:
            _check_covers(arrays)
        roots, offsets = arrays["roots"], arrays["value_offsets"]
        if (len(roots) - 1) % per_round:
            raise ModelFormatError(
                f"the model is damaged: {len(roots) - 1} trees are not a multiple of {per_round} trees per round."
            )
        ensemble = cls(n_features, n_scores, per_round)
        ensemble.categories = categories
        for a, b, c, d in zip(roots, roots[1:], offsets, offsets[1:], strict=False):
            nodes = {name: values[a:b] for name, values in of_nodes.items()}
            if has_covers:
                nodes |= {name: arrays[name][c:d] for name in _COVERS}
            ensemble._learners.append((nodes, arrays["values"][c:d]))
        return ensemble


def _binned(nodes: dict[str, np.ndarray], edges: list[np.ndarray]) -> BinnedTree:
    """Return the tree with splits on bins of these edges."""
    bins = [
        -1 if np.isnan(x) else np.searchsorted(edges[d], x)
        for d, x in zip(nodes["feature"], nodes["threshold"], strict=True)
    ]
    sets = nodes.get(_SETS, np.zeros((len(bins), 0), np.uint64))
    return BinnedTree(
        nodes["feature"], np.array(bins, np.int32), nodes["missing_left"], nodes["left"], nodes["right"], sets
    )


def _sets(arrays: dict[str, np.ndarray]) -> np.ndarray:
    """Return the set of each node, (nodes, SET_WORDS) uint64: empty at splits of numbers."""
    number = arrays["category_set"]
    found = np.zeros((len(number), SET_WORDS), np.uint64)
    found[number >= 0] = arrays["categories"][number[number >= 0]]
    return found


def _check_trees(
    arrays: dict[str, np.ndarray], n_features: int, n_scores: int, categories: Mapping[int, Categories]
) -> None:
    require = Requirement("trees")
    require.arrays(arrays, {name: dtype for name, dtype in _ARRAYS.items() if name not in _COVERS})
    roots, offsets, values = arrays["roots"], arrays["value_offsets"], arrays["values"]
    n_nodes = len(arrays["feature"])
    for name in _NODES:
        require(arrays[name].shape == (n_nodes,), f"array {name!r} does not have one entry per node")
    require(values.ndim == 2 and values.shape[1] == n_scores, "a leaf does not have one value per score")
    for index, end in ((roots, n_nodes), (offsets, len(values))):
        require(
            index.ndim == 1 and len(index) >= 1 and len(index) == len(roots),
            "the arrays have different numbers of trees",
        )
        rises = (index[1:] >= index[:-1]).all()  # a comparison, since differences might overflow
        require(index[0] == 0 and index[-1] == end and rises, "the offsets of trees are inconsistent")
    inner = np.diff(roots)
    require(
        bool((np.diff(offsets) == inner + 1).all()),
        "the number of leaves of a tree is not that of its inner nodes plus one",
    )
    require(
        bool(((arrays["feature"] >= 0) & (arrays["feature"] < n_features)).all()),
        "a feature number is out of range",
    )
    if categories:
        _check_sets(require, arrays, categories)
    else:
        require(not np.isnan(arrays["threshold"]).any(), "a threshold is NaN")
    require(bool(np.isfinite(values).all()), "a leaf value is not finite")
    require(bool(np.isfinite(arrays["gain"]).all()), "a gain is not finite")
    number = np.arange(n_nodes) - np.repeat(roots[:-1], inner)
    size = np.repeat(inner, inner)
    for child in (arrays["left"].astype(np.int64), arrays["right"].astype(np.int64)):
        # A child comes after its parent, so that every walk down the tree ends.
        require(
            bool(np.where(child >= 0, (child > number) & (child < size), ~child <= size).all()),
            "a child is out of range",
        )


def _check_covers(arrays: dict[str, np.ndarray]) -> None:
    require = Requirement("trees")
    require.arrays(arrays, {name: _ARRAYS[name] for name in _COVERS})
    n_leaves = len(arrays["values"])
    for name in _COVERS:
        require(arrays[name].shape == (n_leaves,), f"array {name!r} does not have one entry per leaf")
    rows, weight = arrays["leaf_rows"], arrays["leaf_weight"]
    require(bool(((rows >= 0) & (rows <= _MOST_ROWS)).all()), "a leaf has an impossible number of rows")
    require(bool((np.isfinite(weight) & (weight >= 0)).all()), "a leaf has an impossible weight")


def _check_sets(
    require: Requirement, arrays: dict[str, np.ndarray], categories: Mapping[int, Categories]
) -> None:
    """Require that exactly the splits on features with categories have sets, and that these follow from known bins."""
    require.arrays(arrays, _CATEGORIES)
    number, sets, feature = arrays["category_set"], arrays["categories"], arrays["feature"]
    require(number.shape == feature.shape, "array 'category_set' does not have one entry per node")
    is_set = np.isin(feature, list(categories))
    require(sets.shape == (np.count_nonzero(is_set), SET_WORDS), "a set is missing, or has no split")
    expected = np.where(is_set, np.cumsum(is_set) - 1, -1)
    require(np.array_equal(number, expected), "the number of a set is out of range")
    require(np.array_equal(np.isnan(arrays["threshold"]), is_set), "a threshold is NaN, or a set has one")
    n_bins = np.array([categories[d].n_bins for d in feature[is_set].tolist()], np.int64)
    bits = np.unpackbits(sets.astype("<u8").view(np.uint8), axis=1, bitorder="little")
    unknown = np.arange(64 * SET_WORDS) >= n_bins[:, None]
    rest = arrays["missing_left"][is_set][:, None]
    require(not (unknown & (bits != rest)).any(), "a set has a bin out of range")
