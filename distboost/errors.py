"""All errors that distboost raises on purpose, and its own category of warnings.

Each message names the value found, the limit, the place and the remedy.
"""

from distboost.message import Message as _Message


class DistboostError(Exception):
    """The base class of all errors of this library."""

    def __init__(self, text: str = ""):
        super().__init__(_Message(text))
        self.marked = self.args[0].marked


class TrainingEndedWarning(UserWarning):
    """A training run ended before its rounds: `outcome_` and the message say why."""


class ArgumentError(DistboostError, TypeError):
    """An argument is of a type that cannot be used."""


class DataError(DistboostError, ValueError):
    """The training or prediction data cannot be used: its shape, its type or a value in it."""


class MissingChunkError(DataError):
    """A chunk of the user's zarr array was never written, and would be read as the fill value."""


class StoreError(DistboostError, OSError):
    """An array, a chunk or a scratch file cannot be read or written, or its content is not what was written."""


class BinnedStoreError(StoreError):
    """A binned store is incomplete, damaged, or of another version."""


class MissingPackageError(DistboostError, ImportError):
    """An optional package is not installed. The message has the command that installs it."""


class ModelFormatError(DistboostError, ValueError):
    """A model file is truncated, altered, or of an unknown version."""


class CheckpointError(DistboostError, OSError):
    """A checkpoint cannot be written: for instance, the disk is full or the folder is not writable."""


class LimitError(DistboostError, ValueError):
    """A count exceeds what the integer sums can hold without overflow, or a memory limit is too small."""


class ClusterError(DistboostError, RuntimeError):
    """The cluster does not answer, or a worker was lost."""


class WorkerError(ClusterError):
    """A failure on a worker that would also occur on any other. The attributes `block`, `stage` and `worker` say where."""
