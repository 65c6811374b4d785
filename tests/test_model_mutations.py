"""Models and checkpoints from strangers: every truncation and thousands of mutations are valid or a ModelFormatError."""

import copy
import json
import struct
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
import safetensors.numpy
from click.testing import CliRunner

import distboost
from distboost.cli import main
from distboost.errors import LimitError, ModelFormatError
from distboost.estimators.factory import estimator
from distboost.io.files import decoded, encoded
from distboost.model.checkpoint import MANIFEST, Manifest, Segment

MUTATIONS = [60, pytest.param(1000, marks=pytest.mark.soak)]  # of each of the models

# What loading may take: memory in proportion to the file, and what is needed for any.
MULTIPLE, CONSTANT = 64, 2**25

MODELS = {
    "direction": ("gd-mcboost", {"max_depth": 3}),
    "codeword": ("gd-mcboost", {"leaf": "codeword", "max_depth": 2}),
    "os-zero-one": ("adaboost-mm", {"strategy": "os-zero-one", "edge": 0.2, "max_depth": 2}),
    "fixed": ("adaboost-mm", {"strategy": "fixed", "edge": [0.3, 0.2], "alphas": [0.4, 0.3], "max_depth": 2}),
    "similarities": ("rebel", {"weak_learner": "similarity"}),
    "one-vs-all": ("one-vs-all", {}),
    "every partition": ("adaboost-mo", {}),
    "colorings": ("adaboost-ecc", {"colorings": [[1, -1, -1], [1, 1, -1]]}),
    "corrective": ("multiboost", {}),
    "categories": ("gd-mcboost", {"max_depth": 2, "categorical_features": ["u"]}),
    "coordinates": ("cd-mcboost", {"class_weight": {"a": 2.0, "b": 1, "c": 1}}),
}


def trained(name, **more):
    """A small model: 2 rounds, 2 features with names, labels that are text."""
    y = np.arange(30) % 3
    X = np.random.default_rng(0).normal(size=(30, 2)) + np.eye(3, 2)[y]
    X, labels = pd.DataFrame(X, columns=["u", "v"]), np.array(["a", "b", "c"])[y]
    algorithm, parameters = MODELS[name]
    if "categorical_features" in parameters:
        X["u"] = np.array([2.0, -1.5, 7.0])[y]
    model = estimator(algorithm)(n_estimators=2, n_jobs=1, **parameters, **more)
    return model.fit(X, labels, eval_set=(X, labels))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The bytes of the models' files."""
    path = tmp_path_factory.mktemp("models") / "model"
    found = {}
    for name in MODELS:
        trained(name).save(path)
        found[name] = path.read_bytes()
    return found


@pytest.fixture
def traced():
    tracemalloc.start()
    yield
    tracemalloc.stop()


def is_model(path, n_bytes) -> bool:
    """Whether it is one; nothing but ModelFormatError is raised, and memory is kept to."""
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    try:
        model = distboost.load(path)
    except ModelFormatError as error:
        assert str(path) in str(error)  # noqa: PT017 (most are valid, or not, by chance)
        model = None
    taken = tracemalloc.get_traced_memory()[1] - before
    assert taken <= MULTIPLE * n_bytes + CONSTANT, f"{taken} bytes for {n_bytes}"
    if model is not None:
        predict(model)
    return model is not None


@pytest.fixture
def is_valid(tmp_path, traced):
    """is_valid(content): whether these bytes are a model."""
    path = tmp_path / "strange.model"

    def check(content: bytes) -> bool:
        path.write_bytes(content)
        return is_model(path, len(content))

    return check


def predict(model):
    """Numbers may be beyond what a float holds; but there are as many as there are to be."""
    model.n_jobs = 1
    if model.n_features_in_ > 1000:
        with pytest.raises(ValueError, match="features"):
            model.scores(np.zeros((3, 2)))
        return
    X = np.linspace(-2, 2, 3 * model.n_features_in_).reshape(3, -1)
    X[0, 0] = np.nan
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        assert model.scores(X).shape == model.predict_proba(X).shape == (3, len(model.classes_))
        assert set(model.predict(X).tolist()) <= set(model.classes_.tolist())
        assert model.feature_importances_.shape == (model.n_features_in_,)


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.soak)])
@pytest.mark.parametrize("name", ["direction", "similarities", "os-zero-one"])
def test_every_truncation(name, step, files, is_valid):
    content = files[name]
    assert is_valid(content)
    for length in {*range(300), *range(0, len(content), step), *range(len(content) - 300, len(content))}:
        assert not is_valid(content[:length])


# Bytes.


