"""Wheel and source archive: `make release` builds both, installs each far from this checkout, and tries it as a user would."""

from __future__ import annotations

import email
import os
import re
import signal
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import distboost
from tests.old_models.make import FOLDER as OLD_MODELS

ROOT = Path(__file__).parents[1]
pytestmark = [pytest.mark.release, pytest.mark.timeout(1800)]

# Nothing of this environment leads to the checkout, to its packages or to a cache of kernels.
KEPT = {
    name: value
    for name, value in os.environ.items()
    if not re.match("PYTHON|NUMBA|DASK|XDG|VIRTUAL_ENV", name)
}

WRITE = """
import numpy as np, zarr
rng = np.random.default_rng(0)
y = rng.integers(0, 3, 600)
zarr.create_array("data.zarr/x", data=rng.normal(size=(600, 4)) + 2 * np.eye(3, 4)[y], chunks=(200, 4))
zarr.create_array("data.zarr/y", data=np.array(["no", "yes", "perhaps"])[y].astype("U7"), chunks=(200,))
"""
PREDICTED = """
import numpy as np, zarr, distboost
model = distboost.load("model.dboost")
assert (zarr.open_array("predicted.zarr")[:] == model.predict(zarr.open_array("data.zarr/x")[:])).all()
print(model.score("data.zarr/x", "data.zarr/y"))
"""
OLD = """
import sys
from pathlib import Path
import numpy as np, distboost
for file in sorted(Path(sys.argv[1]).glob("*.model")):
    version, _, name = file.stem.partition("-")
    known = np.load(file.parent / f"{version}.npz")
    X = np.nan_to_num(known["X"]) if name == "similarity" else known["X"]
    np.testing.assert_array_equal(distboost.load(file).scores(X), known[f"{name} scores"])
    print(version)
"""


