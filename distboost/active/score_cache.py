"""The scores of all rows of a pool, kept on disk from query to query: a committee that has grown adds those of its new rounds."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from distboost.active.strategies import Committee
from distboost.io.storage import check_space, local_path, read_array, write_array
from distboost.io.temporary import own, release, remove, temporary_url
from distboost.model.ensemble import Ensemble
from distboost.runtime.base import Runtime


class CachedScores(NamedTuple):
    """Where a query finds the scores after so many rounds, and where it writes those after all.

    The places differ, so that a block may be done again, as when its worker is lost.

    Attributes
    ----------
    before : str or None
    n_rounds : int
    now : str
    """

    before: str | None
    n_rounds: int
    now: str

    def scores(self, committee: Committee, X: np.ndarray, first: int) -> np.ndarray:
        """The scores G (n, n_scores) of the pool's rows X from row `first` on, which are then known."""
        if self.before is None:
            G = np.zeros((len(X), committee.ensemble.n_scores))
        else:
            G = read_array(f"{self.before}/{first}")
        if self.before != self.now:
            committee.add_scores(X, G, self.n_rounds)
            write_array(f"{self.now}/{first}", G)
        return G


class ScoreCache:
    """The scores of a pool after some rounds of an ensemble that grows.

    Parameters
    ----------
    scratch : str, path or None
        Folder or URL; None: the system's for temporary files. What is kept there is removed with this object.
    """

    def __init__(self, scratch: str | os.PathLike | None):
        base = tempfile.gettempdir() if scratch is None else os.fspath(scratch)
        path = local_path(base)
        self._base = (
            base if path is None else str(path.absolute())
        )  # workers need not share our working directory
        self._url = temporary_url(self._base, "distboost-scores")
        self._ensemble: Ensemble | None = None  # that the scores are of
        self._removed = weakref.finalize(self, release, self._url)

    @contextmanager
    def updated(self, ensemble: Ensemble, n_rows: int, runtime: Runtime) -> Iterator[CachedScores]:
        """What is known while a query computes the scores of all rows; if it ends well, they are known the next time."""
        known = self._known(ensemble)
        if known.before != known.now:
            remove(known.now)  # of a query that failed
            folder = local_path(self._url)
            if folder is not None:
                own(folder)
                os.makedirs(known.now, exist_ok=True)
                runtime.check_shared(known.now)
                check_space(known.now, n_rows * ensemble.n_scores * 8)
        yield known
        self._ensemble = ensemble
        if known.before not in (None, known.now):
            remove(known.before)

    def _known(self, ensemble: Ensemble) -> CachedScores:
        now = f"{self._url}/{len(ensemble)}"
        if self._ensemble is None or not ensemble.begins_with(self._ensemble):
            remove(self._url)
            return CachedScores(None, 0, now)
        n_rounds = len(self._ensemble)
        return CachedScores(f"{self._url}/{n_rounds}", n_rounds, now)
