"""Accuracy over time, a panel for each data set: all on one page, and a few in the README's picture, light and dark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl  # part of the extra `bench`
from matplotlib.figure import Figure

from tests.benchmarks.results import OWN, DataSet

COLUMNS = 4
PANEL = (3.6, 3.0)  # inches
COLOURS = {
    OWN: "#c1121f",
    "LightGBM": "#2a9d3a",
    "XGBoost one_output_per_tree": "#8ecae6",
    "XGBoost multi_output_tree": "#1d6fa5",
    "CatBoost": "#e09f3e",
    "HistGradientBoosting": "#7a7a7a",
}


def draw(sets: dict[str, DataSet], file: Path) -> None:
    """Writes the picture. Seconds are on a logarithmic axis; a cross marks the most accurate rival's last round."""
    n_rows = -(-len(sets) // COLUMNS)
    figure = Figure(figsize=(COLUMNS * PANEL[0], n_rows * PANEL[1] + 0.5), layout="constrained")
    panels = figure.subplots(n_rows, min(COLUMNS, len(sets)), squeeze=False).ravel()
    for panel in panels[len(sets) :]:
        panel.set_visible(False)
    for panel, (name, found) in zip(panels, sets.items(), strict=False):
        for library, run in reversed(found.runs.items()):
            width = 2.2 if library == OWN else 1.2
            panel.plot(
                run.seconds, 100 * run.accuracies, color=COLOURS[library], label=library, linewidth=width
            )
        best = found.races()[0]
        panel.plot(best.rival_seconds, 100 * best.accuracy, "x", color="black", markersize=7)
        panel.set_xscale("log")
        panel.set_ylim(*_range(found))
        panel.set_title(name, fontsize=10)
        panel.grid(alpha=0.3)
    for panel in panels[::COLUMNS]:
        panel.set_ylabel("test accuracy, %")
    figure.supxlabel("seconds of training, binning included", fontsize=10)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles[::-1], labels[::-1], loc="outside upper center", ncols=len(labels), frameon=False)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=110)


def draw_seconds(measured: dict[int, dict[str, float]], file: Path) -> None:
    """Writes a picture of the seconds of a fit over the number of rows, by library."""
    figure = Figure(figsize=(7.0, 4.2), layout="constrained")
    panel = figure.subplots()
    names = [*next(iter(measured.values()))]
    for name in names:
        colour = COLOURS.get(name, COLOURS["XGBoost multi_output_tree"])
        own = name.startswith(OWN)
        panel.plot(
            [*measured],
            [seconds[name] for seconds in measured.values()],
            "--" if own and name != OWN else "-",
            color=COLOURS[OWN] if own else colour,
            label=name,
            linewidth=2.2 if name == OWN else 1.4,
            marker="o",
            markersize=3,
        )
    panel.set(xscale="log", yscale="log", xlabel="rows", ylabel="seconds of a default fit, 100 rounds")
    panel.grid(alpha=0.3)
    panel.legend(frameon=False)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=110)


def draw_themes(sets: dict[str, DataSet], folder: Path) -> None:
    """Writes a picture of these sets for light pages, and one for dark pages: accuracy-light.svg, accuracy-dark.svg."""
    for theme, ink in (("light", "#1f2328"), ("dark", "#e6edf3")):
        ink_everywhere = dict.fromkeys(
            ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), ink
        )
        # Text stays text, and the same curves make the same file.
        with mpl.rc_context(
            {**ink_everywhere, "svg.fonttype": "none", "svg.hashsalt": "distboost", "font.size": 11}
        ):
            figure = Figure(figsize=(10, 4.2), layout="constrained")
            panels = figure.subplots(1, len(sets), squeeze=False).ravel()
            for panel, (name, found) in zip(panels, sets.items(), strict=True):
                _draw_race(panel, name, found)
            panels[0].set_ylabel("test accuracy, %")
            figure.supxlabel("seconds of fitting, binning included")
            handles, labels = panels[0].get_legend_handles_labels()
            figure.legend(handles[::-1], labels[::-1], loc="outside upper center", ncols=3, frameon=False)
            file = folder / f"accuracy-{theme}.svg"
            figure.savefig(file, transparent=True, metadata={"Date": None})


def _draw_race(panel: Any, name: str, found: DataSet) -> None:
    for library, run in reversed(found.runs.items()):
        own = library == OWN
        panel.plot(
            run.seconds,
            100 * run.accuracies,
            color=COLOURS[library],
            label=library,
            linewidth=3 if own else 1.6,
        )
    panel.set_xscale("log")
    panel.set_xlim(left=min(run.seconds[0] for run in found.runs.values()) * 0.9)
    panel.set_ylim(*_range(found))
    panel.set_title(f"{name}: {found.title.partition(': ')[2] or found.title}", fontsize=11)
    panel.grid(alpha=0.25)
    panel.set_facecolor("none")


def _range(found: DataSet) -> tuple[float, float]:
    """From a little below the worst last accuracy's neighbourhood to a little above the best."""
    top = max(run.accuracies.max() for run in found.runs.values())
    last = min(run.accuracies[-1] for run in found.runs.values())
    height = max(2.5 * (top - last), 0.02)
    return 100 * (top - height), 100 * (top + 0.05 * height)
