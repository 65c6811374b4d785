"""URLs whose package is not installed: the error names the package and the command that installs it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from distboost.errors import DataError
from distboost.io import filesystems
from distboost.io.filesystems import _EXTRAS, filesystem_at

ROOT = Path(__file__).parent.parent
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
COMMANDS = {
    "s3://b/x": "pip install 'distboost[s3]'",
    "s3a://b/x": "pip install 'distboost[s3]'",
    "simplecache::s3://b/x": "pip install 'distboost[s3]'",
    "gs://b/x": "pip install 'distboost[gcs]'",
    "gcs://b/x": "pip install 'distboost[gcs]'",
    "az://c/x": "pip install 'distboost[azure]'",
    "abfs://c@a/x": "pip install 'distboost[azure]'",
    "http://a/x": "pip install 'fsspec[http]'",
    "sftp://a/x": "pip install 'fsspec[sftp]'",
    "hf://a/x": "Install huggingface_hub",
}

# The packages are hidden before anything is imported.
HIDDEN = """
import json, sys
for name in ("s3fs", "gcsfs", "adlfs", "aiohttp", "requests", "paramiko", "huggingface_hub"):
    sys.modules[name] = None
import distboost
from distboost.errors import MissingPackageError
from click.testing import CliRunner
from distboost.cli import main

def said(call):
    try:
        call()
    except MissingPackageError as error:
        return str(error)

def command(*words):
    return CliRunner().invoke(main, words).stderr

model, rows = distboost.GAMBLEClassifier(n_estimators=1, calibration=None), [[[0.0], [1.0]], [0, 1]]
fitted = distboost.GAMBLEClassifier(n_estimators=1, calibration=None).fit(*rows)
found = {url: said(lambda: model.fit(url, url)) for url in URLS}
url = "s3://b/x"
found |= {
    "store": said(lambda: model.fit(url)),
    "evaluation": said(lambda: model.fit(*rows, eval_set=url)),
    "checkpoint": said(lambda: distboost.GAMBLEClassifier(checkpoint=url).fit(*rows)),
    "predict": said(lambda: fitted.predict(url)),
    "save": said(lambda: fitted.save(url)),
    "load": said(lambda: distboost.load(url)),
    "bin": said(lambda: distboost.bin(*rows, url)),
    "report": said(lambda: distboost.report(fitted, *rows, url)),
    "train command": command("train", "--algorithm", "gamble", "--x", url, "--y", url, "--model", "/tmp/none.dboost"),
    "model option": command("train", "--algorithm", "gamble", "--x", "x", "--y", "y", "--model", url),
    "events option": command("train", "--algorithm", "gamble", "--x", "x", "--y", "y", "--model", "/tmp/none.dboost",
                             "--events", url),
    "bin command": command("bin", "--x", url, "--y", url, "--out", url),
    "inspect command": command("inspect", url),
}
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found():
    program = HIDDEN.replace("URLS", repr(list(COMMANDS)))
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("url", COMMANDS)
def test_the_error_has_the_command(url, found):
    assert COMMANDS[url] in found[url]
    assert repr(url) in found[url]
    assert "zarr.json" not in found[url]


def test_wherever_a_url_is_given(found):
    for place in found.keys() - COMMANDS.keys():
        assert COMMANDS["s3://b/x"] in (found[place] or ""), place


def test_extras_install_these_packages():
    for package, extra in _EXTRAS.items():
        assert any(needed.startswith(package) for needed in EXTRAS[extra])


def test_the_page_lists_all_extras():
    """With the packages of those that are for users."""
    rows = re.findall(r"(?m)^\| `(\w+)` \|.*\| (.*) \|$", (ROOT / "docs" / "install.md").read_text())
    assert sorted(extra for extra, _ in rows) == sorted(EXTRAS)
    for extra, packages in rows[: [extra for extra, _ in rows].index("dev")]:
        for needed in EXTRAS[extra]:
            name = re.match(r"[\w-]+", needed)[0]
            assert name in packages or name == "distboost"


def test_pages_leave_installing_to_one_page():
    """Others name an extra and link there: two ways to install would differ."""
    for page in (ROOT / "docs").rglob("*.md"):
        if page.name != "install.md" and "generated" not in page.parts:
            assert "distboost[" not in page.read_text(), page
            assert "'.[" not in page.read_text() or "install.md" in page.read_text(), page


def test_a_protocol_that_is_not_known():
    with pytest.raises(DataError, match="the protocol s4:// is not known"):
        filesystem_at("s4://bucket/x")


def test_other_errors_stay_as_they_are(monkeypatch):
    def refused(url):
        raise ValueError(f"{url} has no bucket")

    monkeypatch.setattr(filesystems, "url_to_fs", refused)
    with pytest.raises(ValueError, match="has no bucket") as raised:
        filesystem_at("simplecache::memory://x")
    assert not isinstance(raised.value, DataError)
