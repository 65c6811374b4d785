"""One table in the containers of all libraries, with the names of its features."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse
import xarray as xr
import zarr

NAMES = ["width", "height", "Länge", "x 4"]


def frame(X, names=NAMES):
    return pd.DataFrame(np.asarray(X), columns=names)


def arrow(X, names=NAMES):
    return pa.table({name: pa.array(X[:, i], from_pandas=True) for i, name in enumerate(names)})


def in_zarr(X, names, path, **options):
    array = zarr.create_array(str(path), data=np.asarray(X), **{"chunks": (50, 3), **options})
    array.attrs["feature_names"] = names
    return array


def in_group(X, names, path):
    group = zarr.create_group(str(path))
    group.attrs["feature_names"] = names
    return group.create_array("x", data=np.asarray(X), chunks=(50, X.shape[1]))


def in_anndata(X, names, path, *, labels=None, kind="csr", zarr_format=3, chunk=64):
    """Write what `AnnData(X, obs, var).write_zarr(path)` writes: X as CSR or CSC, also as a layer, labels as a column of obs."""
    store = zarr.create_group(str(path), zarr_format=zarr_format, attributes={"encoding-type": "anndata"})
    layers = store.create_group("layers", attributes={"encoding-type": "dict"})
    matrix = X if scipy.sparse.issparse(X) else scipy.sparse.csr_array(np.asarray(X))
    for group, name, form in ((store, "X", kind), (layers, "counts", "csc" if kind == "csr" else "csr")):
        found = matrix.asformat(form)
        attributes = {"encoding-type": f"{form}_matrix", "shape": list(found.shape)}
        in_parts(
            group.create_group(name, attributes=attributes),
            chunk,
            data=found.data,
            indices=found.indices,
            indptr=found.indptr,
        )
    var = store.create_group("var", attributes={"encoding-type": "dataframe", "_index": "_index"})
    _in_texts(var, "_index", names)
    if labels is not None:
        obs = store.create_group("obs", attributes={"encoding-type": "dataframe", "_index": "_index"})
        kinds, codes = np.unique(labels, return_inverse=True)
        column = obs.create_group("cell_type", attributes={"encoding-type": "categorical", "ordered": False})
        in_parts(column, chunk, codes=codes.astype(np.int8))
        _in_texts(column, "categories", kinds.tolist())
        _in_texts(obs, "plain", list(labels))
    return store


def in_parts(group, chunk, **arrays):
    for name, values in arrays.items():
        group.create_array(name, data=values, chunks=(min(chunk, max(len(values), 1)),))


def _in_texts(group, name, texts):
    group.create_array(name, data=np.array(texts, np.dtypes.StringDType()), chunks=(max(len(texts), 1),))


def in_xarray(values, names):
    return xr.DataArray(values, dims=("row", "feature"), coords={"feature": names})


# Each makes a container of X (n, 4), with these names, in a folder.
TABLES = {
    "pandas": lambda X, names, tmp: frame(X, names),
    "pandas, nullable": lambda X, names, tmp: frame(X, names).convert_dtypes(),
    "polars": lambda X, names, tmp: pl.DataFrame(X, schema=names),
    "polars, null": lambda X, names, tmp: pl.DataFrame(X, schema=names).fill_nan(None),
    "pyarrow Table": lambda X, names, tmp: arrow(X, names),
    "pyarrow Table of two chunks": lambda X, names, tmp: pa.concat_tables(
        [arrow(X[:90], names), arrow(X[90:], names)]
    ),
    "pyarrow RecordBatch": lambda X, names, tmp: arrow(X, names).to_batches()[0],
    "dask DataFrame": lambda X, names, tmp: dd.from_pandas(frame(X, names), npartitions=3),
    "xarray": lambda X, names, tmp: in_xarray(X, names),
    "xarray of dask": lambda X, names, tmp: in_xarray(da.from_array(X, chunks=(70, 3)), names),
    "zarr": lambda X, names, tmp: in_zarr(X, names, tmp / "a.zarr"),
    "path of zarr": lambda X, names, tmp: in_zarr(X, names, tmp / "b.zarr") and str(tmp / "b.zarr"),
    "zarr in a named group": lambda X, names, tmp: in_group(X, names, tmp / "c.zarr"),
    "path of zarr in a named group": lambda X, names, tmp: (
        in_group(X, names, tmp / "d.zarr") and tmp / "d.zarr/x"
    ),
    "path of Parquet": lambda X, names, tmp: _in_parquet(X, names, tmp / "f.parquet"),
    "path of AnnData": lambda X, names, tmp: in_anndata(X, names, tmp / "g.zarr") and str(tmp / "g.zarr/X"),
    "zarr in a named group, format 2": lambda X, names, tmp: _in_group_2(X, names, tmp / "e.zarr"),
}


def _in_parquet(X, names, path):
    pq.write_table(arrow(X, names), path, row_group_size=40)
    return str(path)


def _in_group_2(X, names, path):
    group = zarr.create_group(str(path), zarr_format=2)
    group.attrs["feature_names"] = names
    group.create_array("x", data=np.asarray(X), chunks=(50, X.shape[1]))
    return str(path / "x")
