"""Estimators to and from model files."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from distboost.data.profile import Profile
from distboost.errors import DataError, ModelFormatError
from distboost.model import Ensemble, read_ensemble, read_file, write_file
from distboost.training import History

_NOTE = "note "
_HISTORIES = ("train_loss", "train_error", "eval_loss", "eval_error")


class Learned(NamedTuple):
    """What a training has learned so far."""

    classes: np.ndarray
    ensemble: Ensemble
    history: History


def deciding_parameters(estimator: Any) -> dict[str, Any]:
    """The parameters that decide what is learned, as JSON has them."""
    parameters = {
        name: _plain(name, value)
        for name, value in estimator.get_params(deep=False).items()
        if name not in estimator._RUN_PARAMETERS
    }
    parameters["random_state"] = estimator._seed()
    return parameters


def save_learned(estimator: Any, learned: Learned, url: str) -> None:
    """Writes what an estimator learned and the parameters that decide it, nothing of where or how it ran."""
    header = {
        "algorithm": estimator.algorithm_name,
        "parameters": deciding_parameters(estimator),
        "classes": [_plain("classes", label) for label in learned.classes.tolist()],
        "class_dtype": learned.classes.dtype.str,
        "n_features": estimator.n_features_in_,
        "feature_names": getattr(estimator, "feature_names_in_", np.empty(0)).tolist() or None,
        "outcome": learned.history.outcome,
    }
    arrays = dict(learned.ensemble.arrays())
    for name in _HISTORIES:
        if getattr(learned.history, name):
            arrays[name] = np.array(getattr(learned.history, name))
    for name, values in learned.history.notes.items():
        arrays[_NOTE + name] = np.array(values, np.float64)
    write_file(url, header, arrays)


def _plain(name: str, value: Any) -> Any:
    """A parameter as JSON has it. Keys of a dict need not be text: it becomes a list of pairs."""
    if isinstance(value, Mapping):
        return [[_plain(name, key), _plain(name, item)] for key, item in value.items()]
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if name == "random_state":
        return None
    try:
        json.dumps(value)
    except TypeError as error:
        raise DataError(f"the parameter {name}={value!r} cannot be kept in a model file: {error}.") from error
    return value


def check_same_task(earlier: Learned, profile: Profile) -> None:
    """Raises unless the data can be those that `earlier` was learned from."""
    n_features = earlier.ensemble.n_features
    if profile.n_features != n_features or not np.array_equal(profile.classes, earlier.classes):
        raise DataError(
            f"resume=True needs the data that the model was trained on: it knows {n_features} features and the classes "
            f"{earlier.classes.tolist()}, the data have {profile.n_features} features and the classes {profile.classes.tolist()}."
        )


def load_into(url: str, find: Callable[[str], type]) -> Any:
    """The estimator in a model file; `find` gives the class of an algorithm's name, or raises KeyError."""
    header, arrays = read_file(url)
    try:
        cls = _class_of(str(header["algorithm"]), url, find)
        parameters = dict(header["parameters"])
        if isinstance(parameters.get("class_weight"), list):
            parameters["class_weight"] = dict(parameters["class_weight"])
        estimator = cls(**parameters)
        estimator._validate_params()
        dtype = np.dtype(header["class_dtype"])
        classes = np.array(header["classes"], dtype=object)
        if classes.ndim != 1 or len(classes) < 2 or any(not a < b for a, b in itertools.pairwise(classes)):
            raise ModelFormatError(f"{url}: its classes are not a sorted list of at least 2.")
        if dtype.kind == "U" and dtype != classes.astype(str).dtype:
            raise ModelFormatError(f"{url}: its classes are not of type {dtype}.")
        classes = classes.astype(dtype)
        n_features = int(header["n_features"])
        algorithm = estimator._algorithm(len(classes))
        ensemble = read_ensemble(algorithm, arrays, n_features)
        names = header["feature_names"]
        if names is not None and len(names) != n_features:
            raise ModelFormatError(f"{url}: {len(names)} feature names for {n_features} features.")
        histories = {name: _history(arrays[name]) for name in _HISTORIES if name in arrays}
        lengths = {len(values) for values in histories.values()}
        complete = "train_loss" in histories or not len(ensemble)
        if not complete or len(lengths) > 1 or max(lengths, default=0) < len(ensemble):
            raise ModelFormatError(
                f"{url}: its histories have {sorted(lengths)} entries for {len(ensemble)} rounds."
            )
        notes = {name: _history(arrays[_NOTE + name]) for name in algorithm.notes}
        if any(len(values) != len(histories.get("train_loss", [])) for values in notes.values()):
            raise ModelFormatError(f"{url}: its notes are not one per round.")
        history = History(**histories, notes=notes, outcome=str(header["outcome"]))
    except ModelFormatError:
        raise
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ModelFormatError(
            f"{url}: its header is not one of a distboost model: {type(error).__name__}: {error}."
        ) from error
    estimator.n_features_in_ = n_features
    if names is not None:
        estimator.feature_names_in_ = np.array(names, dtype=object)
    estimator._set_learned(Learned(classes, ensemble, history))
    return estimator


def _class_of(algorithm: str, url: str, find: Callable[[str], type]) -> type:
    try:
        return find(algorithm)
    except KeyError as error:
        raise ModelFormatError(
            f"{url} is a model of the algorithm {algorithm!r}, which this version of distboost does not have. If it is your own, "
            "import the module where distboost.classifier makes it an estimator, then load the model again."
        ) from error


def _history(values: np.ndarray) -> list[float]:
    if values.ndim != 1 or values.dtype != np.float64:
        raise ModelFormatError("a history is not a list of numbers.")
    return values.tolist()
