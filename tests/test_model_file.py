"""Model files: what is saved is loaded, and nothing else is."""

import json
import struct

import numpy as np
import pandas as pd
import pytest

import distboost
from distboost import AdaBoostMMClassifier, GAMBLEClassifier, GDMCBoostClassifier
from distboost.baselines import OneVsAllAdaBoostClassifier
from distboost.errors import ModelFormatError
from distboost.estimators.factory import estimator
from distboost.io.files import read_file, write_file

MODELS = {
    "direction": lambda **p: GDMCBoostClassifier(n_estimators=3, max_depth=3, **p),
    "codeword": lambda **p: GDMCBoostClassifier(
        calibration=None, n_estimators=3, leaf="codeword", max_depth=2, **p
    ),
    "best first": lambda **p: GDMCBoostClassifier(calibration=None, n_estimators=3, max_leaf_nodes=6, **p),
    "gamble": lambda **p: GAMBLEClassifier(n_estimators=3, **p),
    "a tree for each class": lambda **p: OneVsAllAdaBoostClassifier(calibration=None, n_estimators=3, **p),
    "notes of each round": lambda **p: AdaBoostMMClassifier(
        calibration=None, n_estimators=3, max_depth=2, **p
    ),
}


@pytest.fixture(params=MODELS.values(), ids=MODELS)
def make(request):
    return request.param


@pytest.fixture
def file(blobs, tmp_path):
    """The path of a small model's file."""
    path = tmp_path / "small.model"
    GDMCBoostClassifier(n_estimators=3, max_depth=3).fit(*blobs).save(path)
    return path


# Round trips. (Of each algorithm: tests/algorithms/test_contract.py; of labels: test_labels.py.)


