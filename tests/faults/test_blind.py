"""Workers that do not see the data, or no longer, or see others: never another result without an error."""

from __future__ import annotations

import os
import random
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from distributed import Client

import distboost
from distboost import GAMBLEClassifier, GDMCBoostClassifier
from distboost.active import QueryByCommittee
from distboost.data.source import Source
from distboost.errors import DistboostError, StoreError
from distboost.estimators import writing
from distboost.estimators.evaluating import confusion
from tests.faults import blind, traps
from tests.faults.blind import ApartWorkers, check_mounts
from tests.faults.rounds import Slowly, at
from tests.faults.trainings import BLOCK, D
from tests.faults.traps import Stage, Trap

pytestmark = pytest.mark.timeout(100)

N = 12 * BLOCK
NOT_THERE = r"chunk c/\d+(/0)?(, rows \d+ to \d+)? of {} \(file://{}\).* is not visible"


class Arrays:
    """Features, labels and weights, each in a folder of its own, so that each can be hidden."""

    def __init__(self, folder: Path):
        rng = np.random.default_rng(1)
        X = rng.normal(size=(N, D)).astype(np.float32)
        y = np.digitize(X[:, 0] + X[:, 1] * X[:, 2], [-1, 0, 1])
        self.folder, self.y = folder, y
        contents = {
            "x": X,
            "y": y,
            "w": rng.integers(1, 4, N).astype(float),
            "ex": X[:BLOCK],
            "ey": y[:BLOCK],
        }
        for name, content in contents.items():
            (folder / name).mkdir()
            zarr.create_array(self[name], data=content, chunks=(BLOCK // 2, *content.shape[1:]))

    def __getitem__(self, name: str) -> str:
        return str(self.folder / name / "array")


@pytest.fixture(scope="module")
def workers(tmp_path_factory):
    check_mounts()
    found = ApartWorkers(tmp_path_factory.mktemp("workers"))
    yield found
    found.close()


@pytest.fixture
def arrays(tmp_path):
    (tmp_path / "arrays").mkdir()
    return Arrays(tmp_path / "arrays")


@pytest.fixture
def two(workers):
    """Two workers that see all; those that a test has blinded are replaced."""
    workers.restore(2)
    yield workers
    workers.client.run(traps.take_down)
    for name in workers.alive():
        workers.kill(name)


def model(**parameters: Any) -> GDMCBoostClassifier:
    return GDMCBoostClassifier(**{"calibration": None, "n_estimators": 4, "max_depth": 3, **parameters})


# What may be done with the arrays. Each gives something that can be compared.


def fit(arrays: Arrays, client: Client | None, folder: Path, **options: Any) -> bytes:
    found = model(**options)
    found.client = client
    found.fit(arrays["x"], arrays["y"], sample_weight=arrays["w"], eval_set=(arrays["ex"], arrays["ey"]))
    found.save(folder / "model")
    return (folder / "model").read_bytes()


def fit_store(arrays: Arrays, client: Client | None, folder: Path) -> bytes:
    store = distboost.bin(
        arrays["x"], arrays["y"], str(folder / "out" / "store"), sample_weight=arrays["w"], client=client
    )
    found = model()
    found.client = client
    found.fit(store).save(folder / "model")
    return (folder / "model").read_bytes()


def predict(arrays: Arrays, client: Client | None, folder: Path) -> list:
    found = model().fit(arrays["ex"], arrays["ey"]).predict(arrays["x"])
    return (found.compute() if client is None else client.compute(found).result(timeout=50)).tolist()


def predict_into(arrays: Arrays, client: Client | None, folder: Path) -> list:
    found, out = model().fit(arrays["ex"], arrays["ey"]), str(folder / "out" / "predicted")
    return writing.write_predictions(found, arrays["x"], out, proba=True, overwrite=False, client=client)[
        :
    ].tolist()


def evaluate(arrays: Arrays, client: Client | None, folder: Path) -> list:
    found = model().fit(arrays["ex"], arrays["ey"])
    return confusion(found, arrays["x"], arrays["y"], client=client).counts.toarray().tolist()


def query(arrays: Arrays, client: Client | None, folder: Path) -> list:
    committee = GAMBLEClassifier(calibration=None, n_estimators=3, scratch=str(folder / "out"))
    committee.client = client
    asked = QueryByCommittee(committee, arrays["x"], warm_start=True)
    asked.teach(range(60), arrays.y[:60])
    first = asked.query()
    asked.teach(first, arrays.y[first])
    return [first.tolist(), asked.query().tolist()]


JOBS: dict[str, Callable[[Arrays, Client | None, Path], Any]] = {
    "fit": fit,
    "fit of a store": fit_store,
    "predict": predict,
    "predict into": predict_into,
    "evaluate": evaluate,
    "query": query,
}
HIDDEN = {
    "fit": ["x", "y", "w", "ex", "ey"],
    "fit of a store": ["x", "y", "w", "out"],
    "predict": ["x"],
    "predict into": ["x", "out"],
    "evaluate": ["x", "y"],
    "query": ["x", "out"],
}


def undisturbed(job: str, arrays: Arrays, folder: Path) -> Any:
    alone = folder / "alone"
    (alone / "out").mkdir(parents=True)
    return JOBS[job](arrays, None, alone)


def place(arrays: Arrays, folder: Path, hidden: str) -> Path:
    return folder / "out" if hidden == "out" else arrays.folder / hidden


# From the start.


# Each job and each array: what reads an array is the same in all jobs, but for how the job ends.
AT_ONCE = {("fit", "w"), ("fit", "ex"), ("fit", "ey"), ("fit of a store", "x"), ("evaluate", "y"),
           ("predict", "x"), ("predict into", "x"), ("query", "x")}  # fmt: skip


@pytest.mark.parametrize(
    ("job", "hidden"),
    [
        pytest.param(job, hidden, marks=[] if (job, hidden) in AT_ONCE else pytest.mark.soak)
        for job in JOBS
        for hidden in HIDDEN[job]
        if hidden != "out"
    ],
)
def test_all_workers_are_blind(job, hidden, two, arrays, tmp_path, monkeypatch):
    """The error names the chunk, the array and the process."""
    # Read by workers, however small.
    monkeypatch.setattr(Source, "near", lambda source, rows: source)
    (tmp_path / "out").mkdir()
    for name in two.alive():
        two.blind(name, arrays.folder / hidden)
    array = {"x": "(X|pool)", "y": "y", "w": "sample_weight", "ex": "eval_set X", "ey": "eval_set y"}[hidden]
    with pytest.raises(
        StoreError, match=NOT_THERE.format(array, arrays[hidden]) + r" to process \d+ on host"
    ) as raised:
        JOBS[job](arrays, two.client, tmp_path)
    assert "at which all workers find the same data" in str(raised.value)
    if job != "predict":  # that is Dask's own to tell
        assert re.search(r"on worker tcp://\S+\d", str(raised.value))


@pytest.mark.parametrize("job", ["fit of a store", "predict into", "query"])
def test_workers_write_where_nobody_else_looks(job, two, arrays, tmp_path):
    (tmp_path / "out").mkdir()
    for name in two.alive():
        two.blind(name, tmp_path / "out")
    with pytest.raises(DistboostError, match="share"):
        JOBS[job](arrays, two.client, tmp_path)


def test_paths_do_not_depend_on_the_working_directory(two, arrays, tmp_path, monkeypatch):
    """Workers run elsewhere, where other data may lie under the same relative path."""
    expected = undisturbed("fit", arrays, tmp_path)
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(arrays.folder, elsewhere)
    zarr.open_array(elsewhere / "x" / "array")[:] = 0
    two.client.run(os.chdir, str(elsewhere))
    monkeypatch.chdir(arrays.folder)
    for form in (str, lambda path: zarr.open_array(path, mode="r")):
        found = model()
        found.client = two.client
        x, y, w, ex, ey = (form(f"{name}/array") for name in ("x", "y", "w", "ex", "ey"))
        found.fit(x, y, sample_weight=w, eval_set=(ex, ey)).save(tmp_path / "model")
        assert (tmp_path / "model").read_bytes() == expected


def test_arrays_in_the_memory_of_the_client(two, arrays, tmp_path):
    """No worker sees `memory://`: the rows travel."""
    expected = undisturbed("fit", arrays, tmp_path)
    for name in ("x", "y", "w"):
        content = zarr.open_array(arrays[name])
        zarr.create_array(f"memory://{tmp_path.name}/{name}", data=content[:], chunks=content.chunks)
    found = model()
    found.client = two.client
    x, y, w = (f"memory://{tmp_path.name}/{name}" for name in ("x", "y", "w"))
    found.fit(x, y, sample_weight=w, eval_set=(arrays["ex"], arrays["ey"])).save(tmp_path / "model")
    assert (tmp_path / "model").read_bytes() == expected


# In the middle.


def test_a_blind_worker_joins(two, arrays, tmp_path, caplog):
    """It cannot take part, and the log says why."""
    expected = fit(arrays, None, tmp_path, n_estimators=12)

    def join() -> None:
        [name] = two.begin()
        traps_until(lambda: name in two.there())
        two.blind(name, arrays.folder / "x")

    noticed = Slowly(4, lambda: "cannot take part" in caplog.text)
    again = fit(arrays, two.client, tmp_path, n_estimators=12, callbacks=[at(3, join), noticed])
    assert again == expected
    assert re.search(r"worker tcp://\S+ cannot take part: .*x/array.* is not visible", caplog.text)


def traps_until(true: Callable[[], object]) -> None:
    from tests.faults.crews import until

    until(true, "a worker")


@pytest.mark.parametrize("done", ["store removed", "chunk removed", "chunk replaced", "labels replaced"])
def test_the_data_change_and_a_worker_is_lost(done, two, arrays, tmp_path):
    """What was read is what is read again, or there is an error."""

    def change() -> None:
        x, y = (zarr.open_array(arrays[name]) for name in ("x", "y"))
        if done == "store removed":
            shutil.rmtree(arrays["x"])
        elif done == "chunk removed":
            for chunk in range(x.cdata_shape[0]):
                (Path(arrays["x"]) / "c" / str(chunk) / "0").unlink()
        elif done == "chunk replaced":
            x[:] = x[:][::-1]
        else:
            y[:] = y[:][::-1]
        two.kill(two.alive()[0])

    said = "its rows have changed|was in the store when it was listed|when the store was listed, but has"
    with pytest.raises(StoreError, match=said):
        fit(arrays, two.client, tmp_path, n_estimators=12, callbacks=[at(3, change)])


# At random.


@dataclass(frozen=True)
class Blinding:
    """A trap: the process that walks into it no longer sees a folder."""

    folder: str

    def __call__(self) -> None:
        blind.hide(self.folder)


STAGES = {
    "scan": Stage("distboost.data.scan:scan_labels"),
    "sample": Stage("distboost.data.scan:scan_features"),
    "bin": Stage("distboost.data.ingest:bin_rows"),
    "load": Stage("distboost.data.store.store:StoredRows._read"),
    "histogram": Stage("distboost.runtime.shard:Shard.histogram"),
    "write labels": Stage("distboost.data.store.passes:_write_labels"),
    "write block": Stage("distboost.data.store.layout:StoredBlocks.write"),
    "score": Stage("distboost.active.pool_search:best_of_block"),
    "predict": Stage("distboost.prediction.predictor:predict_chunk"),
    "predict into": Stage("distboost.prediction.streamed:predict_into"),
    "count": Stage("distboost.evaluation.sums:judge_part"),
}
MET = {
    "fit": ["scan", "sample", "bin", "histogram"],
    "fit of a store": ["scan", "sample", "write labels", "write block", "load", "histogram"],
    "predict": ["predict"],
    "predict into": ["predict into"],
    "evaluate": ["count"],
    "query": ["score"],
}


@pytest.mark.parametrize(
    "seed",
    [seed if seed < 4 else pytest.param(seed, marks=pytest.mark.soak) for seed in range(24)],
    ids="seed-{}".format,
)
def test_random_blindness(seed, two, arrays, tmp_path):
    """The truth, or an error."""
    chance = random.Random(seed)
    job = chance.choice(list(JOBS))
    hidden, stage = chance.choice(HIDDEN[job]), chance.choice(["start", *MET[job]])
    expected = undisturbed(job, arrays, tmp_path)
    (tmp_path / "out").mkdir()
    folder = place(arrays, tmp_path, hidden)
    if stage == "start":
        for name in two.alive()[: chance.randint(1, 2)]:
            two.blind(name, folder)
    else:
        trap = Trap(chance.randint(0, 4), chance.random() < 0.5, Blinding(str(folder)))
        two.client.run(traps.set_up, str(tmp_path), STAGES, {stage: trap})
    try:
        found = JOBS[job](arrays, two.client, tmp_path)
    except DistboostError as error:
        print(f"seed {seed}: {job}, {hidden} hidden at {stage}: {type(error).__name__}: {error}")
    else:
        print(f"seed {seed}: {job}, {hidden} hidden at {stage}: the truth")
        assert found == expected
