"""Trees as tables, text and pictures."""

import sys

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from sklearn.datasets import load_iris

import distboost
from distboost import AdaBoostMMClassifier, GDMCBoostClassifier, REBELClassifier, export_text, plot
from distboost.baselines import OneVsAllAdaBoostClassifier
from distboost.errors import DataError, MissingPackageError
from tests.old_models.make import FOLDER


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True, as_frame=True)
    return X, np.array(["setosa", "versicolor", "virginica"])[y]


@pytest.fixture(scope="module")
def model(iris):
    return GDMCBoostClassifier(n_estimators=3, max_depth=3, calibration=None).fit(
        *iris, eval_set={"test": iris}
    )


@pytest.fixture
def ax():
    return Figure().add_subplot()


def test_a_row_for_each_node(model, iris):
    table = model.to_dataframe()
    assert table.columns.tolist() == [
        "Tree", "Node", "ID", "Feature", "Split", "Yes", "No", "Missing", "Gain", "Cover", "Weight", "Category",
        "Value setosa", "Value versicolor", "Value virginica",
    ]  # fmt: skip
    assert table.ID.is_unique
    assert set(table.Feature) <= {*iris[0].columns, "Leaf"}
    root = table.iloc[0]
    assert (root.Tree, root.Node, root.ID, root.Cover, root.Weight) == (0, 0, "0-0", 150, 150)
    assert table[table.Feature != "Leaf"].filter(like="Value").isna().all(axis=None)
    assert table[table.Feature == "Leaf"][["Split", "Yes", "No", "Missing", "Gain"]].isna().all(axis=None)


def test_rows_that_descend_the_table_have_the_scores(model, iris):
    table = model.to_dataframe().set_index("ID")
    rows = iris[0].iloc[::25].mask(lambda X: X > 6)
    F = np.zeros((len(rows), 3))
    for i, (_, row) in enumerate(rows.iterrows()):
        for tree in range(3):
            node = table.loc[f"{tree}-0"]
            while node.Feature != "Leaf":
                x = row[node.Feature]
                node = table.loc[node.Missing if np.isnan(x) else node.Yes if x <= node.Split else node.No]
            F[i] += node.filter(like="Value").to_numpy(float)
    np.testing.assert_array_equal(F, model.scores(rows))


def test_the_cover_of_a_node_is_that_of_its_children(model):
    table = model.to_dataframe().set_index("ID")
    inner = table[table.Feature != "Leaf"]
    sums = table.loc[inner.Yes].Cover.to_numpy() + table.loc[inner.No].Cover.to_numpy()
    np.testing.assert_array_equal(inner.Cover, sums)


def test_gains_are_those_of_the_importances(model):
    table = model.to_dataframe()
    gains = table.groupby("Feature").Gain.sum().reindex(model.feature_names_in_, fill_value=0.0)
    np.testing.assert_allclose(gains / gains.sum(), model.feature_importances_)


def test_a_model_of_an_early_file_has_no_covers():
    table = distboost.load(FOLDER / "1-gamble.model").to_dataframe()
    assert table[["Cover", "Weight"]].isna().all(axis=None)
    assert table.Feature.str.fullmatch(r"f\d|Leaf").all()


def test_committees_have_several_trees_per_round(iris):
    model = OneVsAllAdaBoostClassifier(n_estimators=2, calibration=None).fit(*iris)
    table = model.to_dataframe()
    assert table.Tree.max() == 5
    leaves = table[table.Feature == "Leaf"].filter(like="Value").to_numpy()
    assert (np.count_nonzero(leaves, axis=1) == 1).all()


def test_a_tree_as_text(iris):
    model = AdaBoostMMClassifier(n_estimators=2, max_depth=1, calibration=None).fit(*iris)
    assert export_text(model, decimals=2) == (
        "|--- petal length (cm) <= 2.45, not missing (150 rows)\n"
        "|   |--- setosa: +0.55 (50 rows)\n"
        "|--- otherwise\n"
        "|   |--- versicolor: +0.55 (100 rows)\n"
    )


def test_without_pandas(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingPackageError, match=r"needs pandas, .* pip install 'distboost\[pandas\]'"):
        model.to_dataframe()


@pytest.mark.parametrize("draw", [export_text, plot.tree])
@pytest.mark.parametrize("number", [-1, 3])
def test_no_such_tree(draw, number, model):
    with pytest.raises(
        DataError, match=rf"there is no tree {number}: the model has 3 trees\. Pass .* from 0 to 2"
    ):
        draw(model, number)


@pytest.mark.parametrize(
    ("name", "draw"),
    [
        ("export_text", export_text),
        ("plot.tree", plot.tree),
        ("plot.importance", plot.importance),
        ("to_dataframe", REBELClassifier.to_dataframe),
    ],
)
def test_similarities(name, draw, iris):
    model = REBELClassifier(n_estimators=2, weak_learner="similarity", calibration=None).fit(*iris)
    with pytest.raises(
        DataError,
        match=f"^{name} is for trees, but the weak learners of this REBELClassifier are similarities",
    ):
        draw(model)


