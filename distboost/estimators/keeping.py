"""Convert estimators to and from model files and checkpoints."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np

from distboost.data.categories import listed
from distboost.data.labels import is_unicode, plain
from distboost.errors import DataError, ModelFormatError
from distboost.estimators.parameters import (
    RUN_PARAMETERS,
    CommonParameters,
    adjusted,
    algorithm_of,
    deciding_parameters,
    own_names,
)
from distboost.estimators.validation import set_features
from distboost.io.files import encoded
from distboost.model.files import (
    as_json,
    damage_reported,
    feature_names_of,
    n_features_of,
    read_learned,
    read_model,
    watch_entry,
)
from distboost.model.learned import ERROR, LOSS, History, Learned


def check_keepable(estimator: CommonParameters) -> None:
    """Raise DataError if a model file cannot store the parameters or the names of the features."""
    deciding_parameters(estimator)
    for name in getattr(estimator, "feature_names_in_", ()):
        if not is_unicode(name):
            raise DataError(
                f"a feature has the name {name!r:.100}, which is not Unicode text: it has surrogates.",
                remedy="Rename it.",
                value=name,
            )


def header_of(estimator: CommonParameters, learned: Learned) -> dict[str, Any]:
    """Return the header of a model: the parameters that it was trained with, but nothing about where or how.

    `n_estimators` is that of the estimator, unless it decides more than when a training run ends.
    """
    parameters = {**(learned.parameters or deciding_parameters(estimator))}
    if "n_estimators" not in algorithm_of(estimator, len(learned.classes)).fixed_parameters:
        parameters["n_estimators"] = as_json("n_estimators", estimator.n_estimators)
    header = {
        "algorithm": estimator.algorithm_name,
        "parameters": parameters,
        "classes": plain(learned.classes),
        "class_dtype": learned.classes.dtype.str,
        "n_features": estimator.n_features_in_,
        "feature_names": getattr(estimator, "feature_names_in_", np.empty(0)).tolist() or None,
        "outcome": learned.history.outcome,
        "data": learned.data,
        **watch_entry(learned.history.watch),
    }
    if learned.ensemble.has_covers:
        header["covers"] = True
        if learned.ensemble.weight_scale != 1.0:
            header["weight_scale"] = learned.ensemble.weight_scale
    if learned.ensemble.categories:
        header["categories"] = listed(learned.ensemble.categories)
    if learned.calibration is not None:
        header["calibration"] = learned.calibration.header()
    return header


def digest_of(estimator: CommonParameters) -> str:
    """Return the SHA-256 of the estimator's file, in hexadecimal digits."""
    return hashlib.sha256(file_content(estimator)).hexdigest()


def file_content(estimator: CommonParameters) -> bytes:
    """Return the content of the model file of a fitted estimator."""
    learned = estimator.learned_
    return encoded(header_of(estimator, learned), learned.arrays(0, learned.n_rounds))


def set_learned(estimator: CommonParameters, learned: Learned) -> None:
    """Set the attributes of a fitted estimator."""
    learned = learned._replace(parameters=deciding_parameters(estimator))
    history = learned.history
    estimator.learned_ = learned
    estimator.classes_ = learned.classes
    estimator.n_classes_ = len(learned.classes)
    estimator.train_loss_ = np.array(history.train_loss)
    estimator.train_error_ = np.array(history.train_error)
    estimator.n_iter_ = learned.n_rounds
    estimator.best_iteration_ = len(learned.ensemble)
    estimator.outcome_ = history.outcome
    estimator.calibration_ = learned.calibration
    for name, values in history.notes.items():
        setattr(estimator, f"{name}_", np.array(values, np.float64))
    _set_evaluations(estimator, history)


def snapshot(estimator: CommonParameters, learned: Learned) -> CommonParameters:
    """Return another estimator with the same parameters, fitted with what was learned.

    It has neither callbacks nor a checkpoint: those are the training's own.
    """
    made: CommonParameters = adjusted(copy(estimator), callbacks=None, checkpoint=None)
    made.__dict__.pop("training_record_", None)  # of an earlier run
    set_features(made, estimator.n_features_in_, getattr(estimator, "feature_names_in_", None))
    set_learned(made, learned)
    return made


def _set_evaluations(estimator: CommonParameters, history: History) -> None:
    """Set the attributes with the histories of evaluation sets; remove those of an earlier run."""
    for name in ("eval_loss_", "eval_error_", "eval_history_"):
        if hasattr(estimator, name):
            delattr(estimator, name)
    if not (history.evaluations and history.train_loss):
        return
    found = {
        name: {metric: np.array(values) for metric, values in metrics.items()}
        for name, metrics in history.evaluations.items()
    }
    first = next(iter(found.values()))
    estimator.eval_history_ = found
    estimator.eval_loss_, estimator.eval_error_ = first[LOSS], first[ERROR]


def load_estimator(url: str, find: Callable[[str], type[CommonParameters]]) -> CommonParameters:
    """Load the estimator from a model file or a checkpoint.

    `find(name)` returns the estimator class of the algorithm with this name, or raises KeyError.
    """
    stored = read_model(url)
    with damage_reported(url):
        estimator = estimator_of(stored.header, find)
        set_features(estimator, n_features_of(stored.header), feature_names_of(stored.header))
        set_learned(estimator, read_learned(stored, lambda n_classes: algorithm_of(estimator, n_classes)))
    return estimator


def estimator_of(header: dict[str, Any], find: Callable[[str], type[CommonParameters]]) -> CommonParameters:
    """Return an unfitted estimator with the parameters in a header."""
    made = _class_of(str(header["algorithm"]), find)
    parameters = dict(header["parameters"])
    of_runs = parameters.keys() & RUN_PARAMETERS
    if of_runs:  # for instance, where to write
        raise ModelFormatError(f"it sets {', '.join(sorted(of_runs))}, which a model file must not set.")
    unknown = parameters.keys() - own_names(made)
    if unknown:
        raise ModelFormatError(
            f"it has the parameter {min(unknown)!r:.100}, which {made.__name__} does not have.",
            remedy="If it is a model of a subclass that distboost 0.2 or earlier wrote, train that again: such files lack "
            "what decides the model.",
        )
    if isinstance(parameters.get("class_weight"), list):
        parameters["class_weight"] = dict(parameters["class_weight"])
    estimator = made(**parameters)
    estimator.validate()
    return estimator


def _class_of(algorithm: str, find: Callable[[str], type[CommonParameters]]) -> type[CommonParameters]:
    try:
        return find(algorithm)
    except KeyError as error:
        raise ModelFormatError(
            f"it is a model of the algorithm {algorithm!r}, which this version of distboost does not have.",
            remedy="If the algorithm is your own, import the module that calls distboost.classifier for it, then load the "
            "model again.",
            value=algorithm,
        ) from error
