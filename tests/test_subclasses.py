"""Classes that derive from an estimator: what they train is kept, cloned and searched as it was trained."""

from __future__ import annotations

import pickle
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import distboost
from distboost import GAMBLEClassifier, GDMCBoostClassifier
from distboost.active import QueryByCommittee, resume
from distboost.errors import ArgumentError, DistboostError, ModelFormatError
from distboost.io.files import read_file, write_file


class Fixing(GDMCBoostClassifier):
    def __init__(self, n_estimators=4):
        super().__init__(n_estimators=n_estimators, max_depth=3, calibration=None)


class Deriving(GDMCBoostClassifier):
    def __init__(self, size=1, extra=None):
        super().__init__(n_estimators=4, max_depth=size, calibration=None)
        self.size, self.extra = size, extra


class Passing(GDMCBoostClassifier):
    def __init__(self, extra=1, **others):
        super().__init__(**others)
        self.extra = extra


class Renaming(GDMCBoostClassifier):
    """Its parameter is not an attribute: scikit-learn cannot clone it."""

    def __init__(self, size=2):
        super().__init__(n_estimators=4, max_depth=size)


class Varying(GDMCBoostClassifier):
    def __init__(self, *sizes):
        super().__init__(n_estimators=4, max_depth=max(sizes))


class Alone(GDMCBoostClassifier):
    """It calls no constructor: all but its own parameter have the library's defaults."""

    def __init__(self, n_estimators=4):
        self.n_estimators = n_estimators


class Mixed(GAMBLEClassifier):
    def __init__(self, n_estimators=4):
        super().__init__(n_estimators=n_estimators, max_leaf_nodes=5)


@dataclass(kw_only=True, eq=False, repr=False)
class Extended(GDMCBoostClassifier):
    extra: object = None


KINDS = {
    "fixing": lambda: Fixing(5),
    "deriving": lambda: Deriving(2, extra=lambda row: row),
    "passing": lambda: Passing(2, n_estimators=4, max_depth=2, learning_rate=0.3),
    "renaming": lambda: Renaming(3),
    "varying": lambda: Varying(2, 3),
    "alone": lambda: Alone(3),
    "of another algorithm": lambda: Mixed(),
    "a dataclass": lambda: Extended(n_estimators=3, max_depth=2, extra=object()),
}
CLONED = {name: make for name, make in KINDS.items() if name not in ("renaming", "varying")}


@pytest.fixture(params=KINDS.values(), ids=KINDS)
def make(request):
    return request.param


def decides(model):
    """The parameters of the library that decide the model, by name."""
    own = next(base for base in type(model).__mro__ if base in (GDMCBoostClassifier, GAMBLEClassifier))
    names = own().get_params().keys() - {"checkpoint", "checkpoint_every"}
    return {name: getattr(model, name) for name in names}


def test_files_and_checkpoints_are_loaded_as_the_librarys_class(make, blobs, tmp_path):
    model = make()
    model.checkpoint = tmp_path / "checkpoint"
    model.fit(*blobs).save(tmp_path / "a.model")
    for place in ("a.model", "checkpoint"):
        loaded = distboost.load(tmp_path / place)
        assert type(loaded) in (GDMCBoostClassifier, GAMBLEClassifier)
        assert decides(loaded) == decides(model)
        assert loaded.digest() == model.digest()
        np.testing.assert_array_equal(loaded.predict_proba(blobs[0]), model.predict_proba(blobs[0]))


def test_a_run_resumes_from_a_checkpoint(make, blobs, tmp_path):
    whole = make().fit(*blobs)
    half, rest = make(), make()
    half.checkpoint = rest.checkpoint = tmp_path / "checkpoint"
    half.n_estimators = 2
    half.fit(*blobs)
    assert rest.fit(*blobs, resume=True).digest() == whole.digest()


