"""What the comparison measured, as JSON, and the tables that follow from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

OWN = "distboost"
CHECKPOINTS = (10, 20, 30, 50, 100, 200)
MILLI = 1e3


class Run(NamedTuple):
    """One library on one data set."""

    seconds: np.ndarray  # after each round, binning included: of the fastest repeat
    accuracies: np.ndarray  # of the test rows
    before: int  # bytes resident before the fit: data and libraries
    peak: int  # the most bytes that the process had resident
    spread: float  # the median over the fastest time of the repeats: far above 1 if the machine was busy

    @classmethod
    def of_repeats(cls, found: list[dict[str, Any]]) -> Run:
        """From what a racer said after each fit. The first fit tells the memory; the later ones have its model beside theirs."""
        seconds = np.array([each["seconds"] for each in found])
        total = seconds[:, -1]
        first = found[0]
        spread = float(np.median(total) / total.min())
        return cls(seconds.min(axis=0), np.array(first["accuracies"]), first["before"], first["peak"], spread)

    def as_json(self) -> dict[str, Any]:
        return {
            **self._asdict(),
            "seconds": [round(x, 4) for x in self.seconds.tolist()],
            "accuracies": [round(x, 6) for x in self.accuracies.tolist()],
            "spread": round(self.spread, 3),
        }

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Run:
        arrays = {name: np.array(found[name]) for name in ("seconds", "accuracies")}
        return cls(**{**found, **arrays})


class Race(NamedTuple):
    """When distboost reaches the accuracy of a rival after its last round."""

    rival: str
    accuracy: float
    rival_seconds: float
    n_rounds: int | None  # None: it does not
    seconds: float

    @property
    def ratio(self) -> float:
        return self.seconds / self.rival_seconds if self.n_rounds else np.inf


class DataSet(NamedTuple):
    """All runs on one data set."""

    title: str
    runs: dict[str, Run]
    round_times: dict[str, float]  # median milliseconds, by library and threads; {} if not measured

    def race(self, rival: str) -> Race:
        own, other = self.runs[OWN], self.runs[rival]
        accuracy = float(other.accuracies[-1])
        number = first_round(own.accuracies, accuracy)
        seconds = float(own.seconds[number - 1]) if number else np.nan
        return Race(rival, accuracy, float(other.seconds[-1]), number, seconds)

    def races(self) -> list[Race]:
        """With every rival, the most accurate one first, the faster one first of equals."""
        found = [self.race(name) for name in self.runs if name != OWN]
        return sorted(found, key=lambda race: (-race.accuracy, race.rival_seconds))

    def as_json(self) -> dict[str, Any]:
        runs = {name: run.as_json() for name, run in self.runs.items()}
        return {"title": self.title, "runs": runs, "round_times": self.round_times}

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> DataSet:
        runs = {name: Run.from_json(run) for name, run in found["runs"].items()}
        return cls(found["title"], runs, found["round_times"])


def first_round(accuracies: np.ndarray, wanted: float) -> int | None:
    """The first round with the wanted accuracy, counted from 1; None if there is none."""
    reached = np.flatnonzero(accuracies >= wanted)
    return int(reached[0]) + 1 if len(reached) else None


def write(file: Path, about: str, sets: dict[str, DataSet]) -> None:
    found = {"about": about, "sets": {name: each.as_json() for name, each in sets.items()}}
    file.write_text(json.dumps(found) + "\n")


def read(file: Path) -> tuple[str, dict[str, DataSet]]:
    found = json.loads(file.read_text())
    return found["about"], {name: DataSet.from_json(each) for name, each in found["sets"].items()}


# Tables, in Markdown.


def table(header: list[str], rows: list[list[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    lines = [header, ["-" * width for width in widths], *rows]
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |"
        for line in lines
    )


def race_table(sets: dict[str, DataSet]) -> str:
    """The most accurate rival of each data set, and the one that distboost has the hardest time with."""
    header = ["", "rival", "accuracy", "its time", "distboost", "rounds", "ratio", "largest ratio to any"]
    rows, ratios = [], []
    for name, found in sets.items():
        races = found.races()
        best, hardest = races[0], max(races, key=lambda race: race.ratio)
        ratios.append(best.ratio)
        own = [f"{best.seconds:.2f} s", str(best.n_rounds)] if best.n_rounds else ["never", ""]
        rival = [best.rival, f"{100 * best.accuracy:.2f} %", f"{best.rival_seconds:.2f} s"]
        rows.append([name, *rival, *own, _figure(best.ratio), f"{_figure(hardest.ratio)} ({hardest.rival})"])
    rows.append(["median", *[""] * 5, _figure(float(np.median(ratios))), ""])
    return table(header, rows)


def ratio_table(sets: dict[str, DataSet]) -> str:
    """The ratio to every rival."""
    rivals = [name for name in next(iter(sets.values())).runs if name != OWN]
    cells = {name: [found.race(rival).ratio for rival in rivals] for name, found in sets.items()}
    cells["median"] = np.median(list(cells.values()), axis=0).tolist()
    return table(["", *rivals], [[name, *map(_figure, row)] for name, row in cells.items()])


def _figure(ratio: float) -> str:
    return f"{ratio:.2f}" if np.isfinite(ratio) else "–"


def accuracy_table(found: DataSet) -> str:
    """Test accuracy and seconds at the checkpoints, and the median time of a round."""
    most = max(len(run.seconds) for name, run in found.runs.items() if name != OWN)
    checkpoints = [n for n in CHECKPOINTS if n <= most]
    rows = []
    for name, run in found.runs.items():
        done = [n for n in checkpoints if n <= len(run.seconds)]
        cells = [f"{100 * run.accuracies[n - 1]:.2f} %, {run.seconds[n - 1]:.2f} s" for n in done]
        cells += [""] * (len(checkpoints) - len(done))
        rows.append([name, *cells, f"{MILLI * np.median(np.diff(run.seconds)):.0f} ms", f"{run.spread:.2f}"])
    return table(["", *(f"{n} rounds" for n in checkpoints), "a round", "spread"], rows)


def memory_table(sets: dict[str, DataSet]) -> str:
    """What the fit took above data and libraries, and the peak of the process."""
    names = list(next(iter(sets.values())).runs)
    rows = []
    for name in names:
        runs = [found.runs[name] for found in sets.values()]
        rows.append([name, *(f"{(run.peak - run.before) / 1e6:.0f} ({run.peak / 1e6:.0f})" for run in runs)])
    return table(["MB of the fit (of the process)", *sets], rows)


def round_table(sets: dict[str, DataSet]) -> str:
    """Milliseconds of a round at the defaults."""
    measured = {name: found.round_times for name, found in sets.items() if found.round_times}
    header = [
        "",
        *(f"{who} {n}" for who in (OWN, "LightGBM") for n in (1, 2)),
        "distboost 1 / 2",
        "distboost / LightGBM",
    ]
    rows = []
    for name, times in measured.items():
        one, two, other_one, other_two = times.values()
        cells = [f"{x:.1f} ms" for x in (one, two, other_one, other_two)]
        rows.append([name, *cells, f"{one / two:.2f}", f"{two / other_two:.2f}"])
    return table(header, rows)
