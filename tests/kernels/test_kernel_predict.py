"""Prediction by ranks adds the same values, in the same order, as rows that descend the trees."""

import pickle

import numpy as np
import pytest

from distboost import GDMCBoostClassifier
from distboost.data.categories import Categories
from distboost.kernels import predict
from distboost.kernels.row_lanes import ROW_LANES
from distboost.model import trees as trees_module
from distboost.model.compact import CompactTrees
from distboost.model.ensemble import kernel_rows
from distboost.model.trees import FEWEST_RANKED, NO_CATEGORIES, TreeEnsemble
from distboost.threads import Threads

LEAVES = [1, 2, 7, 64, 256, 1, 30] * 6  # of the trees: more than are applied together
N_FEATURES = 5


@pytest.fixture(autouse=True)
def ranks(monkeypatch):
    """Few rows are compared by ranks, too."""
    monkeypatch.setattr(trees_module, "FEWEST_RANKED", 0)


def ensemble(rng, thresholds, n_scores=3, n_leaves=LEAVES, per_round=1, n_bins=None):
    """Trees of these numbers of leaves that split random leaves. Some thresholds are infinite.

    n_bins: those of the features that have categories.
    """
    arrays = {name: [] for name in ("feature", "threshold", "missing_left", "left", "right")}
    for leaves in n_leaves:
        left, right, open_ends = [], [], [None]
        for node in range(leaves - 1):
            end = open_ends.pop(rng.integers(len(open_ends)))
            if end is not None:
                end[0][end[1]] = node
            left.append(None)
            right.append(None)
            open_ends += [(left, node), (right, node)]
        for leaf, end in enumerate(open_ends if leaves > 1 else []):
            end[0][end[1]] = ~leaf
        arrays["left"] += left
        arrays["right"] += right
    n = len(arrays["left"])
    arrays["feature"] = np.arange(n) % (N_FEATURES - 1)  # the last one is not used
    number = np.arange(n) // (N_FEATURES - 1)  # every feature has every threshold, if there are enough nodes
    infinite = (rng.random(n) < 0.1) & (number >= len(thresholds))
    arrays["threshold"] = np.where(infinite, np.inf, np.resize(thresholds, n)[number])
    arrays["missing_left"] = rng.random(n) < 0.5
    arrays["gain"] = np.ones(n)
    arrays["roots"] = np.cumsum([0, *(leaves - 1 for leaves in n_leaves)])
    arrays["value_offsets"] = np.cumsum([0, *n_leaves])
    arrays["values"] = rng.normal(size=(sum(n_leaves), n_scores))
    made = TreeEnsemble(N_FEATURES, n_scores, 1)._joined()
    typed = {name: np.array(arrays[name], made[name].dtype) for name in arrays}
    categories = {}
    for d, n_of_feature in (n_bins or {}).items():
        bins = rng.permutation(n_of_feature).astype(np.uint8)
        categories[d] = Categories(3.0 * np.arange(n_of_feature) - 50, bins)
    if categories:
        typed |= random_sets(rng, typed, {d: found.n_bins for d, found in categories.items()})
    return TreeEnsemble.from_arrays(
        typed, N_FEATURES, n_scores, per_round, has_covers=False, categories=categories
    )


def random_sets(rng, arrays, n_bins):
    """The arrays of splits of categories, in place of thresholds on these features."""
    is_set = np.isin(arrays["feature"], list(n_bins))
    n = np.array([n_bins[d] for d in arrays["feature"][is_set].tolist()])[:, None]
    bits = rng.random((len(n), 256)) < 0.5
    bits = np.where(np.arange(256) < n, bits, arrays["missing_left"][is_set][:, None])
    return {
        "threshold": np.where(is_set, np.nan, arrays["threshold"]),
        "category_set": np.where(is_set, np.cumsum(is_set) - 1, -1).astype(np.int32),
        "categories": np.packbits(bits, axis=1, bitorder="little").view("<u8").astype(np.uint64),
    }


