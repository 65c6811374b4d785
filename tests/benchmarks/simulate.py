"""A model of a round on 1 to 1,000 workers, with costs that are measured on this machine.

python -m tests.benchmarks.simulate --measure   # measures the costs, and keeps them in costs.json
python -m tests.benchmarks.simulate --check     # real rounds on local workers beside simulated ones
python -m tests.benchmarks.simulate             # the tables and the picture of docs/scaling.md
python -m tests.benchmarks.simulate --size 1953125000 256 10   # the table of docs/large-data.md
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import click
from rich.console import Console

from tests.benchmarks.simulation import measure, tables
from tests.benchmarks.simulation.costs import MEASURED, Costs

PICTURE = Path(__file__).parents[2] / "docs" / "images" / "scaling.png"
WAY = "two levels, relays"
LINKS = 1.0, 10.0, 25.0  # Gbit/s


def show(costs: Costs, most: int, path: Path, console: Console) -> None:
    """Print the tables and draw the picture."""
    workers = [n for n in tables.WORKERS if n <= most]
    found = tables.weak(tables.WAYS, workers, 10.0, costs)
    console.print(tables.weak_table(found, workers, "ms per round, 10 Gbit/s"))
    console.print(tables.details_table(found[WAY], workers, f"{WAY}, 10 Gbit/s"))
    links = {
        gbit: found[WAY] if gbit == 10 else tables.weak([WAY], workers, gbit, costs)[WAY] for gbit in LINKS
    }
    console.print(
        tables.weak_table({f"{gbit:g} Gbit/s": rounds for gbit, rounds in links.items()}, workers, 0)
    )
    strong = tables.strong(costs, 10**7, workers[:-2], 10.0)
    console.print(tables.details_table(strong, workers[:-2], "10,000,000 rows in all"))
    console.print(tables.choices_table(costs))
    console.print(tables.settings_table(costs, min(most, 100)))
    tables.picture(found, links, workers, path)
    console.print(f"{path} is written.")


@click.command()
@click.option("--measure", "do_measure", is_flag=True, help="Measure the costs on this machine: 3 minutes.")
@click.option("--check", "do_check", is_flag=True, help="Compare with real rounds on local workers.")
@click.option("--costs", "path", type=click.Path(path_type=Path), default=MEASURED, show_default=True)
@click.option("--workers", default="2,4,8,16", show_default=True, help="With --check: numbers of workers.")
@click.option("--rows", default=200_000, show_default=True, help="With --check: of all workers together.")
@click.option("--rounds", default=20, show_default=True, help="With --check: of each run.")
@click.option(
    "--owners", "ways", default="owners", show_default=True, help="With --check: owners, star or owners,star."
)
@click.option("--most", default=1000, show_default=True, help="The largest number of workers in the tables.")
@click.option("--size", type=int, nargs=3, metavar="ROWS FEATURES CLASSES", help="Of one run, in all.")
@click.option("--on", "clusters", default="25x16,50x16,100x8,100x16", show_default=True, help="With --size.")
@click.option("--picture", type=click.Path(path_type=Path), default=PICTURE, show_default=True)
def main(
    do_measure: bool,
    do_check: bool,
    path: Path,
    workers: str,
    rows: int,
    rounds: int,
    ways: str,
    most: int,
    size: tuple[int, int, int] | None,
    clusters: str,
    picture: Path,
) -> None:
    """Simulate rounds of a training run."""
    console, began = Console(width=150), time.perf_counter()
    if do_measure:
        costs = measure.all_costs()
        costs.save(path)
        console.print(costs)
    costs = Costs.load(path)
    if do_check:
        for table in tables.checked(map(int, workers.split(",")), rows, ways.split(","), rounds, costs):
            console.print(table)
    if size is not None:
        console.print(tables.sized_table(*size, clusters.split(","), costs))
    elif not (do_measure or do_check):
        show(costs, most, picture, console)
    console.print(f"{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
