"""Predictions that are written to zarr: an array, of rows of any length, or a map of a cube's cells, with its coordinates."""

from __future__ import annotations

import itertools
import logging
import math
from typing import Any

import numpy as np

from distboost.data.cells import Slot
from distboost.data.dataset import check_unchanged
from distboost.data.labels import plain, storable
from distboost.data.result import DIMENSIONS, Array, OutputArray, consolidate, write_coordinates
from distboost.data.source import Bounds, BoxSource, changed, fingerprint, spans, warn_about
from distboost.errors import DataError
from distboost.estimators.base import BoostingClassifier
from distboost.estimators.predicting import cell_answers, class_answer, predictor_of, probabilities_answer
from distboost.estimators.validation import columns_named, ordered
from distboost.inputs.choose import adapter_of
from distboost.inputs.cube import GRID_MAPPING, Coordinate, CubeInput, divided_by_chunks, of_source
from distboost.io.progress import phases_shown
from distboost.io.storage import local_path
from distboost.prediction import streamed
from distboost.prediction.cubes import CellAnswers, box_start, check_cube, predict_box, tile_shape
from distboost.prediction.streamed import check_features, counted, each, rows_per_task
from distboost.warn import warn_of_all


def write_map(
    model: BoostingClassifier,
    cube: CubeInput,
    out: str,
    *,
    proba: bool,
    overwrite: bool,
    client: Any,
    verbose: int = 0,
) -> Array:
    """Predict the cells of a cube into a group of zarr arrays at `out`: "label" or "probability", and the coordinates.

    As `write_predictions` does, this continues what an interrupted call wrote.
    """
    check_cube(cube, model.n_features_in_)
    answer = probabilities_answer(model) if proba else class_answer(model)
    predictor, name = predictor_of(model, answer), "probability" if proba else "label"
    answers = cell_answers(model, predictor, answer.shape, answer.dtype)
    tile = tile_shape(cube)
    result = OutputArray.of(
        f"{out}/{name}",
        {"model": model.digest(), "x": fingerprint(cube.sources), "along": cube.feature_dim, "proba": proba},
        shape=answers.shape + cube.shape,
        chunks=answers.shape + tile,
        dtype=answers.dtype,
        fill_value=answers.nodata,
        zarr_format=2,  # which GDAL reads since version 3.4
        attributes=_attributes(model, cube, answers),
    )
    along = (spans(0, length, size) for length, size in zip(cube.shape, tile, strict=True))
    grid = [*itertools.product(*map(list, along))]
    with result.under_way(overwrite) as kept:
        todo = [bounds for bounds in grid if result.key(*box_start(bounds, answers)) not in kept]
        if len(todo) < len(grid):
            log.info(f"{out}: continuing after {len(grid) - len(todo):,} tiles that were predicted before")
        divided = [*divided_by_chunks(cube.sources, cube.slots)]
        slots = tuple(slot for _, slot, _ in divided)
        calls = ((answers, slots, cube.dtype, bounds, result, *_parts(divided, bounds)) for bounds in todo)
        with columns_named(model), phases_shown(verbose) as phases:
            done = each(predict_box, predictor, calls, client=client, phases=phases)
            n_cells = math.prod(cube.shape)
            with phases.begin("predict", n_cells, "rows", n_cells - sum(map(_cells, todo))) as advance:
                for bounds, _ in zip(todo, done, strict=True):
                    advance(_cells(bounds))
        check_unchanged(cube.sources)
        write_coordinates(out, _coordinates(model, cube, proba))
    consolidate(out)
    return result.array


def _attributes(model: BoostingClassifier, cube: CubeInput, answers: CellAnswers) -> dict[str, Any]:
    """Return the attributes of a map."""
    coded = {} if answers.coding is None else answers.coding.attributes()
    coded.pop("_FillValue", None)  # that of the array, in this format
    dims = [*(["class"] if answers.shape else []), *cube.dims]
    more = [name for name, one in cube.coords.items() if one.dims and name not in cube.dims]
    named = {"coordinates": " ".join(more)} if more else {}
    mapping = cube.coords.get(str(cube.attributes.get(GRID_MAPPING)))
    wkt = (
        None if mapping is None else mapping.attributes.get("crs_wkt", mapping.attributes.get("spatial_ref"))
    )
    crs = {} if wkt is None else {"_CRS": {"wkt": wkt}}  # what GDAL reads
    own = {"classes": plain(model.classes_), "complete": True}
    return {DIMENSIONS: dims, **cube.attributes, **named, **crs, **coded, "distboost": own}


def _coordinates(model: BoostingClassifier, cube: CubeInput, proba: bool) -> dict[str, Coordinate]:
    """Return the coordinates of a map."""
    if not proba:
        return dict(cube.coords)
    classes = model.classes_.astype(storable(model.classes_.dtype))
    return {**cube.coords, "class": Coordinate(("class",), classes, {})}


def _parts(divided: list[tuple[BoxSource, Slot, tuple[int, int]]], bounds: Bounds) -> list[Any]:
    """Return the parts that have the features of a box of cells."""
    return [source.box(of_source(bounds, slot, span)) for source, slot, span in divided]


def _cells(bounds: Bounds) -> int:
    return math.prod(b - a for a, b in bounds)


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
