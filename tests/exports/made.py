"""Random models, and rows that show whether another library makes of them what distboost does."""

from __future__ import annotations

from typing import Any

import numpy as np

from distboost.estimators.factory import estimator

# Those that take any number of classes up to 30, with the parameters that vary.
ALGORITHMS: list[tuple[str, dict[str, Any]]] = [
    ("gd-mcboost", {}),
    ("gd-mcboost", {"leaf": "codeword"}),
    ("gd-mcboost", {"loss": "softmax", "leaf": "newton"}),
    ("cd-mcboost", {}),
    ("adaboost-mm", {}),
    ("adaboost-mm", {"strategy": "os-exponential", "edge": 0.1}),
    ("stagewise", {}),
    ("stagewise", {"loss": "logistic"}),
    ("gamble", {"max_leaf_nodes": None}),
    ("rebel", {}),
    ("one-vs-all", {}),
    ("adaboost-m1", {}),
    ("adaboost-mh", {"vote": "real"}),
    ("adaboost-ecc", {}),
    ("samme", {}),
    ("gentle-adaboost", {}),
    ("gradboost", {}),
    ("multiboost", {}),
    ("jointboost", {}),
    ("structboost", {}),
    ("adaboost-mo", {}),
    ("all-pairs", {"decoding": "sum"}),
    ("output-code", {}),
]
STUMPS = {"gradboost", "jointboost", "multiboost", "structboost"}
FEW_CLASSES = {"adaboost-mo": 6}  # 2^(K-1) - 1 columns


def random_model(seed: int) -> tuple[Any, np.ndarray]:
    """A fitted estimator, and rows of its features."""
    rng = np.random.default_rng(seed)
    name, parameters = ALGORITHMS[seed % len(ALGORITHMS)]
    n_classes = int(rng.integers(2, 1 + FEW_CLASSES.get(name, 30)))
    n_features, n_rows = int(rng.integers(1, 9)), int(rng.integers(100, 400))
    y = rng.permutation(np.arange(n_rows) % n_classes)
    X = rng.normal(size=(n_rows, n_features)) + 1.5 * rng.normal(size=(n_classes, n_features))[y]
    if seed % 3 == 0:
        X = np.round(X, 1)
    X *= 10.0 ** rng.integers(-3, 4, n_features)
    categorical = _with_categories(X, seed) if seed % 4 == 1 else []
    X[rng.random(X.shape) < 0.1 * (seed % 2)] = np.nan
    more = {} if name in STUMPS else {"max_depth": int(rng.integers(1, 9))}
    labels = [y, np.array([f"class {k}" for k in range(n_classes)])[y]][seed // 2 % 2]
    calibration = ["temperature", None, "vector"][seed % 3] if "strategy" not in parameters else None
    model = estimator(name)(
        n_estimators=int(rng.integers(1, 16)),
        n_jobs=1,
        calibration=calibration,
        max_bins=[255, 20][seed // 4 % 2],
        categorical_features=categorical,
        **parameters,
        **more,
    )
    weights = rng.random(n_rows) if seed % 4 == 0 else None
    model.fit(X, labels, weights)
    # Some random data have nothing to learn.
    return (model, rows_for(model, X, rng)) if model.best_iteration_ else random_model(seed + 1000)


def _with_categories(X: np.ndarray, seed: int) -> list[int]:
    """Replace some columns by categories: intervals of their values, numbered in random order. Return their numbers."""
    rng = np.random.default_rng([seed, 1])
    chosen = [d for d in range(X.shape[1]) if rng.random() < 0.5] or [0]
    for d in chosen:
        n = int(rng.integers(2, 41))
        interval = np.searchsorted(np.quantile(X[:, d], np.linspace(0, 1, n + 1)[1:-1]), X[:, d])
        X[:, d] = rng.permutation(3 * n)[interval] - n
    return chosen


def rows_for(model: Any, X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The training rows, and for each split one with a value at the threshold, one below and one above.

    Those of splits of categories have the category 0 and two that are unknown.
    """
    arrays = model.learned_.ensemble.arrays()
    at = rng.choice(X, 3 * len(arrays["feature"]))
    thresholds = np.where(np.isfinite(arrays["threshold"]), arrays["threshold"], 0.0)
    sides = [thresholds, np.nextafter(thresholds, -np.inf), np.nextafter(thresholds, np.inf)]
    at[np.arange(len(at)), np.tile(arrays["feature"], 3)] = np.concatenate(sides)
    return np.concatenate([X, at])


def as_float32(X: np.ndarray) -> np.ndarray:
    """The float32 values nearest to these, and those next to them on either side."""
    near = X.astype(np.float32)
    return np.concatenate(
        [near, np.nextafter(near, np.float32(-np.inf)), np.nextafter(near, np.float32(np.inf))]
    )


def assert_scores(found: np.ndarray, expected: np.ndarray, tolerance: float) -> None:
    """Scores differ by at most `tolerance` of the largest."""
    largest = max(float(np.abs(expected).max()), np.finfo(np.float32).tiny)
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= tolerance * largest, np.abs(found - expected).max() / largest


def assert_labels(found: np.ndarray, model: Any, X: np.ndarray, tolerance: float) -> None:
    """Labels are equal where the scores of the two best classes differ by more than twice the tolerance."""
    F = model.scores(X)
    best = np.sort(F, axis=1)
    clear = best[:, -1] - best[:, -2] > 2 * tolerance * max(float(np.abs(F).max()), np.finfo(np.float32).tiny)
    assert found[clear].tolist() == model.predict(X)[clear].tolist()
