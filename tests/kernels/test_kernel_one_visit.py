"""Losses and residuals in one visit of the rows: the same as in two."""

import numpy as np
import pytest

from distboost.rows.sums import Risk, Scale, Statistic
from distboost.runtime import block as block_module
from distboost.weights.margin import EXPONENTIAL, LOGISTIC, SOFTMAX, MarginWeights, Residuals
from tests.kernels.cases import SHAPES, UNIT, case_name, case_of

pytestmark = pytest.mark.pairwise

WEIGHTING = MarginWeights(0.5)


def answer(case, prepare, statistic, scale, unit, weighting, rows, shift):
    """Errors, losses, the largest weight; totals; the vectors of these rows."""
    n_shifts = 1 if weighting.link == EXPONENTIAL else 2
    risk = Risk(
        weighting, np.full(n_shifts, shift), 2.0**40, UNIT, np.array([5, 7]), np.full(n_shifts, -np.inf)
    )
    case.block.buffers.pop("statistics", None)
    totals = prepare(statistic, risk, case.block, rows, scale, unit)
    return [
        risk.out.tolist(),
        risk.largest.tolist(),
        list(totals),
        statistic.buffer(case.block, unit)[rows].tolist(),
    ]


def both(case, statistic, bits=22, unit=UNIT, weighting=WEIGHTING, rows=None, above=0.0):
    """The answers of one visit and of two."""
    rows = case.block.present if rows is None else rows
    given = statistic, Scale(case.shift, bits), unit, weighting, rows, case.shift + above
    return (
        answer(case, type(statistic).prepare_with_risk, *given),
        answer(case, Statistic.prepare_with_risk, *given),
    )


@pytest.mark.parametrize("shape", SHAPES, ids=case_name)
@pytest.mark.parametrize(("wide", "bits", "own"), [(False, 22, 1.0), (True, 50, 1.0), (True, 50, 0.3)])
@pytest.mark.parametrize("unit", [0.0, UNIT])
def test_one_visit_gives_what_two_give(shape, wide, bits, own, unit):
    found, expected = both(case_of(*shape), Residuals(WEIGHTING, own, wide), bits, unit)
    assert found == expected


@pytest.mark.parametrize("shape", SHAPES, ids=case_name)
@pytest.mark.parametrize(("above", "wide", "own"), [(0.0, False, 1.0), (-2.0, True, 0.3)])
def test_one_visit_for_the_softmax(shape, above, wide, own):
    """Its exponentials are the same for all scales."""
    weighting = MarginWeights(0.7, SOFTMAX)
    case = case_of(*shape)
    statistic = Residuals(weighting, own, wide)
    found, expected = both(case, statistic, weighting=weighting, above=above)
    assert found == expected


@pytest.mark.parametrize(
    "other",
    [
        {"above": 0.5},
        {"weighting": MarginWeights(0.7)},
        {"weighting": MarginWeights(0.5, LOGISTIC)},
        {"rows": np.arange(3, 30, 2, dtype=np.int32)},
    ],
    ids=["another scale", "another exponent", "another link", "some of the rows"],
)
def test_what_has_other_exponentials_takes_two(other):
    found, expected = both(case_of(40, 3), Residuals(WEIGHTING), **other)
    assert found == expected


@pytest.mark.parametrize("n_classes", [3, 7, 8, 9, 15, 16])
@pytest.mark.parametrize(("unit", "n_numbers"), [(0.0, 1), (UNIT, 2)])
@pytest.mark.parametrize("wide", [False, True])
def test_zeros_follow_the_vectors_in_memory_that_was_used(n_classes, unit, n_numbers, wide, monkeypatch):
    monkeypatch.setattr(block_module, "empty", lambda shape, dtype: np.full(shape, 77, dtype))
    case = case_of(40, n_classes, "float64", "whole")
    for answers in both(case, Residuals(WEIGHTING, wide=wide), unit=unit):
        vectors = np.array(answers[-1])
        assert vectors.shape[1] % 8 == 0
        assert (vectors[:, n_classes] == 1).all()
        assert not vectors[:, n_classes + n_numbers :].any()
