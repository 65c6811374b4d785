"""The default probabilities: a temperature from the evaluation rows, or from rows that a second training leaves out."""

from __future__ import annotations

import threading
from functools import partial

import numpy as np
import pytest
import zarr
from scipy.special import softmax
from sklearn.metrics import log_loss

import distboost
from distboost import AdaBoostMMClassifier, GDMCBoostClassifier, REBELClassifier
from distboost.baselines import MultiBoostClassifier
from distboost.data import ingest
from distboost.data.blocks import BinnedRows, BinnedSet
from distboost.data.dataset import RawDataset
from distboost.data.division import JUDGE, LEARN, ByContent, divided
from distboost.errors import DataError
from distboost.estimators.parameters import algorithm_of, growth_limits
from distboost.kernels.digest import uniforms_of
from distboost.probabilities import second_training
from distboost.probabilities.contents import contents_of, keys_of, representatives
from distboost.probabilities.methods import fit_calibration
from distboost.runtime.local import LocalRuntime
from distboost.training import memory_plan
from distboost.training.training import Training


def make(**parameters):
    return GDMCBoostClassifier(**{"n_estimators": 10, "max_depth": 3, **parameters})


@pytest.fixture(scope="module")
def noisy(blobs):
    """Rows to learn from, then rows to measure on; a fifth of the labels is drawn at random."""
    X, y = blobs
    rng = np.random.default_rng(3)
    y = np.where(rng.random(len(y)) < 0.2, rng.integers(0, 3, len(y)), y)
    return X[:160], y[:160], X[160:], y[160:]


@pytest.fixture
def many(monkeypatch):
    """All rows count as many: fewer rows, and fewer rounds, are enough."""
    monkeypatch.setattr(second_training, "MANY_ROWS", 100)


# What it changes


def test_scores_are_those_without_it(noisy, assert_same_model):
    X, y, X_test, y_test = noisy
    plain, model = make(calibration=None).fit(X, y), make().fit(X, y)
    assert_same_model(plain, model)
    np.testing.assert_array_equal(plain.scores(X_test), model.scores(X_test))
    assert plain.calibration_ is None
    T = model.calibration_.temperature
    expected = softmax(model.scores(X_test) / T, axis=1)
    np.testing.assert_allclose(model.predict_proba(X_test), expected, rtol=1e-14)
    assert log_loss(y_test, model.predict_proba(X_test)) < log_loss(y_test, plain.predict_proba(X_test))


def test_a_file_without_it_is_as_before(noisy, saved):
    content = saved(make(calibration=None).fit(*noisy[:2]))
    assert content.count(b'\\"calibration\\": ') == 1
    assert b'\\"calibration\\": null' in content  # the parameter: the default is not stored


@pytest.mark.parametrize("seed", range(3))
def test_the_estimate_is_near_the_best_temperature(seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, 3000)
    X = rng.normal(size=(3000, 5)) + np.eye(4, 5)[y]
    model = make(n_estimators=30).fit(X[:1500], y[:1500])
    best = model.calibrate(X[1500:], y[1500:]).calibration_.temperature
    model.fit(X[:1500], y[:1500])
    assert best / 1.4 < model.calibration_.temperature < best * 1.4


def test_few_of_many_rows_are_enough(many):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 6000)
    X = rng.normal(size=(6000, 5)) + np.eye(4, 5)[y]
    model = make(n_estimators=30).fit(X[:3000], y[:3000])
    found = model.calibration_
    best = model.calibrate(X[3000:], y[3000:]).calibration_.temperature
    assert best / 1.4 < found.temperature < best * 1.4


@pytest.mark.parametrize("method", ["temperature", "vector"])
def test_by_the_evaluation_rows(method, noisy):
    X, y, X_test, y_test = noisy
    model = make(calibration=method).fit(X, y, eval_set=(X_test, y_test))
    assert model.calibration_ == model.calibrate(X_test, y_test, method=method).calibration_


