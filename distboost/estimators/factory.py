"""The scikit-learn interface: make an estimator of each algorithm."""

from __future__ import annotations

import inspect
import re
import sys
from dataclasses import dataclass, field, fields
from functools import cache
from importlib import import_module
from typing import Any

from distboost import registry
from distboost.algorithms.base import Algorithm
from distboost.algorithms.constraints import as_of_sklearn
from distboost.errors import ArgumentError, DataError
from distboost.estimators.base import BoostingClassifier
from distboost.estimators.keeping import estimator_of, load_estimator
from distboost.estimators.parameters import CommonParameters
from distboost.io import options
from distboost.io.options import url_of
from distboost.model.files import damage_reported

_made: dict[str, type[BoostingClassifier]] = {}


def classifier(algorithm: type[Algorithm], module: str | None = None) -> type[BoostingClassifier]:
    """Make the estimator of an algorithm, with its own parameters, the common ones, and the algorithm's documentation.

    Parameters
    ----------
    algorithm : subclass of Algorithm
    module : str or None, default=None
        The module that will contain the estimator, under the name of the algorithm's class followed by "Classifier". None: the
        caller's module.

    Returns
    -------
    estimator : subclass of BoostingClassifier
        `distboost.load` can load its models from now on.

    Examples
    --------
    >>> from distboost.algorithms.gamble import GAMBLE
    >>> GAMBLEClassifier = classifier(GAMBLE)
    >>> GAMBLEClassifier(max_leaf_nodes=4).max_leaf_nodes
    4
    """
    if not (isinstance(algorithm, type) and issubclass(algorithm, Algorithm)):
        raise ArgumentError.expected("algorithm", algorithm, "a subclass of distboost.Algorithm")
    if algorithm.name in registry.ALGORITHMS and module is None:
        if algorithm is registry.algorithm(algorithm.name):
            return estimator(algorithm.name)
        raise DataError(
            f"the algorithm {algorithm.__name__} has the name {algorithm.name!r}, which one of distboost's own has.",
            remedy="Choose another name: model files identify the algorithm by it.",
            value=algorithm.name,
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
        name: as_of_sklearn(f.metadata["allowed"]) if "allowed" in f.metadata else "no_validation"
        for name, f in (shared | own).items()
    }
    made = type(algorithm.__name__ + "Classifier", (BoostingClassifier,), namespace)
    made = dataclass(kw_only=True, eq=False, repr=False)(made)
    # The latest of a name replaces earlier ones, as when a notebook's cell runs again.
    _made[algorithm.name] = made
    return made


_ATTRIBUTES = """
Attributes
----------
classes_ : ndarray of shape (n_classes,)
n_features_in_ : int
feature_names_in_ : ndarray of shape (`n_features_in_`,), object
    The names of the features, if the training rows had any.
n_iter_ : int
    The number of rounds done.
best_iteration_ : int
    The number of rounds kept: fewer than `n_iter_` only after early stopping.
train_loss_, train_error_ : ndarray of shape (`n_iter_`,)
    The algorithm's own loss and the error rate on the training rows after each round.
eval_loss_, eval_error_ : ndarray of shape (`n_iter_`,)
    The same on the first set of `eval_set`, if one was given.
eval_history_ : dict of str to dict of str to ndarray of shape (`n_iter_`,)
    "loss", "error" and the `eval_metric` of each set of `eval_set` by name. A set without a name is "eval".
feature_importances_ : ndarray of shape (n_features,)
outcome_ : str
    Why training ended.
runtime_ : str
    Where `fit` trained: in this process, or on which cluster. Models from files have none.
training_record_ : TrainingRecord
    What `fit` took: `seconds`, `rounds_per_second`, `peak_bytes` of memory, `workers_lost`; and on how many rows, `n_rows`.
    Models from files have none.
memory_plan_ : MemoryPlan
    The memory that `fit` planned: `n_bytes` of `limit`, rows that are `resident` and `streamed`. Models from files have none.
calibration_ : Calibration or None
    How `predict_proba` makes probabilities of scores: its `method` and `temperature`; with the method "vector" also `scales`
    and `shifts` of the classes. None: as the algorithm's paper implies.
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
    """Return the algorithm's own text and parameters, followed by those that all estimators share, without indentation.

    What the algorithm does not say of a parameter, its base classes say. Python 3.13 removes the indentation from docstrings,
    and earlier versions do not.
    """
    entries: dict[str, str] = {}
    for cls in (*algorithm.__mro__, CommonParameters):
        for name, entry in _parameters_of(cls).items():
            entries.setdefault(name, entry)
    text = inspect.cleandoc(algorithm.__doc__ or "")
    about = re.split(r"\n\n(?:Parameters|Attributes)\n-+\n", text)[0]
    attributes = text.partition("\n\nAttributes\n----------\n")[2]
    shared = _ATTRIBUTES + (attributes + "\n" if attributes else "")
    public = "distboost.baselines" if algorithm.name in registry.BASELINES else "distboost"
    example = _EXAMPLE.format(module=public, name=algorithm.__name__)
    return f"{about}\n\nParameters\n----------\n" + "\n".join(entries.values()) + f"\n{shared}{example}"


def _parameters_of(cls: type) -> dict[str, str]:
    """Return what the class's own docstring says of each parameter, by name."""
    text = inspect.cleandoc(cls.__dict__.get("__doc__") or "").partition("Parameters\n----------\n")[2]
    section = re.split(r"\n\n\w+\n-+\n", text)[0]
    entries = re.split(r"(?m)^(?=\w+ : )", section.rstrip())
    return {entry.partition(" :")[0]: entry.rstrip() for entry in entries if entry}


@cache
def estimator(name: str) -> type[BoostingClassifier]:
    """Return the estimator of the algorithm with this name in the registry; raise KeyError if there is none."""
    public = "distboost.baselines" if name in registry.BASELINES else "distboost"
    return classifier(registry.algorithm(name), import_module(public).__name__)


def __getattr__(name: str) -> type[BoostingClassifier]:
    names = registry.estimator_names(registry.PAPERS)
    if name not in names:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return estimator(names[name])


def load(url: str, storage_options: dict[str, Any] | None = None) -> BoostingClassifier:
    """Load the estimator from a model file or a checkpoint.

    Loading an untrusted model executes no code, and takes memory in proportion to the size of the file.

    Parameters
    ----------
    url : str or path
        Path or URL of a file that `save` wrote, or of a checkpoint.
    storage_options : dict or None, default=None
        Options of the file system of a URL. They become the estimator's, which opens its URLs with them.

    Returns
    -------
    estimator : BoostingClassifier
        The fitted estimator.

    Raises
    ------
    distboost.errors.ModelFormatError
        If the file is truncated, altered, of another version, or not a model.

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
    with options.storage_options(storage_options):
        found = load_estimator(url_of(url, "url"), _known)
    found.storage_options = storage_options
    return found


def described(header: dict[str, Any], place: str) -> BoostingClassifier:
    """Return the unfitted estimator with the algorithm and the parameters in a header; errors name the `place`."""
    with damage_reported(place):
        return estimator_of(header, _known)


def _known(name: str) -> type[BoostingClassifier]:
    """Return the estimator of an algorithm of the registry or of the user; raise KeyError if there is none."""
    if name in registry.ALGORITHMS:
        return estimator(name)
    return _made[name]
