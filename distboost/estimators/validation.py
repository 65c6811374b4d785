"""Check what a user gives to an estimator."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np

from distboost.data.checks import check_finite, naming
from distboost.data.dataset import Dataset, RawDataset
from distboost.data.labels import is_unicode
from distboost.data.source import load
from distboost.data.sparse import SparseRows
from distboost.errors import DataError
from distboost.estimators.parameters import CommonParameters, n_threads, settings_of
from distboost.inputs.array import ArrayInput
from distboost.inputs.base import Input, LazyInput, NearInput
from distboost.inputs.choose import adapter_of, dataset_of
from distboost.inputs.cube import CubeInput
from distboost.io.options import storage_options
from distboost.model.ensemble import parts_of
from distboost.model.learned import UNNAMED
from distboost.prediction.predictor import Rows
from distboost.prediction.streamed import check_features
from distboost.threads import Threads
from distboost.training.cubes import CubeReading, labelled_of, labelled_rows
from distboost.warn import warn_of_all, warn_user

_MOST = 5  # names that a message lists


def set_features(estimator: CommonParameters, n_features: int, names: np.ndarray | None) -> None:
    """Set `n_features_in_` and `feature_names_in_`, or remove the names of an earlier run."""
    estimator.n_features_in_ = n_features
    if names is not None:
        estimator.feature_names_in_ = names
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_


def columns_named(estimator: CommonParameters) -> AbstractContextManager[None]:
    """Let errors about values name their columns, if the training rows had names."""
    return naming(getattr(estimator, "feature_names_in_", None))


def check_n_features(estimator: CommonParameters, n_features: int, place: str) -> None:
    """Raise DataError if rows have another number of features than those of the training."""
    if n_features != estimator.n_features_in_:
        raise DataError(
            f"{place} has {n_features} features, but ``{type(estimator).__name__}`` is expecting {estimator.n_features_in_} "
            "features as input.",
            where=place,
            value=n_features,
        )


def compare_names(estimator: CommonParameters, names: np.ndarray | None, place: str) -> None:
    """Raise DataError if features have other names than in training; warn if only one of the two has names."""
    known, who = getattr(estimator, "feature_names_in_", None), type(estimator).__name__
    if known is not None and names is not None:
        check_same(known.tolist(), names.tolist(), place)
    elif names is not None:
        warn_user(f"{place} has feature names, but ``{who}`` was fitted without feature names")
    elif known is not None:
        warn_user(f"{place} does not have valid feature names, but ``{who}`` was fitted with feature names")


def check_same(known: list[str] | None, names: list[str], place: str) -> None:
    """Raise DataError if features had other names in training; None: they had none."""
    if known is None or known == names:
        return
    unseen, missing = sorted(set(names) - set(known)), sorted(set(known) - set(names))
    message = "" if place == "``X``" else f"{place}: "
    message += "The feature names should match those that were passed during fit.\n"
    if unseen:
        message += f"Feature names unseen at fit time:\n{_listed(unseen)}"
    if missing:
        message += f"Feature names seen at fit time, yet now missing:\n{_listed(missing)}"
    if not unseen and not missing:
        message += "Feature names must be in the same order as they were in fit.\n"
    raise DataError(message)


def _listed(names: list[str]) -> str:
    return "".join(f"- {name}\n" for name in names[:_MOST]) + ("- ...\n" if len(names) > _MOST else "")


class Given(NamedTuple):
    """The arguments of `fit`."""

    X: Any
    y: Any = None
    sample_weight: Any = None
    eval_set: Any = None


def training_data(estimator: CommonParameters, given: Given, resumed: bool = False) -> Dataset:
    """Return the training rows; set the number and the names of the features.

    If the training is `resumed`, the names must be those of the estimator.
    """
    no_labels = (
        f"``no_labels|This {type(estimator).__name__} estimator requires y to be passed, but the target y is None.`` "
        "Pass one label per row. Only a binned store as ``X`` contains labels."
    )
    data = _labelled(
        estimator,
        adapter_of(given.X, "X", estimator.feature_dim),
        given.y,
        weights=given.sample_weight,
        prefix="",
        no_labels=no_labels,
    )
    names = data.names
    if resumed:
        compare_names(estimator, names, "``X``")
        names = getattr(estimator, "feature_names_in_", None)
    set_features(estimator, data.n_features, names)
    data.set_categorical(estimator.categorical_features, names)
    warn_of_all(data.warnings(estimator.missing_chunks))
    return data


def _labelled(
    estimator: CommonParameters, x: Input, y: Any, *, weights: Any, prefix: str, no_labels: str
) -> Dataset:
    """Return labelled rows, or those of a binned store; `no_labels` is the error if there are no labels."""
    if y is not None:
        return _checked(estimator, x.coded(estimator.categorical_features), y, weights, prefix)
    store = x.store()
    if store is None:
        raise DataError(no_labels)
    if weights is not None:
        raise DataError(
            f"``sample_weight`` cannot be combined with the binned store {store.url!r}, which has its own weights.",
            value=store.url,
            remedy="Bin the data with these weights: ``bin_weights|distboost.bin(X, y, out, sample_weight=...)``.",
        )
    return store


def _checked(
    estimator: CommonParameters, x: Input, y: Any, sample_weight: Any = None, prefix: str = ""
) -> RawDataset:
    """Return labelled rows, of which scikit-learn has checked the arrays that are in memory."""
    if isinstance(x, CubeInput):
        return labelled_of(x, y, sample_weight, reading_of(estimator), prefix)
    x, weights = x.checked(estimator), None
    if sample_weight is not None:
        weights = adapter_of(sample_weight, f"{prefix}sample_weight")
        weights = weights.checked_weights(x.n_rows) if isinstance(x, NearInput) else weights
    return dataset_of(x, adapter_of(y, f"{prefix}y").checked_labels(), weights)


def reading_of(estimator: CommonParameters) -> CubeReading:
    """Return how cubes are read for an estimator."""
    settings = settings_of(estimator)
    return CubeReading(
        estimator.client,
        n_threads(estimator),
        settings.memory_limit,
        settings.scratch,
        estimator.nodata,
        estimator.missing_chunks,
        estimator.verbose,
    )


class EvaluationSet(NamedTuple):
    """Evaluation rows with their name."""

    name: str
    data: Dataset


def evaluation_data(estimator: CommonParameters, eval_set: Any) -> list[EvaluationSet]:
    """Return the sets of evaluation rows."""
    found = []
    for name, entry in _named_sets(eval_set).items():
        place = "eval_set" if name == UNNAMED else f"eval_set {name!r}"
        data = _evaluation_rows(estimator, entry, place)
        if data.n_features != estimator.n_features_in_:
            raise DataError(
                f"{data.place} has {data.n_features} features, but the training rows have {estimator.n_features_in_}.",
                remedy="Pass the same features.",
                where=data.place,
                value=data.n_features,
            )
        if data.n_rows == 0:
            raise DataError(
                f"{data.place} has 0 rows.", remedy="Omit it, or pass at least 1 row.", where=data.place
            )
        compare_names(estimator, data.names, data.place)
        warn_of_all(data.warnings(estimator.missing_chunks))
        found.append(EvaluationSet(name, data))
    return found


def _named_sets(eval_set: Any) -> dict[str, Any]:
    """Return the entries of `eval_set` by name; a set that was given without a name gets one."""
    if eval_set is None:
        return {}
    if isinstance(eval_set, Mapping):
        for name in eval_set:
            if not (isinstance(name, str) and name and is_unicode(name)):
                raise DataError(
                    f"``eval_set`` has a set of the name {name!r:.100}.",
                    value=name,
                    remedy="Name each set by a text.",
                )
        named = dict(eval_set)
    elif isinstance(eval_set, list) and len(eval_set) != 1:
        named = {f"{UNNAMED}_{n}": entry for n, entry in enumerate(eval_set)}
    else:
        named = {UNNAMED: eval_set[0] if isinstance(eval_set, list) else eval_set}
    if not named:
        raise DataError(
            "``eval_set`` is empty.", remedy="Omit it, or pass at least one set: {'name': (X, y)}."
        )
    return named


def _evaluation_rows(estimator: CommonParameters, entry: Any, place: str) -> Dataset:
    """Return the rows of one evaluation set; errors name the `place`."""
    alone = None if isinstance(entry, (tuple, list)) else adapter_of(entry, place)  # for instance, a path
    given = (alone, None) if isinstance(alone, LazyInput) else entry
    if not isinstance(given, (tuple, list)) or len(given) not in (2, 3):
        items = (
            f"{len(given)} items" if isinstance(given, (tuple, list)) else f"the type {type(given).__name__}"
        )
        raise DataError(
            f"``{place}`` has {items}.",
            value=items,
            remedy="Pass ``labelled|(X, y) or (X, y, sample_weight)``.",
        )
    X, y, weights = (*given, None)[:3]
    if isinstance(X, tuple) and any(hasattr(part, "shape") and len(part.shape) > 1 for part in X):
        raise DataError(
            f"``{place}`` is a tuple of sets.",
            remedy="Pass a list, [(X, y), (X2, y2)], or a dict of sets by name.",
        )
    x = ordered(estimator, adapter_of(X, place if y is None else f"{place} X", estimator.feature_dim))
    no_labels = f"``{place}`` has no labels. Pass ``labelled|(X, y) or (X, y, sample_weight)``."
    return _labelled(estimator, x, y, weights=weights, prefix=f"{place} ", no_labels=no_labels)


def judged_data(estimator: CommonParameters, given: Given) -> RawDataset:
    """Return labelled rows to compare predictions with."""
    if given.y is None:
        raise DataError("``y`` is None: pass one label per row, to compare the predictions with.")
    rows = _opened(estimator, given.X).checked(estimator)
    with storage_options(estimator.storage_options):
        y = given.y if isinstance(rows, CubeInput) else adapter_of(given.y, "y").checked_labels()
        data = labelled_rows(rows, y, given.sample_weight, reading_of(estimator))
    check_features(data.x.shape, data.place, estimator.n_features_in_)
    if data.n_rows == 0:
        raise DataError(
            f"{data.place} has 0 rows.", remedy="Pass at least 1 row to evaluate.", where=data.place
        )
    warn_of_all(data.warnings(estimator.missing_chunks))
    return data


def opened_rows(estimator: CommonParameters, X: Any) -> Input:
    """Return rows for prediction, with the codes of the model's labels. Compare the names of their features."""
    rows = _opened(estimator, X)
    warn_of_all(rows.warnings(estimator.missing_chunks))
    return rows