def assert_round_trip(model, X, tmp_path):
    path = tmp_path / "round.model"
    model.save(path)
    again = distboost.load(path)
    assert type(again) is type(model)
    assert again.classes_.dtype == model.classes_.dtype
    for name in ("classes_", "train_loss_", "train_error_", "feature_importances_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
    for name in ("n_iter_", "best_iteration_", "outcome_", "n_features_in_", "n_classes_"):
        assert getattr(again, name) == getattr(model, name)
    for method in ("scores", "predict", "predict_proba", "decision_function"):
        np.testing.assert_array_equal(getattr(again, method)(X), getattr(model, method)(X))
    second = tmp_path / "second.model"
    again.save(second)
    assert second.read_bytes() == path.read_bytes()
    return again


@pytest.mark.parametrize(
    ("labels", "class_weight"),
    [
        (np.array([0, 1, 2]), {0: 1, 2: 2.5}),
        (np.array([0, 1, 2]), {np.int64(1): np.float64(3)}),
        (np.array(["a", "b", "c"]), {"a": 2}),
        (np.array([True, False, True]), {True: 3, False: 1}),
        (np.array([0, 1, 2]), "balanced"),
    ],
    ids=str,
)
def test_round_trip_of_class_weights(labels, class_weight, blobs, tmp_path):
    model = MODELS["gamble"](class_weight=class_weight).fit(blobs[0], labels[blobs[1]])
    again = assert_round_trip(model, blobs[0], tmp_path)
    assert again.class_weight == class_weight


def test_round_trip_of_feature_names(blobs, tmp_path):
    frame = pd.DataFrame(blobs[0], columns=["a", "b", "ü", "d e"])
    model = MODELS["gamble"]().fit(frame, blobs[1])
    again = assert_round_trip(model, frame, tmp_path)
    assert again.feature_names_in_.tolist() == ["a", "b", "ü", "d e"]
    assert again.feature_names_in_.dtype == model.feature_names_in_.dtype
    with pytest.raises(ValueError, match="feature names should match"):
        again.predict(frame.rename(columns={"a": "z"}))


def test_the_smallest_model(tmp_path):
    """One feature, and nothing to learn: not one tree."""
    X, y = np.zeros((6, 1)), [0, 1] * 3
    model = GDMCBoostClassifier(n_estimators=3).fit(X, y)
    assert model.n_iter_ == 0
    assert_round_trip(model, X, tmp_path)


# Equal trainings are equal files.


def test_equal_trainings_are_equal_bytes(make, blobs, saved):
    assert saved(make().fit(*blobs)) == saved(make().fit(*blobs))
    assert saved(make(random_state=None).fit(*blobs)) == saved(make(random_state=0).fit(*blobs))


def test_what_a_run_is_told_is_not_in_the_file(make, blobs, saved, capsys):
    expected = saved(make().fit(*blobs))
    told = make(n_jobs=1, verbose=1, memory_limit="2GB", missing_chunks="ignore", callbacks=[lambda p: None])
    content = saved(told.fit(*blobs))
    assert content == expected
    for name in (b"n_jobs", b"verbose", b"memory_limit", b"missing_chunks", b"callbacks"):
        assert name not in content
    capsys.readouterr()


def test_what_decides_the_model_is_in_the_file(make, blobs, saved):
    expected = saved(make().fit(*blobs))
    for parameters in ({"min_samples_leaf": 2}, {"random_state": 1}, {"max_bins": 254}):
        assert saved(make(**parameters).fit(*blobs)) != expected


def test_a_generator_as_random_state(make, blobs, saved):
    """Its one draw is the seed: of the training, of the file, and of every save."""
    model = make(subsample=0.5, random_state=np.random.RandomState(3)).fit(*blobs)
    first = saved(model)
    assert saved(model) == first
    again = make(subsample=0.5, random_state=np.random.RandomState(3)).fit(*blobs)
    assert saved(again) == first


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.parametrize("algorithm", ["cd-mcboost", "stagewise"])
def test_gains_past_the_largest_number(algorithm, tmp_path, monkeypatch):
    """Steps far longer than are allowed: the loss grows until a gain is no number."""
    monkeypatch.setattr("distboost.training.loop.LARGEST_LOSS", np.inf)
    monkeypatch.setitem(estimator(algorithm)._parameter_constraints, "learning_rate", [float])
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.integers(0, 3, 60)
    with np.errstate(invalid="ignore"):
        model = estimator(algorithm)(n_estimators=20, learning_rate=50.0, n_jobs=1).fit(X, y)
    assert model.learned_.ensemble.arrays()["gain"].max() == np.finfo(np.float64).max
    model.save(tmp_path / "model")
    again = distboost.load(tmp_path / "model")
    assert again.feature_importances_.tolist() == model.feature_importances_.tolist()
    assert again.feature_importances_.sum() == pytest.approx(1)


def test_an_ensemble_begins_with_its_own_first_rounds(make, blobs):
    ensemble = make().fit(*blobs).learned_.ensemble
    for n in range(4):
        assert ensemble.begins_with(ensemble.copy(n))
        assert ensemble.copy(n).begins_with(ensemble) == (n == 3)
    assert not ensemble.begins_with(make().fit(*blobs).learned_.ensemble)  # of another run
    assert not ensemble.begins_with(ensemble.part(1, 3))
    assert len(ensemble.part(1, 3)) == 2


# Damage.


def test_lengthened(file):
    content = file.read_bytes()
    for more in (b"\0", b"\0" * 8, content):
        file.write_bytes(content + more)
        with pytest.raises(ModelFormatError):
            distboost.load(file)


def test_altered_bytes(file, blobs):
    """A byte that is changed is noticed, unless it changes nothing."""
    content, expected = file.read_bytes(), distboost.load(file).scores(blobs[0])
    rng = np.random.default_rng(0)
    header = 8 + int.from_bytes(content[:8], "little")
    positions = [*range(12), *rng.integers(8, header, 120), *rng.integers(header, len(content), 168)]
    refused = 0
    for position in positions:
        altered = bytearray(content)
        altered[position] ^= int(rng.integers(1, 256))
        file.write_bytes(altered)
        try:
            found = distboost.load(file)
        except ModelFormatError:
            refused += 1
        else:
            np.testing.assert_array_equal(found.scores(blobs[0]), expected)
            assert found.classes_.tolist() == [0, 1, 2]
    assert refused > 280


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"distboost",
        b"\x80\x04K\x01.",
        b"{}",
        b"[1]" * 99,
        bytes(64),
        b"\xff" * 64,
        b"PK\x03\x04" + bytes(40),
    ],
    ids=["empty", "text", "pickle", "json", "list", "zeros", "ones", "zip"],
)
def test_other_files(content, tmp_path):
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(
        ModelFormatError, match=r"other \(\d+ bytes\) is not a distboost model, or is truncated"
    ):
        distboost.load(path)


@pytest.mark.parametrize(
    "metadata",
    [None, {}, {"distboost": "1"}, {"distboost": "[]"}, {"distboost": "{}"}, {"distboost": "["}, [1]],
)
def test_headers_of_other_programs(metadata, tmp_path):
    path = tmp_path / "other"
    head = json.dumps({} if metadata is None else {"__metadata__": metadata}).encode()
    path.write_bytes(struct.pack("<Q", len(head)) + head)
    with pytest.raises(ModelFormatError, match="is not a distboost model"):
        distboost.load(path)


