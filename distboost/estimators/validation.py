"""Check what a user gives to an estimator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import _check_sample_weight, check_array, column_or_1d

from distboost.data.categories import resolved
from distboost.data.checks import check_finite, first_text
from distboost.data.dataset import Dataset, RawDataset
from distboost.data.encoding import encoded, encoded_for
from distboost.data.frames import FrameRows, as_frame, is_frame
from distboost.data.labels import is_unicode
from distboost.data.masked import nullable_labels, unmasked
from distboost.data.missing import warn_about
from distboost.data.names import Named, names_of, without_names
from distboost.data.parts import load
from distboost.data.real import refuse_unreal
from distboost.data.sources import as_features, is_dask, is_lazy, no_rows, opened
from distboost.data.store.store import BinnedStore
from distboost.data.store.values import open_rows
from distboost.errors import ArgumentError, DataError
from distboost.estimators.names import check_n_features, columns_named, compare_names, set_features
from distboost.estimators.parameters import CommonParameters
from distboost.io.options import storage_options
from distboost.model.ensemble import slices
from distboost.model.history import UNNAMED
from distboost.prediction import lazy
from distboost.prediction.streamed import check_features
from distboost.threads import Threads
from distboost.warn import warn_user

# Arrays of these types are not copied: they are read a piece at a time. Others become float64.
_NUMBERS: dict[str, Any] = {
    "dtype": [np.float64, np.float32, *(np.dtype(f"{kind}{size}") for kind in "iu" for size in (1, 2, 4, 8))],
    "ensure_all_finite": False,  # checked where the row numbers are known, so that errors can name them
}


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
    X, y, sample_weight = given.X, given.y, given.sample_weight
    data: Dataset
    if y is None and is_lazy(X) and BinnedStore.is_at(X):
        data = _opened_store(X, sample_weight)
    elif y is None:
        opened(X, "X")  # whose own error is the better one
        raise DataError(
            f"``no_labels|This {type(estimator).__name__} estimator requires y to be passed, but the target y is None.`` "
            "Pass one label per row. Only a binned store as ``X`` contains labels."
        )
    else:
        X, labels = encoded(X, "X", estimator.categorical_features)
        X, y, sample_weight = _checked(estimator, X, y, sample_weight)
        data = RawDataset.of(X, y, sample_weight)
        data.sources.x.labels = labels
    names = data.names
    if resumed:
        compare_names(estimator, names, "``X``")
        names = getattr(estimator, "feature_names_in_", None)
    set_features(estimator, data.n_features, names)
    set_categories(data, estimator.categorical_features, names)
    _warn_of(data, estimator)
    return data


def _warn_of(data: Dataset, estimator: CommonParameters) -> None:
    """Warn of chunks that are missing and the like, as the estimator's parameters say."""
    for message in data.warnings(estimator.missing_chunks):
        warn_user(message)


def set_categories(data: Dataset, given: Any, names: np.ndarray | None) -> None:
    """Tell the rows which of their features have categories; raise an error if `categorical_features` does not fit them."""
    if isinstance(data, RawDataset):
        x = data.sources.x
        x.categorical = tuple(sorted({*resolved(given, data.n_features, names), *x.labels}))
        return
    assert isinstance(data, BinnedStore)
    is_from_dtype = isinstance(given, str) and given == "from_dtype"
    if not is_from_dtype and resolved(given, data.n_features, names) != data.categorical:
        raise DataError(
            f"the binned store {data.url!r} has categories in the features {[*data.categorical]}, but ``categorical_features`` "
            f"is {given!r:.100}. Leave it at 'from_dtype', or bin again with these."
        )


def _checked(
    estimator: CommonParameters, X: Any, y: Any, sample_weight: Any, prefix: str = ""
) -> tuple[Any, ...]:
    """Return features, labels and weights, of which scikit-learn has checked those that are arrays in memory."""
    if not is_lazy(X):
        X = _in_memory(estimator, X, f"{prefix}X")
        if sample_weight is not None and not is_lazy(sample_weight):
            sample_weight = _weights_in_memory(sample_weight, X, prefix)
    if not is_lazy(y):
        with _refusals(f"{prefix}y"):
            y = column_or_1d(unmasked(nullable_labels(y)), warn=True)
    return X, y, sample_weight