def run(command: list[object], folder: Path, **environment: str) -> str:
    """What a command prints. It must succeed."""
    words = [*map(str, command)]
    done = subprocess.run(
        words, cwd=folder, env={**KEPT, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def build(folder: Path, *options: str) -> Path:
    run([sys.executable, "-m", "build", *options, "--outdir", folder, ROOT], ROOT)
    return folder


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """A folder with the source archive, and the wheel that was built from it."""
    return build(tmp_path_factory.mktemp("built"))


def wheel_of(folder: Path) -> dict[str, bytes]:
    [path] = folder.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_wheel_is_the_package_as_it_is_tracked(built):
    """With its types and templates, and without tests, compiled code or other folders."""
    names = {name for name in wheel_of(built) if ".dist-info/" not in name}
    assert names == {*run(["git", "ls-files", "distboost"], ROOT).splitlines()}
    assert {"distboost/py.typed", "distboost/__init__.pyi", "distboost/baselines.pyi"} <= names
    assert {
        name.rpartition("/")[2] for name in names if name.startswith("distboost/reporting/templates/")
    } == {"parts.html.j2", "report.html.j2", "script.js", "style.css"}
    assert not [name for name in names if "test" in name]


def test_the_source_archive_has_what_is_tracked(built):
    """Without what is for the repository alone: files of other programs that begin with a dot."""
    [path] = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {member.name.partition("/")[2] for member in archive if member.isfile()}
    tracked = {name for name in run(["git", "ls-files"], ROOT).splitlines() if not name.startswith(".")}
    assert names == tracked | {"PKG-INFO", ".gitignore"}


def test_the_wheel_of_the_checkout_is_that_of_the_source_archive(built, tmp_path):
    assert wheel_of(build(tmp_path, "--wheel")) == wheel_of(built)


def test_the_metadata(built):
    """An index accepts them, and shows the README with links that lead to this release."""
    run([sys.executable, "-m", "twine", "check", "--strict", *built.iterdir()], ROOT)
    [metadata] = (text for name, text in wheel_of(built).items() if name.endswith(".dist-info/METADATA"))
    told = email.message_from_bytes(metadata)
    assert told["Version"] == distboost.__version__
    assert (told["License-Expression"], told["Requires-Python"]) == ("BSD-3-Clause", ">=3.11")
    links = re.findall(r"\]\(([^)\s]+)\)", told.get_payload())
    ours = f"https://github.com/distboost/distboost/blob/v{distboost.__version__}/"
    paths = [link.removeprefix(ours).partition("#")[0] for link in links if link.startswith(ours)]
    assert len(paths) > 20
    assert [path for path in paths if not (ROOT / path).exists()] == []
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    pictures = re.findall(r'(?:src|srcset)="([^"]+)"', told.get_payload())
    raw = f"https://raw.githubusercontent.com/distboost/distboost/v{distboost.__version__}/"
    assert [path for path in pictures if not (ROOT / path.removeprefix(raw)).exists()] == []
    assert all(path.startswith(raw) for path in pictures)


@pytest.fixture(scope="module", params=["*.whl", "*.tar.gz"], ids=["wheel", "source archive"])
def installed(request, built, tmp_path_factory) -> Path:
    """A folder with the commands of a new environment that has the package and what it depends on."""
    folder = tmp_path_factory.mktemp("installed")
    [package] = built.glob(request.param)
    run([sys.executable, "-m", "venv", folder], folder)
    run([folder / "bin" / "python", "-m", "pip", "install", "--quiet", package], folder)
    return folder / "bin"


@pytest.fixture(scope="module")
def home(installed, tmp_path_factory) -> Path:
    """An empty folder of a user, beside the data of a training run."""
    folder = tmp_path_factory.mktemp("home")
    run([installed / "python", "-c", WRITE], folder)
    return folder


def test_it_is_imported_from_the_environment(installed, home):
    program = "import distboost; print(distboost.__version__, distboost.__file__)"
    version, file = run([installed / "python", "-c", program], home).split()
    assert version == distboost.__version__
    assert Path(file).is_relative_to(installed.parent)
    assert (
        run([installed / "distboost", "--version"], home) == f"distboost, version {distboost.__version__}\n"
    )
    run([installed / "python", "-m", "pip", "check"], home)


def test_it_trains_and_predicts(installed, home):
    """In a process for each command, as a user without a library of data frames, plots or object stores."""
    command, data = installed / "distboost", ["--x", "data.zarr/x"]
    train = ["train", "--algorithm", "gd-mcboost", *data, "--y", "data.zarr/y", "--model", "model.dboost"]
    run([command, *train, "--set", "n_estimators=10"], home, HOME=str(home))
    run(
        [command, "predict", "--model", "model.dboost", *data, "--out", "predicted.zarr"],
        home,
        HOME=str(home),
    )
    assert float(run([installed / "python", "-c", PREDICTED], home, HOME=str(home))) > 0.9
    report = ["evaluate", "--model", "model.dboost", *data, "--y", "data.zarr/y", "--report", "report.html"]
    run([command, *report], home, HOME=str(home))
    assert "<title>" in (home / "report.html").read_text()


def test_it_loads_models_of_all_formats(installed, home):
    versions = run([installed / "python", "-c", OLD, OLD_MODELS], home).split()
    assert {*versions} == {"1", "2", "3"}
    assert len(versions) == len([*OLD_MODELS.glob("*.model")])


def test_it_starts_a_cluster_and_trains_on_it(installed, home):
    words = [installed / "distboost", "cluster", "local", "--workers", "2", "--threads", "1"]
    with subprocess.Popen(words, cwd=home, env=KEPT, stdout=subprocess.PIPE, text=True) as process:
        printed = ""
        while "Ctrl-C" not in printed:
            line = process.stdout.readline()
            assert line, printed
            printed += line
        address = re.search(r"tcp://127\.0\.0\.1:\d+", printed)[0]
        train = ["train", "--algorithm", "gd-mcboost", "--x", "data.zarr/x", "--y", "data.zarr/y"]
        options = ["--model", "cluster.dboost", "--scheduler", address, "--set", "n_estimators=10"]
        run([installed / "distboost", *train, *options], home)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 0
    assert (home / "cluster.dboost").read_bytes() == (home / "model.dboost").read_bytes()