@pytest.mark.parametrize("length", [2**16, 2**31, 2**62, 2**64 - 1])
def test_a_header_said_to_be_huge(length, file):
    content = file.read_bytes()
    file.write_bytes(struct.pack("<Q", length) + content[8:])
    with pytest.raises(ModelFormatError, match=r"its header is cut off"):
        distboost.load(file)


def test_a_header_said_to_be_a_byte_longer_than_the_file(file):
    content = file.read_bytes()
    for more, said in ((1, "its header is cut off"), (0, "truncated: (?!its header is cut off)")):
        file.write_bytes(struct.pack("<Q", len(content) - 8 + more) + content[8:])
        with pytest.raises(ModelFormatError, match=said):
            distboost.load(file)


@pytest.mark.parametrize("size", [10**6, 10**12, 2**63, 2**64])
def test_an_array_said_to_be_huge(size, file):
    content = file.read_bytes()
    length = int.from_bytes(content[:8], "little")
    head = json.loads(content[8 : 8 + length])
    head["values"]["shape"][0] = size
    head["values"]["data_offsets"][1] = size * 24
    told = json.dumps(head).encode()
    file.write_bytes(struct.pack("<Q", len(told)) + told + content[8 + length :])
    with pytest.raises(ModelFormatError, match=r"truncated|damaged"):
        distboost.load(file)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        distboost.load(tmp_path / "nowhere")


# Changes that come with a checksum of their own: the file is what someone meant to write.


def rewrite(path, change):
    header, arrays = read_file(str(path))
    arrays = {name: array.copy() for name, array in arrays.items()}
    change(header, arrays)
    write_file(str(path), header, arrays)


def test_rewriting_by_itself_changes_nothing(file):
    content = file.read_bytes()
    rewrite(file, lambda header, arrays: None)
    assert file.read_bytes() == content


@pytest.mark.parametrize("version", [4, 99, 0, "1", None])
def test_another_version(version, file, monkeypatch):
    header, arrays = read_file(str(file))
    header["version"] = version
    write_file(str(file), header, arrays)
    with pytest.raises(
        ModelFormatError, match=rf"has format version {version!r}, but this library reads versions 1 to 3"
    ):
        distboost.load(file)


def test_a_header_changed_under_the_old_checksum(file):
    content = file.read_bytes()
    changed = content.replace(b'\\"learning_rate\\": 1.0', b'\\"learning_rate\\": 2.0')
    assert changed != content
    file.write_bytes(changed)
    with pytest.raises(
        ModelFormatError, match=r"was altered: its checksum does not match\. Copy the file again"
    ):
        distboost.load(file)


def set_item(name, index, value):
    def change(header, arrays):
        arrays[name][index] = value

    return change


def swap_children(header, arrays):
    arrays["left"], arrays["right"] = arrays["right"], arrays["left"]


def test_swapped_sides_are_another_tree(file, blobs):
    """No damage: the file says so itself."""
    before = distboost.load(file).scores(blobs[0])
    rewrite(file, swap_children)
    assert (distboost.load(file).scores(blobs[0]) != before).any()


DAMAGE = {
    "a node its own child": set_item("left", 0, 0),
    "a node its parent's parent": set_item("right", 1, 0),
    "a child in another tree": set_item("left", 0, 10**6),
    "the largest child": set_item("right", 0, 2**31 - 1),
    "a leaf that is not there": set_item("left", 0, -100),
    "the lowest leaf": set_item("left", 0, -(2**31)),
    "a feature that is not there": set_item("feature", 0, 4),
    "a negative feature": set_item("feature", 0, -1),
    "a threshold that is no number": set_item("threshold", 0, np.nan),
    "a gain that is no number": set_item("gain", 0, np.nan),
    "an infinite gain": set_item("gain", 0, np.inf),
    "an infinite value": set_item("values", (0, 0), np.inf),
    "a value that is no number": set_item("values", (0, 1), np.nan),
    "roots that decrease": set_item("roots", 1, -1),
    "roots past the end": set_item("roots", -1, 10**9),
    "roots that do not begin at 0": set_item("roots", 0, 1),
    "leaves of other trees": set_item("value_offsets", 1, 1),
}
for _name in (
    "feature",
    "threshold",
    "missing_left",
    "left",
    "right",
    "gain",
    "roots",
    "values",
    "value_offsets",
):
    DAMAGE |= {
        f"no {_name}": lambda header, arrays, name=_name: arrays.pop(name),
        f"{_name} cut short": lambda header, arrays, name=_name: arrays.update({name: arrays[name][:-1]}),
        f"{_name} of no entries": lambda header, arrays, name=_name: arrays.update({name: arrays[name][:0]}),
        f"{_name} of another type": lambda header, arrays, name=_name: arrays.update(
            {name: arrays[name].astype(np.float32)}
        ),
        f"{_name} of another shape": lambda header, arrays, name=_name: arrays.update(
            {name: arrays[name][..., None]}
        ),
        f"{_name} a single number": lambda header, arrays, name=_name: arrays.update(
            {name: arrays[name].reshape(-1)[0].reshape(())}
        ),
    }