def _opened(estimator: CommonParameters, X: Any) -> Input:
    with storage_options(estimator.storage_options):
        rows = ordered(estimator, adapter_of(X, "X", estimator.feature_dim).values())
    compare_names(estimator, rows.names, "``X``")
    return rows.coded_for(estimator.learned_.ensemble.categories)


def checked_rows(estimator: CommonParameters, rows: Input) -> Rows:
    """Return rows for prediction in memory, (n, n_features) float32, float64 or whole numbers. They are not copied.

    The rows of a data frame, or of a sparse matrix, become numbers when some of them are read. Whether they are finite is not
    checked. Lazy rows are loaded.
    """
    if isinstance(rows, LazyInput):
        rows = ArrayInput(rows.features().loaded(), "X")
    source = rows.checked(estimator).features()
    check_n_features(estimator, source.shape[1], "X")
    if not source.n_rows:  # of a data frame: scikit-learn has checked arrays
        raise DataError(
            f"``X``: Found array with 0 sample(s) (shape={source.shape}) while a minimum of 1 is required."
        )
    found: Rows = source.part(0, source.n_rows)
    return found


def finite_rows(estimator: CommonParameters, rows: Input, threads: Threads) -> np.ndarray | SparseRows:
    """Return rows in memory, as `checked_rows` does, those of a data frame as an array; raise ValueError if one is infinite."""
    given = checked_rows(estimator, rows)
    X = given if isinstance(given, SparseRows) else load(given)

    def check(some: slice) -> None:
        check_finite(X[some], "X", some.start)

    with columns_named(estimator):
        threads.map(check, parts_of(X))
    return X


def check_names(estimator: CommonParameters, X: Any) -> None:
    """Compare the names of the features of X with those of the training."""
    rows = ordered(estimator, adapter_of(X, "X", estimator.feature_dim).values())
    compare_names(estimator, rows.names, "``X``")


def ordered(estimator: CommonParameters, rows: Input) -> Input:
    """Return the variables of a dataset in the order of the training; other rows as they are."""
    return (
        rows.ordered(getattr(estimator, "feature_names_in_", None)) if isinstance(rows, CubeInput) else rows
    )
