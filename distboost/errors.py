"""All errors that distboost raises on purpose, and its own category of warnings."""

from typing import Any as _Any
from typing import Self as _Self

from distboost.message import MARK as _MARK
from distboost.message import Message as _Message

_PLAIN = (str, bytes, int, float, bool, type(None))


class DistboostError(Exception):
    """The base class of all errors of this library. Its text is `what` and `remedy`; front ends word each in their own way.

    Attributes
    ----------
    what : str
        What is wrong, with the place, the value and the limit.
    remedy : str or None
        What to do about it.
    where : str or None
        The array, the column, the file, the address or the parameter at fault; by default, the parameter with whose mark the
        sentence begins.
    value : object
        The value found there, or None. On its way from a worker it becomes text, unless it is a text or a number.

    Examples
    --------
    >>> import distboost
    >>> try:
    ...     distboost.GDMCBoostClassifier().fit([[0.0], [float("inf")]], ["a", "b"])
    ... except distboost.errors.DistboostError as error:
    ...     print(error.where, error.value, error.remedy, sep="; ")
    X; inf; Pass finite values, or NaN for missing ones.
    """

    def __init__(
        self, what: str = "", *, remedy: str | None = None, where: object = None, value: _Any = None
    ):
        self.what = _Message(what)
        self.remedy = None if remedy is None else _Message(remedy)
        if where is None and (mark := _MARK.match(self.what.marked)):
            where = mark[2].partition("=")[0]
        self.where = None if where is None else str(where)
        self.value = value
        super().__init__(_Message(f"{self.what.marked} {self._remedy}" if remedy else what))

    @classmethod
    def expected(cls, where: str, value: _Any, expected: str = "", *, remedy: str | None = None) -> _Self:
        """Return the error of a parameter that has this value, and not what is expected. Its name may be marked."""
        what = f"{where} is {value!r:.100}{expected and ', expected '}{expected}."
        return cls(what, remedy=remedy, where=_Message(where), value=value)

    def __reduce__(self) -> _Any:
        value = self.value if isinstance(self.value, _PLAIN) else f"{self.value!r:.100}"
        return type(self), self.args, {**vars(self), "value": value}

    def at(self, place: str) -> _Self:
        """Return the same error with a place in its first sentence: the block, or the worker."""
        what = f"{self.what.marked.removesuffix('.')} ({place})."
        return type(self)(what, remedy=self._remedy, where=self.where, value=self.value)

    def of(self, place: str) -> _Self:
        """Return the same error of a part of `place`, which is where it is."""
        return type(self)(f"{place}: {self.what.marked}", remedy=self._remedy, where=place, value=self.value)

    @property
    def _remedy(self) -> str | None:
        return self.remedy.marked if self.remedy else None


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
