"""Accuracy over time, a panel for each data set."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure  # part of the extra `bench`

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


def _range(found: DataSet) -> tuple[float, float]:
    """From a little below the worst last accuracy's neighbourhood to a little above the best."""
    top = max(run.accuracies.max() for run in found.runs.values())
    last = min(run.accuracies[-1] for run in found.runs.values())
    height = max(2.5 * (top - last), 0.02)
    return 100 * (top - height), 100 * (top + 0.05 * height)
