"""Results by name, which print as a table, and as JSON; the confusion matrix, and what follows from it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import coo_array, csr_array

from distboost.data.labels import plain
from distboost.evaluation.sums import Sums
from distboost.rows.exact import real


class Results(Mapping[str, Any]):
    """Values by name, which do not change. As text it is a table, of the values that `_shown` returns."""

    def __init__(self, values: Mapping[str, Any]):
        self._values = dict(values)

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        lines = self._shown()
        width = max(map(len, lines), default=0)
        return "\n".join(f"{name:{width}}  {text}" for name, text in lines.items())

    def _shown(self) -> dict[str, str]:
        """Return the values that the table has, as text."""
        return {name: str(value) for name, value in self.items()}


def as_json(value: Any) -> str:
    """Return arrays, numbers and texts as JSON; numbers that are not defined are null."""
    return json.dumps(_plain(value), allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if hasattr(value, "toarray"):
        value = value.toarray()
    if isinstance(value, np.ndarray):
        return _plain(value.tolist() if value.ndim > 1 else plain(value))
    if isinstance(value, np.generic):
        return _plain(value.item())
    return None if isinstance(value, float) and not math.isfinite(value) else value


class Confusion(NamedTuple):
    """The confusion matrix: how often each class was predicted as each class.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
    counts : sparse array of shape (n_classes + 1, n_classes), int64; float64 if rows are weighted
        Rows are true classes, the last one for labels that are not classes of the model. Columns are predicted classes.
    """

    classes: np.ndarray
    counts: csr_array

    @classmethod
    def of(cls, classes: np.ndarray, sums: Sums, weighted: bool) -> Confusion:
        """Return the confusion matrix of these sums over rows."""
        n = len(classes)
        cells = real(sums["confusion"])
        counts = cells.data if weighted else cells.data.astype(np.int64)
        return cls(classes, csr_array(coo_array((counts, divmod(cells.col, n)), (n + 1, n))))

    @property
    def weighted(self) -> bool:
        """Whether rows have weights."""
        return bool(self.counts.dtype.kind == "f")

    @property
    def n_unknown(self) -> int:
        """The number of rows whose label is not a class of the model."""
        return int(self.counts[[-1]].sum())

    @property
    def accuracy(self) -> float:
        """The fraction of correct predictions."""
        return float(self.counts.diagonal().sum() / self.counts.sum())

    def per_class(self) -> dict[str, np.ndarray]:
        """Return precision, recall, F1 and the number of rows of each class."""
        from sklearn.metrics import precision_recall_fscore_support

        cells = self.counts.tocoo()
        values = precision_recall_fscore_support(
            cells.row,
            cells.col,
            labels=np.arange(len(self.classes)),
            sample_weight=cells.data,
            zero_division=0,
        )
        return dict(zip(("precision", "recall", "f1", "rows"), values, strict=True))

    def worst(self, most: int) -> list[tuple[str, str, int]]:
        """Return the most frequent mistakes: true class, predicted class, count."""
        cells = self.counts.tocoo()
        wrong = np.flatnonzero((cells.row != cells.col) & (cells.row < len(self.classes)))
        first = wrong[np.argsort(-cells.data[wrong], kind="stable")[:most]]
        names = [str(label) for label in self.classes]
        return [(names[cells.row[i]], names[cells.col[i]], int(cells.data[i])) for i in first]