@pytest.mark.parametrize("change", DAMAGE.values(), ids=DAMAGE)
def test_invalid_trees_are_refused(change, file):
    rewrite(file, change)
    with pytest.raises(ModelFormatError):
        distboost.load(file)


def test_trees_that_are_not_whole_rounds(blobs, file):
    """One tree of a round is gone, and everything else fits."""
    OneVsAllAdaBoostClassifier(n_estimators=3).fit(*blobs).save(file)

    def drop_last_tree(header, arrays):
        inner, leaves = arrays["roots"][-2], arrays["value_offsets"][-2]
        for name in ("feature", "threshold", "missing_left", "left", "right", "gain"):
            arrays[name] = arrays[name][:inner]
        for name in ("values", "leaf_rows", "leaf_weight"):
            arrays[name] = arrays[name][:leaves]
        arrays["roots"], arrays["value_offsets"] = arrays["roots"][:-1], arrays["value_offsets"][:-1]

    rewrite(file, drop_last_tree)
    with pytest.raises(ModelFormatError, match="8 trees are not a multiple of 3"):
        distboost.load(file)


NOTES = {
    "none": lambda arrays: arrays.pop("note edge"),
    "cut short": lambda arrays: arrays.update({"note edge": arrays["note edge"][:-1]}),
    "too many": lambda arrays: arrays.update({"note edge": np.zeros(4)}),
    "of another type": lambda arrays: arrays.update({"note edge": np.zeros(3, np.float32)}),
    "of two dimensions": lambda arrays: arrays.update({"note edge": np.zeros((3, 1))}),
}


@pytest.mark.parametrize("change", NOTES.values(), ids=NOTES)
def test_notes_that_do_not_fit(change, blobs, file):
    AdaBoostMMClassifier(n_estimators=3).fit(*blobs).save(file)
    rewrite(file, lambda header, arrays: change(arrays))
    with pytest.raises(ModelFormatError, match=r"small\.model|history"):
        distboost.load(file)


def update(**items):
    return lambda header, arrays: header.update(items)


HEADERS = {
    "an algorithm of the future": update(algorithm="gd-mcboost-2"),
    "an algorithm that is a list": update(algorithm=["gd-mcboost"]),
    "unknown parameters": update(parameters={"depth": 3}),
    "a parameter out of range": update(parameters={"n_estimators": -3}),
    "parameters that are none": update(parameters=7),
    "no parameters": lambda header, arrays: header.pop("parameters"),
    "no classes": update(classes=[]),
    "one class": update(classes=[0]),
    "more classes": update(classes=[0, 1, 2, 3]),
    "nested classes": update(classes=[[0, 1], [1, 2], [2, 3]]),
    "classes that are a number": update(classes=3),
    "classes of another type": update(classes=["a", "b", "c"]),
    "classes twice": update(classes=[0, 1, 1]),
    "classes not sorted": update(classes=[2, 1, 0]),
    "a type that is none": update(class_dtype="numbers"),
    "classes said to be huge": update(classes=["a", "b", "c"], class_dtype="<U10000000"),
    "a negative number of features": update(n_features=-1),
    "fewer features": update(n_features=1),
    "features that are no number": update(n_features="many"),
    "a number of features with decimals": update(n_features=4.0),
    "no number of rounds": update(rounds=True),
    "an endless number of features": update(n_features=float("inf")),
    "other feature names": update(feature_names=["a"]),
    "feature names that are none": update(feature_names=5),
    "a class weight that is none": update(parameters={"class_weight": [1, 2]}),
    "a history of two dimensions": lambda header, arrays: arrays.update(train_loss=np.zeros((3, 2))),
    "a history of another length": lambda header, arrays: arrays.update(train_loss=np.zeros(99)),
    "a history of other numbers": lambda header, arrays: arrays.update(train_error=np.zeros(3, np.int64)),
    "no history": lambda header, arrays: arrays.pop("train_loss"),
}


@pytest.mark.parametrize("change", HEADERS.values(), ids=HEADERS)
def test_headers_that_do_not_fit(change, file):
    rewrite(file, change)
    with pytest.raises(ModelFormatError, match=r"small\.model|damaged|history"):
        distboost.load(file)
