"""How much work a round of a training run has, and how many bytes its messages have."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tests.benchmarks.simulation.costs import Costs

LANES = 8  # channels of histograms are padded to whole groups of so many
FEW_ROWS_OF_A_BIN = 2**11  # the sums of so many fit into 32 bits: rows have up to 22 bits, and both signs
CACHE_BYTES = 2**22  # of rows that stay in a core's caches
PIECE_BYTES = 2**23  # of sums in one message
QUESTION_BYTES = 3000


@dataclass(frozen=True)
class Level:
    """A question about histograms."""

    name: str
    n_nodes: int  # that are summed over rows
    n_searched: int


@dataclass(frozen=True)
class Job:
    """A training run: GD-MCBoost with trees that grow level by level.

    Attributes
    ----------
    rows : int
        Of one worker.
    bins : int
        Of each feature, with that for missing values.
    """

    rows: int
    features: int = 64
    classes: int = 10
    depth: int = 6
    bins: int = 256

    @property
    def channels(self) -> int:
        """Numbers per bin that travel."""
        return self.classes + 1

    @property
    def padded(self) -> int:
        """Numbers per bin in memory."""
        return LANES * math.ceil(self.channels / LANES)

    @property
    def levels(self) -> list[Level]:
        """The questions after the root, which comes with the update: only the smaller children are summed."""
        return [Level(f"level {k}", 2 ** (k - 1), 2**k) for k in range(1, self.depth)]

    @property
    def root(self) -> Level:
        return Level("update", 1, 1)

    # The rows of a worker.

    def built_rows(self, level: Level, costs: Costs, workers: int = 1) -> float:
        """The rows of some workers that are summed."""
        return workers * self.rows * (1 if level.name == "update" else costs.smaller)

    def row_terms(self, n_rows: float) -> float:
        """Additions of the statistics of rows to histograms, each of 8 channels."""
        return n_rows * self.features * self.padded / LANES

    def far(self, level: Level) -> float:
        """How far apart the rows of a node lie that the caches do not hold: they are scattered more in each level."""
        n_bytes = self.rows * (self.features + 4 * self.padded)
        return max(math.log2(level.n_nodes), 0.0) * max(1 - CACHE_BYTES / n_bytes, 0.0)

    def sum_seconds(self, level: Level, costs: Costs) -> float:
        """A worker's sums over its rows."""
        is_root, numbers = level.name == "update", self.numbers(level.n_nodes, self.features)
        by_row = costs.root_row if is_root else costs.node_row + costs.far_row * self.far(level)
        seconds = by_row * self.row_terms(self.built_rows(level, costs))
        seconds += (costs.clear_number + costs.fill_number * self.filled(level, costs)) * numbers
        return seconds + self.rows * (costs.update_row * self.classes if is_root else costs.split_row)

    def leaf_seconds(self, costs: Costs) -> float:
        """A worker's sums per leaf."""
        return costs.leaf_row * self.rows * math.ceil(self.classes / LANES)

    # Histograms.

    def numbers(self, n_nodes: float, features: float, padded: bool = True) -> float:
        """Numbers of the histograms of some nodes and features."""
        return n_nodes * features * self.bins * (self.padded if padded else self.channels)

    def filled(self, level: Level, costs: Costs, workers: int = 1) -> float:
        """The fraction of the bins that have rows of some workers: rows fall into bins at random."""
        rows = self.built_rows(level, costs, workers) / level.n_nodes
        return 1 - math.exp(-rows / self.bins)

    def is_wide(self, level: Level, costs: Costs, workers: int) -> bool:
        """Whether sums of the rows of some workers need 64 bits."""
        return self.built_rows(level, costs, workers) / level.n_nodes / self.bins > FEW_ROWS_OF_A_BIN

    def piece(self, level: Level, features: float, costs: Costs, workers: int) -> tuple[float, float]:
        """The bytes of some workers' sums over some features, and how many numbers of these travel."""
        dense = self.numbers(level.n_nodes, features, padded=False)
        n = dense * self.filled(level, costs, workers)
        return dense / self.channels + (8 if self.is_wide(level, costs, workers) else 4) * n, n

    def pack_seconds(self, level: Level, features: float, costs: Costs, workers: int) -> float:
        """To find the bins with rows, and to copy their sums: if these need 64 bits, the first attempt with 32 fails."""
        numbers = self.numbers(level.n_nodes, features)
        return costs.pack_number * numbers * (1 + self.is_wide(level, costs, workers))

    def n_messages(self, level: Level, features: float) -> int:
        """In how many messages a piece travels."""
        nodes = max(PIECE_BYTES // int(8 * self.numbers(1, features, padded=False)), 1)
        return math.ceil(level.n_nodes / nodes)

    def answer_bytes(self, level: Level) -> float:
        """Best splits, with the sums on their left."""
        return 500 + level.n_searched * 8 * (7 + self.channels)

    @property
    def leaf_bytes(self) -> float:
        """The table of the sums per leaf."""
        return 500 + 8 * 2**self.depth * self.classes**2
