"""The results of a search on disk: a line of JSON for each run.

A line is found by a digest of all that decides its result: the rows, their folds, the fold that was left out, the parameters, the
metric, and the version of distboost. So a search that was killed goes on, and another search over the same rows uses its results.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from distboost import __version__
from distboost.errors import CheckpointError
from distboost.estimators.parameters import CommonParameters, deciding_parameters
from distboost.io.files import publish, read
from distboost.io.options import url_of
from distboost.io.storage import local_path, only_writer
from distboost.selection.ground import Ground
from distboost.training.events import append_line, cut_incomplete_line

NAME = "trials.jsonl"


class Result(NamedTuple):
    """The result of one run.

    Attributes
    ----------
    score : float
    fit_time, score_time : float
        Seconds.
    """

    score: float
    fit_time: float
    score_time: float


def key_of(model: CommonParameters, ground: Ground, fold: int, metric: str) -> str:
    """Return the digest of all that decides the result of a training run."""
    decides = [
        __version__,
        ground.identity,
        fold,
        metric,
        model.algorithm_name,
        deciding_parameters(model),
    ]
    return hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()


class KeptResults:
    """The results that are known, by their keys. New ones are written to a file, unless there is none."""

    def __init__(self, file: str | None = None):
        self._file = file
        self._content = b""  # of a file in an object store, which cannot append
        self._known: dict[str, Result] = {}
        if file is None:
            return
        path = local_path(file)
        if path is not None:
            cut_incomplete_line(path)
        with suppress(FileNotFoundError):
            self._content = read(file)
        for number, line in enumerate(self._content.splitlines()):
            key, result = _parsed(line, f"line {number + 1} of {file}")
            self._known[key] = result

    def get(self, key: str) -> Result | None:
        """Return the result with this key, if it is known."""
        return self._known.get(key)

    def add(self, key: str, result: Result, about: dict[str, Any]) -> None:
        """Write a result. `about` is for human readers."""
        self._known[key] = result
        if self._file is None:
            return
        line = json.dumps({"key": key, **result._asdict(), **about}).encode() + b"\n"
        path = local_path(self._file)
        if path is not None:
            append_line(path, line)
        else:
            self._content += line
            publish(self._file, self._content)


def _parsed(line: bytes, place: str) -> tuple[str, Result]:
    try:
        found = json.loads(line)
        key, result = found["key"], Result(*(found[name] for name in Result._fields))
        if not (isinstance(key, str) and all(isinstance(value, float) for value in result)):
            raise TypeError("a field has another type")
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(
            f"{place} is not a result of a search ({type(error).__name__}: {error}).",
            remedy="Remove this line, or choose another folder.",
            where=place,
        ) from error
    return key, result


@contextmanager
def kept_results(folder: str | os.PathLike[str] | None) -> Iterator[KeptResults]:
    """Open the results in a folder, or at a URL, which no other process writes meanwhile. None: they are not kept."""
    if folder is None:
        yield KeptResults()
        return
    url = url_of(folder, "checkpoint").rstrip("/")
    with only_writer(url):
        yield KeptResults(f"{url}/{NAME}")
