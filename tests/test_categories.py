"""Features with categories, from the raw values to the model: what is learned, what is stored, and what is refused."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import dask.array as da
import numpy as np
import pytest
import zarr
from click.testing import CliRunner

import distboost
from distboost import CDMCBoostClassifier, GAMBLEClassifier, GDMCBoostClassifier
from distboost.active import QueryByCommittee
from distboost.baselines import OneVsAllAdaBoostClassifier
from distboost.cli import main
from distboost.data import categories as module
from distboost.data.categories import Categories, count_values
from distboost.errors import DataError, LimitError, ModelFormatError
from distboost.io.files import decoded, encoded
from distboost.rows.exact import DIGIT_BITS, LOWEST
from distboost.runtime.cluster import owners

N = 1500
CATEGORICAL = [0, 2]

ESTIMATORS = {
    "direction": lambda: GDMCBoostClassifier(
        calibration=None, n_estimators=6, max_depth=4, categorical_features=CATEGORICAL
    ),
    "sampled": lambda: GDMCBoostClassifier(
        n_estimators=6,
        max_leaf_nodes=9,
        subsample=0.6,
        max_features=0.7,
        max_bins=20,
        random_state=3,
        categorical_features=CATEGORICAL,
    ),
    "by weight": lambda: GDMCBoostClassifier(
        calibration=None,
        n_estimators=6,
        loss="softmax",
        leaf="newton",
        subsample=0.4,
        sampling="weight",
        statistic_bits=None,
        categorical_features=CATEGORICAL,
    ),
    "compressed": lambda: GDMCBoostClassifier(
        calibration=None, n_estimators=6, sketch=2, statistic_bits=6, categorical_features=CATEGORICAL
    ),
    "gamble": lambda: GAMBLEClassifier(
        calibration=None, n_estimators=6, class_weight="balanced", categorical_features=CATEGORICAL
    ),
}


@pytest.fixture(scope="module")
def data():
    """(X, y, weights, (X, y)): 45 categories, of which some are rare; a number; 9 categories; another number."""
    rng = np.random.default_rng(0)
    first = np.minimum(rng.geometric(0.07, N), 45) * 11.0 - 100
    second, number = rng.integers(0, 9, N), rng.normal(size=N)
    y = (
        rng.integers(0, 4, 60)[first.astype(int) // 11 + 10] + rng.permutation(9)[second] // 3 + (number > 0)
    ) % 4
    X = np.column_stack([first, number, second, rng.normal(size=N)]).astype(np.float32)
    X[rng.random(X.shape) < 0.03] = np.nan
    y = np.array(["ash", "birch", "cedar", "elm"])[y]
    return X, y, rng.integers(0, 3, N).astype(float), (X[:300], y[:300])


def file_of(folder: Path, model) -> bytes:
    model.save(folder / "model")
    return (folder / "model").read_bytes()


def trained(folder: Path, make, client, X, y, weights, evaluation) -> bytes:
    model = make()
    model.client = client
    return file_of(folder, model.fit(X, y, weights, eval_set=evaluation))


@pytest.fixture(scope="module")
def expected(data, tmp_path_factory):
    """Model files of the same trainings on numpy arrays, in this process, with one thread."""
    folder = tmp_path_factory.mktemp("expected")
    return {
        name: trained(folder, lambda make=make: make().set_params(n_jobs=1), None, *data)
        for name, make in ESTIMATORS.items()
    }


# What is learned.


def forty_categories(n=6000):
    """40 categories in random order, three classes."""
    rng = np.random.default_rng(0)
    of_category = rng.permutation(40) % 3
    x = rng.integers(0, 40, n)
    return x[:, None].astype(float), of_category[x]


@pytest.mark.parametrize("estimator", [GDMCBoostClassifier, GAMBLEClassifier, OneVsAllAdaBoostClassifier])
def test_categories_in_random_order(estimator):
    """A few splits part what hundreds of thresholds do not."""
    X, y = forty_categories()
    size = {"max_leaf_nodes": 4} if estimator is GAMBLEClassifier else {"max_depth": 2}
    model = estimator(n_estimators=8, calibration=None, **size)
    as_numbers = model.fit(X[:4000], y[:4000]).score(X[4000:], y[4000:])
    model.set_params(categorical_features=[0])
    assert model.fit(X[:4000], y[:4000]).score(X[4000:], y[4000:]) >= 0.99 > 0.9 > as_numbers


def test_weights_are_repeated_rows(tmp_path):
    """Also of categories that have ten rows only as repeated."""
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.geometric(0.15, 400), rng.integers(0, 6, 400)]).astype(float)
    y, w = rng.integers(0, 3, 400), rng.integers(0, 4, 400)
    model = GDMCBoostClassifier(n_estimators=5, calibration=None, max_bins=12, categorical_features=[0, 1])
    weighted = file_of(tmp_path, model.fit(X, y, w.astype(float)))
    assert file_of(tmp_path, model.fit(np.repeat(X, w, axis=0), np.repeat(y, w))) == weighted


def test_the_names_of_categories_do_not_matter():
    """Scores are the same for other numbers, in the same order."""
    rng = np.random.default_rng(2)
    X, y = rng.integers(0, 12, (600, 2)).astype(float), rng.integers(0, 3, 600)
    model = GDMCBoostClassifier(n_estimators=4, calibration=None, categorical_features=[0, 1])
    scores = model.fit(X, y).scores(X)
    others = np.sort(rng.choice(10**6, 12, replace=False) - 5e5)[X.astype(int)]
    np.testing.assert_array_equal(model.fit(others, y).scores(others), scores)


def test_unknown_and_rare_categories_go_with_missing_values():
    rng = np.random.default_rng(3)
    x = rng.integers(0, 5, 500).astype(float)
    x[:9], x[9:60] = 99, np.nan
    y = np.where(np.isnan(x) | (x == 99), 2, x % 2)
    model = GDMCBoostClassifier(n_estimators=3, max_depth=1, calibration=None, categorical_features=[0])
    model.fit(x[:, None], y)
    missing, unknown, rare, known = model.scores(np.array([[np.nan], [1e9], [99], [0]]))
    np.testing.assert_array_equal(unknown, missing)
    np.testing.assert_array_equal(rare, missing)
    assert (known != missing).any()


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.float32, np.float64])
def test_categories_of_any_number_type(dtype, tmp_path):
    rng = np.random.default_rng(4)
    X, y = rng.integers(0, 100, (500, 1)), rng.integers(0, 3, 500)
    model = GDMCBoostClassifier(n_estimators=3, calibration=None, max_bins=40, categorical_features=[0])
    expected = file_of(tmp_path, model.fit(X.astype(float), y))
    scores = model.scores(X.astype(float))
    assert file_of(tmp_path, model.fit(X.astype(dtype), y)) == expected
    np.testing.assert_array_equal(model.scores(X.astype(dtype)), scores)


# Bins.


def test_the_rarest_categories_share_a_bin():
    counts = {5.0: 3, -1.0: 10, 2.0: 3, 7.0: 9, 8.0: 1}
    found = Categories.of(counts, 4)
    assert found.values.tolist() == [-1, 2, 5, 7, 8]
    assert found.bins.tolist() == [0, 1, 3, 2, 3]  # of 2 and 5, which are equally rare, the lower has its own
    assert Categories.of(counts, 5).bins.tolist() == [0, 1, 2, 3, 4]


def test_codes():
    found = Categories(np.array([-1.0, 2.5, 7.0]), np.array([1, 0, 1], np.uint8))
    np.testing.assert_array_equal(
        found.codes(np.array([7, 2.5, np.nan, 3, -1, 1e9, -1e9])), [1, 0, np.nan, np.nan, 1, np.nan, np.nan]
    )


@pytest.mark.parametrize("scale", [1.0, 2.0**-1060, 2.0**900])
def test_counts_are_exact(scale):
    """In any parts, whatever the weights."""
    rng = np.random.default_rng(5)
    x, w = (
        rng.integers(0, 4, 1000).astype(float),
        rng.random(1000) * 10.0 ** rng.integers(-9, 9, 1000) * scale,
    )
    x[::7], w[::5] = np.nan, 0
    whole = count_values(x, w)
    parts: module.Counts = {}
    for rows in np.array_split(np.arange(1000), 7):
        module.merge_counts(parts, count_values(x[rows], w[rows]), 0, "X")
    assert parts == whole
    for value, total in whole.items():
        expected = [Fraction(one) / Fraction(2) ** (DIGIT_BITS * LOWEST) for one in w[x == value].tolist()]
        assert total == sum(expected)


def test_too_many_categories(monkeypatch):
    monkeypatch.setattr(module, "MOST_CATEGORIES", 40)
    X = np.arange(100.0)[:, None] % 41
    with pytest.raises(LimitError, match=r"feature 0 of X has more than 40 categories.*categorical_features"):
        GDMCBoostClassifier(categorical_features=[0]).fit(X, np.arange(100) % 2)


# Wherever and however the model is trained.


@pytest.mark.parametrize("name", ESTIMATORS)
def test_workers(name, data, expected, clients, tmp_path):
    assert trained(tmp_path, ESTIMATORS[name], clients[3], *data) == expected[name]


@pytest.mark.parametrize("name", ["direction", "sampled"])
def test_workers_that_own_the_histograms(name, data, expected, clients, tmp_path, monkeypatch):
    monkeypatch.setattr(owners, "exchange_pays", lambda n_bytes, n_workers: True)
    assert trained(tmp_path, ESTIMATORS[name], clients[3], *data) == expected[name]


@pytest.mark.parametrize("name", ["direction", "sampled"])
def test_chunks(name, data, expected, tmp_path):
    X, y, weights, evaluation = data
    lazy = da.from_array(X, chunks=(211, 2)), da.from_array(y, chunks=170), da.from_array(weights, chunks=N)
    assert trained(tmp_path, ESTIMATORS[name], None, *lazy, evaluation) == expected[name]
    zarr.create_array(tmp_path / "x", data=X, chunks=(100, 3))
    assert (
        trained(tmp_path, ESTIMATORS[name], None, str(tmp_path / "x"), y, weights, evaluation)
        == expected[name]
    )


@pytest.mark.parametrize("name", ["direction", "sampled"])
@pytest.mark.parametrize("keep_values", [False, True])
def test_binned_stores(name, keep_values, data, tmp_path):
    """Of training rows, and of evaluation rows that were binned by themselves."""
    X, y, weights, (eval_x, eval_y) = data
    make = ESTIMATORS[name]
    options = {"max_bins": make().max_bins, "categorical_features": CATEGORICAL, "keep_values": keep_values}
    store = distboost.bin(X, y, f"{tmp_path}/store", sample_weight=weights, **options)
    evaluation = eval_x, eval_y
    if keep_values:
        evaluation = distboost.bin(eval_x, eval_y, f"{tmp_path}/evaluation", **options)
    model = make().fit(store, eval_set=evaluation)
    expected = make().fit(X, y, weights, eval_set=(eval_x, eval_y))
    np.testing.assert_array_equal(model.eval_loss_, expected.eval_loss_)
    assert model.learned_.ensemble.categories == expected.learned_.ensemble.categories
    np.testing.assert_array_equal(model.scores(X), expected.scores(X))


def test_a_store_of_the_same_categories_is_recoded(data, tmp_path):
    """Without raw values, if no bin has several categories."""
    X, y, *_ = data
    X = X[:, 1:3]
    half = X[:700], y[:700]
    few = half[0][:, 1] < 6  # the store does not have all categories
    store = distboost.bin(half[0][few], half[1][few], f"{tmp_path}/store", categorical_features=[1])
    model = GDMCBoostClassifier(n_estimators=3, calibration=None, max_features=1, categorical_features=[1])
    zeros = np.zeros_like(X[:, :1])  # edges of their own would not agree
    store = distboost.bin(
        np.column_stack([zeros[:700][few], half[0][few][:, 1]]),
        half[1][few],
        f"{tmp_path}/other",
        categorical_features=[1],
    )
    whole = np.column_stack([zeros, X[:, 1]])
    model.fit(whole, y, eval_set=store)
    losses = model.eval_loss_
    model.fit(whole, y, eval_set=(whole[:700][few], y[:700][few]))
    np.testing.assert_array_equal(model.eval_loss_, losses)


def test_a_binned_store_knows_its_categories(data, tmp_path):
    X, y, *_ = data
    store = distboost.bin(X, y, f"{tmp_path}/store", categorical_features=CATEGORICAL)
    with pytest.raises(
        DataError, match=r"categories in the features \[0, 2\], but categorical_features is \[1\]"
    ):
        GDMCBoostClassifier(categorical_features=[1]).fit(store)
    with pytest.raises(DataError, match="categorical_features is None"):
        GDMCBoostClassifier(categorical_features=None).fit(store)
    again = distboost.bin(X, y, f"{tmp_path}/store", categorical_features=CATEGORICAL)
    assert again == store
    with pytest.raises(DataError, match="other data or parameters"):
        distboost.bin(X, y, f"{tmp_path}/store", categorical_features=[0])


def test_lazy_prediction(data):
    X, y, *_ = data
    model = ESTIMATORS["direction"]().fit(X, y)
    np.testing.assert_array_equal(model.scores(da.from_array(X, chunks=(100, 3))).compute(), model.scores(X))
    *_, staged = model.staged_scores(X)
    np.testing.assert_array_equal(staged, model.scores(X))


def test_the_temperature_of_rows_that_repeat():
    """Their contents are bins, which stand for values of these bins."""
    rng = np.random.default_rng(6)
    X = rng.integers(0, 4, (3000, 2)) * 10.0
    y = (rng.random(3000) < (X[:, 0] + X[:, 1]) / 80).astype(int)
    numbers = GDMCBoostClassifier(n_estimators=10, max_depth=3).fit(X, y)
    model = GDMCBoostClassifier(n_estimators=10, max_depth=3, categorical_features=[0, 1]).fit(X, y)
    assert model.calibration_.temperature == pytest.approx(numbers.calibration_.temperature, rel=0.1)


def test_a_committee_learns_of_new_categories():
    """Rows that are taught later have categories that the first ones have not."""
    rng = np.random.default_rng(7)
    X = rng.integers(0, 20, (600, 1)).astype(float)
    y = rng.permutation(20)[X[:, 0].astype(int)] % 2
    estimator = GAMBLEClassifier(n_estimators=5, calibration=None, categorical_features=[0])
    how = {"start": "random", "strategy": "random", "warm_start": True}
    qbc = QueryByCommittee(estimator, X, n_initial=30, batch_size=270, **how)
    known = []
    for _ in range(3):
        rows = qbc.query()
        qbc.teach(rows, y[rows])
        known.append(qbc.estimator_.learned_.ensemble.categories[0])
    assert len(known[0].values) < len(known[-1].values) == known[-1].n_bins == 20
    assert qbc.estimator_.score(X, y) > 0.95


# Parameters.


@pytest.mark.parametrize(
    "given", [[2, 0], np.array([0, 2]), [True, False, True, False], np.array([1, 0, 1, 0], bool), (0, 2, 2)]
)
def test_features_by_number_or_mask(given, data, tmp_path):
    X, y, *_ = data
    model = GDMCBoostClassifier(n_estimators=2, calibration=None, categorical_features=given).fit(X, y)
    assert sorted(model.learned_.ensemble.categories) == CATEGORICAL
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(distboost.load(tmp_path / "model").scores(X), model.scores(X))


@pytest.mark.parametrize("given", ["from_dtype", None, [], np.zeros(4, bool)])
def test_no_categories(given, data, tmp_path):
    """Then models are those of trainings without the parameter."""
    X, y, *_ = data
    model = GDMCBoostClassifier(n_estimators=2, calibration=None, categorical_features=given).fit(X, y)
    assert model.learned_.ensemble.categories == {}
    assert "category_set" not in model.learned_.ensemble.arrays()
    other = GDMCBoostClassifier(n_estimators=2, calibration=None).fit(X, y)
    np.testing.assert_array_equal(model.scores(X), other.scores(X))
    if isinstance(given, str):
        assert file_of(tmp_path, model) == file_of(tmp_path, other)
        assert b"categor" not in file_of(tmp_path, model)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([4], "numbers of features from 0 to 3: 4 is none"),
        ([-1], "-1 is none"),
        ([True, False], "a mask of 4 features"),
        ([0.5], "a list of numbers or names, or a mask"),
        ([[0]], "a list of numbers or names, or a mask"),
        (["a"], "the features of X have no names"),
        ("all", "categorical_features"),
        (3, "categorical_features"),
    ],
)
def test_parameters_that_name_no_features(given, said, data):
    X, y, *_ = data
    with pytest.raises(ValueError, match=said):
        GDMCBoostClassifier(categorical_features=given).fit(X, y)


def test_resumed_with_other_categories(data):
    X, y, *_ = data
    model = GDMCBoostClassifier(n_estimators=2, calibration=None, categorical_features=[0]).fit(X, y)
    other = np.where(X == 10, 11, X)
    with pytest.raises(DataError, match="the rows are not those that the model was trained on"):
        model.set_params(n_estimators=4).fit(other, y, resume=True)
    with pytest.raises(DataError, match="categorical_features"):
        model.set_params(categorical_features=[2]).fit(X, y, resume=True)


def test_cross_validation(data):
    """A search may compare features as categories and as numbers."""
    X, y, *_ = data
    model = GDMCBoostClassifier(n_estimators=4, max_depth=2, calibration=None)
    space = {"categorical_features": [None, [0], [0, 2]]}
    found = distboost.search(model, space, X, y, folds=3, refit=False)
    scores = found.cv_results_["mean_test_score"]
    assert scores.max() > scores[0]
    place = found.cv_results_["param_categorical_features"].tolist().index([0, 2])
    alone = distboost.cross_validate(model.set_params(categorical_features=[0, 2]), X, y, folds=3)
    assert np.mean(alone["test_accuracy"]) == pytest.approx(scores[place])


def test_command_line(data, tmp_path):
    X, y, *_ = data
    codes = np.unique(y, return_inverse=True)[1]
    zarr.create_array(tmp_path / "x", data=X)
    zarr.create_array(tmp_path / "y", data=codes)

    def run(*arguments):
        done = CliRunner().invoke(main, [*map(str, arguments)], catch_exceptions=False)
        assert done.exit_code == 0, done.output

    rows = ["--x", tmp_path / "x", "--y", tmp_path / "y"]
    settings = ["--algorithm", "gd-mcboost", "--set", "n_estimators=3", "--set", "calibration=None"]
    run("train", *rows, *settings, "--categorical", "0,2", "--model", tmp_path / "model")
    model = GDMCBoostClassifier(n_estimators=3, calibration=None, categorical_features=CATEGORICAL)
    expected = file_of(tmp_path / "x", model.fit(X, codes))
    assert (tmp_path / "model").read_bytes() == expected
    run("bin", *rows, "--categorical", "0,2", "--out", tmp_path / "store")
    run("train", "--x", tmp_path / "store", *settings, "--model", tmp_path / "other")
    np.testing.assert_array_equal(distboost.load(tmp_path / "other").scores(X), model.scores(X))


def other_set(header, arrays):
    arrays["category_set"][arrays["category_set"] == 0] = 10**6


def no_set(header, arrays):
    arrays["category_set"][:] = -1


def a_number_with_a_set(header, arrays):
    arrays["feature"][arrays["category_set"] == 0] = 1


def a_bin_that_is_not_there(header, arrays):
    arrays["categories"][0, 3] ^= np.uint64(1) << np.uint64(62)


def fewer_sets(header, arrays):
    arrays["categories"] = arrays["categories"][1:]


def a_threshold(header, arrays):
    arrays["threshold"][arrays["category_set"] == 0] = 0.5


def no_categories(header, arrays):
    del header["categories"]


def another_feature(header, arrays):
    header["categories"][0]["feature"] = 4


def a_bin_beyond(header, arrays):
    header["categories"][0]["bins"][0] = 255


def values_in_no_order(header, arrays):
    header["categories"][0]["values"][:2] = header["categories"][0]["values"][1::-1]


DAMAGE = [
    other_set, no_set, a_number_with_a_set, a_bin_that_is_not_there, fewer_sets, a_threshold, no_categories,
    another_feature, a_bin_beyond, values_in_no_order,
]  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__)
def test_damaged_sets_are_refused(damage, data, tmp_path):
    """Although their checksum is right."""
    X, y, *_ = data
    content = file_of(tmp_path, ESTIMATORS["direction"]().fit(X, y))
    header, arrays = decoded(content, "")
    arrays = {name: array.copy() for name, array in arrays.items()}
    damage(header, arrays)
    (tmp_path / "damaged").write_bytes(encoded(header, arrays))
    with pytest.raises(ModelFormatError, match="damaged"):
        distboost.load(tmp_path / "damaged")


def test_importances(data):
    X, y, *_ = data
    model = CDMCBoostClassifier(
        n_estimators=5, max_depth=2, calibration=None, categorical_features=CATEGORICAL
    )
    found = model.fit(X, y).feature_importances_
    assert found.sum() == pytest.approx(1)
    assert found[CATEGORICAL].min() > found[3]
