"""The scikit-learn face: an estimator for each algorithm."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from functools import cache
from importlib import import_module
from typing import Any

from distboost import registry
from distboost.algorithms.base import Algorithm
from distboost.errors import DataError
from distboost.estimators.base import BoostingClassifier
from distboost.estimators.keeping import estimator_of, load_estimator
from distboost.estimators.parameters import CommonParameters
from distboost.model.files import damage_reported

_made: dict[str, type[BoostingClassifier]] = {}


def classifier(algorithm: type[Algorithm], module: str | None = None) -> type[BoostingClassifier]:
    """The estimator of an algorithm: its own parameters and the common ones, with the algorithm's documentation.

    Parameters
    ----------
    algorithm : subclass of Algorithm
    module : str or None, default=None
        Where the estimator will be found, as the algorithm's name with "Classifier"; the caller's module if not given.

    Returns
    -------
    estimator : subclass of BoostingClassifier
        `distboost.load` knows its models from then on.

    Examples
    --------
    >>> from distboost.algorithms.gamble import GAMBLE
    >>> GAMBLEClassifier = classifier(GAMBLE)
    >>> GAMBLEClassifier(max_leaf_nodes=4).max_leaf_nodes
    4
    """
    if algorithm.name in registry.ALGORITHMS and module is None:
        if algorithm is registry.algorithm(algorithm.name):
            return estimator(algorithm.name)
        raise DataError(
            f"the algorithm {algorithm.__name__} is named {algorithm.name!r}, as one of distboost's own is. Choose another name: "
            "it tells their model files apart."
        )
    own = algorithm.parameters()
    namespace: dict[str, Any] = {
        "__module__": module or sys._getframe(1).f_globals["__name__"],
        "__annotations__": {name: f.type for name, f in own.items()},
        "__doc__": _documentation(algorithm),
        "algorithm": algorithm,
        "algorithm_name": algorithm.name,
        **{name: field(default=f.default, metadata=f.metadata) for name, f in own.items()},
    }
    shared = {f.name: f for f in fields(CommonParameters)}
    namespace["_parameter_constraints"] = {
        name: f.metadata.get("allowed", "no_validation") for name, f in (shared | own).items()
    }
    made = type(algorithm.__name__ + "Classifier", (BoostingClassifier,), namespace)
    made = dataclass(kw_only=True, eq=False, repr=False)(made)
    _made[algorithm.name] = made  # the newest of that name, as when a notebook's cell is run again
    return made


_ATTRIBUTES = """
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
"""

_EXAMPLE = """
    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from {module} import {name}Classifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = {name}Classifier(n_estimators=20).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
"""


def _documentation(algorithm: type[Algorithm]) -> str:
    """The algorithm's own text and parameters, then what all estimators share."""
    text = (algorithm.__doc__ or "").rstrip()
    common = _without(
        algorithm.parameters(), (CommonParameters.__doc__ or "").partition("----------\n")[2], text
    )
    if "Parameters\n" not in text:
        text += "\n\n    Parameters\n    ----------"
    text, attributes, more = text.partition("\n\n    Attributes\n    ----------\n")
    shared = _ATTRIBUTES + (more + "\n" if attributes else "")
    public = "distboost.baselines" if algorithm.name in registry.BASELINES else "distboost"
    example = _EXAMPLE.format(module=public, name=algorithm.__name__)
    return f"{text}\n{common}\n{shared}{example}    "


def _without(own: Iterable[str], common: str, text: str) -> str:
    """The common parameters less those that the algorithm documents itself."""
    entries = re.split(r"(?m)^(?=    \w+ : )", common.rstrip())
    said = {name for name in own if re.search(rf"(?m)^    {name} : ", text)}
    return "".join(entry for entry in entries if entry.partition(" :")[0].strip() not in said).rstrip()


@cache
def estimator(name: str) -> type[BoostingClassifier]:
    """The estimator of the algorithm of this name in the registry; raises KeyError if there is none."""
    public = "distboost.baselines" if name in registry.BASELINES else "distboost"
    return classifier(registry.algorithm(name), import_module(public).__name__)


def __getattr__(name: str) -> type[BoostingClassifier]:
    names = registry.estimator_names(registry.PAPERS)
    if name not in names:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return estimator(names[name])


def load(url: str) -> BoostingClassifier:
    """The estimator that was saved at a path or URL, or of which a checkpoint is there.

    Loading a model from a stranger runs nothing of it, and takes memory in proportion to the file.

    Parameters
    ----------
    url : str or path

    Raises
    ------
    distboost.errors.ModelFormatError
        If the file is truncated, altered, of another version, or no model at all.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_iris
    >>> from distboost import GAMBLEClassifier, load
    >>> X, y = load_iris(return_X_y=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     GAMBLEClassifier(n_estimators=5).fit(X, y).save(f"{folder}/iris.model")
    ...     model = load(f"{folder}/iris.model")
    >>> bool(model.score(X, y) > 0.9)
    True
    """
    return load_estimator(os.fspath(url), _known)


def described(header: dict[str, Any], place: str) -> BoostingClassifier:
    """The estimator, not fitted, of the algorithm and the deciding parameters that are kept in a header at a place."""
    with damage_reported(place):
        return estimator_of(header, _known)


def _known(name: str) -> type[BoostingClassifier]:
    """The estimator of an algorithm of the registry or of a user's own; raises KeyError if there is none."""
    if name in registry.ALGORITHMS:
        return estimator(name)
    return _made[name]