def rows(rng, n, thresholds, dtype):
    """Values on, beside and far from thresholds, of which some are missing."""
    X = rng.choice([*thresholds, *np.nextafter(thresholds, 9), -1e30, 1e30, np.nan], (n, N_FEATURES))
    return X.astype(dtype)


def descended(trees, X, first=0, last=None):
    """The scores by the kernel for trees of any size, which has a naive twin of its own."""
    a, F = {**NO_CATEGORIES, **trees.arrays()}, np.zeros((len(X), trees.n_scores))
    names = ("feature", "threshold", "missing_left", "left", "right", *NO_CATEGORIES)
    nodes = (a[name] for name in names)
    last = len(trees) if last is None else last
    predict.add_trees(
        kernel_rows(trees.coded(X)), *nodes, a["roots"], a["values"], a["value_offsets"], first, last, F
    )
    return F


def test_few_rows_have_the_scores_that_they_have_among_others(monkeypatch):
    rng = np.random.default_rng(0)
    thresholds = np.linspace(-1, 1, 20).astype(np.float32)
    trees, X = ensemble(rng, thresholds, n_bins={1: 9}), rows(rng, 40, thresholds, "f8")
    with Threads(1) as threads:
        expected = trees.scores(X, threads)
        monkeypatch.setattr(trees_module, "FEWEST_RANKED", FEWEST_RANKED)
        for n in (1, FEWEST_RANKED - 1, FEWEST_RANKED):
            np.testing.assert_array_equal(trees.scores(X[:n], threads), expected[:n])


@pytest.mark.parametrize("n_thresholds", [20, 254, 255, 600])
@pytest.mark.parametrize(
    ("n", "dtype", "n_scores"), [(300, "f4", 8), (5000, "f8", 3), (1, "f8", 9), (0, "f8", 1)]
)
def test_prediction_by_ranks(n, dtype, n_scores, n_thresholds):
    rng = np.random.default_rng(n + n_thresholds)
    thresholds = np.linspace(-1, 1, n_thresholds).astype(np.float32)
    trees = ensemble(rng, thresholds, n_scores)
    X = rows(rng, n, thresholds, dtype)
    assert CompactTrees.of(trees.arrays()).leaves.dtype == (np.uint8 if n_thresholds < 255 else np.uint16)
    with Threads(2) as threads:
        np.testing.assert_array_equal(trees.scores(X, threads), descended(trees, X))
        np.testing.assert_array_equal(trees.scores(X, threads, 3, None, 5), descended(trees, X, 3, 5))


def rows_of_categories(rng, n, trees, thresholds):
    """Rows with categories that are known, unknown or missing, and numbers as above."""
    X = rows(rng, n, thresholds, "f8")
    for d, known in trees.categories.items():
        X[:, d] = rng.choice([*known.values, *known.values, 0.5, -1e9, np.nan], n)
    return X


@pytest.mark.pairwise
@pytest.mark.parametrize("n_thresholds", [20, 600])
@pytest.mark.parametrize("n_bins", [{0: 1}, {1: 255, 2: 7}, {0: 40, 1: 254, 2: 3, 3: 64}])
@pytest.mark.parametrize("n", [5000, 3])
def test_splits_of_categories_by_ranks(n, n_bins, n_thresholds):
    rng = np.random.default_rng(n + n_thresholds)
    thresholds = np.linspace(-1, 1, n_thresholds)
    trees = ensemble(rng, thresholds, n_bins=n_bins)
    assert trees._compact is not None
    X = rows_of_categories(rng, n, trees, thresholds)
    with Threads(2) as threads:
        np.testing.assert_array_equal(trees.scores(X, threads), descended(trees, X))
        np.testing.assert_array_equal(trees.scores(X, threads, 3, None, 5), descended(trees, X, 3, 5))


