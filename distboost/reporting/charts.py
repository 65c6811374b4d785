"""Charts as small SVG: axes, lines and bars. Colours and dashes are those of the page's style, so that they follow dark mode."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

# The plot's box in the units of the drawing.
WIDTH, HEIGHT = 440, 280
LEFT, RIGHT, TOP, BOTTOM = 76, 426, 14, 232
MOST_TICKS = 6
MOST_POINTS = 400  # of a line: more do not fit side by side


class Tick(NamedTuple):
    """A grid line, at a place on the drawing, and its text."""

    place: float
    text: str


@dataclass(frozen=True)
class ValueAxis:
    """The range of values along one side of a chart.

    Attributes
    ----------
    label : str
    low, high : float
        The values at the ends.
    at : tuple of float
        The values with grid lines.
    log : bool
        Whether the scale is logarithmic.
    """

    label: str
    low: float
    high: float
    at: tuple[float, ...]
    log: bool = False

    @classmethod
    def over(cls, label: str, low: float, high: float) -> ValueAxis:
        """Return a linear axis from one round value to another that holds these."""
        if low == high:
            low, high = low - (abs(low) or 1.0) / 2, high + (abs(high) or 1.0) / 2
        step = _step(low, high)
        first, last = math.floor(low / step), math.ceil(high / step)
        at = tuple(number * step for number in range(first, last + 1))
        return cls(label, at[0], at[-1], at)

    @classmethod
    def within(cls, label: str, low: float, high: float) -> ValueAxis:
        """Return a linear axis with exactly these ends."""
        step = _step(low, high)
        first, last = math.ceil(low / step), math.floor(high / step)
        return cls(label, low, high, tuple(number * step for number in range(first, last + 1)))

    @classmethod
    def logarithmic(cls, label: str, low: float, high: float) -> ValueAxis:
        """Return an axis that holds these values above 0, over powers of ten, or 2 and 5 times these if they are few."""
        first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
        fine = [factor * 10.0**power for power in range(first - 1, last + 2) for factor in (1, 2, 5)]
        begin, end = max(at for at in fine if at <= low), min(at for at in fine if at >= high)
        between = tuple(at for at in fine if begin <= at <= end)
        if len(between) <= MOST_TICKS:
            return cls(label, begin, end, between, log=True)
        every = math.ceil((last - first) / MOST_TICKS)
        at = tuple(10.0**power for power in range(first, last + 1, every))
        return cls(label, 10.0**first, 10.0**last, at, log=True)

    def fractions(self, values: Sequence[float] | np.ndarray) -> np.ndarray:
        """Return how far along the axis values lie, from 0 to 1."""
        ends = np.array([self.low, self.high])
        scaled = np.asarray(values, np.float64)
        if self.log:
            ends, scaled = np.log10(ends), np.log10(scaled)
        fractions: np.ndarray = (scaled - ends[0]) / (ends[1] - ends[0])
        return fractions

    def texts(self) -> list[str]:
        """Return the text of each grid line."""
        return [_plain(value) for value in self.at]


def _step(low: float, high: float) -> float:
    """Return 1, 2 or 5 times a power of ten, of which few lie in the range."""
    least = (high - low) / MOST_TICKS
    power: float = 10.0 ** math.floor(math.log10(least))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= least * (1 - 1e-9))


def _plain(value: float) -> str:
    size = abs(value)
    if size and not 1e-4 < size < 1e9:
        mantissa, power = f"{value:.3e}".split("e")
        return f"{float(mantissa):g}e{int(power)}"
    unit, letter = next((pair for pair in ((1e6, "M"), (1e3, "k")) if size >= 10 * pair[0]), (1, ""))
    return f"{value / unit:,.10g}{letter}"


class Line(NamedTuple):
    """A line through points of the drawing. Few points are marked, as a line may be too short to see."""

    name: str
    style: int
    points: list[tuple[float, float]]

    @property
    def marked(self) -> bool:
        """Whether points are drawn."""
        return len(self.points) <= 15


class Bar(NamedTuple):
    """A rectangle of the drawing, with the text of its tooltip."""

    kind: str
    x: float
    y: float
    width: float
    height: float
    text: str


@dataclass(frozen=True)
class Chart:
    """A chart. The template `chart` draws it.

    Attributes
    ----------
    title : str
    about : str
        What the chart shows, for those who cannot see it.
    x, y : ValueAxis
    lines : tuple of Line
    bars : tuple of Bar
    keys : tuple of (str, str)
        The legend: the class of a swatch and its text.
    diagonal : bool
        Whether the line of equal x and y is drawn.
    note : str
        What is said below it.
    """

    title: str
    about: str
    x: ValueAxis
    y: ValueAxis
    lines: tuple[Line, ...] = ()
    bars: tuple[Bar, ...] = ()
    keys: tuple[tuple[str, str], ...] = ()
    diagonal: bool = False
    note: str = ""

    @property
    def x_ticks(self) -> list[Tick]:
        """The grid lines from bottom to top."""
        return [Tick(*pair) for pair in zip(x_places(self.x, self.x.at), self.x.texts(), strict=True)]

    @property
    def y_ticks(self) -> list[Tick]:
        """The grid lines from left to right."""
        return [Tick(*pair) for pair in zip(y_places(self.y, self.y.at), self.y.texts(), strict=True)]


def x_places(axis: ValueAxis, values: Sequence[float] | np.ndarray) -> list[float]:
    """Return the x coordinates of values."""
    return [round(place, 1) for place in (LEFT + axis.fractions(values) * (RIGHT - LEFT)).tolist()]


def y_places(axis: ValueAxis, values: Sequence[float] | np.ndarray) -> list[float]:
    """Return the y coordinates of values."""
    return [round(place, 1) for place in (BOTTOM - axis.fractions(values) * (BOTTOM - TOP)).tolist()]


def line(name: str, style: int, x: ValueAxis, *, y: ValueAxis, xs: np.ndarray, ys: np.ndarray) -> Line:
    """Return a line through points in the units of its axes; of very many, as many as can be seen."""
    if len(xs) > MOST_POINTS:
        chosen = np.unique(np.linspace(0, len(xs) - 1, MOST_POINTS).round().astype(int))
        xs, ys = xs[chosen], ys[chosen]
    return Line(name, style, list(zip(x_places(x, xs), y_places(y, ys), strict=True)))


def bar(
    kind: str, x: ValueAxis, y: ValueAxis, *, sides: tuple[float, float], ends: tuple[float, float], text: str
) -> Bar:
    """Return a bar from its left and right side and its lower and upper end, in the units of its axes."""
    left, right = x_places(x, sides)
    low, high = y_places(y, ends)
    return Bar(kind, left + 0.5, high, round(right - left - 1, 1), round(low - high, 1), text)
