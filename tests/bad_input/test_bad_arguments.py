"""Arguments of a type that a function does not take: one error, which names the argument and says what is expected."""

import pytest

import distboost
from distboost import GDMCBoostClassifier, active, export, plot
from distboost.errors import ArgumentError, DataError

SPACE = {"max_depth": [1, 2]}


class Given:
    """What the functions below take beside the argument in question."""

    def __init__(self, X, y):
        self.X, self.y = X, y
        self.new = GDMCBoostClassifier(n_estimators=1, calibration=None)
        self.model = GDMCBoostClassifier(n_estimators=1, calibration=None).fit(X, y)
        self.pool = active.QueryByCommittee(self.new, X)


@pytest.fixture(scope="module")
def given(blobs):
    return Given(*blobs)


def refused(call, odd, match, kind=ArgumentError):
    with pytest.raises(kind, match=match) as found:
        call(odd)
    assert len(str(found.value)) < 400


PATHS = {
    "save": ("url", lambda g, odd: g.model.save(odd)),
    "load": ("url", lambda g, odd: distboost.load(odd)),
    "bin": ("out", lambda g, odd: distboost.bin(g.X, g.y, odd)),
    "report": ("url", lambda g, odd: distboost.report(g.model, g.X, g.y, odd)),
    "event log": ("url", lambda g, odd: distboost.EventLog(odd)),
    "state of a committee": ("url", lambda g, odd: g.pool.save(odd)),
    "resume": ("log", lambda g, odd: active.resume(odd)),
}
OPTIONAL_PATHS = {
    "report of events": ("events", lambda g, odd: distboost.report(g.model, g.X, g.y, "r.html", events=odd)),
    "search": ("checkpoint", lambda g, odd: distboost.search(g.new, SPACE, g.X, g.y, checkpoint=odd)),
    "log of a committee": ("log", lambda g, odd: active.QueryByCommittee(g.new, g.X, log=odd)),
    "learning curves": ("path", lambda g, odd: active.plot_curves({}, odd)),
}


@pytest.mark.filterwarnings("ignore:No artists with labels")
@pytest.mark.parametrize("odd", [None, 3, [], b"x"], ids=repr)
@pytest.mark.parametrize(("name", "use"), (PATHS | OPTIONAL_PATHS).values(), ids=PATHS | OPTIONAL_PATHS)
def test_a_path_of_another_type(name, use, odd, given, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if odd is None and (name, use) in OPTIONAL_PATHS.values():
        odd = 3.5
    kind = type(odd).__name__
    refused(lambda odd: use(given, odd), odd, rf"^{name} is .*, of type {kind}\. Pass a path or URL")
    assert list(tmp_path.iterdir()) == []


FITTED = {
    "evaluate": lambda g, odd: distboost.evaluate(odd, g.X, g.y),
    "report": lambda g, odd: distboost.report(odd, g.X, g.y, "report.html"),
    "shap_values": lambda g, odd: distboost.shap_values(odd, g.X),
    "expected_scores": lambda g, odd: distboost.expected_scores(odd),
    "export_text": lambda g, odd: distboost.export_text(odd),
    "export.onnx": lambda g, odd: export.onnx(odd),
    "export.treelite": lambda g, odd: export.treelite(odd),
    "export.codes": lambda g, odd: export.codes(odd, g.X),
    "plot.tree": lambda g, odd: plot.tree(odd),
    "plot.importance": lambda g, odd: plot.importance(odd),
    "plot.curves": lambda g, odd: plot.curves(odd),
}
ESTIMATORS = {
    "cross_validate": lambda g, odd: distboost.cross_validate(odd, g.X, g.y),
    "search": lambda g, odd: distboost.search(odd, SPACE, g.X, g.y),
    "plan": lambda g, odd: distboost.plan(odd, 60, 3, 3),
}


@pytest.mark.parametrize("odd", [None, 3, "x", [], GDMCBoostClassifier], ids=repr)
def test_a_model_of_another_type(odd, given):
    found = "the class GDMCBoostClassifier" if isinstance(odd, type) else f"of type {type(odd).__name__}"
    for use in FITTED.values():
        refused(
            lambda odd, use=use: use(given, odd),
            odd,
            f"model is {found}, expected a fitted estimator of distboost",
        )
    for use in ESTIMATORS.values():
        refused(
            lambda odd, use=use: use(given, odd),
            odd,
            f"estimator is {found}, expected an estimator of distboost",
        )
    for use in (active.QueryByCommittee, lambda odd, X: active.learning_curves(odd, X, given.y, None)):
        if odd is not None:  # the default committee
            refused(
                lambda odd, use=use: use(odd, given.X),
                odd,
                "the estimator is .*, expected a classifier with",
                DataError,
            )
    refused(distboost.classifier, odd, "algorithm is .*, expected a subclass of distboost.Algorithm")


OTHERS = {
    "space": (3, lambda g, odd: distboost.search(g.new, odd, g.X, g.y), "expected a dict of lists"),
    "spaces": (["x"], lambda g, odd: distboost.search(g.new, odd, g.X, g.y), "or a list of such dicts"),
    "metric": ([], lambda g, odd: plot.curves(g.model, metric=odd), "expected the name of a metric"),
    "axes": (3, lambda g, odd: plot.tree(g.model, ax=odd), "expected axes of matplotlib"),
    "curves": ([], lambda g, odd: active.plot_curves(odd), "expected lists of learning curves by strategy"),
    "strategies": (
        "margin",
        lambda g, odd: active.learning_curves(g.new, g.X, g.y, None, strategies=odd),
        "a list",
    ),
    "callbacks": (None, lambda g, odd: g.pool.run(g.y, callbacks=odd), "expected a list of functions"),
}


@pytest.mark.parametrize(("odd", "use", "match"), OTHERS.values(), ids=OTHERS)
def test_an_argument_of_another_type(odd, use, match, given):
    refused(lambda odd: use(given, odd), odd, match)


NUMBERS = {
    "decimals": lambda g, odd: distboost.export_text(g.model, decimals=odd),
    "tree": lambda g, odd: distboost.export_text(g.model, odd),
    "n_rows": lambda g, odd: distboost.plan(g.new, odd, 3, 3),
    "n_classes": lambda g, odd: distboost.plan(g.new, 60, 3, odd),
    "n_threads": lambda g, odd: distboost.plan(g.new, 60, 3, 3, n_threads=odd),
}


@pytest.mark.parametrize("odd", ["x", [], -1, True], ids=repr)
@pytest.mark.parametrize(("name", "use"), NUMBERS.items(), ids=NUMBERS)
def test_a_number_of_another_type(name, use, odd, given):
    if name.startswith("n_") and odd is True:  # is 1
        odd = 1.5
    refused(lambda odd: use(given, odd), odd, name, ValueError)


@pytest.mark.parametrize("odd", [None, 3, object()], ids=["None", "number", "object"])
def test_features_and_labels_that_are_not_arrays(odd, given, tmp_path):
    for use in (
        lambda odd: distboost.bin(odd, given.y, tmp_path / "binned"),
        lambda odd: active.QueryByCommittee(given.new, odd),
        given.model.predict,
    ):
        refused(use, odd, rf"(X|pool) is of type {type(odd).__name__}\. Pass an array", DataError)
    refused(lambda odd: given.model.score(given.X, odd), odd, "^y (is None|should be a 1d array)", DataError)