def test_a_callback_has_a_model_of_the_class(make, blobs):
    seen = []
    model = make()
    model.callbacks = [lambda progress: seen.append(progress.model())]
    model.fit(*blobs)
    assert type(seen[-1]) is type(model)
    assert seen[-1].callbacks is None
    np.testing.assert_array_equal(seen[-1].scores(blobs[0]), model.scores(blobs[0]))


@pytest.mark.parametrize("make", [KINDS["varying"], KINDS["of another algorithm"]])
def test_a_report_has_the_parameters(make, blobs, tmp_path):
    distboost.report(make().fit(*blobs), *blobs, tmp_path / "report.html")
    assert "max_bins" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize("make", CLONED.values(), ids=CLONED)
def test_clones_train_what_the_original_trains(make, blobs):
    """Also if an attribute was set that the constructor does not know."""
    model = make()
    model.n_estimators, model.min_samples_leaf = 3, 7
    expected = model.fit(*blobs).digest()
    assert clone(model).fit(*blobs).digest() == expected
    assert (
        distboost.cross_validate(model, *blobs, folds=2, return_estimator=True)["estimator"][
            0
        ].min_samples_leaf
        == 7
    )


def test_what_a_constructor_derives_follows_its_parameters(blobs):
    model = Deriving(1).set_params(size=3)
    assert model.max_depth == 3
    model.set_params(extra=2)
    assert model.max_depth == 3
    space = {"size": [1, 3]}
    found = distboost.search(Deriving(), space, *blobs, folds=2)
    scores = [
        distboost.cross_validate(Deriving(size), *blobs, folds=2)["test_accuracy"].mean()
        for size in space["size"]
    ]
    np.testing.assert_array_equal(found.cv_results_["mean_test_score"], scores)
    assert scores[0] != scores[1]


def test_searches_of_scikit_learn(blobs):
    X, y = np.nan_to_num(blobs[0]), blobs[1]
    grid = GridSearchCV(
        make_pipeline(StandardScaler(), Deriving()), {"deriving__size": [1, 3]}, cv=2, error_score="raise"
    )
    grid.fit(X, y)
    assert len(set(grid.cv_results_["mean_test_score"])) == 2
    best = grid.best_estimator_[-1]
    assert best.max_depth == best.size
    assert pickle.loads(pickle.dumps(best)).digest() == best.digest()


@pytest.mark.parametrize("make", CLONED.values(), ids=CLONED)
def test_committees_and_their_logs(make, blobs, tmp_path):
    X, y = blobs
    committee = QueryByCommittee(
        make(), X, n_initial=30, batch_size=9, warm_start=True, log=str(tmp_path / "log")
    )
    for _ in range(3):
        rows = committee.query()
        committee.teach(rows, y[rows])
    rows = committee.query()
    again = resume(str(tmp_path / "log"), X)
    np.testing.assert_array_equal(again.asked_, rows)
    assert again.estimator_.digest() == committee.estimator_.digest()


class Judging(Fixing):
    def predict(self, X):
        return super().predict(X)[::-1]


class Fitting(Fixing):
    def fit(self, X, y, more=None):
        return super().fit(np.square(X), y)


class Both(GDMCBoostClassifier, GAMBLEClassifier):
    pass


class Replaced(GDMCBoostClassifier):
    algorithm = GAMBLEClassifier.algorithm


class Emptied(Fixing):
    def __init__(self):
        pass

    max_depth = property()  # without a value


class Unchecked(GDMCBoostClassifier):
    def __init__(self, n_estimators=4):
        super().__init__(n_estimators=n_estimators, max_depth="three")


@pytest.mark.parametrize("cls", [Judging, Fitting])
def test_methods_that_would_not_be_called_are_refused(cls, blobs):
    for call in (
        lambda: distboost.cross_validate(cls(), *blobs, folds=2),
        lambda: distboost.search(cls(), {"n_estimators": [2, 3]}, *blobs, folds=2),
        lambda: QueryByCommittee(cls(), blobs[0]),
    ):
        with pytest.raises(ArgumentError, match=rf"{cls.__name__} has a method (fit|predict) of its own"):
            call()


