"""Arrays in the forms that `fit` accepts."""

import dask.array as da
import zarr

N = 240
CHUNK = 50


def to_numpy(array, path):
    return array


def to_zarr(array, path):
    out = zarr.create_array(
        str(path),
        shape=array.shape,
        chunks=(CHUNK, *array.shape[1:]),
        dtype=array.dtype,
        config={"write_empty_chunks": True},
    )
    out[...] = array
    return out


def to_dask(array, path):
    return da.from_array(array, chunks=(CHUNK, *array.shape[1:]))


FORMS = {"numpy": to_numpy, "zarr": to_zarr, "dask": to_dask}
