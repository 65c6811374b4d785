"""The scikit-learn face: one class per algorithm."""

from __future__ import annotations

import os
from numbers import Integral
from typing import ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from distboost.algorithms.base import Algorithm
from distboost.algorithms.gamble import GAMBLE
from distboost.algorithms.mcboost import GDMCBoost
from distboost.classifier import POSITIVE, BoostingClassifier, keep
from distboost.persistence import load_into


class GDMCBoostClassifier(BoostingClassifier):
    """GD-MCBoost: multiclass boosting by functional gradient descent in margin space.

    Saberian & Vasconcelos, *Multiclass Boosting: Theory and Algorithms*, NIPS 2011, Algorithm 1 (right).

    Parameters
    ----------
    leaf : {"direction", "codeword"}, default="direction"
        Output of a leaf: any direction of the margin space (stronger), or one of the class codewords (the paper's; use
        `max_depth=2`).
    max_depth : int or None, default=6
    max_leaf_nodes : int or None, default=None
        If given, trees grow best first up to so many leaves, else level by level.
    {common}

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_iter_ : int
        Rounds done.
    best_iteration_ : int
        Rounds kept: fewer than `n_iter_` only after early stopping.
    train_loss_, train_error_ : ndarray of shape (n_iter_,)
        The algorithm's own loss and the error rate on the training rows after each round.
    eval_loss_, eval_error_ : ndarray of shape (n_iter_,)
        The same on the eval_set, if one was given.
    feature_importances_ : ndarray of shape (n_features,)
    outcome_ : str
        Why training ended.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from distboost import GDMCBoostClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GDMCBoostClassifier(n_estimators=20, max_depth=2).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    algorithm_name: ClassVar[str] = "gd-mcboost"
    _parameter_constraints: ClassVar[dict] = {
        **BoostingClassifier._parameter_constraints,
        "leaf": [StrOptions({"direction", "codeword"})],
        "max_depth": [POSITIVE, None],
        "max_leaf_nodes": [Interval(Integral, 2, None, closed="left"), None],
    }

    def __init__(
        self,
        *,
        leaf="direction",
        max_depth=6,
        max_leaf_nodes=None,
        n_estimators=100,
        learning_rate=1.0,
        max_bins=255,
        min_samples_leaf=1,
        min_weight_fraction_leaf=0.0,
        subsample=1.0,
        max_features=1.0,
        class_weight=None,
        early_stopping_rounds=None,
        score_dtype="float64",
        missing_chunks="warn",
        memory_limit=None,
        checkpoint=None,
        n_jobs=None,
        random_state=0,
        verbose=0,
        callbacks=None,
    ):
        keep(self, locals())

    def _algorithm(self, n_classes: int) -> Algorithm:
        return GDMCBoost(self.leaf)


class GAMBLEClassifier(BoostingClassifier):
    """GAMBLE: gentle adaptive multiclass boosting.

    Huang, *A Multiclass Boosting Classification Method with Active Learning*, Penn State, 2009, Algorithm 3. Weak learners
    are least-squares trees grown best first. The loss need not fall in every round for 7 classes and more, and does not bound
    the error for more than 2; with 2 classes, `learning_rate=0.5` is Gentle AdaBoost.

    Parameters
    ----------
    max_leaf_nodes : int, default=15
    max_depth : int or None, default=None
    {common}

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from distboost import GAMBLEClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GAMBLEClassifier(n_estimators=20).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    algorithm_name: ClassVar[str] = "gamble"
    _parameter_constraints: ClassVar[dict] = {
        **BoostingClassifier._parameter_constraints,
        "max_leaf_nodes": [Interval(Integral, 2, None, closed="left")],
        "max_depth": [POSITIVE, None],
    }

    def __init__(
        self,
        *,
        max_leaf_nodes=15,
        max_depth=None,
        n_estimators=100,
        learning_rate=1.0,
        max_bins=255,
        min_samples_leaf=1,
        min_weight_fraction_leaf=0.0,
        subsample=1.0,
        max_features=1.0,
        class_weight=None,
        early_stopping_rounds=None,
        score_dtype="float64",
        missing_chunks="warn",
        memory_limit=None,
        checkpoint=None,
        n_jobs=None,
        random_state=0,
        verbose=0,
        callbacks=None,
    ):
        keep(self, locals())

    def _algorithm(self, n_classes: int) -> Algorithm:
        return GAMBLE(n_classes)


ESTIMATORS: dict[str, type[BoostingClassifier]] = {
    cls.algorithm_name: cls for cls in (GDMCBoostClassifier, GAMBLEClassifier)
}

_COMMON = BoostingClassifier.__doc__.partition("----------\n")[2].strip()  # type: ignore[union-attr]
for _cls in ESTIMATORS.values():
    _cls.__doc__ = (_cls.__doc__ or "").replace("{common}", _COMMON)


def load(url: str) -> BoostingClassifier:
    """The estimator that was saved at a path or URL.

    Parameters
    ----------
    url : str or path

    Raises
    ------
    distboost.errors.ModelFormatError
        If the file is truncated, altered, of another version, or no model at all.
    """
    return load_into(os.fspath(url), ESTIMATORS)
