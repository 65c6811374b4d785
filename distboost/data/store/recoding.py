"""Read the rows of a binned store by the bin edges and the classes of other rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from distboost.data.blocks import AnyRows, BinnedRows, Profile
from distboost.data.categories import Categories, put_bins
from distboost.data.ingest import joined_edges
from distboost.data.labels import shown
from distboost.errors import DataError
from distboost.kernels import binning


@dataclass(frozen=True)
class Recoding:
    """Turns the bins and class indices of a store into those of other edges and classes.

    Attributes
    ----------
    edges, offsets : ndarray
        The other edges, as `joined_edges` returns them.
    tables : ndarray of shape (n_features, 256), uint8, or None
        The bin of each bin of the store; None: bins follow from the raw values.
    classes : ndarray of shape (n_classes_of_store,), int32
        The class index of each class of the store.
    keep_values : bool
        Whether the rows keep their raw values.
    categories : mapping of int to Categories
        The other categories.
    """

    edges: np.ndarray
    offsets: np.ndarray
    tables: np.ndarray | None
    classes: np.ndarray
    keep_values: bool
    categories: Mapping[int, Categories]

    @classmethod
    def of(cls, own: Profile, other: Profile, has_values: bool, keep_values: bool, url: str) -> Recoding:
        """Return the recoding from a store's own profile to another; raise DataError if there is none."""
        classes = np.minimum(np.searchsorted(other.classes, own.classes), len(other.classes) - 1)
        unknown = own.classes[other.classes[classes] != own.classes]
        if len(unknown):
            raise DataError(
                f"the binned store {url!r} has the label {shown(unknown[0])}, which is none of the {len(other.classes)} "
                "classes of the training rows.",
                remedy="Leave its rows out, or add such rows to the training data.",
                where=url,
            )
        if own.categories.keys() != other.categories.keys():
            raise DataError(
                f"the binned store {url!r} has categories in the features {sorted(own.categories)}, the training rows in "
                f"{sorted(other.categories)}.",
                remedy="Bin it with the same ``categorical_features``.",
                where=url,
            )
        tables = None
        if not has_values:
            tables = np.stack(
                [
                    _category_table(d, own.categories[d], other.categories[d], url)
                    if d in own.categories
                    else _table(d, own.edges[d], other.edges[d], url)
                    for d in range(own.n_features)
                ]
            )
        index = classes.astype(np.int32)
        return cls(*joined_edges(other.edges), tables, index, keep_values, other.categories)

    def __call__(self, rows: AnyRows) -> BinnedRows:
        """Return the rows by the other edges and classes."""
        bins = np.empty(rows.bins.shape, np.uint8)
        if self.tables is None:
            assert rows.values is not None
            binning.bin_rows(rows.values, self.edges, self.offsets, bins)
            put_bins(rows.values, self.categories, 0, bins)
        else:
            for d, table in enumerate(self.tables):
                bins[:, d] = table[rows.bins[:, d]]
        values = rows.values if self.keep_values else None
        return BinnedRows(rows.first, bins, self.classes[rows.labels], rows.weights, values, rows.files)


def _table(feature: int, own: np.ndarray, other: np.ndarray, url: str) -> np.ndarray:
    """Return the bin of each bin of a feature, (256,) uint8, if each of the other edges is an edge of the store, too."""
    missing = np.setdiff1d(other, own)
    if len(missing):
        raise DataError(
            f"the binned store {url!r} was binned by other edges than the training rows: they divide feature {feature} at "
            f"{missing[0]:g}, within a bin of the store.",
            remedy="Bin it with ``keep_values=True``, so that it can be divided there, or pass the raw arrays.",
            where=url,
        )
    table = np.zeros(256, np.uint8)
    table[1 : len(own) + 1] = np.searchsorted(other, own, side="right")
    table[len(own) + 1 :] = len(other) + 1  # missing values
    return table


def _category_table(feature: int, own: Categories, other: Categories, url: str) -> np.ndarray:
    """Return the bin of each bin of a feature, (256,) uint8, if the categories of each bin share another one."""
    bins = own.bins
    codes = other.coded_by(own.labels, feature, f"the binned store {url!r}").codes(own.values)
    found = np.where(np.isnan(codes), other.n_bins, codes).astype(np.uint8)
    table = np.full(256, other.n_bins, np.uint8)
    table[bins] = found
    if (table[bins] != found).any():
        raise DataError(
            f"the binned store {url!r} has rare categories of feature {feature} in one bin, which the training rows have in "
            "different bins.",
            remedy="Bin it with ``keep_values=True``, or pass the raw arrays.",
            where=url,
        )
    return table
