"""The weight of a training row: its sample weight, the weight of its class and a common power of two."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from distboost.data.blocks import ClassScan, Profile
from distboost.errors import DataError
from distboost.rows.sums import WEIGHT_BITS


def class_weights(class_weight: Any, profile: Profile) -> np.ndarray:
    """Return the weight of each class, (n_classes,) float64."""
    n = np.array([scan.n_rows for scan in profile.class_scans])
    if class_weight is None:
        return np.ones(len(n))
    if class_weight == "balanced":
        return np.asarray(n.sum() / (len(n) * n))
    known = set(profile.classes.tolist())
    unknown = [label for label in class_weight if label not in known]
    if unknown:
        raise DataError(
            f"``class_weight`` names {unknown[0]!r}, which is not among the classes {profile.classes.tolist()}.",
            value=unknown[0],
        )
    refusal = f"``class_weight`` is {dict(class_weight)}. Pass finite weights of at least 0."
    try:
        weights = np.array([float(class_weight.get(label, 1.0)) for label in profile.classes.tolist()])
    except (TypeError, ValueError) as error:
        raise DataError(refusal) from error
    if not (np.isfinite(weights) & (weights >= 0)).all():
        raise DataError(refusal)
    left = np.flatnonzero(weights)
    if len(left) == 1:
        raise DataError(
            f"``class_weight`` is {dict(class_weight)}, which leaves only one class ({profile.classes[left[0]]}) of "
            f"{len(weights)}: a classifier can't train on 1 class.",
            remedy="Set a weight above 0 for at least 2 classes.",
        )
    return weights


@dataclass(frozen=True)
class WeightRule:
    """The rule for the weight of a training row: its sample weight times its class's weight times a power of two.

    Integer weights up to 2^WEIGHT_BITS stay as they are, so that a row of weight 2 counts as two rows. Otherwise the largest
    weight is scaled to between 2^(WEIGHT_BITS - 1) and 2^WEIGHT_BITS, for the most precision.
    """

    class_weight: np.ndarray  # (n_classes,) float64
    exponent: int = 0
    whole: bool = True  # all weights are whole numbers up to 2^WEIGHT_BITS

    @classmethod
    def of(cls, class_weight: np.ndarray, scans: list[ClassScan]) -> WeightRule:
        exponent, mantissa = max(
            _product(c, scan.largest_weight) for c, scan in zip(class_weight.tolist(), scans, strict=True)
        )
        whole = all(
            scan.whole_weights and c == np.floor(c) for c, scan in zip(class_weight, scans, strict=True)
        )
        if not mantissa > 0:
            raise DataError(
                "every row has weight 0 after ``class_weight``, so no rows are left.",
                remedy="Set a weight above 0 for some class.",
            )
        if whole and exponent <= WEIGHT_BITS + 1 and math.ldexp(mantissa, exponent) <= 2**WEIGHT_BITS:
            return cls(class_weight)
        beyond = 0 if -1021 <= exponent <= 1024 else exponent  # outside the range of a float64
        largest = math.ldexp(mantissa, exponent - beyond)
        return cls(class_weight, WEIGHT_BITS - math.ceil(math.log2(largest)) - beyond, whole=False)

    @classmethod
    def alone(cls, n_classes: int, scan: ClassScan | None) -> WeightRule:
        """Return the rule for rows without class weights; `scan` is that of their sample weights, None if they have none."""
        rule = cls(np.ones(1)) if scan is None else cls.of(np.ones(1), [scan])
        return replace(rule, class_weight=np.ones(n_classes))

    @property
    def scale(self) -> float:
        """The power of two; infinite or 0 if it is outside the range of a float64."""
        with np.errstate(over="ignore"):
            return float(np.ldexp(1.0, self.exponent))

    def apply(self, labels: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the weights of rows, (n,) float64, from class indices, (n,) int32, and sample weights, (n,) float64."""
        # The product of two weights may overflow where the scaled product does not.
        (m, e), (n, f) = np.frexp(weights), np.frexp(self.class_weight[labels])
        scaled: np.ndarray = np.ldexp(m * n, e + f + self.exponent)
        return scaled


def _product(a: float, b: float) -> tuple[int, float]:
    """Return the exponent and the mantissa (0.5 to 1) of a product that may overflow."""
    (m, e), (n, f) = math.frexp(a), math.frexp(b)
    mantissa, more = math.frexp(m * n)
    return (e + f + more if mantissa else -(2**16)), mantissa
