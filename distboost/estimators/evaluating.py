"""Compare predictions with labels: one pass over rows of any source, on any runtime."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from functools import partial, reduce
from typing import Any

from distboost.data.dataset import RawDataset
from distboost.data.source import spans
from distboost.errors import DataError
from distboost.estimators.inspecting import check_fitted
from distboost.estimators.parameters import CommonParameters, n_threads
from distboost.estimators.predicting import (
    own_probabilities_of,
    predictor_of,
    probabilities_of,
    scores_answer,
)
from distboost.estimators.validation import Given, columns_named, judged_data
from distboost.evaluation.metrics import Evaluation, Totals, chosen
from distboost.evaluation.results import Confusion
from distboost.evaluation.sums import DECISIONS, PIECE_ROWS, Judge, OfScores, Places, Sums, judge_part, merged
from distboost.inputs.base import Input, LazyInput
from distboost.inputs.choose import adapter_of
from distboost.inputs.cube import CubeInput
from distboost.io.options import storage_options
from distboost.io.progress import phases_shown
from distboost.prediction.predictor import StagedScores, predict_chunk
from distboost.prediction.streamed import counted, each, rows_per_task


def evaluate(
    model: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    metrics: Iterable[str] | None = None,
    *,
    verbose: int = 0,
    storage_options: Mapping[str, Any] | None = None,
) -> Evaluation:
    """Judge a fitted model on labelled rows of any size, in one pass over them.

    The rows are read block by block, in threads of this process or on the workers of a Dask cluster, chosen as in `fit`. Only
    sums over rows come back. They are exact, so the result does not depend on blocks, threads or workers, to the last bit.

    Parameters
    ----------
    model : classifier
        A fitted estimator of distboost.
    X : array-like or data frame of shape (n_samples, n_features), zarr.Array, path or URL of one, or dask collection
        Features, as for `fit`.
    y : array-like of shape (n_samples,), zarr.Array, path or URL of one, or dask array
        Labels. Each must be one of the model's classes. Some classes may be absent.
    sample_weight : array-like of shape (n_samples,), zarr.Array, path or URL, dask array, or None, default=None
        Weights: 0, or between 1e-120 and 1e120. A row of weight 0 is ignored, but its values must be valid.
    metrics : iterable of str, or None, default=None
        The names of the metrics to compute; None: all. If none needs probabilities, they are not computed.
    verbose : int, default=0
        1: show a progress bar.
    storage_options : dict or None, default=None
        Options of the file systems of URLs, in place of those of the model.

    Returns
    -------
    Evaluation
        A mapping of names to values. Printing it shows the numbers. Where scikit-learn has a metric, the value is the same.

        ========================================= ====================================================================
        ``n_rows``, ``weight``                    the number of rows with a weight above 0, and their total weight
        ``accuracy``                              the fraction of correct predictions
        ``majority_baseline``                     the accuracy of always predicting the most frequent class
        ``balanced_accuracy``                     the mean recall of the classes that occur
        ``precision_macro``, ``recall_macro``,    means over the classes that occur among labels or predictions
        ``f1_macro``
        ``precision_weighted``,                   the same, weighted by the classes' weight in the labels
        ``recall_weighted``, ``f1_weighted``
        ``per_class``                             precision, recall, f1, and the rows (their weight), arrays (n_classes,)
        ``confusion``                             weight of each true (row) and predicted class, (n_classes, n_classes);
                                                  sparse above 2^24 cells
        ``log_loss``, ``brier``                   mean losses; the Brier score of two classes is halved
        ``ece``                                   expected calibration error: the mean distance of the accuracy from the
                                                  probability of the prediction, in 15 bins of that probability
        ``calibration``                           weight, mean confidence and accuracy of these bins, arrays (15,)
        ``top_k_accuracy``                        by k, from 2 to 10: the fraction of rows whose class is among the k most
                                                  probable; of equal probabilities, later classes rank first
        ``auc_ovr``, ``auc_per_class``            areas under the one-vs-rest ROC curves: their mean, and of each class;
                                                  NaN if all rows or none are of the class
        ``auc_ovr_error``,                        the largest possible error of these areas. They come from histograms of
        ``auc_per_class_error``                   probabilities, so that the order within a bin is unknown.
        ``uncalibrated``                          of a calibrated model: `calibration` and `ece` of the probabilities that it had
                                                  before; else None
        ``margins``                               histogram of the margins, the score of a row's class less the largest other
                                                  score: edges, (n_bins + 1,), and the weight in each bin, (n_bins,)
        ``worst_rows``                            the 20 rows whose own class has the lowest probability: row (its number), true
                                                  and predicted class, probability of the true class, confidence (that of the
                                                  predicted one), arrays (20,); of equal ones, the first rows
        ``accuracy_interval``,                    95 % confidence intervals, (low, high): Wilson's for the accuracy, else the
        ``log_loss_interval``,                    normal approximation. Weights count as the importance of rows, not as
        ``brier_interval``                        repeated rows.
        ========================================= ====================================================================

    Raises
    ------
    distboost.errors.DataError
        If a label is none of the model's classes, a weight is negative or NaN, or X, y and sample_weight differ in length.

    Examples
    --------
    >>> import distboost
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = distboost.GDMCBoostClassifier(n_estimators=5, max_depth=1).fit(X[::2], y[::2])
    >>> found = distboost.evaluate(model, X[1::2], y[1::2])
    >>> found["accuracy"] > 0.9, found["confusion"].shape
    (True, (3, 3))
    """
    return evaluated(opening_with(model, storage_options), Given(X, y, sample_weight), metrics, verbose)


def opening_with(model: Any, options: Mapping[str, Any] | None) -> Any:
    """Return the fitted model, or a copy of it that opens URLs with these options."""
    check_fitted(model)
    if options is None:
        return model
    found = copy.copy(model)
    found.client, found.storage_options = model.client, options
    return found


def adapters(model: CommonParameters, X: Any, y: Any) -> tuple[Input, Any]:
    """Return the adapters of rows and of labels, if there are any; a raster of labels as it is."""
    with storage_options(model.storage_options):
        x = adapter_of(X, "X", model.feature_dim)
        return x, y if y is None or isinstance(x, CubeInput) else adapter_of(y, "y")


def suit_sklearn(model: CommonParameters, x: Input, y: Any) -> bool:
    """Whether rows and labels are in memory, and scikit-learn's metrics take the labels as they are."""
    known = isinstance(y, Input) and y.is_known_to_sklearn and model.classes_.dtype.kind not in "OST"
    return known and not isinstance(x, LazyInput)