def flipped(content, rng, others):
    changed = bytearray(content)
    for at in rng.integers(0, len(content), rng.integers(1, 5)):
        changed[at] ^= int(rng.integers(1, 256))
    return bytes(changed)


def inserted(content, rng, others):
    at = rng.integers(len(content))
    return content[:at] + rng.bytes(rng.integers(1, 64)) + content[at:]


def deleted(content, rng, others):
    at = rng.integers(len(content))
    return content[:at] + content[at + rng.integers(1, 64) :]


def spliced(content, rng, others):
    other = others[rng.integers(len(others))]
    return content[: rng.integers(len(content))] + other[rng.integers(len(other)) :]


def described_otherwise(content, rng, others):
    """What safetensors is told of its arrays."""
    length = int.from_bytes(content[:8], "little")
    head = json.loads(content[8 : 8 + length])
    told = head[rng.choice([name for name in head if name != "__metadata__"])]
    way = rng.integers(3)
    if way == 0:
        told["dtype"] = str(rng.choice(["F64", "I64", "BF16", "F8_E4M3", "U8", "C64", "BOOL", "O"]))
    elif way == 1:
        told["shape"] = [int(rng.choice(SIZES)) for _ in range(rng.integers(0, 4))]
    else:
        told["data_offsets"][rng.integers(2)] = int(rng.choice(SIZES))
    text = json.dumps(head).encode()
    return struct.pack("<Q", len(text)) + text + content[8 + length :]


# Headers and arrays that are meant: the checksum is theirs.

SIZES = np.array([0, 1, 2, 3, 5, 1000, 10**6, 10**9, 2**31, 10**12, 10**18, 2**63 - 1])


def nested(depth):
    found = []
    for _ in range(depth):
        found = [found]
    return found


STRANGE = [
    0, 1, -1, 2, 7, 255, 10**6, 2**31 - 1, 2**31, 2**63, 10**18, 10**300, 10**4000, -(10**18), 0.5, -0.0, 1e-300, 1e308,
    float("nan"), float("inf"), True, False, None, "", "a", "x" * 5000, "\ud800", "1", [], [0], {}, {"a": 1}, [[1, 2]],
    ["a", "b", "c"], ["a", "b", "x" * 3000], [0, 1, 2], [0.5, 1.5], [False, True], [None, None], [["a", 1]], "gamble",
    "rebel", "adaboost-mo", "os-zero-one", "similarity", "separated", nested(40), nested(400),
]  # fmt: skip
DTYPES = [
    "O", "|O", "|V1000000000", "<U1000000000", "<U100000000", "|S1000000000", "<U1", "<U3", "<i8", "|u1", "|b1", "<f8", "<f2",
    "<M8[D]", "(1000000000,)f8", "f8,f8", "(,)f8", "(((((", "|T16", [["a", "<f8", [10**9]]], {"names": ["a"], "formats": ["O"]},
]  # fmt: skip
WIDE = [["a"] * 3 + ["b" * 2000], list(range(3000)), [f"{i:04}" for i in range(3000)] + ["z" * 30_000]]


def with_header(content, rng, others):
    header, arrays = decoded(content, "")
    for _ in range(rng.integers(1, 3)):
        alter(header, rng)
    return encoded_anyway(header, arrays)


def alter(header, rng):
    way = rng.integers(8)
    if way == 0:
        header["class_dtype"] = DTYPES[rng.integers(len(DTYPES))]
    elif way == 1:
        header["classes"] = WIDE[rng.integers(len(WIDE))]
        header["class_dtype"] = ["|O", "<i8", "<U2000", "<U30000"][rng.integers(4)]
    elif way == 2:
        header[("n_features", "outcome", "feature_names", "algorithm")[rng.integers(4)]] = strange(rng)
    else:
        place = (
            header
            if way == 3
            else header["parameters"]
            if isinstance(header.get("parameters"), dict)
            else header
        )
        names = sorted(place)
        name = names[rng.integers(len(names))]
        if way == 4:
            del place[name]
        elif way == 5:
            place[("checkpoint", "scratch", "callbacks", "n_jobs", "a")[rng.integers(5)]] = strange(rng)
        else:
            place[name] = strange(rng)


def strange(rng):
    return copy.deepcopy(STRANGE[rng.integers(len(STRANGE))])


def with_arrays(content, rng, others):
    header, arrays = decoded(content, "")
    with np.errstate(all="ignore"):
        arrays = altered(arrays, rng)
    return encoded_anyway(header, arrays)


