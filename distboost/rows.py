"""What an algorithm sees of the training data: sums over rows, never the rows.

`Rows` holds the coordinator's side of a round, the same for every runtime: the scale of the integer sums, the queue of
splits, the losses. A runtime supplies two methods, `_histogram` and `_reduce`, that ask all its shards the same question and
add the answers.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from distboost.threads import Threads
from distboost.weak.splits import Histograms
from distboost.weighting import Reduction, Scale, Weighting

ERROR_UNIT = 2.0**22  # weights of misclassified rows are counted in units of 1/ERROR_UNIT


class Splits(NamedTuple):
    """Splits to apply: the rows of node[m] part between left[m] and right[m]."""

    node: np.ndarray
    feature: np.ndarray
    bin: np.ndarray
    missing_left: np.ndarray
    left: np.ndarray
    right: np.ndarray

    @classmethod
    def empty(cls) -> Splits:
        z = np.zeros(0, np.int64)
        return cls(z, z, z, z.astype(bool), z, z)

    @classmethod
    def of(cls, rows: list[tuple]) -> Splits:
        if not rows:
            return cls.empty()
        columns = [np.array(column) for column in zip(*rows, strict=True)]
        node, feature, bin, missing_left, left, right = columns
        return cls(node, feature, bin, missing_left.astype(bool), left, right)


@dataclass(frozen=True)
class Subsample:
    """The rows whose random number under `key` is below `fraction`."""

    key: np.uint64
    fraction: float


@dataclass(frozen=True)
class RootQuestion:
    """Compute the row statistics of a new round; all rows are in node 0 of a new tree."""

    round: int
    weighting: Weighting
    scale: Scale
    subsample: Subsample | None
    weight_unit: float  # of the rows' own weights, if they are summed too: else 0


@dataclass(frozen=True)
class HistogramQuestion:
    """Apply the splits, then sum the statistics of the nodes `build`, over `features`."""

    root: RootQuestion | None
    splits: Splits
    build: np.ndarray
    features: np.ndarray


@dataclass(frozen=True)
class SumsQuestion:
    """Apply the splits, then sum over the rows of each leaf."""

    round: int
    splits: Splits
    leaves: np.ndarray
    reduction: Reduction
    scale: Scale


@dataclass(frozen=True)
class UpdateQuestion:
    """Apply the splits, add the leaves' values to the scores, and report the losses. Done once per round, however often asked."""

    round: int
    splits: Splits
    leaves: np.ndarray
    tree: BinnedTree
    values: np.ndarray
    weighting: Weighting
    scales: tuple[Scale, ...]  # for the training rows, then for the evaluation rows


class BinnedTree(NamedTuple):
    """A tree that decides by bins. Children below 0 are leaves: ~child."""

    feature: np.ndarray
    bin: np.ndarray
    missing_left: np.ndarray
    left: np.ndarray
    right: np.ndarray


class Partial(NamedTuple):
    """A part of an answer: parts combine by adding sums and taking the larger maxima, in any order."""

    sums: np.ndarray  # int64
    maxima: np.ndarray  # float64

    def combined(self, other: Partial) -> Partial:
        return Partial(self.sums + other.sums, np.maximum(self.maxima, other.maxima))


class Losses(NamedTuple):
    """One set of rows after a round."""

    weight: float  # mean of the rows' weights under the algorithm's weighting
    error: float  # fraction of misclassified rows


class RowCounts(NamedTuple):
    """The size of a set of rows, those of weight 0 left out."""

    n_rows: int
    weight_units: int  # the total weight, in units of 1/ERROR_UNIT
    weighted: bool  # some row weighs other than 1

    @property
    def weight(self) -> float:
        return self.weight_units / ERROR_UNIT


