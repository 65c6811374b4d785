"""The state from which a training run resumes."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from distboost.algorithms.base import SEPARATED
from distboost.data.blocks import Profile
from distboost.data.categories import listed
from distboost.data.ingest import joined_edges
from distboost.errors import DataError
from distboost.model.learned import Learned, Watch
from distboost.rows.messages import RowCounts
from distboost.training.loop import Start


class Resumption(NamedTuple):
    """What was learned earlier, and the scores of the new training rows if these are others.

    Attributes
    ----------
    earlier : Learned
    scores : ndarray of shape (n_rows, n_scores), float64, or None
        The earlier ensemble's scores of the training rows, if it was trained on other rows. None: the rows are the same.
    """

    earlier: Learned
    scores: np.ndarray | None = None

    @property
    def rounds_before(self) -> int:
        """Rounds that `n_estimators` does not count: all earlier rounds if the training rows are others, else none."""
        return 0 if self.scores is None else len(self.earlier.ensemble)

    @property
    def on_other_rows(self) -> bool:
        """Whether the earlier run had other rows."""
        return self.scores is not None

    def check_task(self, profile: Profile) -> None:
        """Raise DataError unless the data have the same number of features and the same classes as before."""
        n_features, classes = self.earlier.ensemble.n_features, self.earlier.classes
        if profile.n_features != n_features or not np.array_equal(profile.classes, classes):
            raise DataError(
                f"the model was trained on {n_features} features and the classes {classes.tolist()}, but the data have "
                f"{profile.n_features} features and the classes {profile.classes.tolist()}.",
                remedy="With ``resume=True``, pass the data that the model was trained on.",
            )

    def adopted(self, profile: Profile) -> Profile:
        """Return the profile of the training rows, with the bins that categories have in the earlier model.

        On other rows, categories may be new: they get bins of their own as long as there are any, else they remain unknown. At
        earlier splits, these bins follow the missing values.
        """
        known = self.earlier.ensemble.categories
        if known.keys() != profile.categories.keys():
            raise DataError(
                f"the features {sorted(known)} have categories in the model, but {sorted(profile.categories)} in the data.",
                remedy="Pass the same ``categorical_features``, or train without ``resume=True``.",
            )
        if self.scores is None or not known:
            return profile
        categories = {d: known[d].joined(found) for d, found in profile.categories.items()}
        edges = [categories[d].edges if d in categories else e for d, e in enumerate(profile.edges)]
        return replace(profile, edges=edges, categories=categories)

    def check_watch(self, watch: Watch) -> None:
        """Raise DataError if the best round was told by another metric before.

        The parameters tell this of all metrics but functions.
        """
        before = self.earlier.history.watch
        if before.sets and watch.sets and before.metric != watch.metric:
            raise DataError(
                f"the earlier run had the ``eval_metric`` {before.metric!r}, not {watch.metric!r}.",
                remedy="Pass the same one, or train without ``resume=True``.",
                value=before.metric,
            )

    def joined_digest(self, data: str) -> str:
        """Return the digest of all rows that the model will have learned from; raise DataError if the rows have changed.

        `data` is the digest of the training rows.
        """
        known = self.earlier.data
        if self.scores is not None:
            return hashlib.sha256(f"{known} {data}".encode()).hexdigest()
        if known not in (None, data):
            raise DataError(
                f"the rows are not those that the model was trained on (their digest is {data:.12}, not {known:.12}): values, "
                "labels, weights or the order of rows differ.",
                remedy="Pass the same data, or train without ``resume=True``.",
                value=data,
            )
        return data

    def start(self) -> Start:
        """Return the initial state of the loop. It has a copy of the ensemble, so that a failure leaves the model as it is."""
        ensemble, history = self.earlier.ensemble, self.earlier.history
        ended = history.outcome == SEPARATED and self.earlier.n_rounds == len(ensemble)
        outcome = SEPARATED if ended and self.scores is None else None
        return Start(ensemble.copy(), history, self.earlier.best, outcome, self.scores)


def data_digest(profile: Profile, counts: RowCounts, by_number: bool) -> str:
    """Return a digest of the rows: it depends on values, labels and weights, but not on the chunks or the runtime.

    A row of integer weight w counts as w rows. The digest depends on the order of the rows only if `by_number` is true: then
    the training draws rows by their numbers.
    """
    edges, offsets = joined_edges(profile.edges)
    digest = hashlib.sha256(f"{profile.classes.tolist()!r} {counts.digest[by_number]} ".encode())
    for array in (edges, offsets):
        digest.update(array.tobytes())
    if profile.categories:
        digest.update(repr(listed(profile.categories)).encode())
    return digest.hexdigest()
