"""Random models in every format, compared with distboost: `python -m tests.exports.matrix [first] [last]`.

A quarter of them split categories. The numbers are those of the models, 0 to 199 by default. Needs the extra "export".
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from distboost.errors import TrainingEndedWarning
from tests.exports.checks import check_additive, check_onnx, check_shap, check_treelite
from tests.exports.made import random_model

# SHAP's explainer takes a while: it gets some rows of each model.
CHECKS: dict[str, Callable[[Any, np.ndarray], None]] = {
    "onnx float32": lambda model, X: check_onnx(model, X, "float32"),
    "onnx float64": lambda model, X: check_onnx(model, X, "float64"),
    "treelite": check_treelite,
    "shap additive": lambda model, X: check_additive(model, X[:: max(len(X) // 200, 1)]),
    "shap": lambda model, X: check_shap(model, X[:: max(len(X) // 50, 1)]),
}


def main(first: int = 0, last: int = 200) -> int:
    """Return the number of models that differ."""
    warnings.simplefilter("ignore", TrainingEndedWarning)
    begun, failed, n_with_categories, depths, classes = time.monotonic(), 0, 0, set(), set()
    for seed in range(first, last):
        model, X = random_model(seed)
        depths.add(getattr(model, "max_depth", 1))
        classes.add(len(model.classes_))
        n_with_categories += bool(model.learned_.ensemble.categories)
        for name, check in CHECKS.items():
            try:
                check(model, X)
            except AssertionError as error:
                failed += 1
                print(f"model {seed}, {model!r}, {name}: {error}", flush=True)
    seconds = time.monotonic() - begun
    print(
        f"models {first} to {last - 1}, {n_with_categories} with categories, {min(classes)} to {max(classes)} classes, depths "
        f"{min(depths)} to {max(depths)}: {failed} of {len(CHECKS) * (last - first)} comparisons differ, {seconds:.0f} s"
    )
    return failed


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])) > 0)
