"""sampling="weight": which rows are drawn, what they add, and that nothing else about a training run changes."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import zarr
from numpy.testing import assert_array_equal

import distboost
from distboost import GDMCBoostClassifier, REBELClassifier
from distboost.errors import DataError
from distboost.kernels import gains
from distboost.kernels.sampling import N_BINS
from distboost.rows.sampling import threshold
from distboost.runtime import gathered, tally
from distboost.runtime.base import Allotment
from distboost.runtime.cluster import owners
from distboost.runtime.local import LocalRuntime
from distboost.trees.grower import GrowthLimits, TreeGrower
from distboost.weights.margin import ClassPairs, MarginWeights, Residuals
from distboost.weights.sampled import MAGNITUDES
from tests.algorithms.subjects import SUBJECTS
from tests.runtime.test_rows import place

WEIGHTING = MarginWeights(0.5)
REFUSED = {
    "multiboost": "subsample is 0.4, but MultiBoost",
    "multiboost logistic": "subsample is 0.4, but MultiBoost",
    "structboost": "subsample is 0.4, but StructBoost",
    "structboost lighter": "subsample is 0.4, but StructBoost",
    "rebel similarity": "sampling is 'weight', but weak_learner='similarity'",
    "rebel similarity sign": "sampling is 'weight', but weak_learner='similarity'",
    "rebel similarity one-point": "sampling is 'weight', but weak_learner='similarity'",
}


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 5))
    y = np.digitize(X[:, 0] + X[:, 1] * X[:, 2], [-0.5, 0.5])
    return X, y, rng.integers(0, 4, 900).astype(float)


def limits(fraction, seed=0, **how):
    return GrowthLimits(**{"subsample": fraction, "sampling": "weight", "seed": seed, **how})


def moved(runtime, X, y, weights=None, steps=2, wide=False):
    """Rows after some rounds, whose weights differ, with a grower of whole trees."""
    rows, _ = place(runtime, X, y, weights)
    rows.begin(WEIGHTING)
    grow = TreeGrower(rows, GrowthLimits(max_depth=3))
    for number in range(steps):
        tree = grow(Residuals(WEIGHTING, wide=wide), gains.DIRECTION)
        rows.update([tree.step(np.random.default_rng(number).normal(size=(tree.n_leaves, rows.n_classes)))])
    return rows


def vectors(rows, scale):
    """The statistic of every row (n, K), in units of the histograms, and the rows' weights."""
    found, weights = [], []
    for block in rows.shard.blocks:
        e = np.exp(0.5 * (block.scores - block.scores[np.arange(block.n_rows), block.labels][:, None]))
        e[np.arange(block.n_rows), block.labels] = 0
        V = -e
        V[np.arange(block.n_rows), block.labels] = e.sum(axis=1)
        found.append(V * block.weights[:, None])
        weights.append(block.weights)
    return np.concatenate(found) * np.exp(-scale.shift) * scale.factor, np.concatenate(weights)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_drawn_sums_are_unbiased(problem, wide, weighted):
    """The mean over many seeds of the root's sums is the sum over all rows, within what chance allows."""
    X, y, weights = problem
    with closing(LocalRuntime(1)) as runtime:
        rows = moved(runtime, X, y, weights if weighted else None, wide=wide)
        fraction, sums, drawn = 0.15, [], []
        for seed in range(200):
            grow = TreeGrower(rows, limits(fraction, seed))
            grow.begin(Residuals(WEIGHTING, wide=wide), gains.DIRECTION, search=False)
            sums.append(grow.nodes.sums[0][:3])
            drawn.append(int(grow.nodes.sums[0][3]))
        V, w = vectors(rows, rows.histogram_scale)
        n = int((w > 0).sum())
        sums = np.array(sums, float)
        error = (sums.mean(axis=0) - V.sum(axis=0)) / (sums.std(axis=0) / np.sqrt(len(sums)))
        assert np.abs(error).max() < 3.5
        # As many as are wanted, and the sums vary less than those of rows that are drawn alike.
        assert np.mean(drawn) == pytest.approx(fraction * n, rel=0.02)
        assert sums.var(axis=0).sum() < 0.8 * (V**2).sum() * (1 / fraction - 1)
        rows.close()


