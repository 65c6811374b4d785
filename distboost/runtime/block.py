"""A block: some rows of the training or evaluation data, with the state that boosting keeps of them."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from distboost.data.blocks import AnyRows, BinnedRows, ones
from distboost.data.memory import empty, zeros
from distboost.kernels import partition, sampling, stored_bins
from distboost.kernels.digest import digest_of
from distboost.kernels.histogram import varying_features
from distboost.rows.messages import NO_SETS, NO_SPLITS, Splits
from distboost.rows.stored_bins import StoredBins
from distboost.trees.tree import BinnedTree, numbered


class Key(NamedTuple):
    """The identity of a block: the `number` of its set (0: training rows, others: evaluation rows), and its own in the set."""

    number: int
    block: int

    def __str__(self) -> str:
        return f"block {self.block} of the {'evaluation' if self.number else 'training'} rows"


class located:  # noqa: N801 (a context)
    """Set the attribute `block` of an error that is raised while a block is processed."""

    def __init__(self, key: Key):
        self._key = key

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, Exception):
            locate(error, self._key)


def locate(error: Exception, key: Key) -> None:
    """Set the attribute `block` of an error, unless it has one."""
    if not hasattr(error, "block"):
        error.block = key  # type: ignore[attr-defined]


def _state(name: str, doc: str) -> Any:
    """Return a property for an array that is kept between questions."""

    def get(block: Block) -> np.ndarray:
        found = block.buffers.get(name)
        return block.kept(name) if found is None else found

    def put(block: Block, array: np.ndarray) -> None:
        block.buffers[name] = array
        block.changed.add(name)

    return property(get, put, doc=doc)


class Grown(NamedTuple):
    """The splits of a growing tree, for rows that its histograms leave out."""

    is_gathered: (
        bool  # whether the drawn rows are gathered in another block, which divides them between nodes
    )
    splits: tuple[Splits, ...] = ()
    missing_bin: np.ndarray = np.zeros(0, np.int64)

    def followed_by(self, splits: Splits, missing_bin: np.ndarray) -> Grown:
        """Return the tree with more splits."""
        return self._replace(splits=(*self.splits, splits), missing_bin=missing_bin)

    def tree(self) -> tuple[BinnedTree, np.ndarray]:
        """Return the tree, and the node of each of its leaves, (n_leaves,) int64."""
        *columns, sets = zip(NO_SPLITS, *self.splits, strict=True)
        node, feature, bin, missing_left, left, right = map(np.concatenate, columns)
        numbers, leaves = numbered(node, left, right)
        all_sets = np.concatenate([some for some in sets if some.shape[1]] or [NO_SETS])
        return BinnedTree(feature, bin, missing_left, numbers[0], numbers[1], all_sets), leaves


class Traits(NamedTuple):
    """What is known of a block's rows while they are not in memory.

    Attributes
    ----------
    heaviest : float
        The largest weight.
    has_unit_weights, are_present : bool
        Whether all weights are 1; whether all are above 0.
    varying : ndarray of shape (D,), bool
        Whether the rows have more than one bin of each feature.
    """

    heaviest: float
    has_unit_weights: bool
    are_present: bool
    varying: np.ndarray

    @classmethod
    def of(cls, rows: AnyRows) -> Traits:
        """Find them."""
        weights, varying = rows.weights, np.ones(rows.bins.shape[1], bool)
        if len(weights):
            varying_features(rows.bins, varying)
        return cls(
            float(weights.max(initial=0.0)), bool((weights == 1).all()), bool((weights > 0).all()), varying
        )


class Block:
    """Binned rows with their scores F and, while a tree grows, their nodes.

    `values` holds the raw values if the algorithm needs them. The rows of node m are ``order[spans[m, 0]:spans[m, 1]]``.

    Parameters
    ----------
    rows : AnyRows
    n_classes, n_scores : int
    score_dtype : str
    load : callable
        load(name) returns an array that was stored when the block last left memory, or None.
    traits : Traits or None
        If they are known already.
    held : StoredBins or None
        The bins of the rows, if few are stored. None: those of `rows`.

    Attributes
    ----------
    spans : ndarray of shape (n_nodes, 2), int32
        The first row of each node in `order`, and the end of its rows.
    buffers : dict of str to ndarray
        The arrays in memory that are kept between questions.
    changed, loaded : set of str
        The names of buffers that have been written to, and of those that were stored.
    held : ndarray of shape (n, D), uint8, or StoredBins
        The bins: all, or those that are not usual.
    round : int
        The last round whose steps were added to the scores.
    grown : Grown or None
        A tree whose histograms sum fewer rows than its leaves have: `order` has the drawn rows. None: the leaves have the rows
        in `order`.
    """

    scores = _state("scores", "The scores, (n, n_scores).")
    order = _state("order", "The numbers of the tree's rows, sorted by node, (n_rows_of_tree,) int32.")

    def __init__(
        self,
        rows: AnyRows,
        n_classes: int,
        n_scores: int,
        *,
        score_dtype: str,
        load: Callable[[str], np.ndarray | None] = lambda name: None,
        traits: Traits | None = None,
        held: StoredBins | None = None,
    ):
        self._rows = rows
        self.first = rows.first
        self.held: np.ndarray | StoredBins
        if held is None:
            self.held = np.ascontiguousarray(rows.bins)  # kernels read it by its address
            self.n_rows = len(rows.bins)
        else:
            self.held, self.n_rows = held, held.n_rows
        self.n_classes = n_classes
        self.traits = traits = Traits.of(rows) if traits is None else traits
        self.heaviest, self.varying = traits.heaviest, traits.varying
        self.spans = np.zeros((1, 2), np.int32)
        self.grown: Grown | None = None
        # If the tree is `grown`: the nodes that are its leaves, and the leaf of each row in `present`.
        self._leaves: tuple[np.ndarray, np.ndarray] | None = None
        # Leaves of the tree, and the rows in them.
        self._found: tuple[np.ndarray, tuple[np.ndarray, np.ndarray]] | None = None
        self.buffers: dict[str, np.ndarray] = {}
        self.changed: set[str] = set()
        self.loaded: set[str] = set()
        self.round = 0
        self._load, self._loading = load, threading.Lock()
        self._scores = (self.n_rows, n_scores), score_dtype

    @property
    def bins(self) -> np.ndarray:
        """All bins, (n, D) uint8: made anew each time if only some are held."""
        return self.held.all() if isinstance(self.held, StoredBins) else self.held

    def store(self, usual: np.ndarray) -> None:
        """Hold only the bins that differ from the `usual` ones, (D,) uint8, if these are few."""
        stored = StoredBins.of(self.bins, usual)
        if stored is not None and isinstance(self._rows, BinnedRows):
            self.held, self._rows = stored, self._rows._replace(bins=np.empty((0, 0), np.uint8))

    def hold_all(self) -> None:
        """Hold all bins again, if only some are held."""
        self.held = self.bins

    @cached_property
    def labels(self) -> np.ndarray:
        """The class indices, (n,) int32."""
        return self._rows.labels

    @cached_property
    def weights(self) -> np.ndarray:
        """The rows' own weights, (n,) float64."""
        return ones(self.n_rows) if self.traits.has_unit_weights else self._rows.weights

    @property
    def values(self) -> np.ndarray | None:
        """The raw values, (n, D) float64, if the algorithm needs them."""
        return self._rows.values

    @cached_property
    def present(self) -> np.ndarray:
        """The rows of positive weight, (n_present,) int32. Blocks of which all rows are present share this array."""
        if self.traits.are_present:
            return _first_rows(1 << max(self.n_rows - 1, 0).bit_length())[: self.n_rows]
        return np.flatnonzero(self.weights > 0).astype(np.int32)

    def kept(self, name: str) -> np.ndarray:
        """Return an array as the last question left it."""
        with self._loading:  # threads that share the work on a block do not read an array twice
            if name not in self.buffers and not self.load(name):
                self.buffers[name] = self._new(name)
        return self.buffers[name]

    def load(self, name: str) -> bool:
        """Load an array if it was stored; return whether it was."""
        found = self._load(name)
        if found is not None:
            self.buffers[name] = found
            self.loaded.add(name)
        return found is not None

    def _new(self, name: str) -> np.ndarray:
        """Return the initial content of an array."""
        if name == "scores":
            return zeros(*self._scores)
        return self.present.copy() if name == "order" else np.empty(0, np.int32)

    def buffer(
        self, name: str, shape: tuple[int, ...], dtype: type, overwrite: bool = False, clear: bool = True
    ) -> np.ndarray:
        """Return a kept array to write to: as it was left, or zero if it is new.

        With `overwrite`, its content is arbitrary, but a new array is zero unless `clear` is False.
        """
        if name not in self.buffers and not overwrite:
            self.load(name)
        kept = self.buffers.get(name)
        if kept is None or kept.shape != shape or kept.dtype != dtype:
            kept = empty(shape, dtype)
            if clear:
                kept.fill(0)
        self.buffers[name] = kept
        self.changed.add(name)
        return kept

    @cached_property
    def digest(self) -> tuple[int, int]:
        """The digests of the rows: see kernels/digest.py."""
        return digest_of(self.bins, self.values, self.labels, self.weights, self.first)

    def at_zero(self) -> Block:
        """Return a block of the same rows whose scores are 0."""
        other = copy.copy(self)
        other.buffers, other.changed, other.loaded = {"scores": zeros(*self._scores)}, set(), set()
        return other

    def start_tree(self, drawn: np.ndarray | None = None, grown: Grown | None = None) -> None:
        """Put all rows of positive weight into node 0. The histograms sum those that are `drawn`, (n_rows_of_tree,) int32."""
        rows = self.present if drawn is None else drawn
        self.buffer("order", (len(rows),), np.int32, overwrite=True)[:] = rows
        self.spans = np.zeros((64, 2), np.int32)
        self.spans[0, 1] = len(rows)
        self.grown, self._leaves, self._found = grown, None, None

    def split(self, splits: Splits, missing_bin: np.ndarray) -> None:
        """Divide the rows of nodes between their children. `missing_bin` is (n_features,) int64."""
        self.grow(splits, missing_bin)
        if self.grown is not None and self.grown.is_gathered:
            return
        n = int(max(splits.left.max(), splits.right.max())) + 1
        if len(self.spans) < n:
            grown = np.zeros((2 * n, 2), np.int32)
            grown[: len(self.spans)] = self.spans
            self.spans = grown
        rest = (
            missing_bin, self.order, self.spans, splits.node, splits.feature, splits.bin, splits.missing_left, splits.left,
            splits.right, splits.sets, np.empty(len(self.order), np.int32),
        )  # fmt: skip
        if isinstance(self.held, StoredBins):
            stored_bins.split_stored(*self.held.rows, self.held.usual, *rest)
        else:
            partition.split_spans(self.held, *rest)
        self.changed.add("order")

    def grow(self, splits: Splits, missing_bin: np.ndarray) -> None:
        """Note the splits of a tree whose histograms sum fewer rows than its leaves have."""
        self._found = None
        if self.grown is not None:
            self.grown, self._leaves = self.grown.followed_by(splits, missing_bin), None

    def leaf_arrays(self, leaves: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the arrays that a reduction over leaves reads: (scores, labels, weights, order, spans, leaves)."""
        order, spans = self.order, self.spans
        if self.grown is not None:
            nodes, leaf = self._leaves_of_rows(self.grown)
            order, by_leaf = np.empty(len(leaf), np.int32), np.empty((len(nodes), 2), np.int32)
            sampling.sort_by_leaf(self.present, leaf, order, by_leaf)
            spans = np.zeros((nodes.max() + 1, 2), np.int32)
            spans[nodes] = by_leaf
        return self.scores, self.labels, self.weights, order, spans, leaves

    def rows_in(self, leaves: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows in these leaves, (m,) int32 ascending, and the leaf of each, (m,) int32: its place in `leaves`.

        A visit in this order reads the scores one after another, which takes half the time of a visit leaf by leaf.
        """
        if (
            self._found is None or self._found[0] is not leaves
        ):  # else the update adds the steps of what was summed
            self._found = leaves, self._find_rows(leaves)
        return self._found[1]

    def _find_rows(self, leaves: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self.grown is None:
            first, stop = self.spans[leaves].T
            has_all = (stop - first).sum() == self.n_rows  # nearly always
            by_row = np.empty(self.n_rows, np.int32) if has_all else np.full(self.n_rows, -1, np.int32)
            partition.number_rows(self.order, self.spans, leaves, by_row)
            if has_all:
                return self.present, by_row
            numbers = by_row if self.traits.are_present else by_row[self.present]
        else:
            nodes, leaf = self._leaves_of_rows(self.grown)
            if np.array_equal(nodes, leaves):  # nearly always
                return self.present, leaf
            number = np.full(nodes.max() + 1, -1, np.int32)
            number[leaves] = np.arange(len(leaves))
            numbers = number[nodes][leaf]
        counted = numbers >= 0
        return (self.present, numbers) if counted.all() else (self.present[counted], numbers[counted])

    def n_visited(self, kind: str) -> int:
        """Return the number of rows that a loop of this kind visits."""
        if kind == "statistics":
            return int(self.spans[0, 1])
        return len(self.present) if kind == "sums" else self.n_rows

    def _leaves_of_rows(self, grown: Grown) -> tuple[np.ndarray, np.ndarray]:
        """Return the nodes that are leaves, (n_leaves,) int64, and the leaf of each row in `present`, (n_present,) int32."""
        if self._leaves is None:
            tree, nodes = grown.tree()
            self._leaves = nodes, tree.leaves_of(self.held, grown.missing_bin, self.present)
        return self._leaves


@lru_cache(maxsize=4)
def _first_rows(n: int) -> np.ndarray:
    return np.arange(n, dtype=np.int32)
