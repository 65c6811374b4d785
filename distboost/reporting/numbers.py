"""Numbers and names as the page shows them."""

from __future__ import annotations

import math
from typing import Any

from distboost.io.text import visible

MOST_LETTERS = 80  # of a name


def name(value: Any) -> str:
    """Return a label or a feature name in one line, cut if it is long.

    >>> name("a" * 100) == "a" * 79 + "…"
    True
    """
    text = visible(str(value)[: MOST_LETTERS + 1])  # of a huge name, only the beginning is looked at
    return text if len(text) <= MOST_LETTERS else text[: MOST_LETTERS - 1] + "…"


def amount(value: float) -> str:
    """Return a number of rows, or their weight.

    >>> amount(12345), amount(0.25)
    ('12,345', '0.25')
    """
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.4g}"


def fraction(value: float) -> str:
    """Return a fraction in percent.

    >>> fraction(0.12345)
    '12.3 %'
    """
    return f"{100 * value:.1f} %"


def decimal(value: float) -> str:
    """Return a metric with four decimals, or a dash if it is not defined.

    >>> decimal(0.98765), decimal(float("nan"))
    ('0.9877', '–')
    """
    return "–" if math.isnan(value) else f"{value:.4f}"
