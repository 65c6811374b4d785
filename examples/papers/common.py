"""Shared by the scripts for the papers' tables: data sets and splits, the measuring loop, the printer, the results page.

A table is data: its data sets, and its methods, each with the paper's figures and with those of an independent NumPy
implementation of the same formulas ("reference").
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple

import numpy as np
from dask.distributed import Client
from sklearn.datasets import load_iris, load_wine
from threadpoolctl import threadpool_limits

ROOT = Path(__file__).parents[2]
DATA = ROOT / "examples" / "data"
RESULTS = ROOT / "examples" / "papers" / "results"
PAGES = ROOT / "docs" / "results"
IMAGES = ROOT / "docs" / "images"
QUICK_ROUNDS, QUICK_ROWS = 10, 400

# Figures: data set -> method -> one list of numbers (one per column of the table) per repeat.
Figures = dict[str, dict[str, list[list[float]]]]


class Split(NamedTuple):
    """Rows to learn from and rows to measure on; labels are 0 .. K - 1."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


class Method(NamedTuple):
    """A row of a table."""

    make: Callable[[int], Any]  # the number of classes -> an estimator
    paper: Sequence[float | None] = ()  # one figure per data set of the table
    reference: Sequence[float | None] = ()
    only: Sequence[str] | None = None  # data sets that it applies to; None: all
    prepare: Callable[[Split], Split] = lambda split: split


class Picture(NamedTuple):
    """A picture in docs/images. `draw` fills an empty figure of matplotlib, with few rounds if `quick`."""

    file: str
    alt: str
    draw: Callable[[Any, bool], None]


class Table(NamedTuple):
    """What is measured. `measure` returns a number per column; the last is printed beside those of paper and reference."""

    name: str
    caption: str
    datasets: Sequence[str]
    methods: dict[str, Method]
    splits: Callable[[str], Iterator[Split]]
    measure: Callable[[Any, Split], Sequence[float]]
    quick: Sequence[str]  # the data sets of --quick
    columns: Sequence[str] = ("ours",)
    digits: int = 2
    comment: str = ""
    picture: Picture | None = None


# Data sets and splits.


def load(name: str) -> tuple[np.ndarray, np.ndarray, int]:
    """(X, y, number of training rows). Iris and wine come from scikit-learn and have no official split."""
    if name in ("iris", "wine"):
        X, y = {"iris": load_iris, "wine": load_wine}[name](return_X_y=True)
        return X, y, len(y)
    with np.load(DATA / f"{name}.npz") as file:
        return file["X"].astype(np.float64), file["y"].astype(np.int64), int(file["n_train"])


def official(name: str) -> Iterator[Split]:
    """The published training and test rows, once."""
    X, y, n = load(name)
    yield Split(X[:n], y[:n], X[n:], y[n:])


def random_splits(
    name: str, repeats: int, train: float = 0.75, test: float = 0.25, per_class: int | None = None
) -> Iterator[Split]:
    """Random training and test rows: fractions of all rows, or of at most `per_class` random rows of each class."""
    X, y, _ = load(name)
    yield from splits_of(X, y, repeats, train, test, per_class)


def splits_of(
    X: np.ndarray,
    y: np.ndarray,
    repeats: int,
    train: float = 0.75,
    test: float = 0.25,
    per_class: int | None = None,
) -> Iterator[Split]:
    """The same of these rows."""
    for seed in range(repeats):
        order = np.random.default_rng(seed).permutation(len(y))
        if per_class is not None:
            chosen = [order[y[order] == k][:per_class] for k in np.unique(y)]
            order = order[np.isin(order, np.concatenate(chosen))]
        n_train, n_test = round(train * len(order)), round(test * len(order))
        learned, held = order[:n_train], order[-n_test:]
        yield Split(X[learned], y[learned], X[held], y[held])


def standardised(split: Split) -> Split:
    """Features of mean 0 and deviation 1 over the training rows."""
    mean, deviation = split.X.mean(axis=0), split.X.std(axis=0)
    deviation[deviation == 0] = 1
    return split._replace(X=(split.X - mean) / deviation, X_test=(split.X_test - mean) / deviation)


# What is measured, in %.


def accuracy(model: Any, split: Split) -> list[float]:
    return [100 * float(model.fit(split.X, split.y).score(split.X_test, split.y_test))]


def error(model: Any, split: Split) -> list[float]:
    return [100 - accuracy(model, split)[0]]


def error_curve(model: Any, split: Split) -> np.ndarray:
    """The test error after each round."""
    stages = model.fit(split.X, split.y).staged_predict(split.X_test)
    return 100 * np.array([np.mean(predicted != split.y_test) for predicted in stages])


