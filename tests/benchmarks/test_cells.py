"""The benchmark of cells, small."""

from __future__ import annotations

from tests.benchmarks.cells import Cells, ours


def test_the_time_to_an_accuracy():
    cells = Cells.made(1500, 300, 3)
    assert len(cells.train[1]) == 9 * cells.n_held_out
    took = ours(cells, 0.95, 1)
    assert took.accuracy >= 0.95
    assert 0 < took.of_a_round < took.seconds
