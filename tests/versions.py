"""Part of the tests with other versions of Python and of the libraries: `make versions`.

    python -m tests.versions [NAME ...]

The environment "lowest" has the lowest version of each library that pyproject.toml permits, on the lowest Python. "3.11", "3.12"
and so on have the newest libraries on that Python, and mypy checks the package, too. A Python that is neither on PATH nor among
pyenv's is left out. Environments are kept in build/versions, with a log of the tests.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "build" / "versions"
LOWEST = "lowest"
# The places where distboost meets other libraries: scikit-learn, tables, zarr, Dask, object stores, certificates, exports, Numba.
TESTS = [
    "test_cli.py", "test_cli_entry.py", "test_estimators.py", "test_sklearn.py", "test_private_interfaces.py", "test_stubs.py",
    "test_labels.py", "test_evaluate.py", "test_reports.py", "test_model_file.py", "old_models",
    "data/test_data_sources.py", "data/test_data_frames.py", "data/test_data_names.py", "data/test_data_packing.py",
    "data/test_data_store.py", "test_categories_of_frames.py", "runtime/test_identity.py",
    "runtime/test_dask_arrays.py", "runtime/test_dask_internals.py", "object_store", "test_tls.py", "exports",
    "kernels/test_kernel_cache.py",
]  # fmt: skip
SHOWN = [
    "numpy",
    "scipy",
    "numba",
    "scikit-learn",
    "zarr",
    "dask",
    "pandas",
    "polars",
    "pyarrow",
    "onnx",
    "treelite",
]


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def supported() -> list[str]:
    """The versions of Python that the classifiers name, the lowest first."""
    found = (
        re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", text) for text in project()["classifiers"]
    )
    return sorted((match[1] for match in found if match), key=lambda version: int(version.partition(".")[2]))


def python(version: str) -> str | None:
    """An interpreter of this version, if there is one on this machine."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    candidates = [shutil.which(f"python{version}"), *pyenv.glob(f"versions/{version}.*/bin/python")]
    program = "import ssl, sys; print('%d.%d' % sys.version_info[:2])"
    for path in filter(None, candidates):
        done = subprocess.run([path, "-c", program], capture_output=True, text=True, check=False)
        if done.stdout.strip() == version:  # a shim of pyenv may be on PATH without its interpreter
            return str(path)
    return None


def requirements(extra: str) -> Iterator[Requirement]:
    """All requirements of an installation with this extra."""
    known = project()
    for text in known["dependencies"] + known["optional-dependencies"][extra]:
        requirement = Requirement(text)
        if requirement.name == known["name"]:
            for further in requirement.extras:
                yield from requirements(further)
        else:
            yield requirement


def lowest() -> str:
    """Constraints of pip that leave each requirement its lowest version."""
    found = sorted({f"{one.name}{one.specifier}".replace(">=", "==") for one in requirements("test")})
    return "\n".join(found) + "\n"


def install(name: str, interpreter: str) -> Path:
    """Make or update an environment. Return its interpreter."""
    folder = FOLDER / name
    ours = folder / "bin" / "python"
    if not ours.exists():
        subprocess.run([interpreter, "-m", "venv", folder], check=True)
    options = ["--upgrade", "--upgrade-strategy", "eager"]
    if name == LOWEST:
        constraints = folder / "constraints.txt"
        constraints.write_text(lowest())
        options = ["--constraint", str(constraints)]
    pip = [ours, "-m", "pip", "install", "--disable-pip-version-check", "--quiet"]
    subprocess.run([*pip, *options, "--editable", f"{ROOT}[test]"], check=True)
    return ours


def tried(name: str, ours: Path) -> str | None:
    """Run the tests, and mypy with the newest libraries. Return what failed."""
    report, places = FOLDER / f"{name}.log", [f"tests/{place}" for place in TESTS]
    pytest = ["pytest", "-q", "-n", "2", "--dist", "loadfile", "-p", "no:cacheprovider", *places]
    if name == LOWEST:  # old libraries warn of new ones
        pytest += ["--override-ini", "filterwarnings=default"]
    steps = {"tests": pytest}
    if name != LOWEST:
        steps["mypy"] = ["mypy", "--python-version", name, "--cache-dir", str(FOLDER / f"{name}.mypy")]
    failed = []
    with report.open("w") as log:
        for step, command in steps.items():
            done = subprocess.run([ours, "-m", *command], cwd=ROOT, stdout=log, stderr=log, check=False)
            failed += [step] if done.returncode else []
    return f"{' and '.join(failed)} failed: {report}" if failed else None


def versions(ours: Path) -> str:
    program = (
        "import sys; from importlib.metadata import version; "
        "print('Python', sys.version.split()[0], *(f', {name} {version(name)}' for name in sys.argv[1:]), sep=' ')"
    )
    done = subprocess.run([ours, "-c", program, *SHOWN], capture_output=True, text=True, check=True)
    return done.stdout.strip().replace(" ,", ",")


PYTHONS = {LOWEST: supported()[0], **{version: version for version in supported()}}


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(list(PYTHONS)))
def main(names: tuple[str, ...]) -> None:
    """Test with the newest libraries on some Pythons, or with the lowest ones; with all of them if no NAMES are given."""
    failures = 0
    for name in names or PYTHONS:
        interpreter = python(PYTHONS[name])
        if interpreter is None:
            print(f"{name}: Python {PYTHONS[name]} is not on this machine", flush=True)
            continue
        start = time.monotonic()
        ours = install(name, interpreter)
        print(f"{name}: {versions(ours)}", flush=True)
        failed = tried(name, ours)
        passed = re.findall(
            r"^\d+ passed.*|^\d+ failed.*", (FOLDER / f"{name}.log").read_text(), re.MULTILINE
        )
        print(f"{name}: {failed or 'ok'}; {' '.join(passed)}; {time.monotonic() - start:.0f} s", flush=True)
        failures += failed is not None
    sys.exit(int(failures > 0))


if __name__ == "__main__":
    main()
