"""Votes that are counted: costs of a vote, and errors."""

import numpy as np
import pytest

from distboost.kernels import votes
from distboost.rows.sums import Risk
from distboost.weights.potential import PotentialTable, zero_one_costs
from distboost.weights.votes import PotentialGains, Votes
from tests.kernels.cases import SHAPES, UNIT, case_name, case_of, prepared, times

pytestmark = pytest.mark.pairwise

BITS = 45


@pytest.fixture(params=[shape for shape in SHAPES if shape[1] < 10], ids=case_name)
def case(request):
    """Scores are numbers of votes."""
    made = case_of(*request.param)
    made.block.scores[:] = np.random.default_rng(4).integers(0, 4, made.block.scores.shape)
    return made


def naive_gains(case, costs, bits):
    """C[i, y_i] - C[i, k] of the rows in their order, as Python's integers."""
    out = np.zeros(case.block.scores.shape, object)
    for i, row in zip(case.block.order.tolist(), costs, strict=True):
        own = row[case.block.labels[i]]
        out[i] = [times(case.block.weights[i], np.rint((own - x) * 2.0**bits)) for x in row]
    return out.astype(np.int64)


@pytest.mark.parametrize("unit", [0.0, UNIT])
@pytest.mark.parametrize("bits", [20, BITS])
def test_vote_gains(case, unit, bits):
    block, K = case.block, case.block.n_classes
    costs = np.random.default_rng(5).uniform(size=(len(block.order), K))
    out = np.zeros((block.n_rows, K + 3), np.int64)
    votes.vote_gains(costs, block.labels, block.weights, block.order, 2.0**bits, unit, out)
    np.testing.assert_array_equal(out[:, :K], naive_gains(case, costs, bits))
    np.testing.assert_array_equal(out[block.order, K], 1)
    own = np.rint(block.weights[block.order] * unit)
    np.testing.assert_array_equal(out[block.order, K + 1], own)
    assert not out[:, K + 2].any()


@pytest.mark.parametrize("rounds_left", [1, 6])
def test_gains_by_potential(case, rounds_left):
    """The statistic is that of the potentials' costs, whatever the order of the rows."""
    block, K = case.block, case.block.n_classes
    gains = PotentialGains(0.3, rounds_left)
    table = PotentialTable(K, 0.3)
    costs = zero_one_costs(block.scores[block.order], block.labels[block.order], rounds_left, table)
    expected = naive_gains(case, costs, BITS)
    out = prepared(case, gains, BITS, UNIT)
    assert out.dtype == np.int64
    np.testing.assert_array_equal(out[:, :K], expected)


def test_vote_risk(case):
    """An error is a wrong class of most votes, the first of equal ones; the 0-1 loss counts every tie as one."""
    block = case.block
    block.scores[::3] = 2.0
    out, largest = np.zeros(2, np.int64), np.full(1, -np.inf)
    weighting = Votes()
    Risk(weighting, np.zeros(1), 2.0**BITS, UNIT, out, largest).add(block)
    errors, loss = 0, 0
    for i in block.present.tolist():
        F, y = block.scores[i].tolist(), int(block.labels[i])
        errors += round(float(block.weights[i]) * UNIT) * (F.index(max(F)) != y)
        loss += times(block.weights[i], 2.0**BITS) * (max(F[:y] + F[y + 1 :]) >= F[y])
    assert out.tolist() == [errors, loss]
    # Costs are between 0 and 1 in every round.
    assert weighting.next_shifts(np.zeros(1), largest).tolist() == [0.0]
    assert (
        weighting.growth(np.ones((3, block.n_classes))) == weighting.initial_shifts(block.n_classes) == [0.0]
    )