# Pictures.


def test_importances(model, ax):
    assert plot.importance(model, most=2, ax=ax) is ax
    best = np.argsort(-model.feature_importances_)[:2]
    assert [label.get_text() for label in ax.get_yticklabels()] == model.feature_names_in_[best].tolist()
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], model.feature_importances_[best])
    assert ax.get_title() == "Importance of features, 2 of 4"


def test_a_tree(model, ax):
    plot.tree(model, 0, ax=ax)
    texts = [text.get_text() for text in ax.texts]
    assert "petal length (cm) ≤ 2.45" in texts
    assert "setosa: +3.52  (50)" in texts
    assert texts.count("yes") + texts.count("yes, missing") == (model.to_dataframe().Tree == 0).sum() // 2


def test_the_upper_part_of_a_tree(model, ax):
    plot.tree(model, 0, max_depth=1, ax=ax)
    assert "…  (100)" in [text.get_text() for text in ax.texts]


def test_curves(model, ax):
    plot.curves(model, ax=ax)
    own, test = ax.get_lines()[:2]
    np.testing.assert_array_equal(own.get_ydata(), model.train_error_)
    np.testing.assert_array_equal(test.get_ydata(), model.eval_error_)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["training", "test"]
    assert plot.curves(model, metric="loss", ax=Figure().add_subplot()).get_ylabel() == "loss"


def test_an_unknown_metric(model, ax):
    with pytest.raises(DataError, match=r"the model has no metric 'auc'\. It has 'loss', 'error'"):
        plot.curves(model, metric="auc", ax=ax)


def test_names_and_covers_that_are_not_known(ax):
    plot.tree(distboost.load(FOLDER / "1-gamble.model"), 0, ax=ax)
    assert not any("(" in text.get_text() for text in ax.texts)


def test_names_with_dollar_signs_are_not_formulas(blobs):
    X, y = pd.DataFrame(blobs[0]).set_axis([f"${{{d}$" for d in range(blobs[0].shape[1])], axis=1), blobs[1]
    model = GDMCBoostClassifier(n_estimators=2, calibration=None).fit(X, y, eval_set={r"$\frac$": (X, y)})
    for draw in (plot.importance, plot.tree, plot.curves):
        figure = Figure()
        draw(model, ax=figure.add_subplot())
        figure.draw_without_rendering()  # raises for formulas that cannot be read


@pytest.mark.parametrize("number", ["a", 1.5, -1])
def test_numbers_of_pictures_are_checked(number, model, ax):
    with pytest.raises(DataError, match=rf"most is {number!r}\. Pass the number of features"):
        plot.importance(model, most=number, ax=ax)
    with pytest.raises(DataError, match=rf"max_depth is {number!r}\. Pass a depth of 0 or more"):
        plot.tree(model, 0, max_depth=number, ax=ax)


def test_names_with_line_breaks_stay_in_their_lines(blobs):
    y = np.array(["a\nb", "c", "d"])[blobs[1]]
    text = export_text(GDMCBoostClassifier(n_estimators=1, max_depth=1, calibration=None).fit(blobs[0], y))
    assert all("|---" in line for line in text.splitlines())
    assert r"a\nb: " in text


def test_a_new_figure(model):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    for draw in (plot.importance, plot.tree, plot.curves):
        pyplot.close(draw(model).figure)


@pytest.mark.parametrize("draw", [plot.importance, plot.tree, plot.curves])
def test_without_matplotlib(draw, model, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingPackageError, match=r"needs matplotlib.*pip install 'distboost\[plots\]'"):
        draw(model)


def test_a_table_can_be_kept(model, tmp_path):
    model.to_dataframe().to_csv(tmp_path / "trees.csv", index=False)
    assert len(pd.read_csv(tmp_path / "trees.csv")) == len(model.to_dataframe())


@pytest.mark.parametrize(
    "use",
    [
        distboost.export.onnx,
        distboost.export.treelite,
        distboost.export_text,
        distboost.plot.curves,
        distboost.plot.tree,
    ],
)
def test_what_is_no_model_of_distboost_is_refused(use):
    with pytest.raises(TypeError, match="model is of type int, expected a fitted estimator of distboost"):
        use(3)


@pytest.mark.parametrize("tree", ["a", 1.5, -1, 99])
def test_the_number_of_a_tree_is_checked(tree, blobs):
    model = distboost.GDMCBoostClassifier(n_estimators=1, calibration=None).fit(*blobs)
    with pytest.raises(DataError, match=rf"there is no tree {tree!r}: the model has 1 trees"):
        distboost.export_text(model, tree)


@pytest.mark.filterwarnings("ignore::distboost.errors.TrainingEndedWarning")
def test_a_model_without_trees_has_no_tree_to_show():
    model = GDMCBoostClassifier(n_estimators=1, calibration=None).fit(np.zeros((20, 1)), np.arange(20) % 2)
    for show in (export_text, plot.tree):
        with pytest.raises(
            DataError, match=r"the model has no trees, so that (export_text|plot\.tree) has nothing to show"
        ):
            show(model, 0)
