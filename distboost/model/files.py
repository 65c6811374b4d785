"""Estimators to and from model files and checkpoints."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from distboost.algorithms.base import Algorithm
from distboost.data.ingest import joined_edges
from distboost.data.labels import is_unicode, plain, restored
from distboost.data.profile import Profile
from distboost.errors import DataError, ModelFormatError
from distboost.io.files import read_file, write_file
from distboost.model.checkpoint import Segment, read_checkpoint
from distboost.model.create import new_ensemble, read_ensemble
from distboost.model.ensemble import Ensemble
from distboost.model.history import History
from distboost.model.learned import BEST, HISTORIES, NOTE, Learned
from distboost.rows.messages import RowCounts

MOST_FEATURES = 2**31 - 1  # trees number them in 32 bits


def deciding_parameters(estimator: Any) -> dict[str, Any]:
    """The parameters that decide what is learned, as JSON has them."""
    parameters = {
        name: _plain(name, value)
        for name, value in estimator.get_params(deep=False).items()
        if name not in estimator._RUN_PARAMETERS
    }
    parameters["random_state"] = estimator._seed()
    return parameters


def check_keepable(estimator: Any) -> None:
    """Raises DataError if a model file could not have the parameters or the names of the features."""
    deciding_parameters(estimator)
    for name in getattr(estimator, "feature_names_in_", ()):
        if not is_unicode(name):
            raise DataError(
                f"a feature has the name {name!r:.100}, which is no Unicode text: it has surrogates. Rename it."
            )


def header_of(estimator: Any, learned: Learned) -> dict[str, Any]:
    """What a model is, beside its arrays: the parameters that decide it, nothing of where or how it ran."""
    return {
        "algorithm": estimator.algorithm_name,
        "parameters": deciding_parameters(estimator),
        "classes": plain(learned.classes),
        "class_dtype": learned.classes.dtype.str,
        "n_features": estimator.n_features_in_,
        "feature_names": getattr(estimator, "feature_names_in_", np.empty(0)).tolist() or None,
        "outcome": learned.history.outcome,
        "data": learned.data,
    }


def save_learned(estimator: Any, learned: Learned, url: str) -> None:
    """Writes what an estimator learned to a model file."""
    write_file(url, header_of(estimator, learned), learned.arrays(0, learned.n_rounds))


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


def data_digest(profile: Profile, counts: RowCounts, by_number: bool) -> str:
    """Which rows these are: the same for any chunks and any runtime, and another one for other values, labels or weights.

    Rows of whole weight w count as w rows. The order of the rows counts only if `by_number`, as where rows are drawn by number.
    """
    edges, offsets = joined_edges(profile.edges)
    digest = hashlib.sha256(f"{profile.classes.tolist()!r} {counts.digest[by_number]} ".encode())
    for array in (edges, offsets):
        digest.update(array.tobytes())
    return digest.hexdigest()


def check_same_data(earlier: Learned, data: str) -> None:
    """Raises if the rows are known not to be those that `earlier` was learned from."""
    if earlier.data not in (None, data):
        raise DataError(
            "resume=True goes on with the rows that the model was trained on, but these are others (their digest is "
            f"{data:.12}, not {earlier.data:.12}): values, labels, weights or the order of rows differ. Give the same data, or "
            "train anew."
        )


def check_same_task(earlier: Learned, profile: Profile) -> None:
    """Raises unless the data can be those that `earlier` was learned from."""
    n_features = earlier.ensemble.n_features
    if profile.n_features != n_features or not np.array_equal(profile.classes, earlier.classes):
        raise DataError(
            f"resume=True needs the data that the model was trained on: it knows {n_features} features and the classes "
            f"{earlier.classes.tolist()}, the data have {profile.n_features} features and the classes {profile.classes.tolist()}."
        )


def load_into(url: str, find: Callable[[str], type]) -> Any:
    """The estimator in a model file or a checkpoint; `find` gives the class of an algorithm's name, or raises KeyError."""
    header, parts = _content(url)
    with damage_told(url):
        estimator = estimator_of(header, find)
        classes = _classes(header)
        n_features = _whole(header["n_features"], "its number of features", 1, MOST_FEATURES)
        names = header["feature_names"]
        if names is not None:
            if type(names) is not list or len(names) != n_features or set(map(type, names)) != {str}:
                raise ModelFormatError(f"it has no {n_features} feature names, but {names!r:.100}.")
            estimator.feature_names_in_ = np.array(names, dtype=object)
        estimator.n_features_in_ = n_features
        algorithm = estimator._algorithm(len(classes))
        estimator._set_learned(_learned(header, parts, classes, algorithm, n_features))
    return estimator


def _content(url: str) -> tuple[dict[str, Any], list[tuple[Segment | None, dict[str, np.ndarray]]]]:
    """The header and the arrays of a model file, or of each segment of a checkpoint."""
    try:
        header, arrays = read_file(url)
    except OSError as error:
        try:
            header, segments = read_checkpoint(url)
        except (FileNotFoundError, NotADirectoryError):
            if isinstance(error, IsADirectoryError):
                raise ModelFormatError(f"{url} is a folder without a complete checkpoint.") from error
            raise error from None
        return header, [*segments]
    return header, [(None, arrays)]


