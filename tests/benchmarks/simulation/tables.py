"""Tables and the picture of simulated rounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from rich.table import Table

from tests.benchmarks.simulation import check
from tests.benchmarks.simulation.costs import Costs
from tests.benchmarks.simulation.engine import Link
from tests.benchmarks.simulation.job import Job
from tests.benchmarks.simulation.protocol import Cluster, Measured, Setting, simulate

LATENCY = 50e-6
FAN_OUT = 8
WORKERS = 1, 2, 4, 10, 30, 100, 300, 1000
GROUPS, FAN_OUTS = (1, 3, 10, 30), (2, 4, 8, 16, 100)
ROWS = 10**6  # of each worker

Ways = dict[str, Callable[[int], Setting]]


def grouped(n_workers: int) -> int:
    """About as many messages within a group as among groups."""
    return max(round(math.sqrt(n_workers)), 1)


WAYS: Ways = {
    "star": lambda n: Setting(star=True),
    "one level": lambda n: Setting(),
    "one level, relays": lambda n: Setting(fan_out=FAN_OUT),
    "two levels, relays": lambda n: Setting(group=grouped(n), fan_out=FAN_OUT),
}


def weak(ways: Iterable[str], workers: Iterable[int], gbit: float, costs: Costs) -> dict[str, list[Measured]]:
    """Rounds with the same number of rows on each worker."""
    link = Link(gbit, LATENCY)
    return {
        way: [simulate(Job(ROWS), Cluster(n, link=link), WAYS[way](n), costs) for n in workers]
        for way in ways
    }


def weak_table(found: dict[str, list[Measured]], workers: list[int], title: str) -> Table:
    """Milliseconds of each way."""
    table = Table("workers", *found, title=title)
    for k, n in enumerate(workers):
        table.add_row(str(n), *(f"{1e3 * rounds[k].seconds:.0f}" for rounds in found.values()))
    return table


def details_table(found: list[Measured], workers: list[int], title: str) -> Table:
    """What one way costs whom."""
    table = Table(
        "workers", "ms per round", "client: CPU ms", "client sends and receives: MB", "worker: CPU ms",
        "worker sends: MB", "pieces", title=title,
    )  # fmt: skip
    for n, each in zip(workers, found, strict=True):
        table.add_row(
            str(n), f"{1e3 * each.seconds:.0f}", f"{1e3 * each.client_cpu:.0f}", f"{each.client_bytes / 1e6:.2f}",
            f"{1e3 * each.worker_cpu / n:.0f}", f"{each.most_sent / 1e6:.1f}", f"{each.pieces:.0f}",
        )  # fmt: skip
    return table


def choices_table(costs: Costs) -> Table:
    """How much of a round is other than the work on the rows: more rows per worker are better, up to the time at hand."""
    table = Table(
        "per worker",
        "features",
        "classes",
        *(f"{n} workers" for n in (10, 100)),
        title="ms per round (of which rows)",
    )
    jobs = [
        (Job(rows, features, classes), threads)
        for rows, features, classes, threads in (
            (10**4, 64, 10, 1), (10**5, 64, 10, 1), (10**6, 64, 10, 1), (10**6, 64, 10, 8), (10**6, 64, 2, 1),
            (10**6, 64, 100, 1), (10**6, 1000, 10, 1), (10**6, 1000, 10, 8), (10**7, 64, 10, 8),
        )
    ]  # fmt: skip
    for job, threads in jobs:
        cells = []
        for n in (10, 100):
            cluster = Cluster(n, threads, Link(10, LATENCY))
            found = simulate(job, cluster, WAYS["two levels, relays"](n), costs)
            rows = (
                sum(job.sum_seconds(level, costs) for level in [job.root, *job.levels])
                + job.leaf_seconds(costs)
            ) / threads
            cells.append(f"{1e3 * found.seconds:.0f} ({100 * rows / found.seconds:.0f} %)")
        rows, cores = f"{job.rows:,}", "1 thread" if threads == 1 else f"{threads} threads"
        table.add_row(f"{rows} rows, {cores}", str(job.features), str(job.classes), *cells)
    return table


def settings_table(costs: Costs, n_workers: int) -> Table:
    """Other sizes of groups, and other numbers of workers that a relay asks."""
    table = Table(
        "rows per worker", *(f"groups of {n}" for n in GROUPS), *(f"{n} per relay" for n in FAN_OUTS)
    )
    cluster = Cluster(n_workers, link=Link(10, LATENCY))
    settings = [Setting(group=n, fan_out=FAN_OUT) for n in GROUPS]
    settings += [Setting(group=grouped(n_workers), fan_out=n) for n in FAN_OUTS]
    for rows in (10**4, ROWS):
        found = (simulate(Job(rows), cluster, setting, costs) for setting in settings)
        table.add_row(f"{rows:,}", *(f"{1e3 * each.seconds:.0f}" for each in found))
    return table


def strong(costs: Costs, total: int, workers: Iterable[int], gbit: float) -> list[Measured]:
    """Rounds with the same number of rows in all."""
    link = Link(gbit, LATENCY)
    return [
        simulate(Job(total // n), Cluster(n, link=link), WAYS["two levels, relays"](n), costs)
        for n in workers
    ]


def sized_table(rows: int, features: int, classes: int, clusters: Iterable[str], costs: Costs) -> Table:
    """A training run of these rows in all, on clusters that are given as WORKERSxTHREADS."""
    table = Table("workers", "threads", "rows per worker", "seconds per round", title="10 Gbit/s")
    for cluster in clusters:
        workers, threads = map(int, cluster.split("x"))
        job = Job(rows // workers, features, classes)
        found = simulate(
            job, Cluster(workers, threads, Link(10, LATENCY)), WAYS["two levels, relays"](workers), costs
        )
        table.add_row(str(workers), str(threads), f"{job.rows:,}", f"{found.seconds:.1f}")
    return table


def checked(
    workers: Iterable[int], rows: int, ways: Iterable[str], n_rounds: int, costs: Costs
) -> Iterator[Table]:
    """Real rounds on this machine beside simulated ones: a table that grows."""
    table = Table(
        "histograms are added by", "workers", "real: ms per round", "simulated", "ratio",
        "real: CPU ms of the client", "simulated", "real: CPU ms of workers", "simulated", "other programs", "quiet rounds",
    )  # fmt: skip
    for way in ways:
        for n in workers:
            job, setting = Job(rows // n), check.settings(n)[way]
            with check.forced(setting.star):
                real = check.real(n, job, n_rounds)
            model = check.simulated(n, job, setting, costs)
            times = (
                (real.seconds, model.seconds),
                (real.client_cpu, model.client_cpu),
                (real.worker_cpu, model.worker_cpu),
            )
            cells = [f"{1e3 * seconds:.0f}" for pair in times for seconds in pair]
            cells.insert(2, f"{model.seconds / real.seconds:.2f}")
            table.add_row(way, str(n), *cells, f"{100 * real.others:.0f} %", str(real.n_rounds))
            yield table


def picture(
    found: dict[str, list[Measured]], links: dict[float, list[Measured]], workers: list[int], path: Path
) -> None:
    """Draw the time of a round by the number of workers: of all ways on one link, of one way on all links."""
    from matplotlib.figure import Figure  # part of the extra `bench`
    from matplotlib.ticker import NullLocator

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    one, other = figure.subplots(1, 2, sharey=True)
    for way, rounds in found.items():
        one.plot(workers[: len(rounds)], [each.seconds for each in rounds], marker="o", label=way)
    for gbit, rounds in links.items():
        other.plot(
            workers,
            [each.seconds for each in rounds],
            marker="o",
            label=f"{gbit:g} Gbit/s",
        )
    for axes in (one, other):
        axes.set(xscale="log", yscale="log", xlabel="workers")
        for axis, ticks in ((axes.xaxis, WORKERS), (axes.yaxis, (1, 2, 5, 10, 20, 40))):
            axis.set_ticks(ticks, [f"{tick:,}" for tick in ticks])
            axis.set_minor_locator(NullLocator())
        axes.grid(alpha=0.3, which="both")
        axes.legend(frameon=False)
    one.set(ylabel="seconds per round", title="10 Gbit/s")
    other.set(title="Two levels and relays")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
