"""The tables and lines that commands print."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from rich.table import Column, Table
from rich.text import Text

from distboost.cli.text import console
from distboost.evaluation.results import Confusion
from distboost.io.files import read
from distboost.io.text import megabytes, visible
from distboost.model.checkpoint import is_checkpoint, manifest_url
from distboost.reporting import numbers
from distboost.training.memory_parts import MemoryUse
from distboost.training.memory_plan import MemoryPlan

MAX_MATRIX_CLASSES = 12  # of a larger confusion matrix, only the worst cells are printed
MAX_NAMES = 20


def digest(url: str) -> str:
    """Return the SHA-256 digest of a model file, or of a checkpoint's manifest, which holds those of its segments."""
    place = manifest_url(url) if is_checkpoint(url) else url
    return hashlib.sha256(read(place)).hexdigest()


def print_evaluation(found: Confusion) -> None:
    """Print the accuracy, the metrics of each class, and the confusion matrix or its worst cells."""
    out = console()
    n = int(found.counts.sum())
    out.print(f"accuracy {found.accuracy:.4f} ({n} rows, {len(found.classes)} classes)", highlight=False)
    if found.n_unknown:
        out.print(
            f"{found.n_unknown} rows have labels that are not classes of the model; they count as mistakes."
        )
    table = Table("class", *(_right(name) for name in ("precision", "recall", "F1", "rows")))
    metrics = found.per_class()
    for label, p, r, f, rows in zip(found.classes, *metrics.values(), strict=True):
        table.add_row(visible(label), f"{p:.4f}", f"{r:.4f}", f"{f:.4f}", str(int(rows)))
    out.print(table)
    if len(found.classes) <= MAX_MATRIX_CLASSES:
        out.print(_matrix(found))
    elif found.worst(1):
        worst = Table("true class", "predicted as", _right("rows"), title="most frequent mistakes")
        for true, predicted, count in found.worst(10):
            worst.add_row(visible(true), visible(predicted), str(count))
        out.print(worst)


def _matrix(found: Confusion) -> Table:
    names = [visible(label) for label in found.classes]
    table = Table("true \\ predicted", *(_right(name) for name in names), title="confusion matrix")
    for i, row in enumerate(np.asarray(found.counts.toarray())[: len(names)]):
        cells = [Text(str(count), "bold" if i == j else "") for j, count in enumerate(row.tolist())]
        table.add_row(names[i], *cells)
    return table


def _right(name: str) -> Column:
    return Column(name, justify="right")


def print_model(model: Any, url: str) -> None:
    """Print the content of a model file."""
    table = Table(show_header=False, box=None)
    for name, value in _facts(model, url):
        table.add_row(name, visible(value))
    console().print(table)


def _facts(model: Any, url: str) -> list[tuple[str, str]]:
    parameters = numbers.parameters(model)
    facts = [
        ("algorithm", model.algorithm_name),
        ("parameters", ", ".join(f"{name}={value!r}" for name, value in parameters.items())),
        ("classes", f"{len(model.classes_)}: {_named([str(label) for label in model.classes_])}"),
        ("features", _features(model)),
        ("rounds", numbers.rounds(model)),
        ("outcome", model.outcome_),
        ("calibration", "none" if model.calibration_ is None else str(model.calibration_)),
    ]
    for part in ("train", "eval"):
        losses, errors = getattr(model, f"{part}_loss_", []), getattr(model, f"{part}_error_", [])
        if len(losses):
            facts.append((f"{part} loss", f"{losses[-1]:.6g} after the last round, error {errors[-1]:.2%}"))
    return [*facts, ("top features", _top_features(model)), ("sha256", digest(url))]


def _features(model: Any) -> str:
    names = getattr(model, "feature_names_in_", None)
    return str(model.n_features_in_) + ("" if names is None else f": {_named(names.tolist())}")


def _top_features(model: Any) -> str:
    first, _ = numbers.top_features(model, 10)
    return ", ".join(f"{feature} ({share:.1%})" for feature, share in first) or "none"


def print_plan(plan: MemoryPlan) -> None:
    """Print the parts of the memory plan, for each kind of process."""
    out = console()
    holds = "each worker" if plan.leader else "this process"
    out.print(_parts(holds, plan.parts))
    if plan.leader:
        out.print(_parts("the process that calls fit", plan.leader))
    limit = "no memory_limit" if plan.limit is None else f"memory_limit {megabytes(plan.limit)}"
    rows = f"{plan.resident:,} of {plan.resident + plan.streamed:,} rows stay in memory"
    out.print(
        f"{limit}: {rows}" + (", the others stream from disk." if plan.streamed else "."), highlight=False
    )
    if plan.streamed:
        bins, scores = megabytes(plan.store_bytes), megabytes(plan.scratch_bytes)
        out.print(
            f"On disk: {bins} of bins, unless they come from a binned store, and {scores} of scores in each process.",
            highlight=False,
            soft_wrap=True,
        )


def _parts(process: str, parts: tuple[MemoryUse, ...]) -> Table:
    table = Table(process, _right("memory"), "what it is")
    for part in parts:
        table.add_row(part.name, megabytes(part.n_bytes), part.what, end_section=part is parts[-1])
    table.add_row("in all", megabytes(sum(part.n_bytes for part in parts)))
    return table


def _named(names: list[str]) -> str:
    return ", ".join(names[:MAX_NAMES]) + (", ..." if len(names) > MAX_NAMES else "")
