"""What a change of a leaf does to the loss of a tree whose leaves have signs; whole trees: tests/weak/test_weak_whole_tree.py."""

import numpy as np
import pytest

from distboost.kernels.signed_leaves import FLIP, KEEP, change_of, see_others, sum_in_pairs


def test_numbers_are_added_in_the_order_of_numpy():
    """So that models are those of earlier releases, to the last bit."""
    rng = np.random.default_rng(0)
    for n in [*range(1, 300), 1000, 4099]:
        x = rng.random(n) * 10.0 ** rng.integers(-5, 6, n)
        assert sum_in_pairs(x) == x.sum(), n


def minus_loss(leaves):
    """-2 sum_k sqrt(right[k] wrong[k]), for pairs of ((N, P), sign)."""
    right, wrong = sum(sides[::-1] if sign > 0 else sides for sides, sign in leaves)
    return -2.0 * np.sqrt(right * wrong).sum()


@pytest.mark.parametrize("n_classes", [2, 3, 9, 130])
def test_the_best_change_of_a_leaf(n_classes):
    rng = np.random.default_rng(n_classes)
    found = set()
    for _ in range(60):
        sums = rng.integers(0, 2**40, (5, 2 * n_classes + 1)) >> rng.integers(0, 12, (5, 1))
        child, sign = np.array([1, 0, 3, 0, 0]), rng.choice([-1, 1], 5)
        own = int(rng.choice([1, 3, 4]))
        left = (sums[own] * rng.random(2 * n_classes + 1)).astype(np.int64)
        context = np.empty((2, n_classes + 1))
        is_constant = see_others(sums, child, sign, own, context)
        assert is_constant == (len({*sign[[1, 3, 4]]}) == 1)
        sides = sums[:, :-1].reshape(5, 2, n_classes).astype(float)
        others = [(sides[leaf], sign[leaf]) for leaf in (1, 3, 4) if leaf != own]
        kept, flipped = (minus_loss([*others, (sides[own], sign[own] * turn)]) for turn in (1, -1))
        L = left[:-1].reshape(2, n_classes).astype(float)
        values = [minus_loss([*others, (L, -right), (sides[own] - L, right)]) for right in (1, -1)]
        assert context[0, -1] == context[1, -1] == pytest.approx(kept, rel=1e-12)
        gain = max(max(values) - kept, 0.0)
        expected = KEEP
        if flipped > kept and flipped >= max(values):
            expected = FLIP
        elif gain > 0:
            expected = 1 if values[0] >= values[1] else -1
        assert change_of(context, sums[own], sign[own], left, gain) == expected
        found.add(expected)
    assert found == {KEEP, FLIP, 1, -1}


def test_a_root_is_split_with_minus_on_its_left_or_kept():
    sums = np.array([[30, 20, 10, 5, 9]])
    context = np.empty((2, 3))
    assert not see_others(sums, np.zeros(1, np.int64), np.zeros(1, np.int64), 0, context)
    assert context.tolist() == [[0.0, 0.0, -65.0]] * 2
    for left in (sums[0] // 2, sums[0] // 3):
        assert change_of(context, sums[0], 0, left, 1.0) == 1
        assert change_of(context, sums[0], 0, left, 0.0) == KEEP