def after(curve: np.ndarray, n_rounds: int) -> float:
    """The curve after this number of rounds, or after the last round if there were fewer."""
    return float(curve[min(n_rounds, len(curve)) - 1])


# The loop.


def measure(
    table: Table, datasets: Sequence[str], quick: bool, kept: Figures
) -> Iterator[tuple[str, str, list[list[float]]]]:
    """Yield (data set, method, figures of each repeat) of all that is not kept."""
    for dataset in datasets:
        splits = table.splits(dataset)
        splits = [_some_rows(next(splits))] if quick else list(splits)
        n_classes = int(max(split.y.max() for split in splits)) + 1
        for name, method in table.methods.items():
            if (method.only is None or dataset in method.only) and name not in kept.get(dataset, {}):
                models = [_model(method, n_classes, quick) for _ in splits]
                pairs = zip(models, splits, strict=True)
                yield dataset, name, [_figures(table, model, method.prepare(split)) for model, split in pairs]


def _some_rows(split: Split) -> Split:
    """Some rows of all parts of a split, which may be sorted by class."""
    few = [np.linspace(0, len(y) - 1, min(len(y), QUICK_ROWS)).astype(int) for y in (split.y, split.y_test)]
    return Split(split.X[few[0]], split.y[few[0]], split.X_test[few[1]], split.y_test[few[1]])


def _model(method: Method, n_classes: int, quick: bool) -> Any:
    model = method.make(n_classes)
    if quick and hasattr(model, "n_estimators"):
        model.set_params(n_estimators=min(model.n_estimators, QUICK_ROUNDS))
    return model


def _figures(table: Table, model: Any, split: Split) -> list[float]:
    return [round(float(x), 4) for x in table.measure(model, split)]


# The printer.


def header(table: Table) -> list[str]:
    cells = ["data set", "method", *table.columns[:-1], *_compared(table), table.columns[-1]]
    return [line(cells), line(["---"] * len(cells))]


def row(table: Table, dataset: str, name: str, repeats: list[list[float]]) -> str:
    """One line of Markdown; several repeats as mean (standard deviation)."""
    method, place = table.methods[name], table.datasets.index(dataset)
    columns = [figure(values, table.digits) for values in zip(*repeats, strict=True)]
    known = {"paper": method.paper, "reference": method.reference}
    beside = [
        figure([known[source][place]], table.digits) if known[source] else "" for source in _compared(table)
    ]
    return line([dataset, name, *columns[:-1], *beside, columns[-1]])


def _compared(table: Table) -> list[str]:
    """Those of "paper" and "reference" that have any figures."""
    methods = table.methods.values()
    return [source for source in ("paper", "reference") if any(getattr(m, source) for m in methods)]


def figure(values: Sequence[float | None], digits: int) -> str:
    if values[0] is None:
        return ""
    mean = f"{np.mean(values) + 1e-9:.{digits}f}"  # type: ignore[arg-type] (the float nearest to 50.775 is smaller, but should print as 50.78)
    return mean if len(values) == 1 else f"{mean} ({np.std(values, ddof=1):.{digits}f})"  # type: ignore[arg-type]


def line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


# Files: the figures, and the page made from them.


def result_file(script: str, table: Table) -> Path:
    return RESULTS / f"{script}_{table.name}.json"


def as_json(content: dict) -> str:
    """JSON with the figures of a repeat on one line."""
    return (
        re.sub(r"\[[^][{}]*\]", lambda match: " ".join(match[0].split()), json.dumps(content, indent=1))
        + "\n"
    )


def opening(doc: str) -> list[str]:
    """The beginning of a page: the script's docstring."""
    title, _, introduction = doc.strip().partition("\n")
    return [f"# {title.rstrip('.')}", introduction.strip()]


def page(script: str, doc: str, tables: Sequence[Table]) -> str:
    """docs/results/SCRIPT.md: the script's docstring, and its tables from the committed figures."""
    parts = opening(doc)
    for table in tables:
        kept = json.loads(result_file(script, table).read_text())
        lines = [
            row(table, d, m, repeats)
            for d, methods in kept["figures"].items()
            for m, repeats in methods.items()
        ]
        heading = table.name[0].upper() + table.name[1:].replace("_", " ")
        made = f"`{kept['command']}` ({kept['seconds']} s)"
        parts += [
            f"## {heading}",
            f"{fill(table.caption, 130)}\n\n{made}",
            "\n".join([*header(table), *lines]),
        ]
        parts += [f"![{table.picture.alt}](../images/{table.picture.file})"] if table.picture else []
        parts += [fill(table.comment, 130)] if table.comment else []
    return "\n\n".join(parts) + "\n"


