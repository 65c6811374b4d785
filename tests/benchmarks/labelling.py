"""How many labels active learning needs: ``python -m tests.benchmarks.labelling --json FILE``.

Learning curves on ten tables, with the same seeds for each way to choose rows: distboost's default, other committees, starts and
strategies, and scikit-activeml, modAL and small-text with their usual learners. A way begins with 50 rows, then asks for 10 at a
time up to 150 labels, 25 up to 300, and 50 up to 500. After each batch, its classifier's error on the test rows is measured, and
the CPU seconds to query and to train. FILE keeps each run at once: an interrupted measurement goes on. ``--page`` prints the
tables of docs/results/labels.md and draws its picture.
"""

from __future__ import annotations

import json
import platform
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from distboost import GAMBLEClassifier, GDMCBoostClassifier
from distboost.active import QueryByCommittee
from tests.benchmarks.labelling_page import BEFORE, DEFAULT, PEER, RANDOM, write_page
from tests.benchmarks.labelling_sets import TABLES, Pool

COUNTS = [50, *range(60, 151, 10), *range(175, 301, 25), *range(350, 501, 50)]  # labels
FINAL_COUNTS = [50, 100, 150, 200, 300, 400, 500]  # at which the final model is measured
LEAD = 2  # seeds that the first ways are ahead of the others
SEEDS = 10
PACKAGES = ("distboost", "scikit-learn", "numpy", "scikit-activeml", "modAL-python", "small-text")

# A way yields, for each of COUNTS, the rows labelled so far and what was trained on them.
Steps = Iterator[tuple[np.ndarray, Any]]


def random_start(table: Pool, seed: int) -> np.ndarray:
    """The first rows of all ways that begin with random ones."""
    return QueryByCommittee(None, table.split.X, start="random", random_state=seed).query(COUNTS[0])


def boosted(kind: Any, table: Pool) -> Any:
    return kind(categorical_features=table.categorical, n_jobs=1)


def ours(table: Pool, seed: int, estimator: Any = None, **options: Any) -> Steps:
    """QueryByCommittee; an estimator of distboost is its own final model."""
    final = None if estimator else boosted(GDMCBoostClassifier, table)
    committee = boosted(estimator, table) if estimator else None
    learner = QueryByCommittee(committee, table.pool, final=final, random_state=seed, **options)
    for count in COUNTS:
        rows = learner.query(count - len(learner.labelled_))
        learner.teach(rows, table.split.y[rows])
        yield learner.labelled_, learner.estimator_


def scikit_activeml(table: Pool, seed: int, classifier: Any, method: str) -> Steps:
    from skactiveml.classifier import SklearnClassifier
    from skactiveml.pool import UncertaintySampling

    split, labelled = table.split, random_start(table, seed)
    y = np.full(len(split.y), np.nan)
    strategy = UncertaintySampling(method=method, random_state=seed)
    model = SklearnClassifier(seeded(classifier, seed), classes=np.unique(split.y), random_state=seed)
    for count in COUNTS:
        if count > len(labelled):
            n = count - len(labelled)
            labelled = np.append(labelled, strategy.query(split.X, y, model, fit_clf=False, batch_size=n))
        y[labelled] = split.y[labelled]
        yield labelled, model.fit(split.X, y)


def modal(table: Pool, seed: int, classifier: Any) -> Steps:
    """Its default query, `uncertainty_sampling`. A new learner for each batch: `teach` fails with scikit-learn 1.9.1."""
    from modAL.models import ActiveLearner

    split, labelled = table.split, random_start(table, seed)
    rest = np.setdiff1d(np.arange(len(split.y)), labelled)
    learner: Any = None
    for count in COUNTS:
        if count > len(labelled):
            chosen, _ = learner.query(split.X[rest], n_instances=count - len(labelled))
            labelled, rest = np.append(labelled, rest[chosen]), np.delete(rest, chosen)
        learner = ActiveLearner(
            seeded(classifier, seed), X_training=split.X[labelled], y_training=split.y[labelled]
        )
        yield labelled, learner


class _ForDataset(NamedTuple):
    """A classifier of small-text, for arrays."""

    model: Any
    scaler: StandardScaler

    def predict(self, X: np.ndarray) -> np.ndarray:
        from small_text import SklearnDataset

        labels = np.zeros(len(X), np.int64)
        return self.model.predict(
            SklearnDataset(self.scaler.transform(X), labels, target_labels=np.arange(1))
        )


def small_text(table: Pool, seed: int) -> Steps:
    """A linear SVM on standardised features, and breaking ties, its name for margin."""
    from small_text import (
        BreakingTies,
        ConfidenceEnhancedLinearSVC,
        PoolBasedActiveLearner,
        SklearnClassifierFactory,
        SklearnDataset,
    )

    split, labelled = table.split, random_start(table, seed)
    scaler, classes = StandardScaler().fit(split.X), np.unique(split.y)
    rows = SklearnDataset(scaler.transform(split.X), split.y, target_labels=classes)
    factory = SklearnClassifierFactory(ConfidenceEnhancedLinearSVC(), len(classes))
    learner = PoolBasedActiveLearner(factory, BreakingTies(), rows)
    for count in COUNTS:
        if count == COUNTS[0]:
            learner.initialize_data(labelled, split.y[labelled])
        else:
            chosen = learner.query(num_samples=count - len(labelled))
            learner.update(split.y[chosen])
            labelled = np.append(labelled, chosen)
        yield labelled, _ForDataset(learner.classifier, scaler)


def seeded(classifier: Any, seed: int) -> Any:
    found = clone(classifier)
    return found.set_params(random_state=seed) if "random_state" in found.get_params() else found