def test_rows_are_drawn_by_their_magnitude(problem):
    """Row i is drawn if its random number is below min(1, m_i / T); its numbers are then divided by that."""
    X, y, _ = problem
    with closing(LocalRuntime(2)) as runtime:
        rows = moved(runtime, X, y, wide=True)
        TreeGrower(rows, limits(0.2)).begin(Residuals(WEIGHTING, wide=True), gains.DIRECTION)
        V, _ = vectors(rows, rows.histogram_scale)
        m = np.concatenate([block.kept(MAGNITUDES) for block in rows.shard.blocks])
        bins = np.concatenate([block.bins for block in rows.shard.blocks])
        ratio = m / np.abs(V).max(axis=1)
        np.testing.assert_allclose(ratio, ratio[0], rtol=1e-9)
        counts = np.zeros((N_BINS, 2), np.int64)
        b = (m.view(np.int64) >> 48) - (1023 << 4)
        np.add.at(counts, b, np.stack([np.ones(len(m)), m], axis=1).astype(np.int64))
        T = threshold(counts, 0.2 * len(m))
        assert np.minimum(1, m / T).sum() == pytest.approx(0.2 * len(m), rel=0.01)
        i = np.concatenate([block.first + block.order for block in rows.shard.blocks])
        assert 0 < len(i) < len(m)
        samples = rows.shard.samples.of(rows.shard.blocks)
        found, own = (
            np.concatenate([array[sample.order] for array, sample in zip(arrays, samples, strict=True)])
            for arrays in ([s.kept("statistics")[:, :3] for s in samples], [s.bins for s in samples])
        )
        np.testing.assert_allclose(found, V[i] / np.minimum(1, m / T)[i, None], rtol=1e-9, atol=3)
        assert_array_equal(own, bins[i])
        rows.close()


def test_samples_are_of_the_blocks_that_are_asked_about(problem):
    """As after the loss of a worker, when questions are asked about the rows that it held, and then about all."""
    X, y, weights = problem
    with closing(LocalRuntime(1)) as runtime:
        rows = moved(runtime, X, y, weights)
        TreeGrower(rows, limits(0.3)).begin(Residuals(WEIGHTING), gains.DIRECTION)
        blocks = rows.shard.blocks
        assert len(blocks) > 2
        for asked in (blocks, blocks[1:], blocks[:-1], blocks):
            [sample] = rows.shard.samples.of(asked)
            for name in ("bins", "labels", "weights", "scores"):
                expected = np.concatenate([getattr(block, name)[block.order] for block in asked])
                assert_array_equal(getattr(sample, name)[sample.order], expected)
        rows.close()


@pytest.mark.parametrize("sampling", ["uniform", "weight"])
@pytest.mark.parametrize("fraction", [0.05, 0.5])
def test_leaves_and_steps_are_over_all_rows(problem, fraction, sampling):
    X, y, weights = problem
    with closing(LocalRuntime(2)) as runtime:
        rows = moved(runtime, X, y, weights, wide=True)
        grow = TreeGrower(rows, limits(fraction, max_depth=3, sampling=sampling))
        tree = grow(Residuals(WEIGHTING, wide=True), gains.DIRECTION)
        assert tree.n_leaves > 2
        assert tree.weight == weights.sum()
        V, w = vectors(rows, rows.histogram_scale)
        leaf = np.concatenate([_leaf_of(tree, block) for block in rows.shard.blocks])
        for number in range(tree.n_leaves):
            np.testing.assert_allclose(tree.sums[number], V[leaf == number].sum(axis=0), rtol=1e-9)
            assert tree.mass[number] >= w[leaf == number].sum()
        hits = np.maximum(V, 0).sum()
        assert rows.totals[0] == pytest.approx(hits, rel=1e-9)
        T = rows.sums(ClassPairs(WEIGHTING), tree.leaves)
        real = T.sum(axis=2) - T.sum(axis=1)
        unit = np.exp(rows.histogram_scale.shift - rows.shift_of(ClassPairs(WEIGHTING)))
        np.testing.assert_allclose(real, rows.histogram_scale.real(tree.sums) * unit, rtol=1e-6)
        before = [block.scores.copy() for block in rows.shard.blocks]
        values = np.random.default_rng(1).normal(size=(tree.n_leaves, 3))
        rows.update([tree.step(values)])
        for block, scores in zip(rows.shard.blocks, before, strict=True):
            present = block.present
            own, leaf = leaf[: block.n_rows], leaf[block.n_rows :]
            assert_array_equal(block.scores[present], scores[present] + values[own[present]])
        rows.close()


