"""Random numbers by position."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distboost.kernels import random

MASK = 2**64 - 1


def naive_uniform(draw: int, position: int) -> float:
    """The number at a position: SplitMix64 in Python's integers."""
    z = (draw + (position + 1) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    z ^= z >> 31
    return (z >> 11) * 2.0**-53


@given(st.integers(0, MASK), st.integers(0, 2**33), st.integers(0, 20))
def test_equals_the_twin(draw, first, n):
    expected = np.array([naive_uniform(draw, first + j) for j in range(n)])
    np.testing.assert_array_equal(random.uniforms(np.uint64(draw), first, n), expected)


@given(st.lists(st.integers(1, 400), min_size=1, max_size=6))
def test_depends_on_the_position_alone(lengths):
    key = random.key(3, random.ROW_SUBSAMPLE, 5)
    first = np.cumsum([0, *lengths])
    parts = [random.uniforms(key, int(a), n) for a, n in zip(first[:-1], lengths, strict=True)]
    np.testing.assert_array_equal(np.concatenate(parts), random.uniforms(key, 0, sum(lengths)))


def test_is_uniform():
    u = random.uniforms(random.key(0, random.BIN_SAMPLE), 0, 100_000)
    assert u.min() >= 0
    assert u.max() < 1
    counts = np.bincount((u * 20).astype(int), minlength=20)
    assert np.abs(counts - 5000).max() < 5 * np.sqrt(5000)


@pytest.mark.parametrize("other", [(1, 1, 0), (0, 2, 0), (0, 1, 1), (2**32, 1, 0), (-1, 1, 0)])
def test_seed_stream_and_round_each_give_another_sequence(other):
    a, b = random.uniforms(random.key(0, 1, 0), 0, 1000), random.uniforms(random.key(*other), 0, 1000)
    assert not np.isin(a, b).any()
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.15
