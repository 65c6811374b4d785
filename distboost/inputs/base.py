"""The interface of adapters: all that the package asks of rows, labels and weights, whatever holds them."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from distboost.data.categories import Categories
from distboost.data.checks import refuse_date_types
from distboost.data.source import Source
from distboost.errors import DataError

if TYPE_CHECKING:  # its import takes half a second and 14 MB, which rows in memory do not need
    import dask.array as da

    from distboost.data.store.store import BinnedStore

BLOCK_BYTES = 2**26  # bytes of whole rows that are predicted together, unless a chunk is larger

Labels = Mapping[int, tuple[Any, ...]]  # of the columns that have some, in the order of their codes


def is_instance(data: Any, library: str, *names: str) -> bool:
    """Whether `data` is of one of these classes of a library. A library that nobody has imported has made nothing."""
    module = sys.modules.get(library)
    return any(isinstance(data, getattr(module, name, ())) for name in names)


def texts(names: list[Any], place: str) -> np.ndarray | None:
    """Return names of features, (n_features,) object. As in scikit-learn, columns without any text as a name have none.

    Raises
    ------
    TypeError
        If some names are texts and others are not.
    """
    n_texts = sum(isinstance(name, str) for name in names)
    if not n_texts:
        return None
    if n_texts < len(names):
        types = sorted({type(name).__qualname__ for name in names})
        raise TypeError(
            "Feature names are only supported if all input features have string names, but "
            f"{place} has {types} as feature name / column name types. If you want feature names to be stored and validated, you "
            "must convert them all to strings, by using X.columns = X.columns.astype(str) for example. Otherwise you can remove "
            "feature / column names from your input data, or convert them all to a non-string data type."
        )
    return np.array(names, dtype=object)


class Input(ABC):
    """Rows, labels or weights as a user passed them, in one kind of container.

    Parameters
    ----------
    data : Any
    place : str
        Its name in messages.
    names : ndarray of shape (n_features,), object, or None
        The names of the features, if the container itself has none.

    Attributes
    ----------
    labels : mapping of int to tuple
        The labels of columns that have codes in place of labels.
    """

    def __init__(self, data: Any, place: str, names: np.ndarray | None = None):
        self.data, self.place, self._names = data, place, names
        self.labels: Labels = {}

    @classmethod
    @abstractmethod
    def recognises(cls, data: Any) -> bool:
        """Whether `data` is such a container."""

    @classmethod
    def of(cls, data: Any, place: str) -> Input:
        """Return the adapter; raise DataError if this container cannot be read."""
        return cls(data, place)

    @property
    def is_known_to_sklearn(self) -> bool:
        """Whether scikit-learn's metrics take such labels as they are."""
        return False

    @property
    def names(self) -> np.ndarray | None:
        """The names of the features, (n_features,) object; None if they have none."""
        return self._names

    def checked(self, estimator: Any) -> Input:
        """Return features as scikit-learn checks those in memory."""
        return self

    def checked_labels(self) -> Input:
        """Return labels as scikit-learn checks those in memory."""
        return self

    def checked_weights(self, n_rows: int) -> Input:
        """Return the weights of rows that are in memory as scikit-learn checks those in memory."""
        return self

    def coded(self, categorical_features: Any) -> Input:
        """Return features with codes, and `labels`, in place of the values of columns that have labels."""
        return self

    def coded_for(self, categories: Mapping[int, Categories]) -> Input:
        """Return features with the codes of a model's labels; raise DataError if the model has some, but these cannot."""
        for d, known in categories.items():
            if known.labels is not None:
                raise DataError(
                    f"feature {d} has labels in the model, such as {known.labels[0]!r:.100}, but {self.place} is not a data "
                    "frame.",
                    remedy="Pass a data frame with the columns of the training rows.",
                    where=self.place,
                    value=known.labels[0],
                )
        return self

    def values(self) -> Input:
        """Return the raw values of features: those of a binned store that keeps them, else these."""
        return self

    def store(self) -> BinnedStore | None:
        """Return the binned store that this is, with labels and weights of its own."""
        return None

    def warnings(self, policy: str) -> list[str]:
        """Return the warnings about rows in storage that are to be predicted, as `Source.warnings` does."""
        return []

    def taken(self, rows: np.ndarray) -> NearInput | None:
        """Return these rows in a container of the same kind, if it is in memory and has more than numbers."""
        return None

    @abstractmethod
    def source(self, of_features: bool) -> Source:
        """Return the source of the values as they are, of any shape: of features, or else of labels, weights or groups."""

    def features(self, source: Source | None = None) -> Source:
        """Return the source of features: `source`, if it is known."""
        found = self.source(True) if source is None else source
        if not found.shape:
            raise self.no_rows()
        refuse_date_types(found.dtype, found.place)
        found.labels = self.labels
        return found

    def column(self, source: Source | None = None) -> Source:
        """Return the source of labels, weights or groups, one value for each row: `source`, if it is known."""
        found = self.source(False) if source is None else source
        if not found.shape:
            raise DataError(
                f"{self.place} is a single value.", remedy="Pass one value per row.", where=self.place
            )
        return found

    def no_rows(self) -> DataError:
        """Return the error for features that are no array."""
        return DataError(
            f"{self.place} is of type {type(self.data).__name__}.",
            remedy="Pass an array of numbers, a data frame, a zarr or Dask array, or the path or URL of a zarr array or of "
            "Parquet files.",
            where=self.place,
        )


class NearInput(Input):
    """Rows in memory."""

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """The number of rows."""

    @abstractmethod
    def first(self, n: int) -> NearInput:
        """Return the first n rows."""

    @abstractmethod
    def joined(self, other: Any) -> NearInput:
        """Return these rows, then others in a container of the same kind."""


class LazyInput(Input):
    """Rows that are not in memory: predictions for them are lazy arrays."""

    @property
    @abstractmethod
    def rows(self) -> da.Array:
        """The rows as a dask array with chunks of known sizes; of whole rows, if there are two dimensions."""
