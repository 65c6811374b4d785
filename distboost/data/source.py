"""The interface of sources: rows of an array, read a span of rows at a time."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from distboost.data.axes import Axis
from distboost.data.parts import load


class Source(ABC):
    """Rows of an array of one or two dimensions.

    Attributes
    ----------
    shape : tuple of int
    dtype : numpy.dtype
    place : str
        The name of the array in messages.
    axes : tuple of Axis
        The chunks along each axis. Reads that begin and end at chunk boundaries are the cheapest.
    chunk_bytes : int
        Bytes of the largest chunk that a read has to decode; 0 if nothing is decoded.
    read_copies : int
        The largest number of such chunks that a read holds: an encoded one, decoded ones, and the values that are returned.
    copies : int
        The copies of a whole part in memory while it is used; 0 if it is read piece by piece.
    is_near : bool
        Whether the values are in this process's memory.
    categorical : tuple of int
        The columns whose values are categories, ascending.
    labels : mapping of int to tuple
        The labels of such columns, if their values are codes of labels.
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    place: str
    axes: tuple[Axis, ...]
    chunk_bytes: int = 0
    read_copies: int = 4
    copies: int = 1
    is_near: bool = False
    categorical: tuple[int, ...] = ()
    labels: Mapping[int, tuple[Any, ...]] = MappingProxyType({})

    @property
    def row_bytes(self) -> int:
        """The size of the values of a row, in bytes."""
        return math.prod(self.shape[1:]) * self.dtype.itemsize

    @property
    def n_rows(self) -> int:
        return self.shape[0]

    @property
    def chunk_rows(self) -> int:
        """Rows of the tallest chunk."""
        return self.axes[0].chunk

    @abstractmethod
    def part(self, start: int, stop: int, columns: tuple[int, int] | None = None) -> Any:
        """Return what a worker needs to load the rows start .. stop - 1 of all columns, or of columns[0] .. columns[1] - 1."""

    def read(self, start: int, stop: int) -> np.ndarray:
        """Read the rows start .. stop - 1, (stop - start, ...), in this thread."""
        return load(self.part(start, stop))
