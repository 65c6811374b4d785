"""Read and write what was learned, in model files and checkpoints."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from distboost.algorithms.base import Algorithm
from distboost.data.categories import restored_categories
from distboost.data.labels import restored
from distboost.errors import DataError, ModelFormatError, StoreError
from distboost.io.files import read_file
from distboost.io.storage import exists
from distboost.model.checkpoint import Segment, read_checkpoint
from distboost.model.create import new_ensemble, read_ensemble
from distboost.model.ensemble import Ensemble
from distboost.model.learned import BEST, ERROR, LOSS, NOTE, UNNAMED, Calibration, History, Learned, Watch

MOST_FEATURES = 2**31 - 1  # trees number them in 32 bits


class Stored(NamedTuple):
    """The content of a model file or a checkpoint.

    Attributes
    ----------
    header : dict
    parts : list of (Segment or None, dict of str to ndarray)
        The segments of a checkpoint with their arrays. A model file has one part: None and all arrays.
    """

    header: dict[str, Any]
    parts: list[tuple[Segment | None, dict[str, np.ndarray]]]


def as_json(name: str, value: Any) -> Any:
    """Convert the value of a parameter to JSON: a mapping, whose keys need not be text, to a list of pairs; arrays to lists."""
    if isinstance(value, Mapping):
        return [[as_json(name, key), as_json(name, item)] for key, item in value.items()]
    if hasattr(value, "__array__"):
        value = np.asarray(value).tolist()
    if isinstance(value, (list, tuple, range)):
        return [as_json(name, item) for item in value]
    try:
        json.dumps(value)
    except TypeError as error:
        raise DataError(
            f"the parameter {name}={value!r} cannot be stored in a model file: {error}.", value=value
        ) from error
    return value


def read_model(url: str) -> Stored:
    """Read a model file or a checkpoint."""
    try:
        header, arrays = read_file(url)
    except OSError as error:
        if isinstance(error, StoreError) and not isinstance(error.__cause__, PermissionError):
            raise
        try:
            header, segments = read_checkpoint(url)
        except (FileNotFoundError, NotADirectoryError):
            if isinstance(error, IsADirectoryError):
                what = " It has zarr data, which are no model." if exists(f"{url}/zarr.json") else ""
                raise ModelFormatError(
                    f"{url} is a folder without a complete checkpoint.{what}", where=url
                ) from error
            if isinstance(error, FileNotFoundError):
                raise FileNotFoundError(
                    f"there is no model file and no checkpoint at {url!r}. Pass the path or URL of one that was saved."
                ) from error
            raise error from None
        return Stored(header, [*segments])
    return Stored(header, [(None, arrays)])


@contextmanager
def damage_reported(url: str) -> Iterator[None]:
    """Convert any error that the file's content causes to a ModelFormatError that names the file."""
    try:
        yield
    except ModelFormatError as error:
        raise error.of(url) from error
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ModelFormatError(
            f"{url}: its header is not that of a distboost model: {type(error).__name__}: {error}.", where=url
        ) from error


def n_features_of(header: dict[str, Any]) -> int:
    """Return the number of features in a header."""
    return _integer(header["n_features"], "its number of features", 1, MOST_FEATURES)


def feature_names_of(header: dict[str, Any]) -> np.ndarray | None:
    """Return the names of the features, (n_features,) object, or None if the header has none."""
    names, n_features = header["feature_names"], n_features_of(header)
    if names is None:
        return None
    if type(names) is not list or len(names) != n_features or set(map(type, names)) != {str}:
        raise ModelFormatError(f"its feature names are {names!r:.100}, not {n_features} texts.", value=names)
    return np.array(names, dtype=object)


def _classes(header: dict[str, Any]) -> np.ndarray:
    """Return the sorted labels, in the dtype of the training's labels."""
    classes = restored(header["classes"], header["class_dtype"], ModelFormatError)
    if len(classes) < 2 or any(not a < b for a, b in itertools.pairwise(header["classes"])):
        raise ModelFormatError("its classes are not a sorted list of at least 2 labels.")
    return classes


def _integer(value: Any, what: str, least: int, most: int) -> int:
    if type(value) is not int or not least <= value <= most:
        raise ModelFormatError(f"{what} is {value!r:.100}, expected {least} to {most}.", value=value)
    return value


def read_learned(stored: Stored, algorithm: Callable[[int], Algorithm]) -> Learned:
    """Return what was learned; `algorithm(n_classes)` makes the algorithm."""
    header, parts = stored
    classes, n_features = _classes(header), n_features_of(header)
    made = algorithm(len(classes))
    ensemble, history = _joined(stored, made, n_features)
    data = header.get("data")  # files of earlier versions have none
    if data is not None and not (type(data) is str and re.fullmatch(r"[0-9a-f]{64}", data)):
        raise ModelFormatError(
            f"the digest of its data is {data!r:.100}, not 64 hexadecimal digits.", value=data
        )
    last_part = parts[-1][1] if parts else {}
    best = _best(ensemble, history, last_part) if BEST in last_part else None
    if "rounds" in header:  # of a checkpoint
        ensemble = ensemble.copy(_integer(header["rounds"], "its number of rounds", 0, len(ensemble)))
    calibration = Calibration.of_header(header.get("calibration"), len(classes))
    return Learned(classes, ensemble, history, best, data, calibration=calibration)


