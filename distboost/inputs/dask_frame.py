"""Data frames of Dask: each partition becomes numbers, or codes of labels, by itself."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import narwhals as nw
import numpy as np

from distboost.errors import DataError
from distboost.inputs.base import Input, Labels, is_instance
from distboost.inputs.dask_array import DaskInput, keeper_of
from distboost.inputs.frame import FrameRows, TableInput, as_frame, coded_frame

if TYPE_CHECKING:
    import dask.array as da


class DaskFrameInput(TableInput, DaskInput):
    """A data frame of Dask."""

    @classmethod
    def recognises(cls, data: Any) -> bool:
        return is_instance(data, "dask.dataframe", "DataFrame")

    @cached_property
    def frame(self) -> nw.DataFrame[Any]:
        return as_frame(self.data._meta, self.place)

    def array(self, of_features: bool) -> da.Array:
        """Return the dask array of the numbers.

        Its dtype follows from Dask's declared types. Each partition has the type of its own columns, which may differ.
        """
        if not of_features:
            return super().array(False)
        like = FrameRows.of(self.frame, self.place)
        meta = np.empty(like.shape, like.dtype)
        return cast("da.Array", self.data.map_partitions(_numbers, Partitions(self), meta=meta))

    def _measured_rows(self) -> da.Array:
        array = self.array(True)
        keeper = keeper_of({self.place: self.data})
        with nullcontext() if keeper is None else keeper.client.as_current():
            array._chunks = (tuple(map(int, self.data.map_partitions(len).compute())), *array.chunks[1:])
        return array

    def _labels_of(self, column: nw.Series[Any]) -> list[Any]:
        dtype = getattr(column.to_native(), "dtype", None)
        found = getattr(dtype, "categories", None)
        if found is None or "__UNKNOWN_CATEGORIES__" in found:
            raise DataError(
                f"the categories of column {column.name!r} of {self.place} are not known before its partitions are computed.",
                remedy=f"Find them first: X.categorize(columns=[{column.name!r}]).",
                where=self.place,
                value=column.name,
            )
        return list(found.tolist())

    def _coded_by(self, labels: Labels, are_all: bool) -> Input:
        meta = coded_frame(self.frame, self.place, labels, False)
        coded = self.data.map_partitions(_coded, Partitions(self), labels, are_all, meta=meta)
        return DaskFrameInput(coded, self.place, labels)


class Partitions:
    """What Dask declares of the partitions of a data frame, some of which may differ from it."""

    def __init__(self, given: DaskFrameInput):
        self.place, self.names = given.place, given.frame.columns
        self.declared = ", ".join(f"{name!r}: {kind}" for name, kind in given.frame.schema.items())

    def frame_of(
        self, partition: Any, partition_info: Mapping[str, Any] | None
    ) -> tuple[nw.DataFrame[Any], str]:
        """Return a partition with the declared columns in their declared order, and its name in messages.

        `partition_info` is what Dask passes to a function of partitions.

        Raises
        ------
        DataError
            If it has other columns.
        """
        number = -1 if partition_info is None else partition_info["number"]
        place = f"partition {number} of {self.place}"
        frame = as_frame(partition, place)
        if frame.columns == self.names:
            return frame, place
        if sorted(map(str, frame.columns)) != sorted(map(str, self.names)):
            raise DataError(
                f"{place} has the columns {frame.columns!r:.200}, but Dask declares {self.names!r:.200}.",
                remedy="Select or rename the columns of each partition, as in X.map_partitions(select).",
                where=place,
                value=frame.columns,
            )
        return frame[:, [frame.columns.index(name) for name in self.names]], place


def _numbers(
    partition: Any, partitions: Partitions, partition_info: Mapping[str, Any] | None = None
) -> np.ndarray:
    frame, place = partitions.frame_of(partition, partition_info)
    try:
        return FrameRows.of(frame, place).load()
    except DataError as error:
        raise DataError(f"{error} (Dask declares {partitions.declared}.)") from error


def _coded(
    partition: Any,
    partitions: Partitions,
    labels: Labels,
    are_all: bool,
    partition_info: Mapping[str, Any] | None = None,
) -> Any:
    return coded_frame(*partitions.frame_of(partition, partition_info), labels, are_all)
