"""Maps that are written to zarr: predictions for the cells of a cube, with its coordinates."""

from __future__ import annotations

import itertools
import logging
import math
from typing import Any

from distboost.data.cells import Slot
from distboost.data.dataset import check_unchanged
from distboost.data.labels import plain, storable
from distboost.data.result import DIMENSIONS, Array, OutputArray, consolidate, write_coordinates
from distboost.data.source import Bounds, BoxSource, fingerprint, spans
from distboost.estimators.base import BoostingClassifier
from distboost.estimators.predicting import cell_answers, class_answer, predictor_of, probabilities_answer
from distboost.estimators.validation import columns_named
from distboost.inputs.cube import GRID_MAPPING, Coordinate, CubeInput, divided_by_chunks, of_source
from distboost.io.progress import phases_shown
from distboost.prediction.cubes import CellAnswers, box_start, check_cube, predict_box, tile_shape
from distboost.prediction.streamed import each

log = logging.getLogger("distboost.prediction")


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