def _joined(stored: Stored, algorithm: Algorithm, n_features: int) -> tuple[Ensemble, History]:
    """Join the ensembles and histories of all parts."""
    header, parts = stored
    if type(header["outcome"]) is not str:
        raise ModelFormatError(
            f"its outcome is {header['outcome']!r:.100}, not a text.", value=header["outcome"]
        )
    if header.get("covers", True) is not True:
        raise ModelFormatError(
            f"its entry about covers is {header['covers']!r:.100}, not true.", value=header["covers"]
        )
    categories = restored_categories(header.get("categories", []), n_features, ModelFormatError)
    ensemble = new_ensemble(algorithm, n_features, categories)
    history = History.of(algorithm.notes, _watch(stored), header["outcome"])
    for segment, arrays in parts:
        part = read_ensemble(algorithm, arrays, n_features, "covers" in header, categories)
        n_rounds = _add_histories(history, arrays)
        first, last, kept = (0, n_rounds, 0) if segment is None else (*segment[:2], header["rounds"])
        if n_rounds != last - first or not min(kept, last) <= first + len(part) <= last:
            raise ModelFormatError(
                f"its histories have {n_rounds} entries for {len(part)} rounds.", value=n_rounds
            )
        ensemble.extend(part)
    ensemble.weight_scale = _weight_scale(header)
    return ensemble, history


def _weight_scale(header: dict[str, Any]) -> float:
    """Return the power of two by which the weights of covers are multiplied."""
    scale = header.get("weight_scale", 1.0)
    if type(scale) is not float or not 2.0**-900 <= scale <= 2.0**900:
        raise ModelFormatError(
            f"the scale of its weights is {scale!r:.100}, not a number from 2^-900 to 2^900.", value=scale
        )
    return scale


def watch_entry(watch: Watch) -> dict[str, Any]:
    """Return the header's entry about evaluation sets. Files whose only set has no name, as in earlier versions, have none."""
    plain = not watch.sets or watch == Watch((UNNAMED,))
    return (
        {}
        if plain
        else {"evaluation": {**watch._asdict(), "sets": [*watch.sets], "metrics": [*watch.metrics]}}
    )


def _watch(stored: Stored) -> Watch:
    """Return which evaluation sets and metrics the histories have."""
    header, parts = stored
    if "evaluation" not in header:
        evaluated = any(name in arrays for _, arrays in parts for name in ("eval_loss", "eval_error"))
        return Watch((UNNAMED,) if evaluated else ())
    found = Watch(**header["evaluation"])
    for names in (found.sets, found.metrics):
        if not isinstance(names, list) or set(map(type, names)) - {str} or len(set(names)) < len(names):
            raise ModelFormatError(
                f"the names of its evaluation are {names!r:.100}, not a list of different texts.", value=names
            )
    if not found.sets or found.metric not in (LOSS, ERROR, *found.metrics):
        raise ModelFormatError(
            f"the metric of its evaluation is {found.metric!r:.100}, which it does not have.",
            value=found.metric,
        )
    if type(found.min_delta) is not float or not 0 <= found.min_delta < np.inf:
        raise ModelFormatError(
            f"the ``min_delta`` of its evaluation is {found.min_delta!r:.100}, not a number >= 0.",
            value=found.min_delta,
        )
    return found._replace(sets=tuple(found.sets), metrics=tuple(found.metrics))


def _add_histories(history: History, arrays: dict[str, np.ndarray]) -> int:
    """Append the entries of the arrays to the history; return the number of rounds that they have."""
    series = history.series()
    missing = [name for name in series if name not in arrays]
    if missing and len(missing) < len(series):
        raise ModelFormatError(f"its histories have no {missing[0]}.")
    entries = {} if missing else series
    notes = {NOTE + name: values for name, values in history.notes.items()}
    n_rounds = len(arrays.get("train_loss", ()))
    for name, values in (entries | notes).items():
        if arrays[name].ndim != 1 or arrays[name].dtype != np.float64 or len(arrays[name]) != n_rounds:
            raise ModelFormatError(
                f"the history {name!r} is not a list of {n_rounds} numbers, one per round.", value=name
            )
        values.extend(arrays[name].tolist())
    return n_rounds


def _best(ensemble: Ensemble, history: History, arrays: dict[str, np.ndarray]) -> Ensemble:
    """Return the ensemble as it was after the best round."""
    best = ensemble.copy(history.best_round())
    now, values = best.arrays(), arrays[BEST]
    if values.dtype != np.float64 or values.shape != now["values"].shape or not np.isfinite(values).all():
        raise ModelFormatError("the values of its best round are damaged.")
    best.rewrite(np.split(values, now["value_offsets"][1:-1]))
    return best