@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_ranks(dtype):
    rng = np.random.default_rng(0)
    trees = ensemble(rng, np.linspace(-1, 1, 50))
    compact, a = CompactTrees.of(trees.arrays()), trees.arrays()
    X = rows(rng, 70, np.linspace(-1, 1, 50), dtype)
    ranks = compact.ranked(kernel_rows(X), 0, len(trees)).reshape(2, N_FEATURES - 1, ROW_LANES)
    for d in range(N_FEATURES - 1):
        of_feature = np.unique(a["threshold"][a["feature"] == d])
        expected = np.searchsorted(of_feature, X[:, d].astype(np.float64))
        found = ranks[:, d].ravel()[:70]
        np.testing.assert_array_equal(found, np.where(np.isnan(X[:, d]), 255, expected))


def test_features_with_the_same_threshold():
    rng = np.random.default_rng(0)
    trees = ensemble(rng, [0.5], n_leaves=[2] * (N_FEATURES - 1))
    X = rows(rng, 100, [0.5], "f8")
    np.testing.assert_array_equal(trees.scores(X, Threads(1)), descended(trees, X))


def test_trees_whose_leaves_have_no_byte():
    """Of any number of thresholds; few rows descend them."""
    rng = np.random.default_rng(0)
    thresholds = np.linspace(-1, 1, 9)
    X = rows(rng, 300, thresholds, "f8")
    trees = ensemble(rng, thresholds, n_leaves=[3, 257, 1024], n_bins={1: 30})
    assert CompactTrees.of(trees.arrays()).leaves.dtype == np.uint16
    for n in (300, 3):
        np.testing.assert_array_equal(trees.scores(X[:n], Threads(1)), descended(trees, X[:n]))


def test_large_trees_are_descended():
    rng = np.random.default_rng(0)
    thresholds = np.linspace(-1, 1, 9)
    X = rows(rng, 100, thresholds, "f8")
    trees = ensemble(rng, thresholds, n_leaves=[3, 1025, 2])
    assert CompactTrees.of(trees.arrays()) is None
    np.testing.assert_array_equal(trees.scores(X, Threads(1)), descended(trees, X))


@pytest.mark.parametrize("n_bins", [None, {0: 9, 2: 30}], ids=["numbers", "categories"])
@pytest.mark.parametrize("n_leaves", [LEAVES[:9], [1100, 2, 5]], ids=["ranked", "descended"])
def test_stages(n_leaves, n_bins):
    rng = np.random.default_rng(0)
    thresholds = np.linspace(-1, 1, 9)
    trees = ensemble(rng, thresholds, n_leaves=n_leaves, per_round=3, n_bins=n_bins)
    X = rows_of_categories(rng, 5000, trees, thresholds)
    with Threads(2) as threads:
        for round, F in enumerate(trees.staged(X, threads)):
            np.testing.assert_array_equal(F, descended(trees, X, 0, 3 * (round + 1)))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["u1", "i4", "i8", "?", "f2"])
def test_numbers_of_any_type(dtype, order):
    rng = np.random.default_rng(0)
    trees = ensemble(rng, np.arange(5))
    X = rng.integers(0, 2, (5000, N_FEATURES)).astype(dtype, order=order)
    np.testing.assert_array_equal(trees.scores(X, Threads(1)), descended(trees, X))


def test_whole_numbers_are_predicted_as_their_floats():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 9, (5000, 3))
    y = X[:, 0] > X[:, 1]
    model = GDMCBoostClassifier(n_estimators=3).fit(X.astype("f8"), y)
    expected = model.scores(X.astype("f8"))
    for same in (X.astype("u1"), X, np.asfortranarray(X, "f4")):
        np.testing.assert_array_equal(model.scores(same), expected)
        *_, last = model.staged_scores(same)
        np.testing.assert_array_equal(last, expected)


def test_the_layout_follows_the_trees():
    rng = np.random.default_rng(0)
    trees = ensemble(rng, np.arange(5))
    X = rows(rng, 50, np.arange(5), "f8")
    first = trees.scores(X, Threads(1))
    assert trees._compact is trees._compact
    assert "_compact" not in pickle.loads(pickle.dumps(trees)).__dict__
    trees.rewrite([2 * values for _, values in trees._learners])
    np.testing.assert_array_equal(trees.scores(X, Threads(1)), 2 * first)
