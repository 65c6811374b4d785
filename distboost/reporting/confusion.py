"""The confusion matrix as a table of few classes, or as a picture of many, and the largest confusions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.sparse import coo_array

from distboost.evaluation.results import Confusion
from distboost.reporting.charts import ValueAxis
from distboost.reporting.numbers import amount, fraction, name

MOST_WRITTEN = 40  # classes whose counts are written; a larger matrix is a picture
MOST_CELLS = 400  # on a side of the picture; of more classes, neighbours share a cell
MOST_LISTED = 20
SHADES = 8
LARGEST_RANGE = 1e4  # of shaded counts: smaller ones look like the smallest


class MatrixCell(NamedTuple):
    """A cell of the written matrix: its text, its shade ("" or a class of the style) and its tooltip."""

    text: str
    shade: str
    about: str


class Mistake(NamedTuple):
    """A pair of classes that is confused, and how often."""

    true: str
    predicted: str
    rows: str
    share: str
    fraction: float


@dataclass(frozen=True)
class MatrixTable:
    """The matrix as a table.

    Attributes
    ----------
    names : list of str
    upright : bool
        Whether the names above the columns are written from top to bottom, as they are long.
    rows : list of (str, list of Cell)
    range : str
        The smallest and the largest count of a confusion; empty if there is none.
    """

    names: list[str]
    upright: bool
    rows: list[tuple[str, list[MatrixCell]]]
    range: str
    is_drawn: ClassVar[bool] = False


@dataclass(frozen=True)
class Picture:
    """The matrix as a picture.

    Attributes
    ----------
    side : int
        Cells on a side.
    step : int
        Classes of a cell on a side.
    paths : list of (str, str)
        For each shade, its class of the style and the SVG path through its cells.
    ticks : list of int
        Cells with grid lines.
    data : dict
        What the tooltips say: the names of the cells, and of each row the columns and counts in turn.
    range : str
        As of `MatrixTable`.
    """

    side: int
    step: int
    paths: list[tuple[str, str]]
    ticks: list[int]
    data: dict[str, Any]
    range: str
    is_drawn: ClassVar[bool] = True


def matrix(found: Confusion) -> MatrixTable | Picture:
    """Return the confusion matrix as the report shows it."""
    return _written(found) if len(found.classes) <= MOST_WRITTEN else _picture(found)


def mistakes(found: Confusion) -> list[Mistake]:
    """Return the most frequent confusions, with the fraction of their class beside the largest of these fractions."""
    cells = found.counts[:-1].tocoo()
    totals = found.counts[:-1].sum(axis=1)
    wrong = np.flatnonzero(cells.row != cells.col)
    first = wrong[np.argsort(-cells.data[wrong], kind="stable")[:MOST_LISTED]]
    names = [name(label) for label in found.classes]
    parts = cells.data[first] / totals[cells.row[first]]
    return [
        Mistake(names[i], names[j], amount(count), fraction(part), float(part / parts.max()))
        for i, j, count, part in zip(
            cells.row[first], cells.col[first], cells.data[first], parts, strict=True
        )
    ]


def _shades(cells: coo_array, totals: np.ndarray) -> np.ndarray:
    """Return a shade from 1 to SHADES for each cell.

    On the diagonal it is the fraction of the class that is right. Off it, it is the logarithm of the count, so that one mistake
    differs from six whatever the size of the class.
    """
    shades = np.ceil(SHADES * cells.data / totals[cells.row])
    wrong = cells.row != cells.col
    counts = cells.data[wrong].astype(np.float64)
    if len(counts):
        least = max(counts.min(), counts.max() / LARGEST_RANGE)
        scale = np.log(counts.max() / least)
        height = np.log(np.maximum(counts, least) / least) / (scale or 1.0)
        shades[wrong] = np.minimum(np.floor(1 + SHADES * height), SHADES) if scale else (SHADES + 1) // 2
    found: np.ndarray = shades.astype(int)
    return found


def _kinds(cells: coo_array, totals: np.ndarray) -> list[str]:
    letters = np.where(cells.row == cells.col, "r", "w")
    return [
        f"{letter}{shade}" for letter, shade in zip(letters, _shades(cells, totals).tolist(), strict=True)
    ]


def _written(found: Confusion) -> MatrixTable:
    names = [name(label) for label in found.classes]
    counts = found.counts[:-1].tocoo()
    counts.eliminate_zeros()
    totals = np.asarray(found.counts[:-1].sum(axis=1), np.float64)
    rows = [(one, [MatrixCell("", "", "") for _ in names]) for one in names]
    for i, j, count, kind in zip(counts.row, counts.col, counts.data, _kinds(counts, totals), strict=True):
        about = f"{names[i]} predicted as {names[j]}: {amount(count)}, {fraction(count / totals[i])} of {names[i]}"
        rows[i][1][j] = MatrixCell(amount(count), kind, about)
    return MatrixTable(names, max(map(len, names)) > 3, rows, _range(counts))


def _picture(found: Confusion) -> Picture:
    n = len(found.classes)
    step = -(-n // MOST_CELLS)
    side = -(-n // step)
    counts = found.counts[:-1].tocoo()
    places = (counts.row // step, counts.col // step)
    joined = (
        coo_array((counts.data, places), (side, side)).tocsr().tocoo()
    )  # cells of several classes are added
    joined.eliminate_zeros()
    totals = np.asarray(joined.sum(axis=1), np.float64)
    ticks = [int(at) for at in ValueAxis.within("", 0, side).at if 0 < at < side]
    return Picture(side, step, _paths(joined, totals), ticks, _data(found, joined, step), _range(joined))


def _range(cells: coo_array) -> str:
    wrong = cells.data[cells.row != cells.col]
    return f"from {amount(wrong.min())} to {amount(wrong.max())}" if len(wrong) else ""


def _paths(cells: coo_array, totals: np.ndarray) -> list[tuple[str, str]]:
    """A dash of length 1 for each cell; many cells share one path, as they would take ten times as much as elements."""
    paths: dict[str, list[str]] = {}
    for i, j, kind in zip(cells.row.tolist(), cells.col.tolist(), _kinds(cells, totals), strict=True):
        paths.setdefault(kind, []).append(f"M{j} {i}h1")
    return [(kind, "".join(dashes)) for kind, dashes in sorted(paths.items())]


def _data(found: Confusion, cells: coo_array, step: int) -> dict[str, Any]:
    rows: list[list[float]] = [[] for _ in range(cells.shape[0])]
    for i, j, count in zip(cells.row.tolist(), cells.col.tolist(), cells.data.tolist(), strict=True):
        rows[i] += [j, round(count, 6)]
    names = [name(label) for label in found.classes[::step]]
    if step > 1:
        last = [
            name(found.classes[min(at + step, len(found.classes)) - 1])
            for at in range(0, len(found.classes), step)
        ]
        names = [f"{a} to {b}" for a, b in zip(names, last, strict=True)]
    return {"names": names, "rows": rows}
