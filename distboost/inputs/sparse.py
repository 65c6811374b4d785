"""Matrices and arrays of scipy.sparse in memory. They are held as CSR: others are converted once."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse, vstack

from distboost.data.source import Source
from distboost.data.sparse import SparseSource, sound
from distboost.errors import DataError
from distboost.inputs.array import NUMBERS, checked_numbers
from distboost.inputs.base import Input, NearInput


class SparseInput(NearInput):
    """A matrix or an array of scipy.sparse. An entry that is not stored is 0."""

    def __init__(self, data: Any, place: str, names: np.ndarray | None = None):
        super().__init__(sound(data, place) if data.ndim == 2 else data, place, names)

    @classmethod
    def recognises(cls, data: Any) -> bool:
        return bool(issparse(data))

    @property
    def n_rows(self) -> int:
        n: int = self.data.shape[0]
        return n

    def first(self, n: int) -> SparseInput:
        return SparseInput(self.data[:n], self.place, self._names)

    def joined(self, other: SparseInput) -> SparseInput:
        return SparseInput(vstack([self.data, other.data], format="csr"), self.place, self._names)

    def source(self, of_features: bool) -> Source:
        if not of_features or self.data.ndim != 2:
            raise DataError(
                f"{self.place} is a {type(self.data).__name__} of the shape {self.data.shape}.",
                remedy="Only features may be sparse, of two dimensions: pass ``toarray()`` of it.",
                where=self.place,
            )
        return SparseSource(self.data, self.place)

    def checked(self, estimator: Any) -> Input:
        kinds = [
            *NUMBERS["dtype"],
            np.dtype(bool),
        ]  # of entries that are stored twice, booleans do not add up as numbers do
        found = checked_numbers(self.data, self.place, estimator, accept_sparse="csr", dtype=kinds)
        return SparseInput(found, self.place, self._names)

    def checked_labels(self) -> Input:
        return self
