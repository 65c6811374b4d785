"""GD-MCBoost beside other boosting libraries, in one run: ``python -m tests.benchmarks.compare``.

Every library is fitted with two threads, binning included, in a process of its own, which tells its memory. The time is taken
after every round; accuracies are measured afterwards, so that they are not part of the times. Where a fit is repeated, the
libraries take turns, and the fastest time to each round counts, because other work on the machine only adds time. The spread,
the median over the fastest time, shows how much it added: repeat a run with spreads far above 1 on a quieter machine.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable
from contextlib import ExitStack
from datetime import date
from importlib.metadata import version
from pathlib import Path

import click
import numpy as np

from tests.benchmarks.choose_setting import CHOSEN, describe
from tests.benchmarks.contenders import RIVALS, THREADS, LightGBM
from tests.benchmarks.datasets import Split
from tests.benchmarks.racer import racer
from tests.benchmarks.results import (
    OWN,
    DataSet,
    Run,
    accuracy_table,
    memory_table,
    race_table,
    ratio_table,
    read,
    round_table,
    write,
)
from tests.benchmarks.rounds import Entry, saved, time_rounds
from tests.benchmarks.suite import PLANS, Plan, data

ROUNDS_ON = (
    "spheres-10",
    "images",
    "letter",
)  # data sets on which single rounds are timed, on one and two threads
ROUND_SECONDS = 5.0


def run_all(
    names: Iterable[str], split: Split, setting: dict, n_rounds: dict[str, int], repeats: int
) -> dict[str, Run]:
    """Fits the libraries in turn, as often as told."""
    with ExitStack() as stack:
        folder = stack.enter_context(saved(split))
        racers, found = {}, {name: [] for name in names}
        for name in found:
            job = {"contender": name, "n_threads": THREADS, "n_rounds": n_rounds[name], "data": folder}
            own = setting if name == OWN else {}
            racers[name] = stack.enter_context(racer(**job, setting=own, repeats=repeats, accuracies=True))
            racers[name].read()
        for last in np.arange(repeats) == repeats - 1:
            for name, each in racers.items():
                found[name].append(each.go())
                if last:
                    each.end()
    return {name: Run.of_repeats(several) for name, several in found.items()}


def compare(split: Split, setting: dict, plan: Plan, times_of_rounds: bool) -> DataSet:
    """All libraries on one data set."""
    n_rounds = {OWN: plan.own, **{name: plan.rounds_of(name) for name in RIVALS}}
    found = DataSet(str(split), run_all(n_rounds, split, setting, n_rounds, plan.repeats), {})
    if not all(race.n_rounds for race in found.races()):  # a longer fit of the same model
        found.runs[OWN] = run_all([OWN], split, setting, {OWN: plan.longest}, plan.repeats)[OWN]
    if times_of_rounds:
        entries = [Entry(name, n) for name in (OWN, LightGBM.name) for n in (1, THREADS)]
        times = time_rounds(split, entries, {}, ROUND_SECONDS)
        medians = {str(entry): 1e3 * float(np.median(t)) for entry, t in zip(entries, times, strict=True)}
        found.round_times.update(medians)
    return found


def report(about: str, sets: dict[str, DataSet]) -> str:
    """All tables."""
    large = {name: found for name, found in sets.items() if PLANS[name].repeats == 1}
    parts = [about, "Time to the accuracy of the most accurate rival:", race_table(sets)]
    parts += ["The same for every rival:", ratio_table(sets)]
    if any(found.round_times for found in sets.values()):
        parts += ["A round at the defaults, on one and two threads:", round_table(sets)]
    if large:
        parts += ["Memory:", memory_table(large)]
    for name, found in sets.items():
        parts += [f"{name}: {found.title}", accuracy_table(found)]
    return "\n\n".join(parts) + "\n"


def about(settings: dict[str, dict]) -> str:
    """Versions and the settings."""
    packages = ("distboost", "lightgbm", "xgboost", "catboost", "scikit-learn")
    versions = ", ".join(f"{package} {library_version(package)}" for package in packages)
    of_setting: dict[str, list[str]] = {}
    for name, setting in settings.items():
        of_setting.setdefault(describe(setting), []).append(name)
    own = "; ".join(f"{setting} on {', '.join(names)}" for setting, names in of_setting.items())
    return (
        f"{versions}; Python {platform.python_version()}, {THREADS} threads each; {processor()}, {date.today()}\n\n"
        f"distboost: {own}; the others with their defaults"
    )


def processor() -> str:
    """The processor's name and whether it has AVX-512, without which it runs at about half the speed."""
    about = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    names = [line.partition(": ")[2] for line in about.splitlines() if line.startswith("model name")]
    avx512 = "with" if "avx512f" in about else "without"
    return f"{len(names)} x {names[0]} {avx512} AVX-512" if names else platform.processor()


def library_version(package: str) -> str:
    if package == "distboost":
        from distboost import __version__

        return __version__
    if package == "xgboost":  # two distributions hold this module
        import xgboost

        return xgboost.__version__
    return version(package)


@click.command()
@click.option(
    "--data", "names", multiple=True, type=click.Choice(list(PLANS)), help="Data sets; all if not given."
)
@click.option(
    "--json",
    "file",
    type=click.Path(path_type=Path),
    help="Where all curves are kept; data sets already there are not run again.",
)
@click.option("--rounds/--no-rounds", default=True, help="Also time rounds on one and two threads.")
@click.option("--plot", type=click.Path(path_type=Path), help="Draw accuracy over time into this file.")
@click.option(
    "--themes",
    type=click.Path(path_type=Path),
    help="Draw letter and images into this folder, light and dark.",
)
def main(
    names: tuple[str, ...], file: Path | None, rounds: bool, plot: Path | None, themes: Path | None
) -> None:
    """Trains all libraries side by side and prints accuracies, times, ratios and memory."""
    settings = json.loads(CHOSEN.read_text())
    text, sets = read(file) if file is not None and file.exists() else (about(settings), {})
    for name in names or PLANS:
        if name in sets:
            continue
        click.echo(f"{name} ...", err=True)
        sets[name] = compare(data(name), settings[name], PLANS[name], rounds and name in ROUNDS_ON)
        if file is not None:
            write(file, text, sets)
    sets = {name: sets[name] for name in PLANS if name in sets}
    click.echo(report(text, sets))
    if plot is not None:
        from tests.benchmarks.plots import draw

        draw(sets, plot)
    if themes is not None:
        from tests.benchmarks.plots import draw_themes

        draw_themes({name: sets[name] for name in ("letter", "images")}, themes)


if __name__ == "__main__":
    main()
