"""What a training goes on from."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import numpy as np

from distboost.algorithms.base import SEPARATED
from distboost.data.ingest import joined_edges
from distboost.data.profile import Profile
from distboost.errors import DataError
from distboost.model.learned import Learned
from distboost.rows.messages import RowCounts
from distboost.training.loop import Start


class Resumption(NamedTuple):
    """What was learned earlier, and from which rows the training goes on.

    Attributes
    ----------
    earlier : Learned
    scores : ndarray of shape (n_rows, n_scores), float64, or None
        The earlier ensemble's scores of the training rows, if these are others than it learned from; None: they are the same.
    """

    earlier: Learned
    scores: np.ndarray | None = None

    @property
    def rounds_before(self) -> int:
        """Rounds that `n_estimators` does not count: all earlier ones, where the rows are others."""
        return 0 if self.scores is None else len(self.earlier.ensemble)

    def check_task(self, profile: Profile) -> None:
        """Raises DataError unless the rows have the features and classes of the earlier ones."""
        n_features, classes = self.earlier.ensemble.n_features, self.earlier.classes
        if profile.n_features != n_features or not np.array_equal(profile.classes, classes):
            raise DataError(
                f"resume=True needs the data that the model was trained on: it knows {n_features} features and the classes "
                f"{classes.tolist()}, the data have {profile.n_features} features and the classes {profile.classes.tolist()}."
            )

    def joined_digest(self, data: str) -> str:
        """The digest of all rows learned from: `data` is that of the training rows; raises DataError if they are wrong ones."""
        known = self.earlier.data
        if self.scores is not None:
            return hashlib.sha256(f"{known} {data}".encode()).hexdigest()
        if known not in (None, data):
            raise DataError(
                "resume=True goes on with the rows that the model was trained on, but these are others (their digest is "
                f"{data:.12}, not {known:.12}): values, labels, weights or the order of rows differ. Give the same data, or "
                "train anew."
            )
        return data

    def start(self) -> Start:
        """The state of the loop. The ensemble is a copy: the earlier model stays as it is if the training fails."""
        ensemble, history = self.earlier.ensemble, self.earlier.history
        ended = history.outcome == SEPARATED and self.earlier.n_rounds == len(ensemble)
        outcome = SEPARATED if ended and self.scores is None else None
        return Start(ensemble.copy(), history, self.earlier.best, outcome, self.scores)


def data_digest(profile: Profile, counts: RowCounts, by_number: bool) -> str:
    """Which rows these are: the same for any chunks and any runtime, and another one for other values, labels or weights.

    Rows of whole weight w count as w rows. The order of the rows counts only if `by_number`, as where rows are drawn by number.
    """
    edges, offsets = joined_edges(profile.edges)
    digest = hashlib.sha256(f"{profile.classes.tolist()!r} {counts.digest[by_number]} ".encode())
    for array in (edges, offsets):
        digest.update(array.tobytes())
    return digest.hexdigest()
