"""An evaluation as one self-contained HTML file."""

from __future__ import annotations

import html
from typing import Any

import numpy as np

from distboost.cli.text import visible
from distboost.evaluation.confusion import Confusion
from distboost.io.publishing import publish

MAX_MATRIX_CLASSES = 60  # a larger confusion matrix is not drawn
WIDTH, HEIGHT, MARGIN = 640, 240, 50
_COLOURS = {"train": "#1f77b4", "eval": "#d62728"}
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums; }
th, td { padding: .15rem .5rem; text-align: right; } th:first-child { text-align: left; }
tr:not(:last-child) td { border-bottom: 1px solid #eee; }
.heat { font-size: 12px; } .heat td { min-width: 1.6rem; border: 1px solid #fff; text-align: center; padding: .1rem; }
.wide { overflow-x: auto; } svg text { font-size: 12px; fill: #444; }
"""


def write_report(url: str, model: Any, found: Confusion, title: str) -> None:
    """Write accuracy, metrics per class, the confusion matrix and the training curves to a path or URL."""
    n = int(found.counts.sum())
    unknown = (
        f" {found.n_unknown} rows have labels that are not classes of the model." if found.n_unknown else ""
    )
    body = [
        f"<h1>{escape(title)}</h1>",
        f"<p>{escape(model.algorithm_name)}, {model.best_iteration_} rounds, {len(found.classes)} classes. "
        f"<strong>Accuracy {found.accuracy:.4f}</strong> on {n} rows.{unknown}</p>",
        f"<h2>Confusion matrix</h2>{_heat_map(found)}",
        f"<h2>Most frequent mistakes</h2>{_mistakes(found)}",
        f"<h2>Classes</h2>{_metrics(found)}",
        *(f"<h2>{name.capitalize()} by round</h2>{_curves(model, name)}" for name in ("loss", "error")),
    ]
    page = (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style></head><body>\n" + "\n".join(body) + "\n</body></html>\n"
    )
    publish(url, page.encode())


def escape(value: Any) -> str:
    """Return the text of a value as HTML, with invisible characters escaped."""
    return html.escape(visible(value))


def _table(head: list[str], rows: list[list[str]]) -> str:
    cells = "".join(f"<th>{escape(name)}</th>" for name in head)
    lines = ["".join(f"<{tag}>{escape(cell)}</{tag}>" for tag, cell in _tagged(row)) for row in rows]
    return f"<table><tr>{cells}</tr>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>"


def _tagged(row: list[str]) -> list[tuple[str, str]]:
    return [("th" if number == 0 else "td", cell) for number, cell in enumerate(row)]


def _metrics(found: Confusion) -> str:
    rows = [
        [str(label), f"{p:.4f}", f"{r:.4f}", f"{f:.4f}", str(int(n))]
        for label, p, r, f, n in zip(found.classes, *found.per_class().values(), strict=True)
    ]
    return _table(["class", "precision", "recall", "F1", "rows"], rows)


def _mistakes(found: Confusion) -> str:
    worst = found.worst(20)
    if not worst:
        return "<p>None.</p>"
    return _table(["true class", "predicted as", "rows"], [[a, b, str(n)] for a, b, n in worst])


def _heat_map(found: Confusion) -> str:
    """Shade each cell by its share of the row: blue on the diagonal, red off it."""
    names = [escape(label) for label in found.classes]
    if len(names) > MAX_MATRIX_CLASSES:
        return f"<p>Not drawn: {len(names)} classes. The most frequent mistakes are below.</p>"
    lines = ["<tr><th>true \\ predicted</th>" + "".join(f"<th>{name}</th>" for name in names) + "</tr>"]
    for i, counts in enumerate(found.counts.toarray()[: len(names)]):
        shares = counts / max(counts.sum(), 1)
        cells = [
            _cell(int(n), share, i == j) for j, (n, share) in enumerate(zip(counts, shares, strict=True))
        ]
        lines.append(f"<tr><th>{names[i]}</th>" + "".join(cells) + "</tr>")
    return '<div class="wide"><table class="heat">' + "".join(lines) + "</table></div>"


def _cell(count: int, share: float, right: bool) -> str:
    if not count:
        return "<td></td>"
    # The square root keeps few mistakes visible beside many hits.
    colour = f"rgba({'31,119,180' if right else '214,39,40'},{0.12 + 0.7 * share**0.5:.2f})"
    return f'<td style="background:{colour}" title="{share:.2%}">{count}</td>'


def _curves(model: Any, name: str) -> str:
    """Return the training and evaluation histories as an inline SVG."""
    curves = {part: getattr(model, f"{part}_{name}_", None) for part in _COLOURS}
    known = {
        part: np.asarray(values) for part, values in curves.items() if values is not None and len(values)
    }
    if not known:
        return "<p>No round was trained.</p>"
    lowest = min(values.min() for values in known.values())
    highest = max(values.max() for values in known.values())
    # On a linear scale, a loss that falls by orders of magnitude would lie on the axis.
    scale = np.log10 if lowest > 0 and highest / lowest > 20 else np.asarray
    bottom, top = float(scale(lowest)), float(scale(highest))
    n_rounds = max(len(values) for values in known.values())
    lines = [_polyline(part, scale(values), n_rounds, bottom, top) for part, values in known.items()]
    legend = [
        f'<text x="{WIDTH - MARGIN - 40}" y="{MARGIN - 30 + 16 * i}" style="fill:{_COLOURS[part]}">{part}</text>'
        for i, part in enumerate(known)
    ]
    axes = (
        f'<path d="M{MARGIN} {MARGIN - 20}V{HEIGHT - 30}H{WIDTH - MARGIN}" fill="none" stroke="#999"/>'
        f'<text x="{MARGIN - 6}" y="{MARGIN - 12}" text-anchor="end">{highest:.3g}</text>'
        f'<text x="{MARGIN - 6}" y="{HEIGHT - 30}" text-anchor="end">{lowest:.3g}</text>'
        f'<text x="{MARGIN}" y="{HEIGHT - 12}">1</text>'
        f'<text x="{WIDTH - MARGIN}" y="{HEIGHT - 12}" text-anchor="end">{n_rounds} rounds</text>'
    )
    note = "<p>Logarithmic scale.</p>" if scale is np.log10 else ""
    size = f'width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"'
    return f'<svg {size} role="img" aria-label="{name} by round">{axes}{"".join(lines + legend)}</svg>{note}'


def _polyline(part: str, values: np.ndarray, n_rounds: int, bottom: float, top: float) -> str:
    x = MARGIN + np.arange(len(values)) / max(n_rounds - 1, 1) * (WIDTH - 2 * MARGIN)
    y = HEIGHT - 30 - (values - bottom) / ((top - bottom) or 1.0) * (HEIGHT - 10 - MARGIN)
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
    return f'<polyline points="{points}" fill="none" stroke="{_COLOURS[part]}" stroke-width="1.5"/>'