def evaluated(
    model: Any, given: Given, metrics: Iterable[str] | None, verbose: int, rounds: tuple[int, ...] = ()
) -> Evaluation:
    """Return the metrics on labelled rows, and the losses after these rounds."""
    check_fitted(model)
    groups = chosen(metrics)
    data = judged_data(model, given)
    sums = judged(
        model,
        data,
        {DECISIONS, *groups.values()},
        strict=True,
        client=model.client,
        verbose=verbose,
        rounds=rounds,
    )
    return Evaluation.of(Totals(sums, model.classes_, data.weighted), groups, rounds)


def confusion(
    model: Any, X: Any, y: Any, sample_weight: Any = None, *, client: Any = None, verbose: int = 0
) -> Confusion:
    """Return the confusion matrix, in which labels that the model does not know count as mistakes."""
    check_fitted(model)
    data = judged_data(model, Given(X, y, sample_weight))
    sums = judged(model, data, {DECISIONS}, strict=False, client=client or model.client, verbose=verbose)
    found = Confusion.of(model.classes_, sums, data.weighted)
    if not found.counts.sum():
        raise DataError("every row has weight 0.", remedy="Set a weight above 0 for some rows.")
    if not found.counts[:-1].sum():
        raise DataError(
            f"no label in {data.y.place} is among the {len(model.classes_)} classes of the model ({model.classes_[0]}, ...).",
            remedy="Check that these are the labels of the same task.",
            where=data.y.place,
        )
    return found


def judged(
    model: CommonParameters,
    data: RawDataset,
    groups: set[str],
    *,
    strict: bool,
    client: Any,
    verbose: int,
    of_scores: OfScores | None = None,
    rounds: tuple[int, ...] = (),
) -> Sums:
    """Return the sums of these groups over all rows, with those of rounds; or those of scores. Each row is read once."""
    step = rows_per_task(data.x)
    if not data.x.chunk_bytes:  # nothing is decoded
        step = min(step, PIECE_ROWS)  # more tasks, so that all threads have some
    rows = data.near(step)
    places = Places(rows.x.place, rows.y.place, rows.weights.place if rows.weights else "sample_weight")
    judge = judge_of(model, groups, strict, places=places, of_scores=of_scores, rounds=rounds)
    cuts = list(spans(0, data.n_rows, step))
    calls = ((*rows.parts(a, b), a) for a, b in cuts)
    name = "evaluate" if of_scores is None else "calibrate"
    with columns_named(model), phases_shown(verbose) as phases:
        answers = each(judge_part, judge, calls, client=client, n_threads=n_threads(model), phases=phases)
        return reduce(merged, counted(phases, name, answers, cuts, data.n_rows))


def judge_of(
    model: CommonParameters,
    groups: set[str],
    strict: bool,
    *,
    places: Places,
    of_scores: OfScores | None = None,
    rounds: tuple[int, ...] = (),
) -> Judge:
    """Return what workers need to judge rows by a fitted model."""
    predictor = predictor_of(model, scores_answer(model))
    return Judge(
        partial(predict_chunk, predictor=predictor),
        probabilities_of(model),
        model.learned_.classes,
        frozenset(groups),
        strict,
        places,
        own_probabilities_of(model) if model.learned_.calibration is not None else None,
        of_scores,
        StagedScores(predictor.algorithm, predictor.ensemble, rounds) if rounds else None,
    )
