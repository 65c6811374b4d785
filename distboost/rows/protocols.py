"""The interfaces of weightings, statistics and reductions to messages and `Rows` (see `weights.base`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from distboost.rows.block import BlockRows
from distboost.rows.reduced import Reduced
from distboost.rows.scales import Scale


class Weighting(Protocol):
    """The weight of a row as a function of its scores and its class."""

    def initial_shifts(self, n_classes: int) -> list[float]: ...

    def growth(self, values: np.ndarray) -> list[float]: ...

    def n_sums(self, n_classes: int) -> int: ...

    def risk(
        self,
        block: BlockRows,
        shifts: np.ndarray,
        factor: float,
        error_factor: float,
        out: np.ndarray,
        largest: np.ndarray,
    ) -> None: ...

    def log_totals(self, sums: np.ndarray, shifts: np.ndarray) -> np.ndarray: ...

    def next_shifts(self, shifts: np.ndarray, largest: np.ndarray) -> np.ndarray: ...


class Risk(NamedTuple):
    """What `Weighting.risk` adds up, and where."""

    weighting: Weighting
    shifts: np.ndarray
    factor: float
    error_factor: float
    out: np.ndarray
    largest: np.ndarray

    def add(self, block: BlockRows) -> None:
        """Add the errors and weights of a block."""
        self.weighting.risk(block, *self[1:])


class Statistic(Protocol):
    """The vector that a row adds to the histograms of a tree."""

    @property
    def wide(self) -> bool: ...

    @property
    def n_totals(self) -> int: ...

    def n_sums(self, n_classes: int) -> int: ...

    def bits(self, available: int, mean_weight: float, above: float) -> int: ...

    def bits_to_lose(self, bits: int) -> int: ...

    def prepare(
        self, block: BlockRows, rows: np.ndarray, scale: Scale, weight_factor: float
    ) -> np.ndarray | None: ...

    def prepare_with_risk(
        self, risk: Risk, block: BlockRows, rows: np.ndarray, scale: Scale, weight_factor: float
    ) -> np.ndarray | None: ...

    def magnitudes(
        self, block: BlockRows, rows: np.ndarray, scale: Scale, weight_factor: float, out: np.ndarray
    ) -> None: ...

    def magnitudes_with_risk(
        self,
        risk: Risk,
        block: BlockRows,
        rows: np.ndarray,
        scale: Scale,
        weight_factor: float,
        out: np.ndarray,
    ) -> None: ...

    def divide(
        self, block: BlockRows, rows: np.ndarray, magnitudes: np.ndarray, threshold: int, unit: float
    ) -> None: ...

    def shift(self, shifts: Sequence[float]) -> float: ...

    def largest(self, block: BlockRows, scale: Scale, weight_factor: float) -> float: ...
    def spans(self, block: BlockRows, nodes: np.ndarray) -> np.ndarray: ...

    def histogram(
        self,
        blocks: Sequence[BlockRows],
        spans: Sequence[np.ndarray],
        target: Any,
        scale: Scale,
        weight_factor: float,
        largest: float | None = None,
    ) -> None: ...


class Gain(Protocol):
    """How splits are compared, from the sums of their sides: two compiled functions (see `kernels.gains.Gain`)."""

    pair_values: Any
    own_value: Any
    degree: int

    def __hash__(self) -> int: ...


class Reduction(Protocol):
    """Sums over the rows of each leaf; some reductions also have maxima and a best row."""

    def accumulate(self, block: BlockRows, leaves: np.ndarray, scale: Scale, into: Reduced) -> Reduced: ...

    def initial(self, n_leaves: int, n_classes: int) -> Reduced: ...

    def shift(self, shifts: Sequence[float]) -> float: ...