def draw(picture: Picture, folder: Path, quick: bool) -> None:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise SystemExit(
            "--plot needs matplotlib, which is not installed. Install the optional extra: pip install '.[plots]'"
        ) from None
    canvas = Figure(layout="constrained")
    picture.draw(canvas, quick)
    folder.mkdir(parents=True, exist_ok=True)
    canvas.savefig(folder / picture.file, dpi=80, metadata={"Software": None})
    print(f"written: {folder / picture.file}")


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    print(f"written: {path}")


# The command line.


def arguments(doc: str, tables: Sequence[Table]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=doc.partition("\n")[0], formatter_class=argparse.RawDescriptionHelpFormatter
    )
    datasets = sorted({name for table in tables for name in table.datasets})
    add = parser.add_argument
    add(
        "--quick",
        action="store_true",
        help=f"a small test: one split, at most {QUICK_ROUNDS} rounds and {QUICK_ROWS} rows",
    )
    add(
        "--only",
        action="append",
        choices=datasets,
        metavar="DATASET",
        help=f"only this data set: {', '.join(datasets)}",
    )
    add("--table", action="append", choices=[table.name for table in tables], help="only this table")
    add("--workers", type=int, default=0, metavar="N", help="train on a Dask LocalCluster of N workers")
    add("--json", type=Path, metavar="FILE", help="write the figures to this file")
    add(
        "--write",
        action="store_true",
        help="keep the figures in examples/papers/results and, if complete, write docs/results",
    )
    add("--missing", action="store_true", help="measure only what the kept figures lack")
    add(
        "--page",
        action="store_true",
        help="only write docs/results, from the kept figures",
    )
    if any(table.picture for table in tables):
        add(
            "--plot",
            nargs="?",
            type=Path,
            const=IMAGES,
            metavar="FOLDER",
            help="only draw the pictures of the tables, by default in docs/images; needs matplotlib",
        )
    return parser


def main(file: str, doc: str, tables: Sequence[Table]) -> int:
    return run(file, doc, tables, arguments(doc, tables).parse_args())


def run(file: str, doc: str, tables: Sequence[Table], options: argparse.Namespace) -> int:
    """Measures, prints and keeps the tables that the command line asks for."""
    if options.write and (options.quick or options.only):
        print("--write keeps whole tables: leave out --quick and --only.", file=sys.stderr)
        return 2
    script = Path(file).stem
    if options.page:
        write(PAGES / f"{script}.md", page(script, doc, tables))
        return 0
    chosen = [table for table in tables if options.table is None or table.name in options.table]
    if getattr(options, "plot", None):
        for picture in [table.picture for table in chosen if table.picture]:
            draw(picture, options.plot, options.quick)
        return 0
    measured: dict[str, Figures] = {}
    # An estimator trains on the current client, if there is one: the result is the same.
    cluster = Client(n_workers=options.workers, threads_per_worker=1) if options.workers else nullcontext()
    with cluster, threadpool_limits(1):  # one core, so that times can be compared
        for table in chosen:
            wanted = options.only or (table.quick if options.quick else table.datasets)
            datasets = [name for name in table.datasets if name in wanted]
            path = result_file(script, table)
            old = json.loads(path.read_text()) if options.missing and path.exists() else {}
            kept: Figures = old.get("figures", {})
            start = time.process_time()  # of this process alone: other work on the machine does not count
            measured[table.name] = _printed(table, datasets, options.quick, kept)
            if options.write:
                content = {
                    "command": f"python -m examples.papers.{script} --table {table.name} --write",
                    "seconds": round(time.process_time() - start) + old.get("seconds", 0),
                    "figures": _merged(table, kept, measured[table.name]),
                }
                write(path, as_json(content))
    if options.json:
        write(options.json, as_json(measured))
    if options.write and all(result_file(script, table).exists() for table in tables):
        write(PAGES / f"{script}.md", page(script, doc, tables))
    return 0


def _merged(table: Table, *parts: Figures) -> Figures:
    """The figures of all parts, in the order of the table."""
    found = {
        dataset: {name: part[dataset][name] for part in parts for name in part.get(dataset, {})}
        for dataset in table.datasets
    }
    return {
        d: {name: methods[name] for name in table.methods if name in methods} for d, methods in found.items()
    }


def _printed(table: Table, datasets: Sequence[str], quick: bool, kept: Figures) -> Figures:
    """Measures what is not kept of a table and prints each row at once."""
    quickly = f" (At most {QUICK_ROUNDS} rounds and {QUICK_ROWS} rows: not comparable.)" if quick else ""
    print(f"\n{table.name}: {table.caption}{quickly}\n", *header(table), sep="\n", flush=True)
    figures: Figures = {}
    for dataset, name, repeats in measure(table, datasets, quick, kept):
        figures.setdefault(dataset, {})[name] = repeats
        print(row(table, dataset, name, repeats), flush=True)
    return figures