def _weights_in_memory(sample_weight: Any, X: Any, prefix: str) -> np.ndarray:
    """Return weights in memory as scikit-learn checks them, one for each row of X, which is in memory, too."""
    place = f"{prefix}sample_weight"
    sample_weight = unmasked(sample_weight)
    rows = as_frame(X, f"{prefix}X") if is_frame(X) else X
    with _refusals(place):
        refuse_unreal(np.asarray(sample_weight), place)
        weights: np.ndarray = _check_sample_weight(sample_weight, rows, dtype=np.float64)
    return weights


@contextmanager
def _refusals(place: str) -> Iterator[None]:
    """Turn an error of scikit-learn into a DataError with its text, and with the place unless the text begins with it."""
    try:
        yield
    except DataError:
        raise
    except (TypeError, ValueError) as error:
        text = str(error)
        raise DataError(text if text.startswith(place) else f"{place}: {text}") from error


def _in_memory(estimator: CommonParameters, X: Any, place: str) -> Any:
    """Return features in memory: a data frame as it is, an array checked by scikit-learn, with its names if it has some."""
    X = opened(X, place)
    if is_frame(X):
        return X
    names, values = names_of(X, place), without_names(X)
    values = _as_array(values, place)
    if isinstance(values, np.ndarray):
        refuse_unreal(values, place)
    try:
        values = check_array(values, input_name="X", estimator=estimator, **_NUMBERS)
    except TypeError as error:
        raise ArgumentError(f"{place}: {error}") from error
    except ValueError as error:
        text = first_text(values)
        if text is None:
            raise DataError(f"{place}: {error}") from error
        raise DataError(
            f"column {text.column} of {place} has the text {text.value!r:.100} in row {text.row}, which is no number. Encode it, "
            "or pass a data frame, of which ``categorical_features`` may name columns of text."
        ) from error
    return values if names is None else Named(values, names)


def _as_array(values: Any, place: str) -> Any:
    """Return lists as an array, and what has an array's interface as it is; raise DataError if it is anything else."""
    if hasattr(values, "__array__") or issparse(values):
        return values
    try:
        found = np.asarray(values)
    except ValueError as error:
        raise DataError(
            f"the rows of {place} have different lengths. Pass one number per feature for each row."
        ) from error
    if found.ndim == 0:
        raise no_rows(place, values)
    return found


def _opened_store(X: Any, sample_weight: Any) -> BinnedStore:
    store = BinnedStore.open(X)
    if sample_weight is not None:
        raise DataError(
            f"``sample_weight`` cannot be combined with the binned store {store.url!r}, which has its own weights. Bin the data "
            "with these weights: ``bin_weights|distboost.bin(X, y, out, sample_weight=...)``."
        )
    return store


class EvaluationSet(NamedTuple):
    """Evaluation rows with their name."""

    name: str
    data: RawDataset | BinnedStore


def evaluation_data(estimator: CommonParameters, eval_set: Any) -> list[EvaluationSet]:
    """Return the sets of evaluation rows."""
    found = []
    for name, entry in _named_sets(eval_set).items():
        place = "eval_set" if name == UNNAMED else f"eval_set {name!r}"
        data = _evaluation_rows(estimator, entry, place)
        if data.n_features != estimator.n_features_in_:
            raise DataError(
                f"{_place_of(data)} has {data.n_features} features, but the training rows have {estimator.n_features_in_}. Pass "
                "the same features."
            )
        if data.n_rows == 0:
            raise DataError(f"{_place_of(data)} has 0 rows. Omit it, or pass at least 1 row.")
        compare_names(estimator, data.names, _place_of(data))
        _warn_of(data, estimator)
        found.append(EvaluationSet(name, data))
    return found


def _named_sets(eval_set: Any) -> dict[str, Any]:
    """Return the entries of `eval_set` by name; a set that was given without a name gets one."""
    if eval_set is None:
        return {}
    if isinstance(eval_set, Mapping):
        for name in eval_set:
            if not (isinstance(name, str) and name and is_unicode(name)):
                raise DataError(f"``eval_set`` has a set of the name {name!r:.100}. Name each set by a text.")
        named = dict(eval_set)
    elif isinstance(eval_set, list) and len(eval_set) != 1:
        named = {f"{UNNAMED}_{n}": entry for n, entry in enumerate(eval_set)}
    else:
        named = {UNNAMED: eval_set[0] if isinstance(eval_set, list) else eval_set}
    if not named:
        raise DataError("``eval_set`` is empty. Omit it, or pass at least one set: {'name': (X, y)}.")
    return named


def _place_of(data: RawDataset | BinnedStore) -> str:
    return data.place if isinstance(data, RawDataset) else f"the binned store {data.url!r}"