TREES, LINEAR = ExtraTreesClassifier(), make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
WAYS: dict[str, Callable[[Pool, int], Steps]] = {
    DEFAULT: ours,
    BEFORE: partial(ours, estimator=GAMBLEClassifier, start="random", diversity=1),
    RANDOM: partial(ours, start="random", strategy="random"),
    PEER: partial(scikit_activeml, classifier=TREES, method="margin_sampling"),
    "random start": partial(ours, start="random"),
    "diversity 1": partial(ours, diversity=1),
    "entropy": partial(ours, strategy="entropy"),
    "averaged-margin": partial(ours, strategy="averaged-margin"),
    "GD-MCBoost, random start": partial(ours, estimator=GDMCBoostClassifier, start="random", diversity=1),
    "scikit-activeml, trees, entropy": partial(scikit_activeml, classifier=TREES, method="entropy"),
    "scikit-activeml, logistic, entropy": partial(scikit_activeml, classifier=LINEAR, method="entropy"),
    "modAL, random forest": partial(modal, classifier=RandomForestClassifier()),
    "small-text, linear SVM": small_text,
}
FIRST = (DEFAULT, BEFORE, RANDOM, PEER)
WITH_FINAL = (DEFAULT,)


def target(table: Pool) -> dict[str, Any]:
    """The error of the model that learns from all labels of the pool, and its seconds."""
    started = time.process_time()
    model = boosted(GDMCBoostClassifier, table).fit(table.split.X, table.split.y)
    seconds = time.process_time() - started
    return {"wrong": _wrong(model, table), "test_rows": len(table.split.y_test), "seconds": round(seconds, 2)}


def _wrong(model: Any, table: Pool) -> int:
    return int(np.sum(np.asarray(model.predict(table.split.X_test)) != table.split.y_test))


def run(table: Pool, way: str, seed: int) -> dict[str, list[Any]]:
    """The misclassified test rows of each classifier, the seconds until it was there, and what was counted."""
    found: dict[str, list[Any]] = {"wrong": [], "seconds": []}
    seconds, steps = 0.0, WAYS[way](table, seed)
    for count in COUNTS:
        started = time.process_time()
        labelled, model = next(steps)
        seconds += time.process_time() - started
        found["wrong"].append(_wrong(model, table))
        found["seconds"].append(round(seconds, 2))
        if table.kinds is not None:
            kinds = table.kinds[labelled]
            found.setdefault("kinds", []).append(len(np.unique(kinds[kinds >= 0])))
        if way in WITH_FINAL and count in FINAL_COUNTS:
            final = boosted(GDMCBoostClassifier, table).fit(table.split.X[labelled], table.split.y[labelled])
            found.setdefault("final", []).append(_wrong(final, table))
    return found


def settings() -> dict[str, Any]:
    """What is kept beside the figures."""
    versions = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "not installed"
    return {"labels": COUNTS, "labels of final models": FINAL_COUNTS, "versions": versions}


def measure(file: Path, names: list[str], ways: list[str], seeds: range) -> None:
    """Measure what the file lacks, the first ways first."""
    kept = json.loads(file.read_text()) if file.exists() else {"targets": {}, "runs": {}}
    kept |= settings()
    tables = {name: TABLES[name]() for name in names}
    order = [(seed, way, name) for seed in seeds for way in ways for name in names]
    order.sort(key=lambda job: job[0] + LEAD * (job[1] not in FIRST))
    for seed, way, name in order:
        runs = kept["runs"].setdefault(name, {}).setdefault(way, {})
        if str(seed) in runs:
            continue
        if name not in kept["targets"]:
            kept["targets"][name] = target(tables[name])
        runs[str(seed)] = run(tables[name], way, seed)
        part = file.with_suffix(".part")
        part.write_text(as_text(kept))
        part.replace(file)
        click.echo(f"{name}, {way}, {seed}: {runs[str(seed)]['wrong'][-1]} {runs[str(seed)]['seconds'][-1]}")


def as_text(kept: dict[str, Any]) -> str:
    """JSON with a line for each run."""
    head = {name: value for name, value in kept.items() if name != "runs"}
    runs = [
        f"{json.dumps(name)}: {{\n"
        + ",\n".join(
            f"{json.dumps(way)}: {{\n"
            + ",\n".join(
                f'"{seed}": {json.dumps(found)}'
                for seed, found in sorted(each.items(), key=lambda s: int(s[0]))
            )
            + "}"
            for way, each in ways.items()
        )
        + "}"
        for name, ways in kept["runs"].items()
    ]
    return json.dumps(head, indent=1)[:-2] + ',\n"runs": {\n' + ",\n".join(runs) + "}}\n"


@click.command()
@click.option("--data", "names", multiple=True, type=click.Choice([*TABLES]), help="All if not given.")
@click.option("--way", "ways", multiple=True, type=click.Choice([*WAYS]), help="All if not given.")
@click.option("--seeds", type=click.IntRange(1), default=SEEDS, show_default=True)
@click.option("--first-seed", type=click.IntRange(0), default=0, show_default=True)
@click.option("--json", "file", type=click.Path(path_type=Path), default=Path(__file__).with_suffix(".json"))
@click.option("--page", is_flag=True, help="Only print the tables, and draw the picture.")
def main(
    names: tuple[str, ...], ways: tuple[str, ...], seeds: int, first_seed: int, file: Path, page: bool
) -> None:
    """Measures learning curves, and prints their tables."""
    warnings.filterwarnings("ignore")  # the libraries' own
    if not page:
        with threadpool_limits(1):
            measure(file, list(names or TABLES), list(ways or WAYS), range(first_seed, seeds))
    write_page(json.loads(file.read_text()))


if __name__ == "__main__":
    main()
