"""The scores of all rows of a pool, cached on disk between queries, so that a query adds only those of new rounds."""

from __future__ import annotations

import asyncio
import os
import tempfile
import threading
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from distboost.active.strategies import Boosted
from distboost.io.options import StorageOptions, storage_options
from distboost.io.storage import check_space, local_path, read_array, write_array
from distboost.io.temporary import own, release, remove, temporary_url
from distboost.model.ensemble import Ensemble
from distboost.runtime.base import Runtime


class CachedScores(NamedTuple):
    """Where a query reads the cached scores of a block, and where it writes the updated ones.

    The two folders differ, so that a task can run again when its worker is lost.

    Attributes
    ----------
    read_from : str or None
        Folder of the scores after the first `n_rounds` rounds; None if nothing is cached.
    n_rounds : int
    n_scores : int
        Of each row.
    write_to : str
        Folder of the scores after all rounds. The same as `read_from` if no round is new.
    options : StorageOptions
        With which workers open these folders.
    """

    read_from: str | None
    n_rounds: int
    n_scores: int
    write_to: str
    options: StorageOptions

    def scores(self, committee: Boosted, X: np.ndarray, first: int) -> np.ndarray:
        """Return the scores G (n, n_scores), float64, of the rows X (n, n_features) that begin with row `first`; cache them."""
        with storage_options(self.options):
            if self.read_from is None:
                G = np.zeros((len(X), committee.ensemble.n_scores))
            else:
                G = read_array(f"{self.read_from}/{first}")
            if self.read_from != self.write_to:
                committee.add_scores(X, G, self.n_rounds)
                write_array(f"{self.write_to}/{first}", G)
        return G


class ScoreCache:
    """The scores of a pool under an ensemble that grows.

    Parameters
    ----------
    scratch : str, path or None
        Folder or URL; None: the system's folder of temporary files. The cached scores are removed with this object.
    options : mapping or None, default=None
        Storage options of a URL.
    """

    def __init__(self, scratch: str | os.PathLike[str] | None, options: Mapping[str, Any] | None = None):
        base = tempfile.gettempdir() if scratch is None else os.fspath(scratch)
        path = local_path(base)
        # Absolute: workers need not share the working directory of this process.
        self._base = base if path is None else str(path.absolute())
        self._url = temporary_url(self._base, "distboost-scores")
        self._ensemble: Ensemble | None = None  # whose scores are cached
        self._options = StorageOptions(options or {})
        self._removed = weakref.finalize(self, _release, self._url, self._options)

    @contextmanager
    def updated(self, ensemble: Ensemble, n_rows: int, runtime: Runtime) -> Iterator[CachedScores]:
        """Yield the cache to a query that computes the scores of all rows. If it succeeds, the next query finds these scores."""
        with storage_options(self._options):
            cached = self._cached(ensemble)
            if cached.read_from != cached.write_to:
                remove(cached.write_to)  # remains of a query that failed
                folder = local_path(self._url)
                if folder is not None:
                    own(folder)
                    os.makedirs(cached.write_to, exist_ok=True)
                    runtime.check_shared(cached.write_to)
                    check_space(cached.write_to, n_rows * ensemble.n_scores * 8)
            yield cached
            self._ensemble = ensemble
            if cached.read_from not in (None, cached.write_to):
                remove(cached.read_from)

    def _cached(self, ensemble: Ensemble) -> CachedScores:
        write_to = f"{self._url}/{len(ensemble)}"
        if self._ensemble is None or not ensemble.begins_with(self._ensemble):
            remove(self._url)
            return CachedScores(None, 0, ensemble.n_scores, write_to, self._options)
        n_rounds = len(self._ensemble)
        return CachedScores(f"{self._url}/{n_rounds}", n_rounds, ensemble.n_scores, write_to, self._options)


def _release(url: str, options: StorageOptions) -> None:
    def remove_folder() -> None:
        with storage_options(options):
            release(url)

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        remove_folder()
    else:  # garbage was collected in the thread of fsspec's loop, which cannot wait for itself
        threading.Thread(target=remove_folder).start()
