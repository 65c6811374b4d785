"""The ensemble of localized similarities."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial

import numpy as np

from distboost.kernels import similarity
from distboost.kernels.similarity import CONSTANT, ONE_POINT, TWO_POINT, SimilarityArrays
from distboost.model.damage import Requirement
from distboost.model.ensemble import Ensemble, kernel_rows
from distboost.rows.messages import Step
from distboost.similarity.search import Similarity

# One entry per similarity, in order. The shape is (T,), except (T, 2, D) for the anchors and (T, K) for the values.
_ARRAYS = {
    "kind": np.int8,
    "sign": np.bool_,
    "anchors": np.float64,
    "tau": np.float64,
    "values": np.float64,
}


class SimilarityEnsemble(Ensemble):
    """Similarities, one per round. Each adds multiples of its values, (1, n_scores) float64, to the scores."""

    def append(
        self, learners: Sequence[Similarity], values: Sequence[np.ndarray], edges: list[np.ndarray]
    ) -> None:
        """Append a round. Similarities read raw values and ignore the bin edges."""
        self._set([*self._learners, *zip(learners, values, strict=True)])

    def steps(self, rounds: Iterable[int], edges: list[np.ndarray]) -> list[Step]:
        """Return the steps of these rounds, which add to the scores."""
        return [found.step(values) for found, values in (self._learners[number] for number in rounds)]

    def adder(self, X: np.ndarray, first: int, last: int) -> Callable[[int, int, np.ndarray], None]:
        """Return a function that adds learners to the scores of rows."""
        a = self.arrays()
        fixed = kernel_rows(X), *self._kernel_arrays, a["sign"], a["values"]
        return partial(similarity.add_similarities, *fixed)

    def _set(self, learners: list[tuple[Similarity, np.ndarray]]) -> None:
        super()._set(learners)
        self.__dict__.pop("_kernel_arrays", None)

    @cached_property
    def _kernel_arrays(self) -> SimilarityArrays:
        a = self.arrays()
        return SimilarityArrays.of(a["kind"], a["anchors"], a["tau"])

    def gains(self) -> tuple[np.ndarray, np.ndarray]:
        """Return empty arrays: a similarity has no gain per feature."""
        return np.zeros(0, np.int32), np.zeros(0)

    def _joined(self) -> dict[str, np.ndarray]:
        found = [one for one, _ in self._learners]
        columns = {
            "kind": [one.kind for one in found],
            "sign": [one.sign for one in found],
            "anchors": np.array([one.anchors for one in found]).reshape(-1, 2, self.n_features),
            "tau": [one.tau for one in found],
            "values": np.array([v for _, v in self._learners]).reshape(-1, self.n_scores),
        }
        return {name: np.array(columns[name], dtype) for name, dtype in _ARRAYS.items()}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], n_features: int, n_scores: int) -> SimilarityEnsemble:
        """Make the ensemble of these arrays; raise ModelFormatError if they do not describe similarities."""
        _check_similarities(arrays, n_features, n_scores)
        ensemble = cls(n_features, n_scores)
        rows = zip(*(arrays[name] for name in _ARRAYS), strict=True)
        ensemble._learners = [
            (Similarity(int(kind), anchors, float(tau), bool(sign)), values[None])
            for kind, sign, anchors, tau, values in rows
        ]
        return ensemble


def _check_similarities(arrays: dict[str, np.ndarray], n_features: int, n_scores: int) -> None:
    require = Requirement("similarities")
    require.arrays(arrays, _ARRAYS)
    kind, anchors, tau = arrays["kind"], arrays["anchors"], arrays["tau"]
    shapes = {"kind": (), "sign": (), "anchors": (2, n_features), "tau": (), "values": (n_scores,)}
    for name, rest in shapes.items():
        require(
            arrays[name].shape == (kind.size, *rest), f"array {name!r} has the shape {arrays[name].shape}"
        )
    require(np.isin(kind, (CONSTANT, ONE_POINT, TWO_POINT)).all(), "a kind is unknown")
    require(np.isfinite(tau).all() and ((tau > 0) == (kind == ONE_POINT)).all(), "a tau is invalid")
    require((tau >= 0).all(), "a tau is negative")
    require(not np.isinf(anchors).any(), "an anchor is infinite")
    require(np.isfinite(arrays["values"]).all(), "a value is not finite")
