"""Cross-validation: train on all folds but one, and judge by that one, for each fold."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from sklearn.base import clone

from distboost.estimators.validation import Given
from distboost.evaluation.results import Results, as_json
from distboost.selection.ground import Groups, check_estimator, check_folds, opened
from distboost.selection.judging import numbers_of
from distboost.selection.trial import HELD_OUT, Trial, trials_shown, tried

log = logging.getLogger("distboost")


def cross_validate(
    estimator: Any,
    X: Any,
    y: Any = None,
    folds: int = 5,
    metrics: Iterable[str] | None = None,
    *,
    groups: Any = None,
    tile_size: int | Mapping[str, int] | None = None,
    sample_weight: Any = None,
    random_state: int = 0,
    return_curves: bool = False,
    return_estimator: bool = False,
    verbose: int = 0,
) -> CrossValidation:
    """Judge an estimator by rows that it has not learned from: each fold is left out of one run.

    All rows are binned once, and the runs read the same bins. So the bin edges follow from all rows, but nothing else does.
    The rows of a fold are selected while they are read, without a copy on disk. This runs where `fit` would run, within the
    estimator's `memory_limit`, and the result does not depend on where, except for the times.

    Parameters
    ----------
    estimator : classifier
        An estimator of distboost. It stays as it is: clones are trained. Their checkpoints are not written.
    X : array-like or data frame of shape (n_samples, n_features), zarr.Array, path or URL of one, or dask collection
        Features, as for `fit`. With the path or URL of a binned store (see `distboost.bin`), omit y. Other rows are binned into a
        temporary store, in the estimator's `scratch` directory.
    y : array-like of shape (n_samples,), zarr.Array, path or URL of one, or dask array
        Labels.
    folds : int, default=5
        The number of folds, 2 to 255.
    metrics : iterable of str, or None, default=None
        The names of metrics of `distboost.evaluate` that are numbers; None: "accuracy" and "log_loss". If one of them needs
        probabilities, these are those that the estimator's `calibration` gives: its second training learns from no held-out row.
        Otherwise there is no second training.
    groups : array-like of shape (n_samples,), zarr.Array, path or URL, dask array, "tiles" or None, default=None
        The group of each row. All rows of a group are in the same fold, and the folds have equally many groups, or one more.
        "tiles": the rows of a tile of a cube are a group, since neighbouring cells are alike. None: the folds have equally many
        rows of each class, or one more.
    tile_size : int, mapping of str to int, or None, default=None
        For `groups="tiles"`: the cells of a tile along each dimension, or by dimension; it is undivided along those not given.
    sample_weight : array-like of shape (n_samples,), zarr.Array, path or URL, dask array, or None, default=None
        Weights, for training and for the metrics. A binned store has its own.
    random_state : int, default=0
        The seed of the folds. They depend on this, and on the order and the labels (or groups) of the rows.
    return_curves : bool, default=False
        Whether to evaluate the held-out rows after each round.
    return_estimator : bool, default=False
        Whether to return the fitted clones.
    verbose : int, default=0
        1: show a progress bar of the folds.

    Returns
    -------
    CrossValidation
        A mapping, as that of scikit-learn's `cross_validate`. Printing it shows means and standard deviations.

        ========================= ===========================================================================================
        ``test_accuracy``, ..     each metric on the held-out rows, (folds,)
        ``fit_time``,             seconds to train, and to judge, (folds,)
        ``score_time``
        ``n_iter``                rounds done, (folds,)
        ``curve_error``, ..       with `return_curves`: the error, the loss and the `eval_metric` of the held-out rows after each
                                  round, (folds, rounds); NaN after the end of a training run
        ``estimator``             with `return_estimator`: the fitted estimators, a list
        ========================= ===========================================================================================

    Raises
    ------
    distboost.errors.DataError
        If the data cannot be used, or cannot be divided into so many folds.

    Examples
    --------
    >>> import distboost
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> found = distboost.cross_validate(distboost.GDMCBoostClassifier(n_estimators=5), X, y)
    >>> found["test_accuracy"].shape, bool(found["test_accuracy"].mean() > 0.9)
    ((5,), True)
    """
    check_estimator(estimator)
    check_folds(folds, random_state)
    wanted = numbers_of(("accuracy", "log_loss") if metrics is None else metrics)
    given = Given(X, y, sample_weight)
    trials = []
    with (
        trials_shown("cross-validation", folds, verbose) as done,
        opened(estimator, given, Groups(groups, tile_size), folds, random_state) as grounds,
    ):
        for number in range(folds):
            model = clone(estimator)
            trials.append(tried(model, grounds.of(model), number, wanted, watched=return_curves))
            log.info("fold %d of %d: %s", number + 1, folds, trials[-1].metrics)
            done(", ".join(f"{name} {value:.6g}" for name, value in trials[-1].metrics.items()))
    values: dict[str, Any] = {
        "fit_time": np.array([trial.fit_time for trial in trials]),
        "score_time": np.array([trial.score_time for trial in trials]),
        **{f"test_{name}": np.array([trial.metrics[name] for trial in trials]) for name in wanted},
        "n_iter": np.array([trial.model.n_iter_ for trial in trials]),
    }
    if return_curves:
        values |= _curves(trials)
    if return_estimator:
        values["estimator"] = [trial.model for trial in trials]
    return CrossValidation(values)


def _curves(trials: list[Trial]) -> dict[str, np.ndarray]:
    """Return the metrics after each round, (folds, rounds)."""
    histories = [trial.model.eval_history_[HELD_OUT] for trial in trials]
    longest = max(trial.model.n_iter_ for trial in trials)
    found = {}
    for metric in histories[0]:
        found[f"curve_{metric}"] = np.full((len(trials), longest), np.nan)
        for row, history in zip(found[f"curve_{metric}"], histories, strict=True):
            row[: len(history[metric])] = history[metric]
    return found


class CrossValidation(Results):
    """The results of a cross-validation by name. As text it is a table of means and standard deviations over the folds.

    Parameters
    ----------
    values : mapping of str to object
        What `distboost.cross_validate` documents.
    """

    def to_json(self) -> str:
        """Return the results as JSON, without estimators; numbers that are not defined are null."""
        return as_json({name: values for name, values in self.items() if name != "estimator"})

    def _shown(self) -> dict[str, str]:
        return {
            name: f"{values.mean():.6g} ± {values.std():.2g}"
            for name, values in self.items()
            if isinstance(values, np.ndarray) and values.ndim == 1
        }