def _leaf_of(tree, block):
    leaf = np.empty(block.n_rows, int)
    for i, row in enumerate(block.bins):
        node = 0
        while node >= 0:
            left = row[tree.binned.feature[node]] <= tree.binned.bin[node]
            node = (tree.binned.left if left else tree.binned.right)[node]
        leaf[i] = ~node
    return leaf


@pytest.mark.parametrize("sampling", ["uniform", "weight"])
def test_the_risk_of_all_rows_falls_in_every_round(problem, sampling):
    model = GDMCBoostClassifier(n_estimators=30, subsample=0.2, sampling=sampling, calibration=None)
    assert (np.diff(model.fit(*problem).train_loss_) <= 0).all()


# One model, wherever it is trained.

MODELS = {
    "narrow": lambda **how: GDMCBoostClassifier(n_estimators=4, max_depth=3, max_features=0.7, **how),
    "wide": lambda **how: distboost.AdaBoostMMClassifier(n_estimators=4, max_depth=3, **how),
    "class statistics": lambda **how: distboost.GAMBLEClassifier(n_estimators=4, max_leaf_nodes=5, **how),
    "committee": lambda **how: distboost.baselines.OneVsAllAdaBoostClassifier(n_estimators=3, max_depth=2, **how),
}  # fmt: skip
SOME = {"calibration": None, "subsample": 0.3, "sampling": "weight", "random_state": 5}


@pytest.fixture(
    scope="module", params=["narrow", *(pytest.param(m, marks=pytest.mark.soak) for m in [*MODELS][1:])]
)
def trained(request, problem):
    make = MODELS[request.param]
    model = make(n_jobs=1, **SOME).fit(*problem)
    return make, model


def content(model, folder: Path) -> bytes:
    model.save(folder / "model")
    return (folder / "model").read_bytes()


@pytest.fixture
def on_disk(problem, tmp_path):
    """(X, y, weights) in chunks of 50 rows."""
    for name, array in zip("xyw", problem, strict=True):
        chunks = (50, *array.shape[1:])
        zarr.create_array(tmp_path / name, data=array, chunks=chunks)
    return [str(tmp_path / name) for name in "xyw"]


def test_the_model_depends_on_the_rows_drawn(trained, problem):
    make, model = trained
    assert model.digest() == make(n_jobs=2, **SOME).fit(*problem).digest()
    assert model.digest() != make(n_jobs=1, **{**SOME, "random_state": 6}).fit(*problem).digest()
    assert model.digest() != make(n_jobs=1, **{**SOME, "sampling": "uniform"}).fit(*problem).digest()


@pytest.mark.parametrize("waits", [False, True], ids=["at once", "few rows of a node wait"])
def test_same_model_of_chunks_and_streamed_rows(trained, on_disk, problem, monkeypatch, waits):
    make, model = trained
    if waits:
        monkeypatch.setattr(tally, "CACHED_TILES", 0)
        monkeypatch.setattr(gathered, "room_bytes", lambda bins: 2**16)
    assert make(**SOME).fit(*on_disk).digest() == model.digest()
    place = LocalRuntime.place
    few = Allotment(200, 2, None)
    monkeypatch.setattr(LocalRuntime, "place", lambda self, sets, layout, _: place(self, sets, layout, few))
    assert make(**SOME).fit(*on_disk).digest() == model.digest()


def test_same_model_if_histograms_do_not_fit(trained, problem, monkeypatch):
    make, model = trained
    place = LocalRuntime.place
    monkeypatch.setattr(
        LocalRuntime,
        "place",
        lambda self, sets, layout, _: place(self, sets, layout._replace(window_bytes=1)),
    )
    assert make(**SOME).fit(*problem).digest() == model.digest()


