"""A tree as text."""

from __future__ import annotations

from numbers import Integral
from typing import Any

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
from distboost.io.text import visible
from distboost.model.nodes import Nodes

_INDENT = "|   "
_MOST_CATEGORIES = 10  # that are named


def export_text(model: BoostingClassifier, tree: int = 0, *, decimals: int = 3) -> str:
    """Return a tree as text: its splits, and what its leaves add to the scores of the classes.

    Parameters
    ----------
    model : fitted estimator
        Its weak learners are trees.
    tree : int, default=0
        The number of the tree, as in `model.to_dataframe()`. The committees have several trees per round.
    decimals : int, default=3

    Returns
    -------
    text : str

    Raises
    ------
    distboost.errors.DataError
        If there is no such tree, or the weak learners are similarities.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from distboost import AdaBoostMMClassifier, export_text
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = AdaBoostMMClassifier(n_estimators=2, max_depth=1, calibration=None).fit(X, y)
    >>> print(export_text(model), end="")
    |--- petal length (cm) <= 2.450, not missing (150 rows)
    |   |--- 0: +0.549 (50 rows)
    |--- otherwise
    |   |--- 1: +0.549 (100 rows)
    """
    check_fitted(model)
    trees = checked_tree(model, tree, "export_text")
    if isinstance(decimals, bool) or not (isinstance(decimals, Integral) and decimals >= 0):
        raise DataError.expected(
            "decimals", decimals, remedy="Pass the number of digits after the point, 0 or more."
        )
    nodes, values, names = Nodes.of(trees), leaf_values(model), names_of(model)
    categories, classes = left_categories(trees, nodes), model.classes_.tolist()
    first = nodes.of_tree(tree).start
    lines: list[str] = []

    def rows(node: int) -> str:
        return f" ({nodes.rows[node]:.0f} rows)" if trees.has_covers else ""

    def add(node: int, depth: int) -> None:
        start = _INDENT * depth + "|--- "
        if nodes.is_leaf[node]:
            lines.append(start + _added(values[nodes.leaf[node]].tolist(), classes, decimals) + rows(node))
            return
        threshold = f"{nodes.threshold[node]:.{decimals}f}"
        condition = f"{names[nodes.feature[node]]} {_test(categories[node], threshold)}"
        missing = ", or missing" if nodes.missing_left[node] else ", not missing"
        lines.append(start + condition + missing + rows(node))
        add(first + int(nodes.left[node]), depth + 1)
        lines.append(f"{start}otherwise")
        add(first + int(nodes.right[node]), depth + 1)

    add(first, 0)
    return "\n".join(map(visible, lines)) + "\n"  # names may have line breaks


def _test(categories: list[Any] | None, threshold: str) -> str:
    """Return the condition of the rows that go left."""
    if categories is None:
        return "is any number" if threshold == "inf" else f"<= {threshold}"
    return f"in {{{listed(categories, _MOST_CATEGORIES)}}}"


def _added(values: list[float], classes: list[Any], decimals: int) -> str:
    """Return what a leaf adds to the scores, without classes whose score it does not change."""
    found = [f"{label}: {value:+.{decimals}f}" for label, value in zip(classes, values, strict=True) if value]
    return ", ".join(found) or "nothing"
