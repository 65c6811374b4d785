"""Labels that people write as text: of the type of those before."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from distboost.active.ledger import Ledger
from distboost.errors import DataError

# Spreadsheets write 3.0 where a column has gaps. 007 is an identifier, not a number.
_WHOLE = re.compile(r"-?(0|[1-9]\d{0,17})(\.0+)?", re.ASCII)


def labels_before(ledger: Ledger) -> list[Any]:
    """Return labels of the kind that new ones must have."""
    labels: list[Any] = ledger.header["classes"] or ledger.labels + ledger.seed_labels
    return labels


def parse_labels(texts: dict[int, str], earlier: Sequence[Any], place: str) -> dict[int, Any]:
    """Return labels of the same type as earlier ones, the declared classes or labels told before."""
    kind = _kind(earlier) if len(earlier) else int if all(map(_WHOLE.fullmatch, texts.values())) else str
    found = {}
    for row, text in texts.items():
        label = _as(kind, text)
        if label is None:
            raise DataError(
                f"{place} labels row {row} as {text!r}, but the labels so far, such as {earlier[0]!r}, are {_NAMES[kind]}.",
                remedy="Correct it; or, if labels are text, begin a new log that declares all classes: ``classes=...``",
                where=place,
                value=text,
            )
        found[row] = label
    return found


_NAMES = {int: "whole numbers", float: "numbers", bool: "True or False"}


def _kind(labels: Sequence[Any]) -> type:
    """Return the type of these labels; float if whole and other numbers are mixed."""
    kinds = set(map(type, labels))
    return float if kinds == {int, float} else kinds.pop()


def _as(kind: type, text: str) -> Any:
    """Return the text as a label of this type, or None if it is not one."""
    if kind is str:
        return text
    if kind is bool:
        return {"true": True, "false": False}.get(text.lower())
    if kind is int:
        return int(text.partition(".")[0]) if _WHOLE.fullmatch(text) else None
    try:
        return float(text) if math.isfinite(float(text)) else None
    except ValueError:
        return None