def _evaluation_rows(estimator: CommonParameters, entry: Any, place: str) -> RawDataset | BinnedStore:
    """Return the rows of one evaluation set; errors name the `place`."""
    given = (entry, None) if is_lazy(entry) else entry  # for instance, a path
    if not isinstance(given, (tuple, list)) or len(given) not in (2, 3):
        items = (
            f"{len(given)} items" if isinstance(given, (tuple, list)) else f"the type {type(given).__name__}"
        )
        raise DataError(f"``{place}`` has {items}. Pass ``labelled|(X, y) or (X, y, sample_weight)``.")
    X, y, weights = (*given, None)[:3]
    if y is None and is_lazy(X) and BinnedStore.is_at(X):
        return _opened_store(X, weights)
    if y is None:
        opened(X, place)  # raises if there is nothing at a path
        raise DataError(f"``{place}`` has no labels. Pass ``labelled|(X, y) or (X, y, sample_weight)``.")
    if isinstance(X, tuple) and any(hasattr(part, "shape") and len(part.shape) > 1 for part in X):
        raise DataError(
            f"``{place}`` is a tuple of sets. Pass a list, [(X, y), (X2, y2)], or a dict of sets by name."
        )
    X, labels = encoded(X, f"{place} X", estimator.categorical_features)
    X, y, weights = _checked(estimator, X, y, weights, f"{place} ")
    data = RawDataset.of(X, y, weights, prefix=f"{place} ")
    data.sources.x.labels = labels
    return data


def judged_data(estimator: CommonParameters, given: Given) -> RawDataset:
    """Return labelled rows to compare predictions with."""
    X, y = given.X, given.y
    if y is None:
        raise DataError("``y`` is None: pass one label per row, to compare the predictions with.")
    with storage_options(estimator.storage_options):
        X = open_rows(X, "X")
        compare_names(estimator, names_of(X, "X"), "``X``")
        X = encoded_for(X, "X", estimator.learned_.ensemble.categories)
        X, y, _ = _checked(estimator, X, y, None)
        data = RawDataset.of(X, y, given.sample_weight)
    check_features(data.sources.x, estimator.n_features_in_)
    if data.n_rows == 0:
        raise DataError(f"{data.place} has 0 rows. Pass at least 1 row to evaluate.")
    _warn_of(data, estimator)
    return data


def checked_rows(estimator: CommonParameters, X: Any) -> np.ndarray | FrameRows:
    """Return rows in memory for prediction, (n, n_features) float32, float64 or whole numbers. They are not copied.

    The rows of a data frame become numbers when some of them are read. Whether they are finite is not checked. Lazy rows, as
    `opened_rows` returns them, are loaded.
    """
    X = (
        lazy.loaded(as_features(X, "X"))
        if is_lazy(X)
        else encoded_for(X, "X", estimator.learned_.ensemble.categories)
    )
    source = as_features(_in_memory(estimator, X, "X"), "X")
    check_n_features(estimator, source.shape[1], "X")
    if not source.n_rows:  # of a data frame: scikit-learn has checked arrays
        raise DataError(
            f"``X``: Found array with 0 sample(s) (shape={source.shape}) while a minimum of 1 is required."
        )
    rows: np.ndarray | FrameRows = source.part(0, source.n_rows)
    return rows


def finite_rows(estimator: CommonParameters, X: Any, threads: Threads) -> np.ndarray:
    """Return rows in memory as one array, as `checked_rows` does; raise ValueError if a value is infinite."""
    rows = load(checked_rows(estimator, X))

    def check(some: slice) -> None:
        check_finite(rows[some], "X", some.start)

    with columns_named(estimator):
        threads.map(check, slices(len(rows)))
    return rows


def check_names(estimator: CommonParameters, X: Any) -> None:
    """Compare the names of the features of X with those of the training."""
    compare_names(estimator, names_of(open_rows(X, "X"), "X"), "``X``")


def opened_rows(estimator: CommonParameters, X: Any) -> Any:
    """Return rows for prediction: lazy ones as an array or a source, others as they are. Compare the names of their features."""
    with storage_options(estimator.storage_options):
        X = open_rows(X, "X")
    compare_names(estimator, names_of(X, "X"), "``X``")
    if is_lazy(X):
        X = encoded_for(X, "X", estimator.learned_.ensemble.categories)
        if not is_dask(X):
            X = as_features(X, "X")
            warn_about(X, estimator.missing_chunks)
    return X