class Rows(ABC):
    """The training rows (and evaluation rows) of one training, wherever they are.

    Parameters
    ----------
    n_bins : ndarray of shape (n_features,)
        Bins per feature, the one for missing values not counted.
    n_classes : int
    counts : tuple of RowCounts
        Of the training rows and, if there are any, of the evaluation rows.
    threads : Threads
        For the coordinator's own work.

    Attributes
    ----------
    calls : Counter
        Questions asked so far, by kind: each is one round trip on a cluster.
    """

    def __init__(self, n_bins: np.ndarray, n_classes: int, counts: tuple[RowCounts, ...], threads: Threads):
        self.n_bins = n_bins
        self.n_features = len(n_bins)
        self.n_classes = n_classes
        self.counts = counts
        self.threads = threads
        self.calls: Counter[str] = Counter()
        self.round = 0
        self._queue = Splits.empty()

    # What a runtime supplies.

    @abstractmethod
    def _histogram(self, question: HistogramQuestion, histograms: Histograms, slots: list[int]) -> None:
        """Fills the slots with the histograms of ``question.build``, summed over all shards."""

    @abstractmethod
    def _reduce(self, kind: str, question: SumsQuestion | UpdateQuestion) -> Partial:
        """The combined answers of all shards' methods named `kind`."""

    @abstractmethod
    def passes(self) -> dict[str, int]:
        """Rows visited so far by all shards, by kind of loop."""

    @abstractmethod
    def close(self) -> None:
        """Frees what the rows hold: blocks, threads, actors."""

    # A training.

    def begin(self, weighting: Weighting) -> None:
        """All scores are 0."""
        self.weighting = weighting
        self._shifts = [weighting.initial_shift(self.n_classes)] * len(self.counts)

    # A round.

    def start_round(
        self, features: np.ndarray, subsample: Subsample | None = None, weight_unit: float = 0.0
    ) -> None:
        """The next histogram is that of the root of a new tree, over `features`; a weight_unit adds the rows' own weights."""
        self.round += 1
        self._features = features.astype(np.int64)
        fine = self._fine_scale()
        bits = self.weighting.histogram_bits
        scale = fine if bits is None else Scale(fine.shift, min(bits, fine.bits))
        self.histogram_scale = scale
        self._root = RootQuestion(self.round, self.weighting, scale, subsample, weight_unit)
        self._queue = Splits.empty()

    def split(self, splits: Splits) -> None:
        """The splits travel with the next question: they cost no round trip."""
        self._queue = Splits(*(np.concatenate(pair) for pair in zip(self._queue, splits, strict=True)))

    def _take_queue(self) -> Splits:
        queue, self._queue = self._queue, Splits.empty()
        return queue

    def histogram(self, nodes: list[int], histograms: Histograms, slots: list[int]) -> None:
        """Sums the round's statistics over the rows of each node, by feature and bin, into the slots."""
        self.calls["histogram"] += 1
        root, self._root = self._root, None  # type: ignore[assignment]
        question = HistogramQuestion(root, self._take_queue(), np.array(nodes, np.int64), self._features)
        self._histogram(question, histograms, slots)

    def sums(self, reduction: Reduction, leaves: np.ndarray) -> np.ndarray:
        """The reduction over the rows of each leaf: real numbers, in units of e^shift."""
        self.calls["sums"] += 1
        scale = self._fine_scale()
        question = SumsQuestion(self.round, self._take_queue(), leaves, reduction, scale)
        return scale.real(self._reduce("sums", question).sums)

    def update(self, tree: BinnedTree, leaves: np.ndarray, values: np.ndarray) -> list[Losses]:
        """Adds values[l] to the scores of the rows in leaf l; what the training and the evaluation rows then lose."""
        self.calls["update"] += 1
        growth = self.weighting.growth(values)
        scales = tuple(
            Scale.fine(shift + growth, count.weight)
            for shift, count in zip(self._shifts, self.counts, strict=True)
        )
        question = UpdateQuestion(
            self.round, self._take_queue(), leaves, tree, values, self.weighting, scales
        )
        answer = self._reduce("update", question)
        losses = []
        for m, (scale, count) in enumerate(zip(scales, self.counts, strict=True)):
            errors, *weights = answer.sums[m]
            total = self.weighting.total(scale.real(np.array(weights)))
            # By logarithms: e^shift alone may be beyond what a float holds.
            mean = math.exp(math.log(total) + scale.shift - math.log(count.weight)) if total > 0 else 0.0
            losses.append(Losses(mean, int(errors) / count.weight_units))
            self._shifts[m] = scale.shift + self.weighting.log_largest(answer.maxima[m])
        return losses

    def _fine_scale(self) -> Scale:
        return Scale.fine(self._shifts[0], self.counts[0].weight)

    # Between trainings.

    def replay(self, tree: BinnedTree, values: np.ndarray) -> list[Losses]:
        """An earlier round again: its tree is known."""
        self.round += 1
        self._queue = Splits.empty()
        return self.update(tree, np.zeros(0, np.int64), values)
