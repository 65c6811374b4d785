"""Rows as exported models read them."""

from __future__ import annotations

from typing import Any

import numpy as np

from distboost.data.source import load
from distboost.estimators.base import BoostingClassifier
from distboost.estimators.inspecting import check_fitted, trees_of
from distboost.estimators.parameters import n_threads
from distboost.estimators.validation import finite_rows, opened_rows
from distboost.threads import Threads


def codes(model: BoostingClassifier, X: Any) -> np.ndarray:
    """Return rows as exported models read them: the categories of a feature are numbered, and all others are as they are.

    Parameters
    ----------
    model : fitted estimator
        Its weak learners are trees.
    X : as for `predict`
        Rows. They are loaded into memory.

    Returns
    -------
    rows : ndarray of shape (n_samples, n_features), float64
        In columns with categories, the number of each row's category; NaN if it is missing, or was not among the training rows.

    Examples
    --------
    >>> import numpy as np
    >>> from distboost import GDMCBoostClassifier, export
    >>> X = np.repeat([[30.0], [10.0], [20.0]], 20, axis=0)
    >>> model = GDMCBoostClassifier(n_estimators=2, calibration=None, categorical_features=[0])
    >>> model = model.fit(X, X[:, 0] == 20)
    >>> export.codes(model, [[10.0], [20.0], [30.0], [40.0]]).ravel()
    array([ 0.,  1.,  2., nan])
    """
    check_fitted(model)
    X = opened_rows(model, X)
    with Threads(n_threads(model)) as threads:
        rows = load(finite_rows(model, X, threads))
    return np.array(trees_of(model, "export.codes").coded(rows), np.float64)
