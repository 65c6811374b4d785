"""Checkpoints whose files were damaged or altered: an error that names the file."""

import json
import re
import shutil

import numpy as np
import pytest

import distboost
from distboost import REBELClassifier
from distboost.baselines import MultiBoostClassifier
from distboost.errors import ModelFormatError
from distboost.io.files import decoded, encoded
from distboost.model.checkpoint import MANIFEST, _checksum
from tests.checkpoints.trainings import fitted, rounds


@pytest.fixture
def folder(problem, tmp_path):
    """A checkpoint of three segments."""
    fitted(
        REBELClassifier(
            calibration=None, n_estimators=7, n_jobs=1, checkpoint=tmp_path / "c", checkpoint_every=3
        ),
        problem,
    )
    return tmp_path / "c"


def damaged(content, rng):
    """Cut short, lengthened, or with bytes changed."""
    way = rng.integers(4)
    if way == 0:
        return content[: rng.integers(len(content))]
    if way == 1:
        return content + rng.bytes(rng.integers(1, 20))
    changed = bytearray(content)
    for at in rng.integers(0, len(content), rng.integers(1, 4)):
        changed[at] ^= int(rng.integers(1, 256))
    return bytes(changed)


def test_damaged_files_are_named(folder, problem, saved):
    expected = saved(distboost.load(folder))
    rng = np.random.default_rng(1)
    for path in sorted(folder.iterdir()):
        content, told = path.read_bytes(), []
        for _ in range(100):
            path.write_bytes(damaged(content, rng))
            try:
                found = distboost.load(folder)
            except ModelFormatError as error:
                told.append(path.name in str(error))
            else:
                assert path.name == MANIFEST  # white space, which changes nothing
                assert saved(found) == expected
        assert len(told) > 80
        assert all(told)
        path.unlink()
        with pytest.raises(
            ModelFormatError, match=re.escape(path.name) if path.name != MANIFEST else "without a complete"
        ):
            distboost.load(folder)
        path.write_bytes(content)
    assert saved(distboost.load(folder)) == expected


def test_a_damaged_checkpoint_is_replaced_not_resumed(folder, problem):
    path = next(folder.glob("rounds-3-*"))
    path.write_bytes(path.read_bytes()[:-1])
    model = REBELClassifier(calibration=None, n_estimators=7, n_jobs=1, checkpoint=folder)
    with pytest.raises(ModelFormatError, match=path.name):
        fitted(model, problem, resume=True)
    # The segment may be restored.
    with pytest.warns(UserWarning, match="has 7 rounds of an earlier run"):
        fitted(model, problem)
    assert rounds(folder) == [(0, 7)]
    (folder / MANIFEST).write_text("{")
    fitted(model, problem)
    assert distboost.load(folder).n_iter_ == 7


def segment(number, **items):
    return lambda found: found["segments"][number].update(items)


def header(**items):
    return lambda found: found["header"].update(items)


MANIFESTS = {
    "another format": lambda found: found.update(format="zip"),
    "another version": lambda found: found.update(version=99),
    "no segments": lambda found: found.pop("segments"),
    "segments that are a number": lambda found: found.update(segments=3),
    "fewer segments": lambda found: found["segments"].pop(),
    "segments in another order": lambda found: found["segments"].reverse(),
    "a segment twice": lambda found: found["segments"].append(found["segments"][-1]),
    "a million times": lambda found: found["segments"].extend(10**4 * found["segments"][:1]),
    "a gap": lambda found: found["segments"].pop(1),
    "a name that leads elsewhere": segment(1, name="../../secret"),
    "a name that is none": segment(1, name=["rounds"]),
    "another size": segment(1, n_bytes=10**18),
    "another digest": segment(1, sha256=64 * "0"),
    "a digest that leads elsewhere": segment(1, sha256="../../secret"),
    "other rounds": segment(0, last=2),
    "no rounds": segment(0, last=0),
    "rounds that are no number": segment(0, first=0.0),
    "negative rounds": segment(0, first=-1),
    "more of a segment": segment(0, more=1),
    "no header": lambda found: found.pop("header"),
    "a header that is a list": lambda found: found.update(header=[1]),
    "more rounds": header(rounds=8),
    "a huge number of rounds": header(rounds=10**18),
    "a negative number of rounds": header(rounds=-1),
    "rounds of another type": header(rounds="7"),
    "fewer features": header(n_features=1),
    "another algorithm": header(algorithm="rebel-2"),
    "a place to write to": lambda found: found["header"]["parameters"].update(checkpoint="/tmp/elsewhere"),
    "more classes": header(classes=[0, 1, 2, 3]),
    "no classes": lambda found: found["header"].pop("classes"),
}


@pytest.mark.parametrize("change", MANIFESTS.values(), ids=MANIFESTS)
def test_manifests_that_do_not_fit(change, folder):
    """With a checksum of their own: as someone meant to write them."""
    found = json.loads((folder / MANIFEST).read_text())
    change(found)
    found.pop("checksum")
    (folder / MANIFEST).write_text(json.dumps({**found, "checksum": _checksum(found)}))
    with pytest.raises(ModelFormatError, match=re.escape(str(folder))):
        distboost.load(folder)


def test_a_manifest_that_is_nested_deeply(folder):
    (folder / MANIFEST).write_text("[" * 10**6)
    with pytest.raises(ModelFormatError, match=MANIFEST):
        distboost.load(folder)


def test_a_segment_of_the_same_size(folder):
    """Whole in itself, with values of somebody else's: its digest is not that of the manifest."""
    path = next(folder.glob("rounds-0-3-*"))
    header, arrays = decoded(path.read_bytes(), "")
    arrays["values"] = arrays["values"] + 1.0
    changed = encoded(header, arrays)
    assert len(changed) == path.stat().st_size
    path.write_bytes(changed)
    with pytest.raises(ModelFormatError, match=path.name):
        distboost.load(folder)


def test_segments_of_another_training(folder, problem, tmp_path):
    """Whole, and listed as they are: but the trees of one model are not those of another."""
    other = tmp_path / "other"
    fitted(MultiBoostClassifier(calibration=None, n_estimators=7, n_jobs=1, checkpoint=other), problem)
    found, theirs = (json.loads((place / MANIFEST).read_text()) for place in (folder, other))
    found["segments"] = theirs["segments"]
    found.pop("checksum")
    (folder / MANIFEST).write_text(json.dumps({**found, "checksum": _checksum(found)}))
    shutil.copy(next(other.glob("rounds*")), folder)
    with pytest.raises(ModelFormatError, match=re.escape(str(folder))):
        distboost.load(folder)
