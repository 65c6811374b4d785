"""Plans of large trainings."""

from __future__ import annotations

import re

import distboost
from distboost import GDMCBoostClassifier

LARGE = {"n_rows": 4_200_000, "n_features": 256, "n_classes": 5}


def gd(**parameters):
    return GDMCBoostClassifier(max_depth=6, **parameters)


def planned(n_threads=1, n_workers=None, weighted=False, **parameters):
    """A plan for a million rows of 100 features and 10 classes: its rows, its parts, and those of the process that leads."""
    sizes = {"n_rows": 10**6, "n_features": 100, "n_classes": 10}
    where = {"n_threads": n_threads, "n_workers": n_workers, "weighted": weighted}
    found = distboost.plan(GDMCBoostClassifier(**parameters), **sizes, **where)
    rows = (found.resident, found.streamed, found.room, found.window, found.store_bytes, found.scratch_bytes)
    return rows, [tuple(part)[1:] for part in found.parts], [tuple(part)[1:] for part in found.leader]


HISTOGRAM = (
    8 * 100 * 256 * 12
)  # 100 features of 255 bins and one for missing values; 10 sums, a count: 12 channels
LIBRARIES = "interpreter, libraries, compiled kernels"


def named(refused) -> str:
    """The limit that a refusal asks for."""
    return re.search(r"takes? ([\d,]+ MB)", str(refused.value))[1].replace(",", "")
