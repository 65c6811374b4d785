"""The tables that the commands of active learning print."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from rich.table import Column, Table

from distboost.active.advice import Advice, Agreement, agreements_of
from distboost.active.curve import LearningCurve
from distboost.active.from_log import NOT_SETTINGS
from distboost.active.ledger import Ledger
from distboost.cli.labels_csv import opinions_text
from distboost.cli.text import console
from distboost.io.text import visible

MOST_SHOWN = 20  # rows


def print_ledger(ledger: Ledger, log: str) -> None:
    """Print the facts of a log, and the number of labels of each class."""
    facts = Table(show_header=False, box=None)
    for name, value in _facts(ledger, log):
        facts.add_row(name, visible(value))
    out = console()
    out.print(facts)
    if conflicts := ledger.conflicts:
        table = Table("row", "label", "people differ")
        for row in conflicts[:MOST_SHOWN]:
            table.add_row(str(row), visible(ledger.labelled[row]), opinions_text(ledger.opinions[row]))
        out.print(table)
    counts = Counter(ledger.labels + ledger.seed_labels)
    classes = ledger.header["classes"] or sorted(counts)
    if classes:
        table = Table("class", Column("labels", justify="right"))
        for label in classes:
            table.add_row(visible(label), str(counts[label]))
        out.print(table)


def print_advice(advice: Advice) -> None:
    """Print what the labels of a log tell."""
    out = console()
    found = advice.error
    if found is not None:
        out.print(
            f"error about {found.error:.1%}, between {found.low:.1%} and {found.high:.1%}, by {found.n_rows} random rows",
            highlight=False,
        )
    if advice.doubts:
        table = Table("row", "label", "rather", Column("probability of the label", justify="right"))
        for doubt in advice.doubts[:MOST_SHOWN]:
            table.add_row(
                str(doubt.row), visible(doubt.label), visible(doubt.rather), f"{doubt.probability:.1%}"
            )
        out.print(table)
    for agreed in advice.agreement:
        out.print(_agreed(agreed), highlight=False)
    for sentence in advice.next_steps:
        out.print(sentence, highlight=False)


def _facts(ledger: Ledger, log: str) -> list[tuple[str, str]]:
    header, notes = ledger.header, ledger.notes
    rows, features = ledger.n_rows, header["pool"][1]
    n_told, n_open = len(ledger.labelled), len(ledger.asked)
    people = Counter((ledger.origin(row) or {}).get("by") for row in ledger.labelled)
    agreement = (
        [("agreement", "; ".join(map(_agreed, found)))] if (found := agreements_of(ledger.opinions)) else []
    )
    parameters = {**header["parameters"], **notes.get("parameters", {})}
    return [
        ("log", log),
        ("pool", notes.get("pool", "not known: pass it with --x to 'distboost active ask'")),
        ("rows", f"{rows:,} of {features:,} features"),
        ("asked", f"{n_told + n_open:,} in {ledger.n_queries} batches"),
        ("told", f"{n_told:,}" + "".join(f", {n:,} by {by}" for by, n in people.items() if by is not None)),
        *agreement,
        ("open", f"{n_open:,} asked and not told"),
        ("others", f"{len(ledger.skipped):,} skipped, {len(ledger.seed_labels):,} from outside the pool"),
        (
            "settings",
            _named(
                {name: now for name, now in (header | ledger.settings).items() if name not in NOT_SETTINGS}
            ),
        ),
        ("algorithm", header["algorithm"]),
        ("parameters", _named(parameters)),
    ]


def _agreed(found: Agreement) -> str:
    return f"{' and '.join(found.people)}: kappa {found.kappa:.2f} on {found.n_rows} rows"


def _named(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in sorted(values.items()))


def print_curves(curves: Mapping[str, Sequence[LearningCurve]], target_error: float | None) -> None:
    """Print the final number of labels and error of each strategy, and the labels to the target: mean ± standard deviation.

    A run that does not reach the target counts with all of its labels, and the mean is a lower bound.
    """
    columns = ["repeats", "labels", "error, %"]
    if target_error is not None:
        columns += [f"reached {100 * target_error:g}%", "labels to it"]
    table = Table("strategy", *(Column(name, justify="right") for name in columns))
    for strategy, repeats in curves.items():
        labels = [curve.n_labelled[-1] for curve in repeats]
        errors = [100 * curve.error[-1] for curve in repeats]
        cells = [str(len(repeats)), _spread(labels, "{:.0f}"), _spread(errors, "{:.2f}")]
        if target_error is not None:
            cells += _labels_to(repeats, target_error)
        table.add_row(strategy, *cells)
    out = console()
    out.print(table)
    out.print("At the end of each run: mean ± standard deviation over the repeats.", highlight=False)


def _labels_to(repeats: Sequence[LearningCurve], target_error: float) -> list[str]:
    found = [curve.labels_to(target_error) for curve in repeats]
    n_reached = len(found) - found.count(None)
    needed = [curve.n_labelled[-1] if n is None else n for curve, n in zip(repeats, found, strict=True)]
    shown = _spread(needed, "{:.0f}") if n_reached == len(found) else f"≥ {np.mean(needed):.0f}"
    return [f"{n_reached} of {len(found)}", shown]


def _spread(values: Sequence[float], form: str) -> str:
    mean, deviation = float(np.mean(values)), float(np.std(values))
    return form.format(mean) + (f" ± {form.format(deviation)}" if len(values) > 1 else "")
