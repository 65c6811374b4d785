"""Training out of core, measured: ``python -m tests.benchmarks.out_of_core NAME [--rows ...]``.

Each training runs in a fresh process. Another process reads its memory, and that of its children, every 30 ms, or less often if
that would slow it down; a callback takes the times. A tiny training first excludes compilation from the figures. Trainings
that are compared run in turns, because other work on the machine affects times.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from examples.make_large import RowCount
from tests.benchmarks.children import Cap, Outcome, run
from tests.benchmarks.settings import (
    DEPTH,
    Outcomes,
    Setting,
    benchmark,
    console,
    fastest,
    in_turn,
    main,
    megabytes,
    print_pairs,
    print_table,
)

GIB = 2**30
START_LIMIT, ROUND_LIMIT = 90.0, 20.0  # seconds of a capped training: once, and for each round
KERNEL_ROWS = 2**18  # enough to time a histogram

# One process under a hard limit.


def capped_options(command: Callable) -> Callable:
    group = click.option(
        "--cgroup",
        type=click.Path(path_type=Path, exists=True, file_okay=False),
        help="A control group (v2, or v1's memory controller) in which a new one with the limit is made. Without it, "
        "RLIMIT_DATA limits the address space of the process for data, of which less is resident.",
    )
    cap = click.option(
        "--cap",
        "cap_bytes",
        type=RowCount(),
        default=GIB,
        show_default=True,
        help="The hard limit, in bytes.",
    )
    return cap(group(command))


@benchmark(4_200_000, 256, 5, 3)
@capped_options
def capped(setting: Setting, cap_bytes: int, cgroup: Path | None) -> tuple[dict, Outcomes]:
    """Many features, in one process with a hard limit of 1 GiB."""
    return run_capped(setting, Cap(cap_bytes, cgroup))


@benchmark(17_000_000, 16, 10, 3)
@capped_options
def many_rows(setting: Setting, cap_bytes: int, cgroup: Path | None) -> tuple[dict, Outcomes]:
    """Many rows and classes under the same limit: not even the scores fit."""
    return run_capped(setting, Cap(cap_bytes, cgroup))


def run_capped(setting: Setting, cap: Cap) -> tuple[dict, Outcomes]:
    outcome = run(setting.job(memory_limit=setting.memory_limit), cap)
    limit = START_LIMIT + ROUND_LIMIT * setting.rounds
    in_time = outcome.total() <= limit
    print_pairs(
        f"{setting}; memory_limit {setting.memory_limit}, hard limit {megabytes(cap.n_bytes)} by {cap}",
        {
            "outcome": outcome.failure or "done",
            "rounds done": f"{len(outcome.rounds)} of {setting.rounds}",
            "rows in memory": outcome.rows_in_memory(),
            "memory promised": megabytes(outcome.promised()),
            "peak resident, by the kernel": megabytes(outcome.first("done").get("peak_resident")),
            "peak resident, all processes": megabytes(outcome.memory.peak()),
            "peak anonymous, all processes": megabytes(outcome.memory.peak("anonymous")),
            "peak address space for data": megabytes(outcome.memory.peak("data")),
            "peak of the cgroup": megabytes(outcome.group_peak) if cap.group else "none used",
            "before the first round": f"{outcome.ingest():.1f} s",
            "a round": f"{outcome.per_round():.2f} s",
            "in all": f"{outcome.total():.1f} s (limit {limit:.0f} s: {'kept' if in_time else 'not kept'})",
        },
    )
    return {"cap": cap.n_bytes, "by": str(cap), "in_time": in_time}, {"capped": [outcome]}


# Dask workers.


@benchmark(4_200_000, 256, 5, 3, "600MB")
@click.option("--workers", "n_workers", default=2, show_default=True)
def workers(setting: Setting, n_workers: int) -> tuple[dict, Outcomes]:
    """Dask workers with little memory: whether they are paused or restarted, and what they spill."""
    limit = setting.memory_limit
    outcome = run(setting.job(memory_limit=limit, workers=n_workers, worker_memory=limit))
    found, peaks = outcome.first("cluster"), outcome.memory.process_peaks()
    pids = outcome.first("workers").get("pids", [])
    print_pairs(
        f"{setting}; {n_workers} workers with {limit} each",
        {
            "outcome": outcome.failure or "done",
            "rows in memory": outcome.rows_in_memory(),
            "memory promised, the fullest worker": megabytes(outcome.promised()),
            "memory promised, client": megabytes(outcome.first("plan").get("leader_bytes")),
            "peak resident, each worker": ", ".join(megabytes(peaks.get(pid)) for pid in pids),
            "peak resident, client with scheduler": megabytes(peaks.get(outcome.pid)),
            "peak resident, all processes": megabytes(outcome.memory.peak()),
            "peak spilled by Dask": ", ".join(
                megabytes(w["spilled"]) for w in found.get("peaks", {}).values()
            ),
            "statuses": ", ".join(found.get("statuses", ())),
            "restarted": str(len(found.get("restarted", ()))),
            "comings, goings, changes of status": str(len(found.get("events", ()))),
            "warnings": "\n".join(found.get("warnings", ())) or "none",
            "before the first round": f"{outcome.ingest():.1f} s",
            "a round": f"{outcome.per_round():.2f} s",
        },
    )
    return {}, {"workers": [outcome]}


# Streaming beside everything resident, the bare kernel and XGBoost.


@benchmark(1_000_000, 256, 5, 4, "662MB")
@click.option("--repeats", default=3, show_default=True)
def throughput(setting: Setting, repeats: int) -> tuple[dict, Outcomes]:
    """Streaming from local disk with a warm page cache, compared with the same run with all rows in memory.

    The memory limit should leave no rows in memory; the table shows how many there are.
    """
    jobs = {"streaming": setting.job(memory_limit=setting.memory_limit), "resident": setting.job()}
    outcomes = in_turn(jobs, repeats)
    cells = setting.rows * setting.features * DEPTH
    cost = {"ns per row, feature, level": lambda outcome: f"{1e9 * outcome.per_round() / cells:.3f}"}
    print_table(str(setting), outcomes, cost)
    n_rows = min(setting.rows, KERNEL_ROWS)
    kernel = run(setting.job("kernel", n_rows=n_rows, n_features=setting.features, repeats=repeats))
    for mark in kernel.all("pass"):
        cost_alone = 1e9 * mark["seconds"] / (n_rows * setting.features)
        console.print(
            f"the histogram alone, {mark['n_threads']} threads: {cost_alone:.3f} ns per row and feature"
        )
    ratio = fastest(outcomes["resident"], Outcome.per_round) / fastest(
        outcomes["streaming"], Outcome.per_round
    )
    console.print(f"streaming has {ratio:.2f} of the throughput")
    return {"ratio": ratio, "kernel_rows": n_rows}, {**outcomes, "kernel": [kernel]}


@benchmark(1_000_000, 64, 5, 5, "560MB")
@click.option("--repeats", default=1, show_default=True)
def rival(setting: Setting, repeats: int) -> tuple[dict, Outcomes]:
    """distboost and XGBoost's external memory on the same chunks, in one process each."""
    jobs = {
        "distboost": setting.job(memory_limit=setting.memory_limit),
        "XGBoost external memory": setting.job("xgboost-external"),
    }
    outcomes = in_turn(jobs, repeats)
    print_table(f"{setting}; memory_limit {setting.memory_limit}", outcomes)
    return {}, outcomes


if __name__ == "__main__":
    main()
