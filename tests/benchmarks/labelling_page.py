"""The tables and the picture of docs/results/labels.md, from what `labelling` has measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import gmean

from tests.benchmarks.results import table

PICTURE = Path(__file__).parents[2] / "docs" / "images" / "labels.png"
DEFAULT, BEFORE, RANDOM = "default", "GAMBLE, random start", "random rows"
PEER = "scikit-activeml, trees, margin"
DRAWN = {
    DEFAULT: "#c1121f",
    BEFORE: "#e09f3e",
    RANDOM: "#7a7a7a",
    PEER: "#1d6fa5",
    "modAL, random forest": "#8ecae6",
    "small-text, linear SVM": "#2a9d3a",
}
FINAL = "default, final model"
ABOVE = 0.01  # the target's distance from the error with all labels
SHOWN = (50, 100, 150, 300, 500)  # labels
SECONDS = (0.5, 1.0, 2.0)
KINDS = {"rare": (100, 150, 300), "near-copies": (150, 250, 500)}
COLUMNS = 5


class Found:
    """What was measured: curves of each way on each table."""

    def __init__(self, kept: dict[str, Any]):
        self.kept, self.labels = kept, np.array(kept["labels"])
        self.names = [name for name, ways in kept["runs"].items() if DEFAULT in ways]
        self.ways = list(dict.fromkeys(way for name in self.names for way in kept["runs"][name]))

    def seeds(self, name: str, *ways: str) -> list[str]:
        """The seeds that all of these ways have, in order."""
        runs = self.kept["runs"][name]
        own = [set(runs.get(way, {})) for way in ways]
        return sorted(set.intersection(*own), key=int)

    def values(self, name: str, way: str, what: str, *others: str) -> np.ndarray:
        """What was measured with the seeds that the others have too, (n_seeds, n_points)."""
        runs = self.kept["runs"][name].get(way, {})
        return np.array([runs[seed][what] for seed in self.seeds(name, way, *others)], float)

    def errors(self, name: str, way: str, *others: str) -> np.ndarray:
        """Errors after each batch, (n_seeds, n_points)."""
        return self.values(name, way, "wrong", *others) / self.kept["targets"][name]["test_rows"]

    def target(self, name: str) -> float:
        found = self.kept["targets"][name]
        return found["wrong"] / found["test_rows"] + ABOVE

    def finals(self, name: str) -> np.ndarray:
        """Errors of the default's final models, interpolated between those that were measured."""
        test_rows = self.kept["targets"][name]["test_rows"]
        at = self.kept["labels of final models"]
        measured = self.values(name, DEFAULT, "final") / test_rows
        return np.array([np.interp(self.labels, at, each) for each in measured])

    def area(self, errors: np.ndarray) -> np.ndarray:
        """The mean error between the first and the last number of labels, (n_seeds,)."""
        found: np.ndarray = np.trapezoid(errors, self.labels, axis=1) / np.ptp(self.labels)
        return found

    def labels_to(self, errors: np.ndarray, goal: float) -> np.ndarray:
        """The labels to an error, (n_seeds,); all labels where it is not reached."""
        reached = errors <= goal + 1e-12
        return np.where(reached.any(axis=1), self.labels[reached.argmax(axis=1)], self.labels[-1])

    def at_seconds(self, name: str, way: str, seconds: float) -> float:
        """The mean error of the last classifier that was there by then; NaN before the first."""
        errors, times = self.errors(name, way), self.values(name, way, "seconds")
        n = (times <= seconds).sum(axis=1)
        found = [each[k - 1] if k else np.nan for each, k in zip(errors, n, strict=True)]
        return float(np.mean(found))


def percent(value: float, digits: int = 1) -> str:
    return f"{100 * value:.{digits}f}"


def labels_table(found: Found) -> str:
    """Labels to the target, a line for each way: means, and how many runs have reached it if not all."""
    rows = [["error % aimed at", *(percent(found.target(name)) for name in found.names)]]
    for way in (FINAL, *found.ways):
        cells = []
        for name in found.names:
            errors = found.finals(name) if way == FINAL else found.errors(name, way)
            n_reached = int((errors <= found.target(name) + 1e-12).any(axis=-1).sum())
            beside = "" if n_reached == len(errors) else f" ({n_reached} of {len(errors)})"
            cells.append(
                f"{found.labels_to(errors, found.target(name)).mean():.0f}{beside}" if len(errors) else ""
            )
        rows.append([way, *cells])
    return table(["labels", *found.names], rows)


def area_table(found: Found) -> str:
    """The mean error from the first to the last number of labels, a line for each way, and standard errors."""
    rows = []
    for way in found.ways:
        areas = [
            found.area(found.errors(name, way)) if found.seeds(name, way) else [] for name in found.names
        ]
        rows.append([way, *(_with_error(area) for area in areas)])
    return table(["mean error %", *found.names], rows)


def _with_error(values: Any) -> str:
    if not len(values):
        return ""
    spread = f" ± {percent(np.std(values, ddof=1) / len(values) ** 0.5)}" if len(values) > 1 else ""
    return percent(float(np.mean(values))) + spread


def ratio(found: Found, way: str) -> list[float]:
    """For each table, the default's labels to the way's last mean error, over the way's: seeds that both have."""
    ratios = []
    for name in found.names:
        if not found.seeds(name, DEFAULT, way):
            continue
        theirs, own = found.errors(name, way, DEFAULT), found.errors(name, DEFAULT, way)
        goal = theirs.mean(axis=0)[-1]
        ratios.append(float(found.labels_to(own, goal).mean() / found.labels_to(theirs, goal).mean()))
    return ratios


