"""The tables of the labelling benchmark: pools whose labels are known, and rows to measure the error on."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import zarr
from sklearn.datasets import make_classification

from tests.benchmarks.datasets import FOLDER, Split, official

TEST_ROWS = 2000  # at most
RARE, RARE_SHARE = 5, 0.01
COPIES, NOISE = 10, 1e-3  # of each row; of a feature's standard deviation
SORTED_CHUNK = 256  # rows


class Pool(NamedTuple):
    """A table: rows to choose from and to test on, and what to count among the labelled rows."""

    split: Split
    pool: Any  # what `QueryByCommittee` reads
    categorical: list[int] | None = None
    kinds: np.ndarray | None = None  # of each row: count the distinct ones; -1 does not count


def _of_uci(name: str) -> Pool:
    return _plain(official(name))


def _plain(split: Split) -> Pool:
    chosen = np.random.default_rng(0).permutation(len(split.y_test))[:TEST_ROWS]
    split = split._replace(X_test=split.X_test[chosen], y_test=split.y_test[chosen])
    return Pool(split, split.X)


def _made(n_rows: int, n_features: int, **options: Any) -> Pool:
    X, y = make_classification(n_rows + TEST_ROWS, n_features, random_state=0, **options)
    return _plain(Split(X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:]))


def _categorical() -> Pool:
    """60 bases of DNA, each one of eight letters."""
    with np.load(FOLDER / "splice.npz") as file:
        X, y, n = file["X"].astype(np.float64), file["y"].astype(np.int64), int(file["n_train"])
    return _plain(Split(X[:n], y[:n], X[n:], y[n:]))._replace(categorical=[*range(X.shape[1])])


def _rare() -> Pool:
    """Pendigits in whose pool one digit is rare. It is as frequent as others in the test rows."""
    split = official("pendigits")
    others, rare = (np.flatnonzero(found) for found in (split.y != RARE, split.y == RARE))
    kept = np.sort(np.concatenate([others, rare[: int(RARE_SHARE * len(others))]]))
    table = _plain(split._replace(X=split.X[kept], y=split.y[kept]))
    return table._replace(kinds=np.where(table.split.y == RARE, np.arange(len(kept)), -1))


def _copies() -> Pool:
    """Rows of pendigits, each ten times with a little noise."""
    split, rng = official("pendigits"), np.random.default_rng(0)
    kinds = rng.permutation(np.repeat(rng.permutation(len(split.y))[: len(split.y) // COPIES], COPIES))
    X = split.X[kinds] + NOISE * split.X.std(axis=0) * rng.standard_normal((len(kinds), split.X.shape[1]))
    return _plain(split._replace(X=X, y=split.y[kinds]))._replace(kinds=kinds)


def _sorted() -> Pool:
    """Satimage by class, in a zarr array of chunks."""
    table = _of_uci("satimage")
    order = np.argsort(table.split.y, kind="stable")
    split = table.split._replace(X=table.split.X[order], y=table.split.y[order])
    chunks = (SORTED_CHUNK, split.X.shape[1])
    return Pool(split, zarr.create_array(zarr.storage.MemoryStore(), data=split.X, chunks=chunks))


TABLES: dict[str, Callable[[], Pool]] = {
    **{name: partial(_of_uci, name) for name in ("pendigits", "satimage", "optdigits", "letter")},
    "wide": partial(_made, 4000, 100, n_informative=10, n_redundant=10, n_classes=4, class_sep=1.5),
    "categorical": _categorical,
    "noisy": partial(_made, 5000, 20, n_informative=8, n_redundant=4, n_classes=5, flip_y=0.1, class_sep=1.5),
    "rare": _rare,
    "near-copies": _copies,
    "sorted": _sorted,
}