@pytest.mark.parametrize("cls", [Both, Replaced, Emptied, Unchecked])
def test_what_could_not_be_loaded_is_refused_before_anything_runs(cls, blobs):
    told = []
    model = cls()
    model.callbacks = [lambda progress: told.append(progress)]
    with pytest.raises((DistboostError, ValueError), match=cls.__name__):
        model.fit(*blobs)
    assert told == []


@pytest.mark.parametrize("cls", [Renaming, Varying])
def test_classes_that_cannot_be_cloned_say_why(cls, blobs):
    for call in (
        clone,
        lambda model: distboost.cross_validate(model, *blobs),
        lambda model: model.set_params(size=3),
    ):
        with pytest.raises(ArgumentError, match=rf"the parameters of {cls.__name__} are unknown"):
            call(cls(2))


def test_a_parameter_that_no_estimator_has(blobs, tmp_path):
    """As in files of subclasses by earlier versions."""
    Fixing().fit(*blobs).save(tmp_path / "a.model")
    header, arrays = read_file(tmp_path / "a.model")
    header["parameters"]["size"] = 2
    write_file(tmp_path / "b.model", header, arrays)
    with pytest.raises(ModelFormatError, match="'size', which GDMCBoostClassifier does not have"):
        distboost.load(tmp_path / "b.model")


# Values of parameters.


@pytest.mark.parametrize(
    ("name", "plain", "value"),
    [
        ("n_estimators", 4, np.int64(4)),
        ("max_bins", 200, np.uint8(200)),
        ("max_depth", 5, np.int8(5)),
        ("min_samples_leaf", 100, np.uint8(100)),
        ("statistic_bits", 8, np.int8(8)),
        ("learning_rate", float(np.float32(0.1)), np.float32(0.1)),
        ("min_weight_fraction_leaf", float(np.float32(0.1)), np.float32(0.1)),
        ("subsample", float(np.float32(0.3)), np.float32(0.3)),
        ("max_features", float(np.float32(0.6)), np.float32(0.6)),
        ("leaf", "codeword", np.str_("codeword")),
        ("categorical_features", [0, 1], [np.int64(0), np.int64(1)]),
        ("categorical_features", [0, 1], (0, 1)),
        ("categorical_features", [0, 1], range(2)),
        ("categorical_features", [0, 1], pd.Index([0, 1])),
        ("categorical_features", [0, 1], pd.Series([0, 1])),
        ("categorical_features", [True, False, True, False], [np.True_, np.False_, np.True_, np.False_]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_of_other_types_are_pythons(name, plain, value, blobs, tmp_path):
    """They train the same model, which is stored and gone on from."""
    X, y = np.round(blobs[0] * 3), blobs[1]

    def made(value, **more):
        return GDMCBoostClassifier(**{"n_estimators": 4, "calibration": None, name: value, **more})

    expected = made(plain).fit(X, y)
    model = made(value).fit(X, y)
    model.save(tmp_path / "a.model")
    assert model.digest() == expected.digest() == distboost.load(tmp_path / "a.model").digest()
    place = {"checkpoint": tmp_path / "checkpoint"}
    made(value, **place | {"n_estimators": 2}).fit(X, y)
    assert (
        made(value, **place).set_params(n_estimators=4).fit(X, y, resume=True).digest() == expected.digest()
    )


def test_a_file_has_the_parameters_of_the_training(blobs, tmp_path):
    model = GDMCBoostClassifier(n_estimators=3, max_depth=2).fit(*blobs)
    digest = model.digest()
    model.set_params(max_depth=5, loss="softmax").save(tmp_path / "a.model")
    loaded = distboost.load(tmp_path / "a.model")
    assert (loaded.max_depth, loaded.loss) == (2, "exponential")
    assert loaded.digest() == model.digest() == digest
