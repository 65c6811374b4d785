"""`distboost.report`: judge a model, and write the result as a page."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from distboost.estimators.evaluating import evaluated, opening_with
from distboost.estimators.validation import Given
from distboost.evaluation.metrics import Evaluation
from distboost.inputs.base import LazyInput
from distboost.inputs.choose import adapter_of
from distboost.inputs.cube import CubeInput
from distboost.io import options
from distboost.io.files import check_folder, publish
from distboost.io.options import url_of
from distboost.reporting import charts, figures
from distboost.reporting.content import Content
from distboost.reporting.numbers import decimal, place
from distboost.training.event_record import logged


def report(
    model: Any,
    X: Any,
    y: Any,
    url: str | os.PathLike[str],
    sample_weight: Any = None,
    *,
    title: str | None = None,
    events: str | os.PathLike[str] | None = None,
    verbose: int = 0,
    storage_options: Mapping[str, Any] | None = None,
) -> Evaluation:
    """Judge a fitted model on labelled rows of any size, and write the result as one self-contained HTML file.

    The page shows what was trained and on what, the metrics, log-loss and error by round, how reliable probabilities are,
    the confusion matrix, each class, the most important features and the worst rows. It loads nothing from elsewhere, can be
    printed, and is dark where the reader's system is. The rows are read once, as by `evaluate`. Equal models and rows give
    equal files, but for what the training took (`training_record_`). A model file does not hold that: the page has it of a
    model that was trained in this session, or from the log of the training, `events`.

    Parameters
    ----------
    model : classifier
        A fitted estimator of distboost.
    X, y, sample_weight
        Rows, as for `evaluate`.
    url : str or path
        The path or URL of the file. An existing file is replaced.
    title : str or None, default=None
        The title of the page; None: the class of the model.
    events : str, path or None, default=None
        The path or URL of the log that `distboost.EventLog`, or `distboost train --events`, wrote of the training of this model:
        times, memory and lost workers are those of the log.
    verbose : int, default=0
        1: show a progress bar.
    storage_options : dict or None, default=None
        Options of the file systems of URLs, in place of those of the model.

    Returns
    -------
    Evaluation
        All metrics, as from `evaluate`.

    Raises
    ------
    distboost.errors.DataError
        As from `evaluate`; or if `events` is the log of another model, or has a damaged line.
    distboost.errors.StoreError
        If the file cannot be written.

    Examples
    --------
    >>> import distboost, tempfile
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = distboost.GDMCBoostClassifier(n_estimators=5, max_depth=1).fit(X[::2], y[::2])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = distboost.report(model, X[1::2], y[1::2], f"{folder}/report.html", title="Iris")
    >>> found["accuracy"] > 0.9
    True
    """
    target = url_of(url, "url")
    model = opening_with(model, storage_options)
    with options.storage_options(model.storage_options):
        check_folder(target)
        log = None if events is None else logged(url_of(events, "events"), model.digest())
    rounds = figures.measured_rounds(len(model.learned_.ensemble))
    found = evaluated(model, Given(X, y, sample_weight), None, verbose, rounds)
    content = Content.of(
        model, found, type(model).__name__ if title is None else title, _place(X, model.feature_dim), log
    )
    with options.storage_options(model.storage_options):
        publish(target, page(content).encode())
    return found


def _place(X: Any, feature_dim: str | None) -> str:
    if isinstance(X, (str, os.PathLike)):
        return place(X)
    return (
        "an array that is read in blocks"
        if isinstance(adapter_of(X, "X", feature_dim), CubeInput | LazyInput)
        else "an array in memory"
    )


def page(content: Content) -> str:
    """Return the page as HTML."""
    environment = Environment(
        loader=PackageLoader("distboost.reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["decimal"] = decimal
    return environment.get_template("report.html.j2").render(content=content, box=charts)