@pytest.mark.parametrize(
    "estimator",
    [
        lambda: make(n_estimators=60, early_stopping_rounds=3),
        lambda: make(score_dtype="float32"),
        lambda: MultiBoostClassifier(n_estimators=3),
        lambda: AdaBoostMMClassifier(n_estimators=5, strategy="os-exponential", edge=0.1),
        lambda: REBELClassifier(n_estimators=3, weak_learner="similarity"),
    ],
    ids=["early stopping", "float32", "corrective", "votes", "similarities"],
)
def test_the_kept_rounds_are_calibrated_by_the_evaluation_rows(estimator, noisy):
    X, y, X_test, y_test = (np.nan_to_num(part) for part in noisy)
    model = estimator().fit(X, y, eval_set=(X_test, y_test))
    F = model.scores(X_test)
    expected = fit_calibration("temperature", lambda sums: sums(F, y_test.astype(int), np.ones(len(F))), 3)
    assert model.calibration_.temperature == pytest.approx(expected.temperature, rel=1e-5)


# The same everywhere


PLAIN = partial(make, n_estimators=5)


@pytest.mark.parametrize(
    ("estimator", "shares"),
    [
        (PLAIN, "few"),
        (lambda: MultiBoostClassifier(n_estimators=2), "few"),
        (PLAIN, "many"),
        (lambda: make(n_estimators=10, subsample=0.7, calibration="vector"), "many"),
    ],
    ids=["few, plain", "few, corrective", "many, plain", "many, several"],
)
def test_one_calibration_on_any_runtime(estimator, shares, noisy, clients, tmp_path, request, monkeypatch):
    if shares == "many":
        request.getfixturevalue("many")
    monkeypatch.setattr(ingest, "BLOCK_ROWS", 40)
    X, y = noisy[:2]
    expected = estimator().fit(X, y).digest()
    for rows in (7, 64):
        urls = [str(tmp_path / f"{name}{rows}") for name in "xy"]
        for url, array in zip(urls, (X, y), strict=True):
            zarr.create_array(url, data=array, chunks=(rows, *array.shape[1:]))
        assert estimator().fit(*urls).digest() == expected
    model = estimator()
    model.client = clients[3 if shares == "few" else 2]
    assert model.fit(*urls).digest() == expected