def altered(arrays, rng):
    arrays = {name: array.copy() for name, array in arrays.items()}
    for _ in range(rng.integers(1, 3)):
        name = sorted(arrays)[rng.integers(len(arrays))]
        array, way = arrays[name], rng.integers(7)
        if way == 0:
            arrays[name] = array.astype([np.float32, np.int64, np.int8, np.float64][rng.integers(4)])
        elif way == 1:
            arrays[name] = array[: rng.integers(len(array) + 1)]
        elif way == 2:
            arrays[name] = np.concatenate([array, array])
        elif way == 3:
            arrays[name] = np.zeros((0, int(SIZES[rng.integers(9)])), array.dtype)
        elif way == 4:
            del arrays[name]
        else:
            extremes(array, rng)
    return arrays


def extremes(array, rng):
    """Some entries as large, as small or as odd as can be."""
    if not array.size:
        return
    flat = array.reshape(-1)
    for at in rng.integers(0, flat.size, rng.integers(1, 4)):
        if array.dtype.kind == "f":
            flat[at] = rng.choice([np.nan, np.inf, -np.inf, 1e308, -1e308, 1e-320, 0.0, 1.0])
        elif array.dtype.kind == "b":
            flat[at] = not flat[at]
        else:
            limits = np.iinfo(array.dtype)
            given = np.array([limits.min, limits.max, *range(-2 if limits.min else 0, 4)], array.dtype)
            flat[at] = rng.choice(given)


def with_keys_twice(content, rng, others):
    header, _ = decoded(content, "")
    whole = safetensors.numpy.load(content)
    length = int.from_bytes(content[:8], "little")
    text = json.loads(content[8 : 8 + length])["__metadata__"]["distboost"]
    name = sorted(header)[rng.integers(len(header))]
    more = json.dumps({name: strange(rng)})[1:-1]
    text = f"{text[:-1]}, {more}}}" if rng.integers(2) else f"{{{more}, {text[1:]}"
    return safetensors.numpy.save(whole, metadata={"distboost": text.encode(errors="replace").decode()})


def encoded_anyway(header, arrays):
    try:
        return encoded(header, arrays)
    except ValueError:  # a number of more digits than are written
        return b""


WAYS = [
    flipped, inserted, deleted, spliced, described_otherwise, with_keys_twice, with_header, with_header, with_header,
    with_arrays, with_arrays,
]  # fmt: skip


@pytest.mark.parametrize("mutations", MUTATIONS)
@pytest.mark.parametrize("name", MODELS)
def test_mutations(name, mutations, files, is_valid):
    rng = np.random.default_rng(sorted(MODELS).index(name))
    content, others = files[name], list(files.values())
    valid = 0
    for number in range(mutations):
        changed = WAYS[number % len(WAYS)](content, rng, others)
        valid += is_valid(changed)
    assert 0 < valid < mutations // 2  # both are tried


# One by one: what chance might miss.


def changed(content, change):
    header, arrays = decoded(content, "")
    arrays = {name: array.copy() for name, array in arrays.items()}
    change(header, arrays)
    return encoded(header, arrays)


def no_rounds(header, arrays):
    """Nothing tells how many classes there are, but for their names."""
    for name, array in arrays.items():
        arrays[name] = array[:1] if name in ("roots", "value_offsets") else array[:0]
    header["classes"], header["class_dtype"] = list(range(30_000)), "<i8"
    arrays["values"] = np.zeros((0, 30_000))


def offsets_that_overflow(header, arrays):
    """In 64 bits, none of their differences is negative, and all of them fit."""
    n = len(arrays["feature"])
    arrays["roots"] = np.array([0, 2**63 - 2, -4, n])
    arrays["value_offsets"] = np.array([0, 2**63 - 1, -2, n + 3])
    arrays["values"] = np.zeros((n + 3, 3))


def names_that_pad(header, arrays):
    header["classes"] = [f"{i:05}" for i in range(20_000)] + ["z" * 100_000]
    header["class_dtype"] = "<U100000"


def classes_of_vast_codes(header, arrays):
    """A column for every way to part them in two."""
    no_rounds(header, arrays)
    header["classes"] = list(range(27))


def gains_past_the_largest(header, arrays):
    """Each of them is a number, their sum is none."""
    arrays["gain"][:2] = 1.7e308


