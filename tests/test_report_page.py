"""`distboost.report`: the figures of `evaluate`, names that stay names, nothing from elsewhere, the same bytes anywhere."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
import zarr
from scipy.sparse import csr_array
from sklearn.metrics import log_loss

import distboost
from distboost import EventLog, GDMCBoostClassifier, REBELClassifier, baselines
from distboost.errors import DataError, StoreError
from distboost.estimators.evaluating import evaluated
from distboost.estimators.predicting import own_probabilities_of
from distboost.estimators.validation import Given
from distboost.evaluation.results import Confusion
from distboost.io.text import megabytes
from distboost.reporting import confusion, figures, numbers
from distboost.reporting.charts import LEFT, RIGHT, ValueAxis, x_places
from distboost.reporting.numbers import decimal
from distboost.training import event_record
from tests.pages import Page

HOSTILE = [
    "<script>alert(1)</script>",
    "\"quoted\" & 'single'",
    "</script><img src=x onerror=alert(2)>",
    "\u202eevil",
    "שלום",
    "👩\u200d🔬",
    "two\nlines",
    "{{ 7 * 7 }}",
    "x" * 500,
    "-->",
]


@pytest.fixture(scope="module")
def model(blobs):
    return GDMCBoostClassifier(n_estimators=4, max_depth=3, learning_rate=0.5).fit(*blobs)


@pytest.fixture
def written(tmp_path):
    """written(model, X, y, ...): the page as text, and the evaluation."""

    def write(*arguments, **options):
        found = distboost.report(*arguments[:3], tmp_path / "report.html", *arguments[3:], **options)
        return (tmp_path / "report.html").read_text(), found

    return write


def many(n_classes: int, rows_each: int = 12, names=None):
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(n_classes, 6)) * 2
    codes = np.repeat(np.arange(n_classes), rows_each)
    X = (centres[codes] + rng.normal(size=(len(codes), 6))).astype(np.float32)
    return X, codes if names is None else np.array(names)[codes]


def headline(page: Page) -> dict[str, str]:
    """The texts of the figures on top, by their name."""
    texts = [text.strip() for text in page.texts if text.strip()]
    names = ("accuracy", "majority baseline", "balanced accuracy", "F1, macro", "log-loss", "Brier score")
    return {one: texts[texts.index(one) + 1] for one in (*names, "calibration error", "AUC")}


# The figures are those of evaluate


def test_the_figures_of_evaluate(model, blobs, written):
    X, y = blobs
    text, returned = written(model, X, y)
    found = distboost.evaluate(model, X, y)
    assert returned.to_json() == found.to_json()
    page = Page(text)
    keys = (
        "accuracy",
        "majority_baseline",
        "balanced_accuracy",
        "f1_macro",
        "log_loss",
        "brier",
        "ece",
        "auc_ovr",
    )
    assert list(headline(page).values()) == [decimal(found[key]) for key in keys]
    metrics = found["per_class"]
    assert page.table("Metrics of each class") == [
        [
            str(i),
            str(i),
            f"{metrics['rows'][i]:.0f}",
            *(decimal(metrics[key][i]) for key in ("precision", "recall", "f1")),
            decimal(found["auc_per_class"][i]),
        ]
        for i in range(3)
    ]
    matrix = page.table("Confusion matrix")
    assert [row[1:] for row in matrix] == [[str(n) if n else "" for n in row] for row in found["confusion"]]
    worst = found["worst_rows"]
    assert [int(row[0]) for row in page.table("The rows whose own class")] == worst["row"].tolist()
    shares = {row[0]: row[1] for row in page.table("All of 4 features")}
    assert shares == {str(i): f"{100 * share:.1f} %" for i, share in enumerate(model.feature_importances_)}
    for fact in (model.digest(), model.learned_.data, "learning_rate", "outcome"):
        assert fact in page.texts
    changed = [text[i : i + 90] for i in (m.start() for m in re.finditer('class="changed"', text))]
    assert [re.search("<dt>(.*?)</dt>", one)[1] for one in changed] == [
        "learning_rate",
        "max_depth",
        "n_estimators",
    ]


def test_the_largest_confusions():
    found = Confusion(
        np.array(["ash", "elm", "oak"]), csr_array(np.array([[6, 2, 0], [0, 9, 1], [4, 0, 0], [0, 0, 0]]))
    )
    assert [tuple(one) for one in confusion.mistakes(found)] == [
        ("oak", "ash", "4", "100.0 %", 1.0),
        ("ash", "elm", "2", "25.0 %", 0.25),
        ("elm", "oak", "1", "10.0 %", 0.1),
    ]
    cells = confusion.matrix(found).rows
    assert cells[0][1][0] == ("6", "r6", "ash predicted as ash: 6, 75.0 % of ash")
    assert [cell.shade for _, row in cells for cell in row] == ["r6", "w5", "", "", "r8", "w1", "w8", "", ""]


def test_one_mistake_and_six_look_different():
    counts = np.diag([100, 100, 100, 0])[:, :3] + np.array([[0, 1, 6], [0, 0, 0], [3, 0, 0], [0, 0, 0]])
    shades = {
        cell.text: cell.shade
        for _, row in confusion.matrix(Confusion(np.arange(3), csr_array(counts))).rows
        for cell in row
    }
    assert shades["1"] == "w1"
    assert shades["6"] == "w8"
    assert shades["3"] not in ("w1", "w8")


# Whatever is given


@pytest.mark.parametrize("n_classes", [2, 10, 41])
def test_names_are_escaped_and_nothing_comes_from_elsewhere(n_classes, written):
    names = [*HOSTILE, *(f"species {i}" for i in range(n_classes))][:n_classes]
    X, y = many(n_classes, names=names)
    features = ["<b>bold</b>", 'quo"te', "y" * 300, "new\nline", "{% raw %}", "6"]
    model = GDMCBoostClassifier(n_estimators=2, max_depth=3).fit(pd.DataFrame(X, columns=features), y)
    text, _ = written(model, pd.DataFrame(X, columns=features), y, title="<i>Title</i>")
    page = Page(text)
    assert not {"img", "b", "i", "link", "iframe", "object"} & {tag for tag, _ in page.elements}
    assert sum(tag == "script" for tag, _ in page.elements) == (2 if n_classes > 40 else 1)
    addresses = [
        value
        for _, attrs in page.elements
        for key, value in attrs.items()
        if key in ("href", "src", "xlink:href")
    ]
    assert all(value.startswith("#") for value in addresses)
    assert not re.search(r"url\(|@import|https?:|//[a-z]", text)
    assert not any(key.startswith("on") for _, attrs in page.elements for key in attrs)
    assert not set("\u202e\x1b") & set(text)
    shown = [row[1] for row in page.table("Metrics of each class")]
    assert {"<script>alert(1)</script>", "\"quoted\" & 'single'"} <= set(shown)
    assert all(len(one) <= 80 for one in shown)
    assert "two\\nlines" in shown or n_classes == 2
    assert n_classes == 2 or {"<b>bold</b>", "new\\nline"} <= {row[0] for row in page.table("All of")}


def test_many_classes_are_drawn_within_bounds(written):
    X, y = many(300, 4)
    model = GDMCBoostClassifier(n_estimators=2, max_depth=4, learning_rate=0.1).fit(X, y)
    text, found = written(model, X, y)
    page = Page(text)
    paths = {
        attrs["class"]: attrs["d"]
        for tag, attrs in page.elements
        if tag == "path" and re.fullmatch("[rw][1-8]", attrs.get("class", ""))
    }
    drawn = {(int(i), int(j)) for d in paths.values() for j, i in re.findall(r"M(\d+) (\d+)h1", d)}
    assert drawn == set(zip(*(at.tolist() for at in np.nonzero(found["confusion"])), strict=True))
    assert len(page.table("Metrics of each class")) == 300
    assert len(text) < 300_000


def test_neighbours_of_very_many_classes_share_a_cell():
    n = 1000
    picture = confusion.matrix(Confusion(np.arange(n), csr_array(np.eye(n + 1, n, dtype=int))))
    assert (picture.side, picture.step) == (334, 3)
    assert [kind for kind, _ in picture.paths] == ["r8"]
    assert picture.data["names"][0] == "0 to 2"
    assert picture.data["names"][-1] == "999 to 999"
    assert picture.data["rows"][0] == [0, 3]


@pytest.mark.parametrize("rows", [slice(0, 1), slice(0, 2), slice(0, 240)])
def test_few_rows_and_absent_classes(rows, model, blobs, written):
    X, y = blobs
    text, found = written(model, X[rows], y[rows])
    recall = [row[4] for row in Page(text).table("Metrics of each class")]
    present = np.isin(np.arange(3), y[rows])
    assert [one != "–" for one in recall] == present.tolist()
    assert f"judged on {found['n_rows']} rows" in text


def test_two_classes_and_weights(blobs, written):
    X, y = blobs
    w = np.linspace(0, 1, len(y))
    model = GDMCBoostClassifier(n_estimators=2, max_depth=2).fit(X, y > 0)
    text, found = written(model, X, y > 0, w)
    assert found["weight"] == distboost.evaluate(model, X, y > 0, w)["weight"]
    heads = next(
        rows[0] for caption, rows in Page(text).tables if caption.startswith("Metrics of each class")
    )
    assert heads == ["no.", "class", "weight", "precision", "recall", "F1", "AUC"]


def test_no_mistakes(written):
    X, y = many(3)
    X[:, 0] = y
    text, _ = written(GDMCBoostClassifier(n_estimators=2).fit(X, y), X, y)
    assert "No row is confused." in text
    assert "None is wrong." in text


# What is known of the training


def test_training_and_evaluation_are_distinguished(blobs, written):
    X, y = blobs
    sets = {"valid": (X[:80], y[:80]), "test": (X[80:], y[80:])}
    model = GDMCBoostClassifier(n_estimators=5, max_depth=2).fit(X, y, eval_set=sets)
    text, _ = written(model, X, y)
    page = Page(text)
    assert f"valid: {model.eval_error_[-1]:.6g}" in page.texts
    assert f"test: {model.eval_history_['test']['error'][-1]:.6g}" in page.texts
    facts = [one.strip() for one in page.texts if one.strip()]
    assert facts[facts.index("rows trained on") + 1] == "240"
    assert facts[facts.index("rows evaluated after each round") + 1] == "valid 80, test 160"
    text, _ = written(model.fit(X, y), X, y)
    assert "valid:" not in text


def curves(page: Page) -> dict[str, str]:
    """What is told of each chart by round, by its title."""
    told = [attrs["aria-label"].partition(" by round: ") for attrs in page.with_class("chart")]
    return {title: text for title, found, text in told if found}


@pytest.mark.parametrize("metric", ["error", "log_loss", "loss"])
def test_judged_rows_have_curves_of_log_loss_and_error(metric, blobs, written):
    """The loss that boosting minimises is apart: on other rows it may rise while they are predicted better."""
    X, y = blobs
    model = GDMCBoostClassifier(n_estimators=30, max_depth=2, eval_metric=metric)
    text, found = written(model.fit(X[:120], y[:120], eval_set=(X[120:], y[120:])), X[120:], y[120:])
    drawn = curves(Page(text))
    assert list(drawn) == ["Log-loss", "Error", "Training objective"]
    assert f"to {found['log_loss']:.6g}" in drawn["Log-loss"]
    assert f"to {1 - found['accuracy']:.6g}" in drawn["Error"]
    assert ("eval, before calibration from" in drawn["Log-loss"]) == (metric == "log_loss")
    assert ("eval from" in drawn["Training objective"]) == (metric == "loss")
    assert "The exponential loss, which boosting minimises." in text


@pytest.mark.parametrize(
    ("make", "objective"),
    [
        (GDMCBoostClassifier, "exponential loss"),
        (partial(GDMCBoostClassifier, loss="softmax"), "softmax loss"),
        (partial(REBELClassifier, weak_learner="similarity"), "exponential loss"),
        (baselines.GradBoostClassifier, "softmax loss"),
        (baselines.MultiBoostClassifier, "logarithm of the exponential loss"),
        (baselines.AdaBoostMOClassifier, "exponential loss"),
    ],
)
def test_curves_of_judged_rows_are_those_of_the_first_rounds(make, objective, blobs):
    X, y = blobs
    w = np.linspace(0, 2, len(y))
    model = make(n_estimators=30, calibration=None).fit(X[:120], y[:120])
    rounds = figures.measured_rounds(len(model.learned_.ensemble))
    found = evaluated(model, Given(X, y, w), None, 0, rounds)
    staged = list(zip(model.staged_scores(X), model.staged_predict(X), strict=True))
    probabilities = own_probabilities_of(model)
    for number, after in enumerate(rounds):
        F, predicted = staged[after - 1]
        assert found.by_round.error[number] == pytest.approx(np.average(predicted != y, weights=w))
        loss = log_loss(y, probabilities(F), sample_weight=w)
        assert found.by_round.log_loss[number] == pytest.approx(loss)
    assert found.by_round.log_loss[-1] == found["log_loss"]
    assert figures.learning_curves(model, found.by_round)[-1].y.label.startswith(objective)


def test_few_rounds_of_many_are_measured():
    rounds = figures.measured_rounds(5000)
    assert (rounds[0], rounds[-1]) == (1, 5000)
    assert len(rounds) <= figures.MOST_ROUNDS


def test_classes_are_sorted_by_their_error(written):
    X, y = many(30, names=[f"kind {i}" for i in range(30)])
    model = GDMCBoostClassifier(n_estimators=2, max_depth=3, learning_rate=0.1).fit(X, y)
    text, found = written(model, X, y)
    missed = Page(text).table("Error by class")
    recall = dict(zip(found.classes, found["per_class"]["recall"], strict=True))
    assert [row[1] for row in missed] == [f"{100 * (1 - recall[row[0]]):.1f} %" for row in missed]
    assert [recall[row[0]] for row in missed] == sorted(recall.values())[: len(missed)]
    bars = [float(share) for share in re.findall(r"--share: ([\d.]+)%", text.partition("Error by class")[2])]
    assert bars[0] == 100.0  # the scale is that of the data


def test_reliability_before_and_after_calibration(blobs, written):
    X, y = blobs
    model = GDMCBoostClassifier(n_estimators=20, max_depth=3, calibration=None).fit(X, y)
    before = distboost.evaluate(model, X, y)
    assert before["uncalibrated"] is None
    model.calibrate(X, y)
    text, found = written(model, X, y)
    for key in ("weight", "confidence", "accuracy"):
        np.testing.assert_array_equal(found["uncalibrated"][key], before["calibration"][key])
    texts = [one.strip() for one in Page(text).texts]
    assert f"calibrated: expected calibration error {found['ece']:.4f}" in texts
    assert f"before calibration: expected calibration error {before['ece']:.4f}" in texts
    assert str(model.calibration_) in texts


def test_a_loaded_model_says_less(model, blobs, written, tmp_path):
    model.save(tmp_path / "m")
    text, _ = written(model, *blobs)
    assert "memory planned for the process" in text
    loaded, _ = written(distboost.load(str(tmp_path / "m")), *blobs)
    assert "memory planned" not in loaded
    assert model.digest() in loaded


def test_a_curve_fills_its_axes():
    assert x_places(ValueAxis.within("rounds", 0, 10), [0, 5, 10]) == [LEFT, (LEFT + RIGHT) / 2, RIGHT]


@pytest.mark.parametrize(
    ("low", "high", "texts"),
    [
        (0, 1, ["0", "0.2", "0.4", "0.6", "0.8", "1"]),
        (0.3, 17, ["0", "5", "10", "15", "20"]),
        (3, 3, ["1.5", "2", "2.5", "3", "3.5", "4", "4.5"]),
        (0, 0, ["-0.6", "-0.4", "-0.2", "0", "0.2", "0.4", "0.6"]),
        (0, 123456, ["0", "50k", "100k", "150k"]),
    ],
)
def test_grid_lines_are_at_round_numbers(low, high, texts):
    assert ValueAxis.over("", low, high).texts() == texts


def test_a_loss_that_falls_by_magnitudes_is_drawn_by_its_logarithm(model):
    def drawn(*values):
        return figures._curve("loss", [figures.Series("a", 0, np.arange(len(values)), np.array(values))])

    curve = drawn(0.1, 0.01, 0.001)
    assert curve.y.log
    assert curve.y.texts() == ["0.001", "0.01", "0.1"]
    assert [y for _, y in curve.lines[0].points] == [14, 123, 232]
    assert drawn(3.0, 0.12).y.texts() == ["0.1", "0.2", "0.5", "1", "2", "5"]
    assert not drawn(0.5, 0.0).y.log


def test_rounds_and_features_of_a_model(blobs):
    X, y = blobs
    model = GDMCBoostClassifier(n_estimators=9, early_stopping_rounds=1).fit(X, y, eval_set=(X, 2 - y))
    assert numbers.rounds(model) == f"{model.n_iter_}, the first {model.best_iteration_} kept"


def test_what_the_training_took(model, blobs, written, tmp_path):
    text, _ = written(model, *blobs)
    record = model.training_record_
    for shown in (record.runtime, f"{record.seconds:.3g} s", "4 rounds in ", "peak memory of this process"):
        assert shown in text
    assert "workers lost" not in text  # there were none
    model.save(tmp_path / "m")
    text, _ = written(distboost.load(tmp_path / "m"), *blobs)
    assert "a model file does not hold them" in text
    assert "peak memory" not in text


def test_lost_workers_are_shown(model, blobs, written, monkeypatch):
    record = replace(model.training_record_, worker_peak_bytes=(10**8, 2 * 10**8), workers_lost=2)
    monkeypatch.setattr(model, "training_record_", record)
    facts = [text.strip() for text in Page(written(model, *blobs)[0]).texts if text.strip()]
    assert facts[facts.index("workers lost") + 1] == "2"
    assert facts[facts.index("peak memory of a worker") + 1] == "200 MB"


# The log of the training


@pytest.fixture(scope="module")
def logged(blobs, tmp_path_factory):
    """A model that was loaded, the one that was trained, and the log of the training, with that of another one before."""
    folder = tmp_path_factory.mktemp("logged")
    make = partial(GDMCBoostClassifier, n_estimators=2, callbacks=[EventLog(folder / "run.jsonl")])
    make(max_depth=1).fit(*blobs)
    trained = make(max_depth=2).fit(*blobs)
    trained.save(folder / "m")
    return distboost.load(folder / "m"), trained, folder / "run.jsonl"


def test_the_training_of_a_loaded_model_comes_from_its_log(logged, blobs, written):
    loaded, trained, log = logged
    facts = [text.strip() for text in Page(written(loaded, *blobs, events=log)[0]).texts if text.strip()]
    took, plan = trained.training_record_, trained.memory_plan_
    for name, value in {
        "trained": took.runtime,
        "time of fit": f"{took.seconds:.3g} s",
        "peak memory of this process": megabytes(took.peak_bytes),
        "memory planned for the process": f"{megabytes(plan.n_bytes)}, no limit",
    }.items():
        assert facts[facts.index(name) + 1] == value
    assert {"time of the phase scan", "time of the phase load"} <= set(facts)
    assert "a model file does not hold them" not in " ".join(facts)


def test_logs_without_the_number_of_rows_are_read(logged, blobs, written):
    loaded, _trained, log = logged
    events = [json.loads(line) for line in log.read_text().splitlines()]
    for event in events:
        if event["event"] == "fitted":
            del event["took"]["n_rows"]
    assert "rows trained on" in written(loaded, *blobs, events=log)[0]
    assert "rows trained on" not in written(loaded, *blobs, events=stored(log, events))[0]


def test_a_training_on_a_cluster_comes_from_its_log(blobs, clients, written, tmp_path):
    model = GDMCBoostClassifier(
        n_estimators=2, calibration=None, callbacks=[EventLog(tmp_path / "run.jsonl")]
    )
    model.client = clients[2]
    model.fit(*blobs)
    model.save(tmp_path / "m")
    text, _ = written(distboost.load(tmp_path / "m"), *blobs, events=tmp_path / "run.jsonl")
    facts = [one.strip() for one in Page(text).texts if one.strip()]
    assert facts[facts.index("workers lost") + 1] == "0"
    assert facts[facts.index("peak memory of a worker") + 1] == megabytes(
        max(model.training_record_.worker_peak_bytes)
    )
    assert "memory planned for the process that called fit" in facts


def test_a_killed_training_before_does_not_count(logged):
    """Not even if the next one took longer until its first line; their lines may also be mixed."""
    _, trained, log = logged
    expected = event_record.logged(str(log), trained.digest())
    killed, whole = two_trainings(log)
    for event in killed:
        event["seconds"] = 0.0
    for events in ([*killed, *whole], [*whole[:1], *killed, *whole[1:]]):
        assert event_record.logged(stored(log, events), trained.digest()) == expected


def test_a_killed_training_before_does_not_count_in_logs_without_identifiers(logged):
    _, trained, log = logged
    expected = event_record.logged(str(log), trained.digest())
    killed, whole = two_trainings(log)
    for event in killed + whole:
        del event["training"]
    assert event_record.logged(stored(log, [*killed, *whole]), trained.digest()) == expected


def two_trainings(log):
    """The events of the first training up to its last round, and all of the second one."""
    events = [json.loads(line) for line in log.read_text().splitlines()]
    last = [event["event"] for event in events].index("fitted")
    return [event for event in events[:last] if event["event"] != "end"], events[last + 1 :]


def stored(log, events):
    place = log.with_name("killed.jsonl")
    place.write_text("".join(f"{json.dumps(event)}\n" for event in events))
    return str(place)


def test_logs_that_do_not_belong_to_the_model(logged, model, blobs, tmp_path, monkeypatch):
    monkeypatch.setattr("distboost.reporting.report.evaluated", None)  # found before any row is read
    loaded, _, log = logged
    page = tmp_path / "report.html"

    def refused(events, match, judged=loaded):
        with pytest.raises(DataError, match=match):
            distboost.report(judged, *blobs, page, events=events)

    refused(log, rf"is the log of another model, with SHA-256 .* or {loaded.digest()}; this one has", model)
    refused(tmp_path / "none", "there is no log of events at")
    lines = log.read_text().splitlines(keepends=True)
    damaged = tmp_path / "damaged.jsonl"
    for line in (
        lines[1][:-9],
        "7",
        "{}",
        '{"event": "fitted", "seconds": 1, "model": 3, "took": {}, "memory": {}}',
        lines[-1].replace('"workers_lost": 0', '"workers_lost": "none"'),
        lines[-1].replace('"worker_peak_bytes": []', '"worker_peak_bytes": ["x"]'),
        lines[-1].replace('"event": "fitted"', '"event": 5'),
    ):
        damaged.write_text(lines[0] + line.rstrip() + "\n" + "".join(lines[2:]))
        refused(damaged, r"line 2 of .*damaged.jsonl is no event of a run")
    damaged.write_text("".join(line for line in lines if '"fitted"' not in line))
    refused(damaged, "has no line of a model that was fitted")


# The same bytes


def test_the_same_bytes_from_any_source(model, blobs, written, tmp_path, clients, monkeypatch):
    monkeypatch.setattr("distboost.prediction.streamed.TASK_BYTES", 1000)
    for name, values in zip("xy", blobs, strict=True):
        zarr.create_array(str(tmp_path / name), data=values, chunks=(50, *values.shape[1:]))
    urls = [str(tmp_path / name) for name in "xy"]
    local, _ = written(model, *urls)
    assert written(model, *urls)[0] == local
    model.client = clients[2]
    try:
        assert written(model, *urls)[0] == local
    finally:
        del model.client
    in_memory, _ = written(model, *blobs)
    assert in_memory.replace("an array in memory", f"{tmp_path.name}/x") == local
    assert str(tmp_path) not in local  # folders of this machine are nobody's business


# Bad input


def test_a_page_that_cannot_be_written_is_refused_early(model, blobs, tmp_path, monkeypatch):
    monkeypatch.setattr("distboost.reporting.report.evaluated", None)
    with pytest.raises(StoreError, match=r"the folder .*none does not exist"):
        distboost.report(model, *blobs, tmp_path / "none/report.html")
    with pytest.raises(StoreError, match="is a folder"):
        distboost.report(model, *blobs, tmp_path)


def test_an_unknown_label_is_refused(model, blobs, tmp_path):
    X, y = blobs
    with pytest.raises(DataError, match="in row 0, which is none of the 3 classes"):
        distboost.report(model, X, y + 7, tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()


def test_rows_of_one_class_have_no_area_and_the_page_says_so(model, blobs, written):
    one = blobs[1] == 0
    page, found = written(model, blobs[0][one], blobs[1][one])
    assert np.isnan(found["auc_ovr"])
    assert "nan" not in " ".join(Page(page).texts).split()
    assert "no class has rows of its own and others" in page