@pytest.mark.parametrize(
    ("with_evaluation", "method", "at_once"),
    [(False, "vector", 1), (False, "auto", 2), (True, "auto", 1)],
)
def test_streamed(with_evaluation, method, at_once, noisy, monkeypatch):
    X, y = (np.concatenate([part] * 10) for part in noisy[:2])
    evaluation = noisy[2:]
    monkeypatch.setattr(ingest, "BLOCK_ROWS", 37 // at_once)
    monkeypatch.setattr(memory_plan, "PROCESS_BYTES", 0)
    monkeypatch.setattr(memory_plan.MemoryPlan, "for_ingest", None)
    monkeypatch.setattr(RawDataset, "least_ingest", lambda *arguments: 0)
    eval_set = tuple(evaluation) if with_evaluation else None
    small = {"n_estimators": 4, "max_bins": 16, "calibration": method}
    near = make(**small).fit(X, y, eval_set=eval_set)
    sums = sum(part.n_bytes for part in near.memory_plan_.parts[1:-2])
    task = memory_plan.Task(algorithm_of(near, 3), growth_limits(near), len(X), 4, 16, 8, False, n_rounds=4)
    limit = sums + 2 * task.streamed_block_bytes
    if at_once == 2:  # there must be room for the places of all rows, too
        limit = sums + 2 * task.pair_bytes + 4 * len(X)
    placed = []
    place = LocalRuntime.place
    monkeypatch.setattr(LocalRuntime, "place", lambda *given: placed.append(given) or place(*given))
    far = make(**small, memory_limit=limit).fit(X, y, eval_set=eval_set)
    assert far.memory_plan_.streamed > 1000
    assert far.memory_plan_.at_once == at_once
    for _, sets, _, allotment in placed:
        assert allotment.resident < 500
        assert [part.at_once for part in sets] == [at_once] * len(sets)
    assert len(placed) == 1 + (not with_evaluation)
    assert far.digest() == near.digest()


@pytest.mark.parametrize("method", ["auto", "vector"])
def test_resumed(method, noisy, tmp_path):
    X, y = noisy[:2]
    whole = make(calibration=method).fit(X, y)
    model = make(n_estimators=4, calibration=method, checkpoint=tmp_path / "c").fit(X, y)
    assert distboost.load(tmp_path / "c").calibration_ == model.calibration_
    again = make(calibration=method, checkpoint=tmp_path / "c").fit(X, y, resume=True)
    assert again.digest() == whole.digest()
    assert model.set_params(n_estimators=10, calibration=None).fit(X, y, resume=True).calibration_ is None


def test_a_checkpoint_in_the_middle_has_none(noisy, tmp_path):
    def stop(progress):
        if progress.round == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make(checkpoint=tmp_path / "c", checkpoint_every=2, callbacks=[stop]).fit(*noisy[:2])
    assert distboost.load(tmp_path / "c").calibration_ is None
    again = make(checkpoint=tmp_path / "c").fit(*noisy[:2], resume=True)
    assert again.digest() == make().fit(*noisy[:2]).digest()


@pytest.mark.parametrize(("shares", "n_rounds"), [("few", 10), ("few", 30), ("many", 10)])
def test_a_row_of_weight_two_is_two_rows(shares, n_rounds, noisy, request):
    if shares == "many":
        request.getfixturevalue("many")
    X, y = noisy[:2]
    w = np.random.default_rng(0).integers(0, 8, len(y))
    estimator = partial(make, n_estimators=n_rounds, calibration="vector")
    weighted = estimator().fit(X, y, sample_weight=w)
    repeated = estimator().fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    assert weighted.calibration_ == repeated.calibration_


# Rows that repeat


def discrete(n, n_features, seed=0):
    """Rows of features with three values, and noisy labels of three classes."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (n, n_features)).astype(float)
    F = X @ np.random.default_rng(0).normal(size=(n_features, 3)) / np.sqrt(n_features)
    return X, (F + rng.gumbel(size=F.shape) / 2).argmax(axis=1)


@pytest.mark.parametrize(("n", "n_features"), [(1000, 2), (4000, 5), (3000, 8)])
def test_rows_that_repeat(n, n_features):
    X, y = discrete(n, n_features)
    X_test, y_test = discrete(4000, n_features, seed=1)
    model = make(n_estimators=30, max_depth=6).fit(X, y)
    loss = log_loss(y_test, model.predict_proba(X_test))
    model.calibrate(X_test, y_test)
    assert loss < 1.02 * log_loss(y_test, model.predict_proba(X_test))


def test_few_contents_are_not_left_out(monkeypatch):
    monkeypatch.setattr(second_training, "by_content", None)
    X, y = np.repeat(np.arange(4.0), 10)[:, None], np.repeat(np.arange(4), 10)
    model = make().fit(X, y)
    assert model.predict_proba(X)[np.arange(40), y].min() > 0.9


@pytest.mark.parametrize("weights", [np.full(300, 50.0), np.full(300, 0.3)], ids=["whole", "others"])
def test_weights_alone_repeat_no_rows(weights, noisy):
    """All labels of a content are equal, and nothing is to be learned from copies."""
    X, y = noisy[0], noisy[1]
    weighted = make().fit(X, y, sample_weight=weights[: len(y)])
    T = make().fit(X, y).calibration_.temperature
    assert weighted.calibration_.temperature == pytest.approx(T, rel=0.1)  # but for the smoothing


def test_repeated_rows_give_one_temperature_on_any_runtime(clients, tmp_path, monkeypatch):
    X, y = discrete(600, 4)
    expected = make().fit(X, y).digest()
    monkeypatch.setattr(ingest, "BLOCK_ROWS", 40)
    assert make().fit(X, y).digest() == expected
    urls = [str(tmp_path / name) for name in "xy"]
    for url, array in zip(urls, (X, y), strict=True):
        zarr.create_array(url, data=array, chunks=(64, *array.shape[1:]))
    model = make()
    model.client = clients[2]
    assert model.fit(*urls).digest() == expected
    order = np.random.default_rng(0).permutation(len(y))
    assert make().fit(X[order], y[order]).calibration_ == make().fit(X, y).calibration_


@pytest.mark.parametrize(
    "estimator", [make, lambda: REBELClassifier(n_estimators=3, weak_learner="similarity")]
)
def test_a_repeated_row_of_weight_two_is_two_rows(estimator):
    X, y = discrete(500, 3)
    w = np.random.default_rng(0).integers(0, 5, len(y))
    weighted = estimator().fit(X, y, sample_weight=w)
    repeated = estimator().fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    if estimator is make:  # similarities draw rows by number
        assert weighted.calibration_ == repeated.calibration_
    assert weighted.calibration_ is not None


@pytest.mark.parametrize("step", [1, 13, 500])
@pytest.mark.parametrize("most", [5, 20, 1000])
def test_contents_do_not_depend_on_blocks(step, most):
    rng = np.random.default_rng(0)
    bins, labels = rng.integers(0, 4, (500, 3)).astype(np.uint8), rng.integers(0, 4, 500).astype(np.int32)
    weights = rng.integers(0, 3, 500) / 2
    work = LocalRuntime(2)
    try:
        found = contents_of(part_of(bins, labels, weights, step), most, work)
    finally:
        work.close()
    kept = weights > 0
    keys = keys_of(bins)
    entries = sorted(set(zip(keys[kept], labels[kept], strict=True)))
    contents = np.array([key for key, _ in entries])
    if most < len(entries):  # the first contents, whole
        entries = [entry for entry in entries if entry[0] < contents[most]]
    assert entries == list(zip(found.keys, found.labels, strict=True))
    assert 0 < len(entries) <= most
    for n, (key, label) in enumerate(entries):
        same = (keys == key) & (labels == label) & kept
        assert (bins[same] == found.bins[n]).all()
        assert (found.n_rows[n], found.weights[n]) == (same.sum(), weights[same].sum())
    counts = np.unique(found.keys, return_counts=True)[1]
    assert found.mixed == np.mean(counts > 1)
    assert found.is_first.sum() == len(counts)


def test_a_content_with_many_labels_is_whole():
    bins, labels = np.zeros((30, 2), np.uint8), np.arange(30, dtype=np.int32)
    work = LocalRuntime(1)
    try:
        assert len(contents_of(part_of(bins, labels, np.ones(30), 7), 5, work).labels) == 30
    finally:
        work.close()


def test_a_sample_has_its_share_of_each_side():
    bins = np.random.default_rng(0).integers(0, 256, (4000, 3)).astype(np.uint8)
    first = np.argsort(keys_of(bins))[:1000]
    assert 450 < (uniforms_of(bins[first]) < 0.5).sum() < 550


def test_representatives_have_their_bins():
    edges = [np.array([-1.0, 0.5]), np.array([]), np.array([3.0])]
    X = representatives(np.array([[0, 0, 0], [1, 0, 1], [2, 1, 2], [3, 0, 0]], np.uint8), edges)
    np.testing.assert_array_equal(np.searchsorted(edges[0], X[:3, 0]), [0, 1, 2])
    np.testing.assert_array_equal(np.searchsorted(edges[2], X[:2, 2]), [0, 1])
    np.testing.assert_array_equal(np.isnan(X), np.array([[0, 0, 0], [0, 0, 0], [0, 1, 1], [1, 0, 0]]))


# Few rows


@pytest.mark.parametrize("flipped", [0.0, 0.2])
def test_rows_that_were_learned_are_further_apart(flipped):
    """The spread is that of rows learned from in both trainings: else T would be far too large where labels are wrong."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 6000)
    X = rng.normal(size=(6000, 15)) + np.eye(4, 15)[y]
    y = np.where(rng.random(6000) < flipped, rng.integers(0, 4, 6000), y)
    model = make(n_estimators=60, max_depth=6).fit(X[:1200], y[:1200])
    loss = log_loss(y[1200:], model.predict_proba(X[1200:]))
    model.calibrate(X[1200:], y[1200:])
    assert loss < 1.01 * log_loss(y[1200:], model.predict_proba(X[1200:]))


@pytest.mark.parametrize("seed", range(3))
def test_half_of_a_hundred_rows_are_enough(seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, 3000)
    X = rng.normal(size=(3000, 4)) + 2 * np.eye(3, 4)[y]
    model = make(n_estimators=50).fit(X[:100], y[:100])
    loss = log_loss(y[100:], model.predict_proba(X[100:]))
    model.calibrate(X[100:], y[100:])
    assert loss < 1.05 * log_loss(y[100:], model.predict_proba(X[100:]))


@pytest.fixture
def runs(monkeypatch):
    """The rounds and the rows of each run."""
    found, run = [], Training.run

    def counted(training, rows):
        found.append((training.schedule.n_rounds, rows.counts[0].n_rows))
        return run(training, rows)

    monkeypatch.setattr(Training, "run", counted)
    return found


@pytest.mark.parametrize("few", [True, False])
def test_a_second_run_has_two_thirds_of_the_rows_and_a_third_of_the_rounds(few, noisy, runs, monkeypatch):
    if not few:
        monkeypatch.setattr(second_training, "FEW_ROWS", 0)
    make(n_estimators=60).fit(*noisy[:2])
    (n_rounds, n_rows), *second = runs
    assert [rounds for rounds, _ in second] == [n_rounds // 3] * (3 if few else 1)
    assert all(0.55 * n_rows < learned < 0.8 * n_rows for _, learned in second)
    if few:  # each row is left out about once
        assert 0.9 * n_rows < sum(n_rows - learned for _, learned in second) < 1.1 * n_rows


@pytest.mark.parametrize("n_rounds", [2, 20])
def test_all_classes_are_learned(n_rounds):
    X, y = np.arange(30.0)[:, None], np.arange(30) % 10
    y[0] = 77  # one row
    model = make(n_estimators=n_rounds).fit(X, y)
    assert model.calibration_ is not None
    assert np.isfinite(model.predict_proba(X)).all()


def test_too_few_rows():
    X, y = [[0.0], [1.0]], [0, 1]
    assert make(n_estimators=2).fit(X, y).calibration_ is None
    with pytest.raises(
        DataError, match="needs rows to leave out of a second training, but there are only 2 rows"
    ):
        make(n_estimators=2, calibration="temperature").fit(X, y)


# The division


def part_of(bins, labels, weights, step):
    """A set of blocks of `step` rows."""
    cuts = range(0, len(labels), step)
    calls = [(bins[a : a + step], labels[a : a + step], weights[a : a + step], a) for a in cuts]
    return BinnedSet(lambda b, y, w, a: BinnedRows(a, b, y, w), calls, [len(call[1]) for call in calls])


def rows_of(part):
    blocks = [part.function(*call) for call in part.calls]
    assert [len(block.labels) for block in blocks] == part.sizes
    numbers = np.concatenate([block.first + np.arange(len(block.labels)) for block in blocks])
    return numbers, *(
        np.concatenate([getattr(b, name) for b in blocks]) for name in ("bins", "labels", "weights")
    )


@pytest.mark.parametrize("step", [1, 13, 500])
def test_sides_do_not_depend_on_blocks(step):
    rng = np.random.default_rng(0)
    bins, labels = rng.integers(0, 9, (500, 3)).astype(np.uint8), rng.integers(0, 4, 500).astype(np.int32)
    weights = rng.integers(0, 3, 500).astype(float)
    side = ByContent(0.5, 0.25, only_learn=(2,))
    work = LocalRuntime(2)
    try:
        part = part_of(bins, labels, weights, step)
        found = divided(part, [side] * len(part.calls), 4, work)
    finally:
        work.close()
    u = uniforms_of(bins)
    learn = (u < 0.5) | (labels == 2)
    judge = (u >= 0.75) & (labels != 2)
    for part, counts, wanted in ((found.learn, found.n_learn, learn), (found.judge, found.n_judge, judge)):
        wanted = wanted & (weights > 0)
        numbers, *arrays = rows_of(part)
        np.testing.assert_array_equal(numbers, np.arange(wanted.sum()))
        for array, whole in zip(arrays, (bins, labels, weights), strict=True):
            np.testing.assert_array_equal(array, whole[wanted])
        np.testing.assert_array_equal(counts, np.bincount(labels[wanted], minlength=4))
    assert found.n_rows == (learn | judge)[weights > 0].sum()
    np.testing.assert_array_equal(side(part_rows := BinnedRows(0, bins, labels, weights)) == LEARN, learn)
    np.testing.assert_array_equal(side(part_rows) == JUDGE, judge)


def test_uniform_numbers_follow_from_the_content():
    rng = np.random.default_rng(0)
    bins = rng.integers(0, 256, (4000, 3)).astype(np.uint8)
    u = uniforms_of(bins)
    order = rng.permutation(4000)
    np.testing.assert_array_equal(uniforms_of(bins[order]), u[order])
    assert 0 <= u.min() < u.max() < 1
    np.testing.assert_allclose(np.histogram(u, 10, (0, 1))[0], 400, atol=80)
    assert len(np.unique(uniforms_of(bins[:9]))) == len(np.unique(bins[:9], axis=0))


def test_the_second_training_is_of_the_kept_rounds(noisy, runs):
    X, y, X_test, y_test = noisy
    make(calibration=None).fit(X, y)
    make(callbacks=[lambda progress: progress.round == 7]).fit(X, y)
    make().fit(X, y, eval_set=(X_test, y_test))  # which needs none
    assert [rounds for rounds, _ in runs] == [10, 10, 7, 10]


def test_the_second_training_has_an_algorithm_of_its_own(noisy, monkeypatch):
    """That of the run may have changed from round to round."""
    found, run = [], Training.run
    monkeypatch.setattr(
        Training,
        "run",
        lambda training, rows: found.append(training.problem.algorithm) or run(training, rows),
    )
    make().fit(*noisy[:2])
    assert len(found) == 2
    assert found[0] is not found[1]


# Beside the first run


@pytest.fixture
def three_cores(monkeypatch):
    """A first run on one thread leaves others idle, whatever the machine."""
    monkeypatch.setattr("distboost.runtime.local.available_cores", lambda: 3)
    monkeypatch.setattr("distboost.threads.ENTRIES_PER_THREAD", 10**6)
    monkeypatch.setattr("distboost.estimators.fitting.BESIDE_VALUES", 0)


@pytest.mark.parametrize("n_estimators", [10, 40])
@pytest.mark.parametrize("last", [None, 7], ids=["all rounds", "ended by a callback"])
def test_it_is_the_same_beside_the_first_run_and_after_it(noisy, n_estimators, last, three_cores):
    ends = [lambda progress: progress.round == last]
    after, beside = (
        make(n_estimators=n_estimators, callbacks=ends, n_jobs=n_jobs).fit(*noisy[:2]) for n_jobs in (1, 3)
    )
    assert beside.digest() == after.digest()
    assert beside.calibration_ == after.calibration_


def test_both_runs_are_under_way_together(noisy, three_cores, monkeypatch):
    together, run = threading.Barrier(2, timeout=20), Training.run

    def met(training, rows):
        together.wait()
        return run(training, rows)

    monkeypatch.setattr(Training, "run", met)
    assert make(n_jobs=3).fit(*noisy[:2]).calibration_ is not None


def test_an_interrupt_ends_both_runs(noisy, three_cores):
    def interrupted(progress):
        raise KeyboardInterrupt

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        make(n_estimators=100_000, callbacks=[interrupted], n_jobs=3).fit(*noisy[:2])
    assert threading.active_count() == before
