"""The choice of an adapter: each container has one, and a new one needs no more than its file and its place in the list."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
import xarray as xr
import zarr

import distboost
from distboost import GDMCBoostClassifier
from distboost.data.source import ArraySource
from distboost.inputs import choose
from distboost.inputs.anndata import EncodedInput
from distboost.inputs.array import ArrayInput
from distboost.inputs.base import Input
from distboost.inputs.binned_store import StoreInput
from distboost.inputs.choose import adapter_of
from distboost.inputs.dask_array import DaskInput
from distboost.inputs.dask_frame import DaskFrameInput
from distboost.inputs.frame import FrameInput
from distboost.inputs.parquet import ParquetInput
from distboost.inputs.sparse import SparseInput
from distboost.inputs.zarr_array import ZarrInput
from tests.data.tables import in_anndata

X = np.arange(12.0).reshape(6, 2)
FRAME = pd.DataFrame(X, columns=["a", "b"])
KINDS = {
    "array": (lambda folder: X, ArrayInput),
    "list": (lambda folder: X.tolist(), ArrayInput),
    "series": (lambda folder: FRAME["a"], ArrayInput),
    "pandas": (lambda folder: FRAME, FrameInput),
    "polars": (lambda folder: pl.DataFrame({"a": X[:, 0]}), FrameInput),
    "pyarrow": (lambda folder: pa.table({"a": X[:, 0]}), FrameInput),
    "zarr": (lambda folder: zarr.create_array(zarr.storage.MemoryStore(), data=X), ZarrInput),
    "path": (lambda folder: zarr.create_array(str(folder / "x"), data=X) and folder / "x", ZarrInput),
    "parquet": (lambda folder: FRAME.to_parquet(folder / "x.parquet") or folder / "x.parquet", ParquetInput),
    "dask array": (lambda folder: da.from_array(X, chunks=(2, 2)), DaskInput),
    "dask series": (lambda folder: dd.from_pandas(FRAME["a"], npartitions=2), DaskInput),
    "dask frame": (lambda folder: dd.from_pandas(FRAME, npartitions=2), DaskFrameInput),
    "xarray": (lambda folder: xr.DataArray(X), ArrayInput),
    "xarray of dask": (lambda folder: xr.DataArray(da.from_array(X)), DaskInput),
    "sparse": (lambda folder: scipy.sparse.csc_array(X), SparseInput),
    "AnnData": (lambda folder: in_anndata(X, ["a", "b"], folder / "a") and folder / "a", EncodedInput),
    "store": (lambda folder: distboost.bin(X, [0, 1] * 3, str(folder / "store")), StoreInput),
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_container_has_its_adapter(kind, tmp_path):
    make, expected = KINDS[kind]
    found = adapter_of(make(tmp_path), "X")
    assert type(found) is expected
    assert adapter_of(found, "y") is found


class Columns:
    """Rows that are held column by column, as no library does it."""

    def __init__(self, X):
        self.columns = list(np.asarray(X).T)


class ColumnsInput(Input):
    """A further adapter."""

    @classmethod
    def recognises(cls, data):
        return isinstance(data, Columns)

    def source(self, of_features):
        return ArraySource(np.column_stack(self.data.columns), self.place)


def test_a_further_adapter_is_one_entry_of_the_list(blobs, monkeypatch):
    rows, y = np.asarray(blobs[0]), np.asarray(blobs[1])
    monkeypatch.setattr(choose, "ADAPTERS", (ColumnsInput, *choose.ADAPTERS))
    model = GDMCBoostClassifier(calibration=None, n_estimators=3)
    found = model.fit(Columns(rows), y, eval_set=(Columns(rows), y)).digest()
    assert found == model.fit(rows, y, eval_set=(rows, y)).digest()
    np.testing.assert_array_equal(model.predict(Columns(rows)), model.predict(rows))
    assert distboost.evaluate(model, Columns(rows), y)["accuracy"] == model.score(rows, y)
