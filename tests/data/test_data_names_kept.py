"""The names of features: from a container through bins and two workers into a file, and from there into another process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from sklearn.ensemble import HistGradientBoostingClassifier

import distboost
from distboost import GDMCBoostClassifier, export, export_text
from distboost.errors import DataError
from tests.data.tables import NAMES, TABLES, frame
from tests.programs import Program

SHUFFLED = [2, 0, 1, 3]
PARAMETERS = {"n_estimators": 3, "max_depth": 4, "calibration": None}
# For each line, a kind and a folder as JSON, it prints what a process sees that has only the model file.
READER = """
import json, sys
from tests.data.test_data_names_kept import seen
for line in sys.stdin:
    print(json.dumps(seen(*json.loads(line))), flush=True)
"""
COMMANDS = "from distboost.cli import main; main()"


def rows_in(kind: str, X: np.ndarray, names: list[str], folder: Path) -> Any:
    """The rows in a container of this kind."""
    if kind != "binned store":
        return TABLES[kind](X, names, folder)
    y = np.load(folder / "y.npy")
    return distboost.bin(
        frame(X, names), y, f"{folder}/kept", keep_values=True
    )  # with the values it can be predicted


def shuffled(kind: str, X: np.ndarray, folder: Path) -> Any:
    """The rows in a container of this kind, with the columns in another order."""
    return rows_in(kind, X[:, SHUFFLED], [NAMES[i] for i in SHUFFLED], folder)


def fill(folder: Path, X: np.ndarray, y: np.ndarray) -> None:
    """Write the rows and labels for the other process."""
    for part in (folder, folder / "again"):
        part.mkdir(exist_ok=True)
        np.save(part / "X.npy", X)
        np.save(part / "y.npy", y)


def seen(kind: str, folder: str) -> dict[str, Any]:
    """What the file of a model shows of the names."""
    model = distboost.load(f"{folder}/model")
    with pytest.raises(DataError) as caught:
        model.predict(shuffled(kind, np.load(f"{folder}/X.npy"), Path(folder, "again")))
    return shown(model, str(caught.value))


def shown(model: Any, error: str) -> dict[str, Any]:
    """The names wherever a model shows them, and the error of the shuffled rows."""
    graph = {entry.key: entry.value for entry in export.onnx(model).metadata_props}
    return {
        "digest": model.digest(),
        "error": error.split(),
        "attribute": model.feature_names_in_.tolist(),
        "onnx": json.loads(graph["feature_names"]),
        "table": sorted({*model.to_dataframe().Feature} & {*NAMES}),
        "text": [name for name in NAMES if f"{name} <= " in export_text(model)],
    }


@pytest.fixture(scope="module")
def expected(blobs):
    """What a model of a pandas frame shows, and scikit-learn's error."""
    X, y = blobs
    model = GDMCBoostClassifier(**PARAMETERS).fit(frame(X), y)
    theirs = HistGradientBoostingClassifier(max_iter=1).fit(frame(X), y)
    with pytest.raises(ValueError, match="in the same order") as caught:
        theirs.predict(frame(X[:, SHUFFLED], [NAMES[i] for i in SHUFFLED]))
    found = shown(model, str(caught.value))
    assert found["attribute"] == found["onnx"] == NAMES
    assert found["table"] == sorted(NAMES)
    return found


@pytest.fixture(scope="module")
def read():
    """read(kind, folder): what another process sees that has only the model file."""
    process = Program(READER, stdin=subprocess.PIPE, stderr=sys.stderr.fileno())

    def ask(*request: object) -> dict[str, Any]:
        process.stdin.write(json.dumps([*map(str, request)]) + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    yield ask
    process.communicate(timeout=60)


@pytest.mark.parametrize("kind", [*TABLES, "binned store"])
def test_names_are_kept_from_the_container_to_the_exports(kind, blobs, expected, read, clients, tmp_path):
    X, y = blobs
    fill(tmp_path, X, y)
    store = rows_in(kind, X, NAMES, tmp_path)
    if kind != "binned store":
        store = distboost.bin(store, y, f"{tmp_path}/bins", client=clients[2])
    model = GDMCBoostClassifier(**PARAMETERS)
    model.client = clients[2]
    model.fit(store).save(tmp_path / "model")
    assert read(kind, tmp_path) == expected


def said_by(*arguments: object, code: int = 0) -> str:
    """What a command says in a process of its own."""
    process = Program(COMMANDS, *arguments)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == code, errors
    return output + errors


def test_commands_keep_the_names_in_processes_of_their_own(blobs, expected, read, clients, tmp_path):
    X, y = blobs
    kind = "path of zarr in a named group"
    fill(tmp_path, X, y)
    x = rows_in(kind, X, NAMES, tmp_path)
    zarr.create_array(tmp_path / "y", data=y)
    bins, model, scheduler = tmp_path / "bins", tmp_path / "model", clients[2].scheduler.address
    setting = [f"--set={name}={json.dumps(value)}" for name, value in PARAMETERS.items()]
    run = ("--scheduler", scheduler)
    said_by("bin", "--x", x, "--y", tmp_path / "y", "--out", bins, *run)
    said_by("train", "--algorithm", "gd-mcboost", "--x", bins, "--model", model, *setting, *run)
    assert f"4: {', '.join(NAMES)}" in said_by("inspect", model)
    others = shuffled(kind, X, tmp_path / "other")
    said = said_by("predict", "--model", model, "--x", others, "--out", tmp_path / "out", code=1)
    assert " ".join(expected["error"]) in said
    assert read(kind, tmp_path) == expected
