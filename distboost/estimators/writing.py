"""Predictions that are written to a zarr array, of rows of any length."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np

from distboost.data.labels import plain, storable
from distboost.data.result import Array, OutputArray
from distboost.data.source import changed, fingerprint, spans, warn_about
from distboost.errors import DataError
from distboost.estimators.base import BoostingClassifier
from distboost.estimators.predicting import class_answer, predictor_of, probabilities_answer
from distboost.estimators.validation import columns_named, ordered
from distboost.estimators.writing_maps import write_map
from distboost.inputs.choose import adapter_of
from distboost.inputs.cube import CubeInput
from distboost.io.progress import phases_shown
from distboost.io.storage import local_path
from distboost.prediction import streamed
from distboost.prediction.streamed import check_features, counted, each, rows_per_task
from distboost.warn import warn_of_all

log = logging.getLogger("distboost.prediction")


def write_predictions(
    model: BoostingClassifier,
    x: str,
    out: str,
    *,
    proba: bool,
    overwrite: bool,
    client: Any,
    verbose: int = 0,
) -> Array:
    """Predict the rows of the zarr array `x` into a new zarr array at `out`. One task writes each chunk as a whole.

    The array can be opened once it is complete. Chunks that an interrupted call with the same model and rows wrote are kept.
    """
    _check_apart(x, out)
    rows = ordered(model, adapter_of(x, "X", model.feature_dim).values())
    if isinstance(rows, CubeInput):
        how = {"proba": proba, "overwrite": overwrite, "client": client, "verbose": verbose}
        warn_of_all(rows.warnings(model.missing_chunks))
        return write_map(model, rows, out, **how)
    source = rows.coded_for(model.learned_.ensemble.categories).features()
    check_features(source.shape, source.place, model.n_features_in_)
    warn_about(source, "warn")
    step = rows_per_task(source)
    n_classes = len(model.classes_)
    made_from = {"model": model.digest(), "x": fingerprint([source]), "proba": proba}
    result = OutputArray.of(
        out,
        made_from,
        shape=(source.n_rows, n_classes) if proba else (source.n_rows,),
        chunks=(min(step, max(source.n_rows, 1)), n_classes)[: 1 + proba],
        dtype=np.dtype(np.float64) if proba else storable(model.classes_.dtype),
        attributes={"distboost": {"classes": plain(model.classes_), "complete": True}},
    )
    row_spans = list(spans(0, source.n_rows, step))
    with result.under_way(overwrite) as kept:
        todo = [(start, stop) for start, stop in row_spans if result.key(start) not in kept]
        done = source.n_rows - sum(stop - start for start, stop in todo)
        if done:
            log.info(f"{out}: continuing after {done:,} rows that were predicted before")
        calls = ((source.part(a, b), a, result, source.place) for a, b in todo)
        answer = probabilities_answer(model) if proba else class_answer(model)
        with columns_named(model), phases_shown(verbose) as phases:
            answers = each(
                streamed.predict_into, predictor_of(model, answer), calls, client=client, phases=phases
            )
            for _ in counted(phases, "predict", answers, todo, source.n_rows):
                pass
        if changed([source]):
            raise DataError(
                f"{source.place} was changed during the prediction.",
                remedy="Repeat this with ``overwrite=True`` when it is stable.",
                where=source.place,
            )
    return result.array


def _check_apart(x: str, out: str) -> None:
    """Raise DataError if the places to read and to write are the same, or one lies within the other."""
    x, out = (str(path.resolve()) if (path := local_path(url)) else url.rstrip("/") for url in (x, out))
    if f"{out}/".startswith(f"{x}/") or f"{x}/".startswith(f"{out}/"):
        raise DataError(
            f"``out`` {out!r} and ``X`` {x!r} are the same place, or one is within the other.",
            value=out,
            remedy="Pass another place as ``out``.",
        )