def goals_ratio(found: Found, way: str, final: bool = False) -> list[float]:
    """For each table, the labels of the default, or of its final model, to the target, over the way's."""
    ratios = []
    for name in found.names:
        if found.seeds(name, DEFAULT, way):
            own = found.finals(name) if final else found.errors(name, DEFAULT, way)
            goal = found.target(name)
            theirs = found.labels_to(found.errors(name, way, DEFAULT), goal).mean()
            ratios.append(float(found.labels_to(own, goal).mean() / theirs))
    return ratios


def ways_table(found: Found) -> str:
    """All tables together, a line for each way that was measured on all."""
    rows = []
    for way in found.ways:
        names = [name for name in found.names if found.seeds(name, way)]
        if len(names) < len(found.names):
            continue
        seeds = min(len(found.seeds(name, way)) for name in names)
        at = [int(np.flatnonzero(found.labels == n)[0]) for n in SHOWN]
        means = np.mean([found.errors(name, way).mean(axis=0)[at] for name in names], axis=0)
        timed = [np.mean([found.at_seconds(name, way, s) for name in names]) for s in SECONDS]
        whole = np.mean([found.values(name, way, "seconds")[:, -1].mean() for name in names])
        areas = [
            found.area(found.errors(name, DEFAULT, way)).mean()
            / found.area(found.errors(name, way, DEFAULT)).mean()
            for name in names
            if found.seeds(name, way, DEFAULT)
        ]
        rows.append(
            [
                way,
                f"{seeds}",
                *map(percent, means),
                *("" if np.isnan(t) else percent(t) for t in timed),
                f"{whole:.1f}",
                f"{gmean(areas):.2f}",
                f"{gmean(goals_ratio(found, way)):.2f}",
                f"{gmean(ratio(found, way)):.2f}",
            ]
        )
    head = [
        "all tables",
        "seeds",
        *(f"{n} labels, error %" for n in SHOWN),
        *(f"{s:g} s, error %" for s in SECONDS),
    ]
    ratios = ["default's mean error over this", "labels to the target", "labels to this way's last error"]
    return table([*head, "seconds", *ratios], rows)


def kinds_table(found: Found) -> str:
    """Rows of the rare class, and distinct rows, among the labelled ones: a line for each way."""
    wanted = [(name, n) for name in KINDS if name in found.names for n in KINDS[name]]
    rows = []
    for way in found.ways:
        kinds = [found.values(name, way, "kinds") for name, _ in wanted]
        at = [int(np.flatnonzero(found.labels == n)[0]) for _, n in wanted]
        rows.append(
            [way, *(f"{k[:, i].mean():.1f}" if len(k) else "" for k, i in zip(kinds, at, strict=True))]
        )
    return table(["rows", *(f"{name}, {n} labels" for name, n in wanted)], rows)


def verdicts(found: Found) -> list[str]:
    """What the figures say of the defaults, table by table."""
    lines = []
    for other in (RANDOM, PEER, BEFORE, "random start", "diversity 1"):
        if other not in found.ways:
            continue
        cells = []
        for name in found.names:
            own, theirs = found.errors(name, DEFAULT, other), found.errors(name, other, DEFAULT)
            if len(own) > 1:
                above = 100 * (found.area(own) - found.area(theirs))
                start = 100 * (own[:, 0] - theirs[:, 0]).mean()
                cells.append(
                    f"{name} {above.mean():+.1f} ± {above.std(ddof=1) / len(above) ** 0.5:.1f} (start {start:+.1f})"
                )
        lines.append(f"mean error % of the default above {other}: " + ", ".join(cells))
    for way in (BEFORE, PEER):
        for final in (False, True):
            ratios = goals_ratio(found, way, final)
            lines.append(
                f"labels to the target over {way}, final {final}: {gmean(ratios):.2f} {np.round(ratios, 2)}"
            )
        lines.append(
            f"labels to its last error over {way}: {gmean(ratio(found, way)):.2f} {np.round(ratio(found, way), 2)}"
        )
    return lines


def draw(found: Found, file: Path) -> None:
    """Writes the picture: mean errors against labels, a panel for each table."""
    n_rows = -(-len(found.names) // COLUMNS)
    figure = Figure(figsize=(2.7 * COLUMNS, 2.5 * n_rows + 0.4), layout="constrained")
    panels = figure.subplots(n_rows, COLUMNS, squeeze=False).ravel()
    for panel in panels[len(found.names) :]:
        panel.set_visible(False)
    for panel, name in zip(panels, found.names, strict=False):
        for way, colour in reversed(DRAWN.items()):
            if found.seeds(name, way):
                means = 100 * found.errors(name, way).mean(axis=0)
                panel.plot(
                    found.labels, means, color=colour, label=way, linewidth=2.2 if way == DEFAULT else 1.2
                )
        panel.axhline(100 * found.target(name), color="black", linestyle=":", linewidth=1)
        panel.set(title=name, ylim=(0, None), xlim=(50, 500))
        panel.grid(alpha=0.3)
    figure.supxlabel("labels")
    figure.supylabel("test error, %")
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles[::-1], names[::-1], loc="outside upper center", ncols=len(DRAWN), frameon=False)
    figure.savefig(file, dpi=80, metadata={"Software": None})


def write_page(kept: dict[str, Any]) -> None:
    """Print the tables and draw the picture."""
    found = Found(kept)
    for make in (ways_table, labels_table, area_table, kinds_table):
        print(make(found), end="\n\n")
    print(*verdicts(found), sep="\n")
    draw(found, PICTURE)
