"""Huang: results of active learning.

J. Huang, *A Multiclass Boosting Classification Method with Active Learning*, Penn State, 2009, section 5.2.

The question is how many labels GAMBLE needs if it asks for the rows that it is least sure of (Active), and how many if it gets
random rows (Random). The target is the lowest test error in the first 1000 rounds of GAMBLE trained on all rows (Batch). So it
is chosen on the test rows, as in the thesis. Trees have 15 leaves. The thesis does not state how many rounds a committee has,
how many labels it begins with, and how many it asks for at once. Here a committee has 200 rounds, a compromise to save
computing time. The text above each table gives the other numbers.

`python -m examples.active_pendigits --write` measures all this. "Reference" is an independent NumPy implementation, with its own
splits where there is no official one.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from distboost import GAMBLEClassifier
from distboost.active import QueryByCommittee
from distboost.io.progress import bar
from examples import active_report as report
from examples.papers.common import QUICK_ROUNDS, Split, as_json, error_curve, official, write

LEAVES = 15
ROUNDS = 200
BATCH_ROUNDS = 1000
LARGE = ("pendigits", "satimage", "splice")
BATCH = "Batch"


class Way(NamedTuple):
    """How rows are chosen."""

    strategy: str
    diversity: int = 1
    only: Sequence[str] | None = None  # the data sets it is for; None: all


WAYS = {
    report.ACTIVE: Way("margin"),
    report.RANDOM: Way("random"),
    report.DIVERSE: Way("margin", diversity=5, only=("pendigits", "satimage")),
}

# After how many labels a committee is trained, as (step, last) from the first on.
SMALL = {
    "glass": ((5, 113),),
    "segment": ((10, 210),),
    "soybean": ((10, 307),),
    "vehicle": ((10, 320),),
    "vowel": ((10, 320),),
}
RANDOM_STEPS = {
    "pendigits": ((50, 600), (100, 2600)),
    "satimage": ((50, 600), (100, 1600)),
    "splice": ((50, 1000),),
}
ACTIVE_STEPS = {"pendigits": ((10, 600),), "satimage": ((10, 600),), "splice": ((10, 500),)}


def label_counts(dataset: str, way: str, quick: bool = False) -> list[int]:
    """The numbers of labels with which a committee is trained."""
    large = RANDOM_STEPS if WAYS[way].strategy == "random" else ACTIVE_STEPS
    counts = [50 if dataset in LARGE else 20]
    for step, last in large.get(dataset) or SMALL[dataset]:
        counts += [*range(counts[-1] + step, last, step), last]
    return counts[:4] if quick else counts


# What is measured. Seconds are CPU time of this process, so that other processes do not count.


def gamble(n_rounds: int) -> GAMBLEClassifier:
    """The thesis repeats a tree without an error."""
    return GAMBLEClassifier(n_estimators=n_rounds, max_leaf_nodes=LEAVES, on_separation="stop", n_jobs=1)


def batch(dataset: str, n_rounds: int) -> dict[str, Any]:
    """The target, and the time of a training on all rows."""
    split = next(official(dataset))
    with threadpool_limits(1):
        gamble(2).fit(split.X, split.y)  # compiles
        curve = error_curve(gamble(n_rounds), split)
        started = time.process_time()
        gamble(n_rounds).fit(split.X, split.y)
        seconds = time.process_time() - started
    wrong = np.rint(curve * len(split.y_test) / 100).astype(int)
    return {
        "rows": len(split.y),
        "test rows": len(split.y_test),
        "rounds": n_rounds,
        "lowest": int(wrong.min()),  # misclassified test rows
        "round of the lowest": int(wrong.argmin()) + 1,
        "after a committee's rounds": int(wrong[min(ROUNDS, n_rounds) - 1]),
        "seconds": round(seconds, 2),
    }


def trial(dataset: str, way: str, seed: int, n_rounds: int, counts: Sequence[int]) -> dict[str, list]:
    """The number of misclassified test rows of each committee, and the seconds until it was trained."""
    split = next(official(dataset))
    with threadpool_limits(1):
        gamble(2).fit(split.X[:50], split.y[:50])  # compiles
        learner = QueryByCommittee(
            gamble(n_rounds),
            split.X,
            start="random",
            strategy=WAYS[way].strategy,
            diversity=WAYS[way].diversity,
            random_state=seed,
        )
        steps = list(_steps(learner, split, counts))
    return {
        "wrong": [wrong for wrong, _ in steps],
        "seconds": [round(seconds, 1) for seconds in np.cumsum([seconds for _, seconds in steps]).tolist()],
    }


def _steps(learner: QueryByCommittee, split: Split, counts: Sequence[int]) -> Iterator[tuple[int, float]]:
    """The loop of algorithm 4: (misclassified test rows, seconds to query and train) of each committee."""
    for count in counts:
        started = time.process_time()
        rows = learner.query(count - len(learner.labelled_))
        committee = learner.teach(rows, split.y[rows]).estimator_
        seconds = time.process_time() - started
        yield int(np.sum(committee.predict(split.X_test) != split.y_test)), seconds


# The loop. Results are kept in files, so that a measurement can be interrupted and resumed.


class Job(NamedTuple):
    """A trial, or Batch, on a data set: a call whose result is kept."""

    dataset: str
    way: str
    seed: int
    n_rounds: int
    counts: Sequence[int] = ()

    def __call__(self) -> dict[str, Any]:
        if self.way == BATCH:
            return batch(self.dataset, self.n_rounds)
        return trial(self.dataset, self.way, self.seed, self.n_rounds, self.counts)


def jobs(datasets: Sequence[str], ways: Sequence[str], seeds: int, quick: bool) -> Iterator[Job]:
    """Yield everything to be measured."""
    n_rounds, n_batch = (QUICK_ROUNDS, QUICK_ROUNDS) if quick else (ROUNDS, BATCH_ROUNDS)
    for dataset in datasets:
        yield Job(dataset, BATCH, 0, n_batch)
        for seed, way in itertools.product(range(seeds), ways):
            if WAYS[way].only is None or dataset in WAYS[way].only:
                yield Job(dataset, way, seed, n_rounds, label_counts(dataset, way, quick))


def keep(kept: dict[str, Any], job: Job, found: dict[str, Any]) -> None:
    """Adds a result to what is kept of its data set."""
    if job.way == BATCH:
        kept[BATCH] = found
        return
    way = kept.setdefault("ways", {}).setdefault(
        job.way, {"rounds": job.n_rounds, "labels": list(job.counts), "trials": {}}
    )
    way["trials"][str(job.seed)] = found
    # In a fixed order, whichever process finished first.
    way["trials"] = dict(sorted(way["trials"].items(), key=lambda trial: int(trial[0])))
    kept["ways"] = dict(sorted(kept["ways"].items(), key=lambda way: list(WAYS).index(way[0])))


def is_kept(kept: dict[str, Any], job: Job) -> bool:
    """Return whether the job was measured before, with the same settings."""
    if job.way == BATCH:
        return kept.get(BATCH, {}).get("rounds") == job.n_rounds
    way = kept.get("ways", {}).get(job.way)
    if way is None or str(job.seed) not in way["trials"]:
        return False
    if (way["rounds"], way["labels"]) != (job.n_rounds, list(job.counts)):
        raise SystemExit(
            f"{report.result_file(job.dataset)} has trials of {way['rounds']} rounds, or with other numbers of labels. "
            "Remove it to measure again."
        )
    return True


def measure(todo: Sequence[Job], kept: dict[str, dict], n_processes: int, keeps_files: bool) -> None:
    """Run the jobs in parallel, and keep each result at once."""
    left = iter(todo)
    # Spawned, not forked: threads of this process may hold locks.
    with ProcessPoolExecutor(n_processes, get_context("spawn")) as pool, bar("trials", len(todo)) as draw:
        under_way: dict[Future, Job] = {pool.submit(job): job for job in itertools.islice(left, n_processes)}
        done = 0
        while under_way:
            for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                job = under_way.pop(future)
                under_way |= {pool.submit(following): following for following in itertools.islice(left, 1)}
                keep(kept[job.dataset], job, future.result())
                if keeps_files:
                    report.save(job.dataset, kept[job.dataset])
                done += 1
                draw(done, f"{job.dataset}, {job.way}")


# The command line.


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    every = ", ".join(report.DATASETS)
    add("--quick", action="store_true", help=f"a small test: glass, {QUICK_ROUNDS} rounds, few labels")
    add("--datasets", nargs="+", choices=report.DATASETS, metavar="DATASET", help=f"of {every}")
    add("--ways", nargs="+", choices=list(WAYS), metavar="WAY", help=f"of {', '.join(map(repr, WAYS))}")
    add("--seeds", type=int, default=10, metavar="N", help="trials of each way (10)")
    add("--processes", type=int, default=1, metavar="N", help="trials in parallel (1)")
    add("--json", type=Path, metavar="FILE", help="write the figures to this file")
    add(
        "--write",
        action="store_true",
        help="keep each trial in examples/papers/results, measure only missing trials and, when all are there, write "
        "docs/results/active.md and its pictures; needs matplotlib",
    )
    add("--page", action="store_true", help="only write the page and its pictures, from the kept figures")
    return parser


def main() -> int:
    options = arguments().parse_args()
    if options.write and options.quick:
        print("--write keeps whole trials: leave out --quick.", file=sys.stderr)
        return 2
    if options.page:
        report.write_page(__doc__)
        return 0
    datasets = options.datasets or (("glass",) if options.quick else report.DATASETS)
    kept: dict[str, dict] = {name: report.kept(name) if options.write else {} for name in datasets}
    seeds = min(options.seeds, 2) if options.quick else options.seeds
    wanted = jobs(datasets, options.ways or list(WAYS), seeds, options.quick)
    measure(
        [job for job in wanted if not is_kept(kept[job.dataset], job)], kept, options.processes, options.write
    )
    print(report.tables(kept))
    if options.json:
        write(options.json, as_json(kept))
    if options.write and all(report.result_file(name).exists() for name in report.DATASETS):
        report.write_page(__doc__)
    return 0


if __name__ == "__main__":
    sys.exit(main())