@pytest.mark.parametrize("exchanged", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_same_model_on_workers(trained, on_disk, clients, monkeypatch, exchanged):
    make, model = trained
    monkeypatch.setattr(owners, "exchange_pays", lambda n_bytes, n_workers: exchanged)
    found = make(**SOME)
    found.client = clients[3]
    assert found.fit(*on_disk).digest() == model.digest()


def test_a_resumed_training_draws_the_same_rows(trained, problem):
    make, model = trained
    rounds = model.n_estimators
    part = make(**SOME).set_params(n_estimators=2).fit(*problem)
    part.set_params(n_estimators=rounds).fit(*problem, resume=True)
    assert part.digest() == model.digest()
    with pytest.raises(DataError, match=r"made with sampling='weight', not 'uniform'"):
        part.set_params(sampling="uniform").fit(*problem, resume=True)
    uniform = make(**{**SOME, "sampling": "uniform"}).set_params(n_estimators=2).fit(*problem)
    with pytest.raises(DataError, match=r"made with sampling='uniform', not 'weight'"):
        uniform.set_params(sampling="weight").fit(*problem, resume=True)


@pytest.mark.parametrize("fraction", [0.006, 0.3])
def test_blocks_without_a_drawn_row_are_not_read_for_histograms(problem, fraction, tmp_path):
    """Streamed blocks are read once for the leaf sums and once for the update; for the levels, only if they have drawn rows."""
    X, y, weights = problem
    found, n_drawn = [], []
    for resident in (900, 200):
        runtime = LocalRuntime(2)
        placed, few = runtime.place, Allotment(resident, 2, str(tmp_path))
        runtime.place = lambda sets, layout, p=placed, few=few: p(sets, layout, few)
        rows, _ = place(runtime, X, y, weights)
        rows.begin(WEIGHTING)
        streamed = rows.shard.held.streamed
        size = {key: block._read.n_rows for key, block in streamed.items()}
        grow, statistic = TreeGrower(rows, limits(fraction, max_depth=3)), Residuals(WEIGHTING)
        for _ in range(3):
            asked, read = rows.calls.copy(), rows.passes().get("streamed", 0)
            tree = grow(statistic, gains.DIRECTION, sums=False)
            T = rows.sums(ClassPairs(WEIGHTING), tree.leaves)
            drawn = [size[key] for key, block in streamed.items() if block.spans[0, 1]]
            rows.update([tree.step(T.sum(axis=2) - T.sum(axis=1))], next_root=grow.next_root(statistic))
            asked = rows.calls - asked
            expected = (asked["magnitudes"] + 2) * sum(size.values()) + asked["histogram"] * sum(drawn)
            assert rows.passes().get("streamed", 0) - read == expected
            found.append((T, *tree.binned))
            n_drawn.append(len(drawn))
        rows.close()
        runtime.close()
    for ours, theirs in zip(found[:3], found[3:], strict=True):
        for one, other in zip(ours, theirs, strict=True):
            assert_array_equal(one, other)
    assert n_drawn[3] < len(size) if fraction < 0.1 else n_drawn[3] == len(size)


# Files, and what is refused.


def test_the_header_names_only_what_differs_from_the_default(problem, tmp_path):
    X, y, _ = problem
    plain = GDMCBoostClassifier(calibration=None, n_estimators=1, subsample=0.5).fit(X, y)
    assert b"sampling" not in content(plain, tmp_path)
    weighted = GDMCBoostClassifier(calibration=None, n_estimators=1, subsample=0.5, sampling="weight").fit(
        X, y
    )
    assert b"sampling" in content(weighted, tmp_path)
    assert distboost.load(tmp_path / "model").sampling == "weight"


def test_all_rows_by_weight_is_refused(problem):
    X, y, _ = problem
    with pytest.raises(ValueError, match=r"sampling='weight' needs a subsample below 1, but subsample is 1"):
        GDMCBoostClassifier(calibration=None, sampling="weight").fit(X, y)


@pytest.mark.parametrize("subject", SUBJECTS, ids=str)
def test_algorithms(subject, problem):
    """Each learns from rows drawn by weight, or says what else to use."""
    X, y, _ = problem
    X, y = X[:300], np.minimum(y[:300] + 2 * (X[:300, 3] > 1), 3)  # 4 classes
    model = subject.make(n_estimators=3, subsample=0.4, sampling="weight")
    if str(subject) in REFUSED:
        with pytest.raises(DataError, match=REFUSED[str(subject)]):
            model.fit(X, y)
        return
    model.fit(X, y)
    uniform = subject.make(n_estimators=3, subsample=0.4).fit(X, y)
    assert model.digest() != uniform.digest()
    assert model.train_loss_[-1] < 1.5 * uniform.train_loss_[0]


def test_similarities_name_the_remedy(problem):
    X, y, _ = problem
    model = REBELClassifier(calibration=None, weak_learner="similarity", subsample=0.5, sampling="weight")
    with pytest.raises(DataError, match="Pass sampling='uniform', or weak_learner='tree'"):
        model.fit(X, y)
