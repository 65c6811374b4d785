"""The tables that cross-validations and searches print."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

import numpy as np
from rich.table import Column, Table

from distboost.cli.text import console
from distboost.io.text import duration, visible
from distboost.selection.search import SearchResult
from distboost.selection.validation import CrossValidation

MAX_SETTINGS = 20  # of more, the best are printed


def print_cross_validation(found: CrossValidation) -> None:
    """Print the results of each fold, with their means and standard deviations."""
    names = [name for name in found if name.startswith("test_")]
    columns = {name.removeprefix("test_"): found[name] for name in names}
    table = Table("fold", *_right([*columns, "rounds", "training", "judging"]))
    times = [[duration(seconds) for seconds in found[name].tolist()] for name in ("fit_time", "score_time")]
    n_folds = len(found["n_iter"])
    for fold in range(n_folds):
        cells = [f"{values[fold]:.4f}" for values in columns.values()]
        rounds, *spent = str(found["n_iter"][fold]), times[0][fold], times[1][fold]
        table.add_row(str(fold), *cells, rounds, *spent, end_section=fold == n_folds - 1)
    table.add_row("mean", *(f"{values.mean():.4f}" for values in columns.values()))
    table.add_row("± deviation", *(f"{values.std():.4f}" for values in columns.values()))
    out = console()
    out.print(table)
    if "curve_error" in found:
        out.print(_best_round(found["curve_error"]), highlight=False)


def _best_round(errors: np.ndarray) -> str:
    """Return after which round the mean error of the folds is least, of the rounds that all folds have."""
    means = errors[:, ~np.isnan(errors).any(axis=0)].mean(axis=0)
    best = int(means.argmin())
    return f"least mean error {means[best]:.4f} after round {best + 1} of {errors.shape[1]}"


def print_search(found: SearchResult) -> None:
    """Print the settings, best first, and the best one."""
    results = found.cv_results_
    names = [name for name in results if name.startswith("param_")]
    halved = len(set(results["n_rounds"].tolist())) > 1
    table = Table(
        Column("rank", justify="right"),
        *(visible(name.removeprefix("param_")) for name in names),
        *_right([found.scoring, "±", *(["rounds"] if halved else []), "training"]),
    )
    order = np.argsort(results["rank_test_score"], kind="stable").tolist()
    for n in order[:MAX_SETTINGS]:
        values = [results[name][n] for name in names]
        table.add_row(
            str(results["rank_test_score"][n]),
            *("" if value is np.ma.masked else visible(str(value)) for value in values),
            f"{results['mean_test_score'][n]:.4f}",
            f"{results['std_test_score'][n]:.4f}",
            *([str(results["n_rounds"][n])] if halved else []),
            duration(results["mean_fit_time"][n]),
        )
    out = console()
    out.print(table)
    if len(order) > MAX_SETTINGS:
        out.print(f"The best {MAX_SETTINGS} of {len(order)} settings; --json prints all.", highlight=False)
    best = " ".join("--set " + shlex.quote(f"{name}={value}") for name, value in found.best_params_.items())
    out.print(f"best: {visible(best)}", highlight=False, soft_wrap=True)


def _right(names: Iterable[str]) -> list[Column]:
    return [Column(name, justify="right") for name in names]
