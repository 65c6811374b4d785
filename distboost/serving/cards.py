"""Cards: what the page shows of a row of the pool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from distboost.active.pool import Pool, sampled_rows
from distboost.io.text import visible
from distboost.kernels.random import STOP_SET, key
from distboost.serving.companions import Companion, Images, ShownValue

SAMPLE_ROWS, SAMPLE_VALUES = 10_000, 2**23  # of the pool, that percentiles follow from
N_NEAREST = 3  # labelled rows beside a card
NEAR_VALUES = 2**23  # of the labelled rows that a card is compared with, the latest ones


class Percentiles:
    """Where values lie among those of the pool.

    Parameters
    ----------
    sample : ndarray of shape (n, n_features)
        Rows of the pool.
    """

    def __init__(self, sample: np.ndarray):
        self._sorted = np.sort(sample.astype(np.float64), axis=0)  # NaN comes last
        self._known = np.count_nonzero(~np.isnan(self._sorted), axis=0)
        self.low = float(np.nanmin(sample, initial=0))
        self.high = float(np.nanmax(sample, initial=0))

    def of(self, X: np.ndarray) -> np.ndarray:
        """Return the share of smaller values, and of half the equal ones, (n, n_features) float64; NaN for missing values."""
        found = np.full(X.shape, np.nan)
        for d, known in enumerate(self._known):
            if known:
                values = self._sorted[:known, d]
                found[:, d] = np.searchsorted(values, X[:, d]) + np.searchsorted(
                    values, X[:, d], side="right"
                )
                found[:, d] /= 2 * known
        found[np.isnan(X)] = np.nan
        return found


class CardMaker:
    """Makes cards. One thread uses it.

    Parameters
    ----------
    pool : Pool
    home : BoostingClassifier
        It says where rows are read.
    companion : Companion or None
        Columns to show beside the values.
    image : str or None
        The shape of an image, or where images are.
    seed : int
    """

    def __init__(self, pool: Pool, home: Any, companion: Companion | None, image: str | None, seed: int):
        self._pool, self._home, self._companion = pool, home, companion
        size = max(min(SAMPLE_ROWS, SAMPLE_VALUES // pool.n_features, pool.n_rows), 1)
        rows = sampled_rows(pool, np.zeros(0, np.int64), key(seed, STOP_SET), size)
        self._percentiles = Percentiles(self._taken(rows))
        low, high = self._percentiles.low, self._percentiles.high
        self._images = None if image is None else Images(image, pool.n_rows, pool.n_features, low, high)
        self._places: dict[int, np.ndarray] = {}  # percentiles of rows, with 0.5 for missing values
        self._n_compared = max(NEAR_VALUES // pool.n_features, N_NEAREST + 1)

    @property
    def setup(self) -> dict[str, Any]:
        """What holds for all cards."""
        names = self._pool.names
        listed = [f"x{d}" for d in range(self._pool.n_features)] if names is None else names.tolist()
        shape = None if self._images is None else self._images.shape
        return {"features": [visible(name) for name in listed], "image": shape, "rows": self._pool.n_rows}

    def _taken(self, rows: np.ndarray) -> np.ndarray:
        with self._pool.runtime(self._home) as runtime:
            values: np.ndarray = self._pool.take(rows, runtime, coded=True).data
        return values

    def cards(self, rows: list[int], labelled: Mapping[int, Any]) -> list[dict[str, Any]]:
        """Return the cards of rows, each with the nearest of the labelled ones."""
        if not rows:
            return []
        near = self._nearest(rows, labelled)
        every = np.array(sorted({*rows, *(row for found in near for row in found)}), np.int64)
        X = self._taken(every)
        percentiles = self._percentiles.of(X)
        pixels: list[str | None] = [None] * len(every)
        if self._images is not None:
            with self._pool.runtime(self._home) as runtime:
                pixels = [*self._images.of(every, X, runtime)]
        place = {row: i for i, row in enumerate(every.tolist())}

        def card(row: int) -> dict[str, Any]:
            i = place[row]
            return {"row": row, "values": _numbers(X[i]), "image": pixels[i]}

        return [
            {
                **card(row),
                "percent": _numbers(np.round(100 * percentiles[place[row]], 1)),
                "shown": [one._asdict() for one in self._shown(row)],
                "near": [{**card(other), "label": str(labelled[other])} for other in found],
            }
            for row, found in zip(rows, near, strict=True)
        ]

    def _shown(self, row: int) -> list[ShownValue]:
        if self._companion is None:
            return []
        pairs = zip(self._companion.names, self._companion.texts(row), strict=True)
        return [ShownValue.of(visible(name), value) for name, value in pairs]

    def picture_name(self, row: int, column: int) -> str | None:
        """Return what a column names as a picture; None if it does not."""
        shown = self._shown(row)
        return shown[column].text if 0 <= column < len(shown) and shown[column].kind == "picture" else None

    def _nearest(self, rows: list[int], labelled: Mapping[int, Any]) -> list[list[int]]:
        """Return for each row the labelled ones whose percentiles differ least on average."""
        others = np.array([*labelled][-self._n_compared :], np.int64)
        wanted = {*rows, *others.tolist()}
        new = [row for row in wanted if row not in self._places]
        if new:
            found = np.nan_to_num(self._percentiles.of(self._taken(np.array(new, np.int64))), nan=0.5)
            kept = {row: place for row, place in self._places.items() if row in wanted}
            self._places = kept | dict(zip(new, found.astype(np.float32), strict=True))
        if not len(others):
            return [[] for _ in rows]
        known = np.stack([self._places[row] for row in others.tolist()])
        nearest = []
        for row in rows:
            distance = np.abs(known - self._places[row]).mean(axis=1)
            order = np.argsort(distance, kind="stable")[: N_NEAREST + 1]
            nearest.append([one for one in others[order].tolist() if one != row][:N_NEAREST])
        return nearest


def _numbers(values: np.ndarray) -> list[float | None]:
    """Return numbers as JSON has them: null for missing ones, and the shortest text of a float32."""
    return [None if np.isnan(value) else float(str(value)) for value in values]
