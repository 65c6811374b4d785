"""Every error that distboost raises on purpose.

Each message gives the value found, the limit, the place and what to do about it.
"""


class DistboostError(Exception):
    """The base of all errors of this library."""


class DataError(DistboostError, ValueError):
    """The training or prediction data cannot be used: its shape, its type or a value in it."""


class MissingChunkError(DataError):
    """A chunk of the user's zarr array was never written, and would be read as the fill value."""


class StoreError(DistboostError, OSError):
    """Data cannot be read or written, or do not have the content that was written: an array, a chunk, a scratch file."""


class BinnedStoreError(StoreError):
    """A binned store is incomplete, damaged, or of another version."""


class ModelFormatError(DistboostError, ValueError):
    """A model file is truncated, altered, or of a version that this library does not know."""


class CheckpointError(DistboostError, OSError):
    """A checkpoint cannot be written: the disk is full, or its place is not to be written to."""


class LimitError(DistboostError, ValueError):
    """A count passes what its type has been proven to hold, or a memory limit is too small."""


class ClusterError(DistboostError, RuntimeError):
    """The cluster does not answer, or a worker was lost."""


class WorkerError(ClusterError):
    """Something failed on a worker that would fail on every other: attributes `block`, `stage` and `worker` say where."""
