"""A tree as a picture: the root on the left, the leaves on the right, one below the other."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from distboost.errors import DataError
from distboost.estimators.base import BoostingClassifier
from distboost.estimators.inspecting import (
    check_fitted,
    checked_tree,
    leaf_values,
    left_categories,
    listed,
    names_of,
)
from distboost.model.nodes import Nodes
from distboost.plot.axes import GREY, axes_of, shortened

# In inches, which are the units of the axes: texts have a size in points.
ROW, LETTER, GAP, MARGIN = 0.34, 0.072, 0.75, 0.15
FONT = 9
_MOST_CATEGORIES = 4  # that are named


def tree(model: BoostingClassifier, tree: int = 0, *, max_depth: int | None = None, ax: Any = None) -> Any:
    """Draw a tree: its splits, how many training rows take each side, and what the leaves add to the scores.

    Rows for which the condition of a node holds go up, along the line "yes". A line is as thick as many rows take it, and says if
    missing values do. A leaf names the class whose score it raises most, and the number of its rows.

    Parameters
    ----------
    model : fitted estimator
        Its weak learners are trees.
    tree : int, default=0
        The number of the tree, as in `model.to_dataframe()`.
    max_depth : int or None, default=None
        Splits below this depth are drawn as one node. None: all are drawn.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default those of a new figure that is large enough.

    Returns
    -------
    ax : matplotlib.axes.Axes

    Raises
    ------
    distboost.errors.DataError
        If there is no such tree, or if the weak learners are similarities.
    distboost.errors.MissingPackageError
        If matplotlib is not installed.
    """
    check_fitted(model)
    if max_depth is not None and not (isinstance(max_depth, Integral) and max_depth >= 0):
        raise DataError.expected("max_depth", max_depth, remedy="Pass a depth of 0 or more, or None.")
    drawn = Drawing(model, tree, max_depth)
    ax = axes_of(ax, drawn.width, drawn.height)
    drawn.draw(ax)
    return ax


class Drawing:
    """The places and texts of a tree's nodes.

    Attributes
    ----------
    width, height : float
        In inches.
    """

    def __init__(self, model: BoostingClassifier, tree: int, max_depth: int | None):
        trees = checked_tree(model, tree, "plot.tree")
        self.nodes, self.values, self.classes = Nodes.of(trees), leaf_values(model), model.classes_.tolist()
        self._names, self._categories = names_of(model), left_categories(trees, self.nodes)
        own = self.nodes.of_tree(tree)
        self.root, self.total = own.start, float(self.nodes.rows[own.start])
        self.depth: dict[int, int] = {}
        self.y: dict[int, float] = {}
        self.children: dict[int, tuple[int, int]] = {}
        self._rows_used = 0
        self._place(own.start, 0, np.inf if max_depth is None else max_depth)
        self.text = {node: self._text(node) for node in self.depth}
        widths = [
            max(LETTER * len(self.text[node]) for node, depth in self.depth.items() if depth == level)
            for level in range(max(self.depth.values()) + 1)
        ]
        self.x = np.concatenate([[0.0], np.cumsum(np.array(widths) + GAP)])
        self.width = float(self.x[-1]) - GAP + 4 * MARGIN
        self.height = ROW * self._rows_used + 4 * MARGIN

    def _place(self, node: int, depth: int, most: float) -> None:
        self.depth[node] = depth
        if self.nodes.is_leaf[node] or depth >= most:
            self.y[node] = -ROW * self._rows_used
            self._rows_used += 1
            return
        pair = self.root + int(self.nodes.left[node]), self.root + int(self.nodes.right[node])
        for child in pair:
            self._place(child, depth + 1, most)
        self.children[node] = pair
        self.y[node] = (self.y[pair[0]] + self.y[pair[1]]) / 2

    def _text(self, node: int) -> str:
        rows = "" if np.isnan(self.total) else f"  ({self.nodes.rows[node]:,.0f})"
        if node in self.children:
            return f"{shortened(self._names[self.nodes.feature[node]])} {self._test(node)}"
        if not self.nodes.is_leaf[node]:
            return f"…{rows}"
        values = self.values[self.nodes.leaf[node]]
        k = int(np.argmax(values))
        if not values.any():
            return f"nothing{rows}"
        return f"{shortened(self.classes[k])}: {values[k]:+.3g}{rows}".replace("-", "\N{MINUS SIGN}")

    def _test(self, node: int) -> str:
        categories = self._categories[node]
        if categories is None:
            threshold = float(self.nodes.threshold[node])
            return (
                "is any number"
                if np.isinf(threshold)
                else f"≤ {threshold:.4g}".replace("-", "\N{MINUS SIGN}")
            )
        return f"in {{{shortened(listed(categories, _MOST_CATEGORIES))}}}"

    def draw(self, ax: Any) -> None:
        """Draw the nodes and the lines between them."""
        ax.set_axis_off()
        ax.set_xlim(-MARGIN, self.x[-1] - GAP + MARGIN)
        ax.set_ylim(min(self.y.values()) - ROW / 2 - MARGIN, max(self.y.values()) + ROW / 2 + MARGIN)
        for node, pair in self.children.items():
            for child in pair:
                self._line(ax, node, child)
        for node, depth in self.depth.items():
            box = {
                "boxstyle": "round,pad=0.25",
                "linewidth": 0.8,
                "facecolor": self._colour(node),
                "edgecolor": "0.6",
            }
            ax.text(
                self.x[depth], self.y[node], self.text[node], fontsize=FONT, va="center", ha="left", bbox=box
            )

    def _colour(self, node: int) -> Any:
        from matplotlib import colormaps

        if not self.nodes.is_leaf[node]:
            return "white"
        r, g, b, _ = colormaps["tab20"]((int(np.argmax(self.values[self.nodes.leaf[node]])) * 2) % 20)
        return tuple(0.35 * np.array([r, g, b]) + 0.65)

    def _share(self, node: int) -> float:
        """The share of the tree's rows in a node; less than a half if it is not known."""
        return float(self.nodes.rows[node]) / self.total if self.total > 0 else 0.3

    def _line(self, ax: Any, node: int, child: int) -> None:
        """Draw the line from the middle of a node's text, which hides its beginning, to a child."""
        is_left = child == self.children[node][0]
        x1 = float(self.x[self.depth[child]])
        x0, t = x1 - GAP, np.linspace(0, 1, 30)
        y0, y1 = self.y[node], self.y[child]
        how = {"color": "0.75", "zorder": 0, "solid_capstyle": "butt"}
        before = self.x[self.depth[node]], x0
        ax.plot(before, [y0, y0], linewidth=0.8 + 4 * self._share(node), **how)
        bent = y0 + (y1 - y0) * (3 * t**2 - 2 * t**3)
        ax.plot(x0 + GAP * t, bent, linewidth=0.8 + 4 * self._share(child), **how)
        missing = self.nodes.missing_left[node] == is_left
        text = ("yes" if is_left else "no") + (", missing" if missing else "")
        above = 1 if is_left else -1
        ax.text(
            x1 - 0.12, y1 + above * 0.05, text, fontsize=FONT - 2.5, color=GREY, ha="right",
            va="bottom" if is_left else "top",
        )  # fmt: skip