@contextmanager
def damage_told(url: str) -> Iterator[None]:
    """What does not fit is the file's fault: the error names it."""
    try:
        yield
    except ModelFormatError as error:
        raise ModelFormatError(f"{url}: {error}") from error
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ModelFormatError(
            f"{url}: its header is not one of a distboost model: {type(error).__name__}: {error}."
        ) from error


def estimator_of(header: dict[str, Any], find: Callable[[str], type]) -> Any:
    """The estimator that is to be, with its parameters."""
    cls: Any = _class_of(str(header["algorithm"]), find)
    parameters = dict(header["parameters"])
    told = parameters.keys() & cls._RUN_PARAMETERS
    if told:  # where to write, say
        raise ModelFormatError(f"it sets {', '.join(sorted(told))}, which are not a model's to set.")
    if isinstance(parameters.get("class_weight"), list):
        parameters["class_weight"] = dict(parameters["class_weight"])
    estimator = cls(**parameters)
    estimator._validate_params()
    return estimator


def _classes(header: dict[str, Any]) -> np.ndarray:
    """The sorted labels, in the type that the training's had."""
    classes = restored(header["classes"], header["class_dtype"], ModelFormatError)
    if len(classes) < 2 or any(not a < b for a, b in itertools.pairwise(header["classes"])):
        raise ModelFormatError("its classes are not a sorted list of at least 2.")
    return classes


def _whole(value: Any, what: str, least: int, most: int) -> int:
    if type(value) is not int or not least <= value <= most:
        raise ModelFormatError(f"{what} is {value!r:.100}, expected {least} to {most}.")
    return value


def _learned(
    header: dict[str, Any],
    parts: list[tuple[Segment | None, dict[str, np.ndarray]]],
    classes: np.ndarray,
    algorithm: Algorithm,
    n_features: int,
) -> Learned:
    """What the parts hold, one after another."""
    if type(header["outcome"]) is not str:
        raise ModelFormatError(f"its outcome is {header['outcome']!r:.100}.")
    ensemble = new_ensemble(algorithm, n_features)
    history = History(notes={name: [] for name in algorithm.notes}, outcome=header["outcome"])
    for segment, arrays in parts:
        part = read_ensemble(algorithm, arrays, n_features)
        n_rounds = _add_histories(history, arrays)
        first, last, kept = (0, n_rounds, 0) if segment is None else (*segment[:2], header["rounds"])
        if n_rounds != last - first or not min(kept, last) <= first + len(part) <= last:
            raise ModelFormatError(f"its histories have {n_rounds} entries for {len(part)} rounds.")
        ensemble.extend(part)
    if len(history.eval_loss) not in (0, len(history.train_loss)):
        raise ModelFormatError("its histories have evaluations of some rounds only.")
    data = header.get("data")  # files of earlier versions have none
    if data is not None and not (type(data) is str and re.fullmatch(r"[0-9a-f]{64}", data)):
        raise ModelFormatError(f"the digest of its data is {data!r:.100}.")
    last_part = parts[-1][1] if parts else {}
    best = _best(ensemble, history, last_part) if BEST in last_part else None
    if "rounds" in header:  # of a checkpoint
        kept = _whole(header["rounds"], "its number of rounds", 0, len(ensemble))
        ensemble = ensemble.copy(kept)
    return Learned(classes, ensemble, history, best, data)


def _add_histories(history: History, arrays: dict[str, np.ndarray]) -> int:
    """Adds the entries in the arrays; for how many rounds."""
    entries = {name: getattr(history, name) for name in HISTORIES if name in arrays}
    notes = {NOTE + name: values for name, values in history.notes.items()}
    n_rounds = len(arrays.get("train_loss", ()))
    for loss, error in (("train_loss", "train_error"), ("eval_loss", "eval_error")):
        if (loss in arrays) != (error in arrays):
            raise ModelFormatError(f"its histories have no {error if loss in arrays else loss}.")
    for name, values in (entries | notes).items():
        if arrays[name].ndim != 1 or arrays[name].dtype != np.float64 or len(arrays[name]) != n_rounds:
            raise ModelFormatError(
                f"the history {name!r} is not a list of numbers, one for each of {n_rounds} rounds."
            )
        values.extend(arrays[name].tolist())
    return n_rounds


def _best(ensemble: Ensemble, history: History, arrays: dict[str, np.ndarray]) -> Ensemble:
    """The ensemble as it was after the best round."""
    best = ensemble.copy(history.best_round())
    now, values = best.arrays(), arrays[BEST]
    if values.dtype != np.float64 or values.shape != now["values"].shape or not np.isfinite(values).all():
        raise ModelFormatError("the values of its best round are damaged.")
    best.rewrite(np.split(values, now["value_offsets"][1:-1]))
    return best


def _class_of(algorithm: str, find: Callable[[str], type]) -> type:
    try:
        return find(algorithm)
    except KeyError as error:
        raise ModelFormatError(
            f"it is a model of the algorithm {algorithm!r}, which this version of distboost does not have. If it is your own, "
            "import the module where distboost.classifier makes it an estimator, then load the model again."
        ) from error