STRANGERS = {
    "classes of vast codes": (False, "every partition", classes_of_vast_codes),
    "a gain that is no number": (False, "direction", lambda h, a: a["gain"].put(0, np.nan)),
    "an infinite gain": (False, "direction", lambda h, a: a["gain"].put(0, np.inf)),
    "gains past the largest": (True, "direction", gains_past_the_largest),
    "many classes of which no tree tells": (True, "one-vs-all", no_rounds),
    "offsets that overflow": (False, "direction", offsets_that_overflow),
    "names as long as the longest": (False, "direction", names_that_pad),
    "a vast number of rounds": (True, "os-zero-one", lambda h, a: h["parameters"].update(n_estimators=10**12)),
    "a vast number of features": (False, "direction", lambda h, a: h.update(n_features=10**18, feature_names=None)),
    "a place to write to": (False, "direction", lambda h, a: h["parameters"].update(checkpoint="/tmp/elsewhere")),
    "who is to be called": (False, "direction", lambda h, a: h["parameters"].update(callbacks=["print"])),
    "features named by a text": (False, "direction", lambda h, a: h.update(feature_names="uv")),
    "labels that are equal as integers": (False, "direction", lambda h, a: h.update(classes=[0.1, 0.2, 1], class_dtype="<i8")),
    "losses without errors": (False, "direction", lambda h, a: a.pop("train_error")),
}  # fmt: skip


@pytest.mark.parametrize(("valid", "name", "change"), STRANGERS.values(), ids=STRANGERS)
def test_strangers(valid, name, change, files, is_valid):
    assert is_valid(changed(files[name], change)) == valid


def test_inspecting_a_model_of_many_features(files, tmp_path):
    """Which may not take memory for each."""
    content = changed(files["direction"], lambda h, a: h.update(n_features=2**31 - 1, feature_names=None))
    (tmp_path / "model").write_bytes(content)
    tracemalloc.start()
    done = CliRunner().invoke(main, ["inspect", str(tmp_path / "model")])
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert done.exit_code == 0, done.output
    assert "2147483647" in done.output
    assert taken < CONSTANT
    with pytest.raises(
        LimitError,
        match=r"has 2147483647 features, but the limit of feature_importances_",
    ):
        distboost.load(tmp_path / "model").feature_importances_  # noqa: B018


@pytest.mark.parametrize("name", ["direction", "similarities"])
def test_a_model_of_a_hundred_thousand_features(name, tmp_path):
    """One tree, which knows two of them: a small file, and all that models can."""
    n = 10**5
    X = np.zeros((4, n), np.float32)
    X[2:, [7, n - 1]] = [[1, 2], [1, 3]]
    algorithm, parameters = MODELS[name]
    model = estimator(algorithm)(n_estimators=1, n_jobs=1, **parameters).fit(X, [0, 0, 1, 1])
    model.save(tmp_path / "model")
    again = distboost.load(tmp_path / "model")
    assert again.n_features_in_ == len(again.feature_importances_) == n
    assert again.feature_importances_.tolist() == model.feature_importances_.tolist()
    assert again.predict(X).tolist() == [0, 0, 1, 1]


def test_importances_of_as_many_features_as_the_limit(files, tmp_path):
    header = {"n_features": 2**24, "feature_names": None}
    (tmp_path / "model").write_bytes(changed(files["direction"], lambda h, a: h.update(header)))
    found = distboost.load(tmp_path / "model").feature_importances_
    assert found.shape == (2**24,)
    assert found.sum() == pytest.approx(1)


# Checkpoints.


@pytest.mark.parametrize("name", ["direction", "corrective"])
def test_mutations_of_a_checkpoint(name, tmp_path, traced):
    """The manifest's header, its list of segments, or a segment; digests and checksums are theirs."""
    folder = tmp_path / "strange"
    trained(name, checkpoint=folder, checkpoint_every=1)
    kept = {path.name: path.read_bytes() for path in folder.iterdir()}
    n_bytes = sum(map(len, kept.values()))
    rng = np.random.default_rng(0)
    valid = 0
    for number in range(120):
        header, segments = Manifest.decoded(kept[MANIFEST], "")
        contents = {segment: kept[segment.name] for segment in segments}
        if number % 4 == 0:
            alter(header, rng)
        elif number % 4 == 1:
            header["rounds"] = strange(rng)
        chosen = segments[rng.integers(len(segments))]
        if number % 4 == 2:
            contents[chosen] = with_arrays(contents[chosen], rng, [])
        if number % 4 == 3:
            moved = chosen._replace(**{("first", "last")[rng.integers(2)]: int(rng.choice(SIZES))})
            contents = {moved if segment == chosen else segment: c for segment, c in contents.items()}
        made = {Segment.of(s.first, s.last, content): content for s, content in contents.items()}
        try:
            (folder / MANIFEST).write_bytes(Manifest(header, tuple(made)).encoded())
        except ValueError:  # a number of more digits than are written
            continue
        for segment, content in made.items():
            (folder / segment.name).write_bytes(content)
        valid += is_model(folder, n_bytes + (folder / MANIFEST).stat().st_size)
    assert 6 < valid < 90
