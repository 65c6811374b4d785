"""The fitted ensemble of localized similarities."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from distboost.errors import DataError
from distboost.kernels import similarity
from distboost.kernels.similarity import CONSTANT, ONE_POINT, TWO_POINT, Places
from distboost.model.damage import Intact
from distboost.rows.interface import Step
from distboost.similarity.search import Similarity
from distboost.threads import Threads

_ROWS_AT_ONCE = 4096

# One entry per similarity, in their order; (T,) but for the anchors (T, 2, D) and the values (T, K).
_ARRAYS = {
    "kind": np.int8,
    "sign": np.bool_,
    "anchors": np.float64,
    "tau": np.float64,
    "values": np.float64,
}


class SimilarityEnsemble:
    """Similarities, one per round, that add multiples of their values to the scores.

    Parameters
    ----------
    n_features, n_scores : int
    """

    def __init__(self, n_features: int, n_scores: int):
        self.n_features = n_features
        self.n_scores = n_scores
        self._learners: list[tuple[Similarity, np.ndarray]] = []
        self._joined: dict[str, np.ndarray] | None = None
        self._places: Places | None = None

    def __len__(self) -> int:
        """Rounds."""
        return len(self._learners)

    def append(
        self, similarities: Sequence[Similarity], values: Sequence[np.ndarray], edges: list[np.ndarray]
    ) -> None:
        """Adds a round; similarities read raw values, whatever the edges of the bins are."""
        self._set([*self._learners, *zip(similarities, values, strict=True)])

    def rewrite(self, values: Sequence[np.ndarray]) -> None:
        """New values for every similarity."""
        self._set([(found, v) for (found, _), v in zip(self._learners, values, strict=True)])

    def copy(self, n_rounds: int | None = None) -> SimilarityEnsemble:
        """An ensemble of the same similarities, or of those of the first rounds, to which others can be added."""
        return self.part(0, len(self) if n_rounds is None else n_rounds)

    def part(self, first: int, last: int) -> SimilarityEnsemble:
        """An ensemble of the similarities of rounds first .. last - 1, as far as there are any."""
        other = SimilarityEnsemble(self.n_features, self.n_scores)
        other._set(self._learners[first:last])
        return other

    def begins_with(self, other: Any) -> bool:
        """Whether the rounds of the other, an ensemble of the same kind, are the first of these."""
        alike = self.n_scores == other.n_scores and len(other) <= len(self)
        return alike and all(a is b for a, b in zip(self._learners, other._learners, strict=False))

    def extend(self, other: Any) -> None:
        """Adds the rounds of the other, an ensemble of the same kind."""
        self._set([*self._learners, *other._learners])

    def become(self, other: Any) -> None:
        """Holds the similarities of the other, an ensemble of the same kind."""
        self._set(list(other._learners))

    def _set(self, learners: list[tuple[Similarity, np.ndarray]]) -> None:
        self._learners, self._joined, self._places = learners, None, None

    def steps(self, rounds: Iterable[int], edges: list[np.ndarray]) -> list[Step]:
        """What these rounds add to the scores."""
        return [found.step(values) for found, values in (self._learners[number] for number in rounds)]

    def scores(
        self, X: np.ndarray, threads: Threads, first: int = 0, scores: np.ndarray | None = None, last=None
    ):
        """F of the rows X (n, D), shape (n, n_scores): rounds first .. last - 1 added to `scores` (zeros if not given)."""
        if X.shape[1] != self.n_features:
            raise DataError(
                f"X has {X.shape[1]} features, but the model is expecting {self.n_features} features as input."
            )
        a = self.arrays()
        if self._places is None:
            self._places = Places.of(a["kind"], a["anchors"], a["tau"])
        found = self._places
        F = np.zeros((len(X), self.n_scores)) if scores is None else scores
        last = len(self) if last is None else last

        def add(start: int) -> None:
            rows = slice(start, start + _ROWS_AT_ONCE)
            similarity.add_similarities(X[rows], *found, a["sign"], a["values"], first, last, F[rows])

        threads.map(add, range(0, len(X), _ROWS_AT_ONCE))
        return F

    def gains(self) -> tuple[np.ndarray, np.ndarray]:
        """No features: a similarity has no gain on one."""
        return np.zeros(0, np.int32), np.zeros(0)

    def arrays(self) -> dict[str, np.ndarray]:
        """All similarities, one after another."""
        if self._joined is None:
            found = [one for one, _ in self._learners]
            columns = {
                "kind": [one.kind for one in found],
                "sign": [one.sign for one in found],
                "anchors": np.array([one.anchors for one in found]).reshape(-1, 2, self.n_features),
                "tau": [one.tau for one in found],
                "values": np.array([v for _, v in self._learners]).reshape(-1, self.n_scores),
            }
            self._joined = {name: np.array(columns[name], dtype) for name, dtype in _ARRAYS.items()}
        return self._joined

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], n_features: int, n_scores: int) -> SimilarityEnsemble:
        """The ensemble of these arrays; raises ModelFormatError unless they describe similarities."""
        _check_similarities(arrays, n_features, n_scores)
        ensemble = cls(n_features, n_scores)
        rows = zip(*(arrays[name] for name in _ARRAYS), strict=True)
        ensemble._learners = [
            (Similarity(int(kind), anchors, float(tau), bool(sign)), values[None])
            for kind, sign, anchors, tau, values in rows
        ]
        return ensemble


def _check_similarities(arrays: dict[str, np.ndarray], n_features: int, n_scores: int) -> None:
    require = Intact("similarities")
    require.arrays(arrays, _ARRAYS)
    kind, anchors, tau = arrays["kind"], arrays["anchors"], arrays["tau"]
    shapes = {"kind": (), "sign": (), "anchors": (2, n_features), "tau": (), "values": (n_scores,)}
    for name, rest in shapes.items():
        require(
            arrays[name].shape == (kind.size, *rest), f"array {name!r} has the shape {arrays[name].shape}"
        )
    require(np.isin(kind, (CONSTANT, ONE_POINT, TWO_POINT)).all(), "a kind")
    require(np.isfinite(tau).all() and ((tau > 0) == (kind == ONE_POINT)).all(), "a tau")
    require((tau >= 0).all(), "a tau")
    require(not np.isinf(anchors).any(), "an anchor is infinite")
    require(np.isfinite(arrays["values"]).all(), "a value is not finite")
