"""Where compiled kernels are kept, and what is done without such a place: each time in processes of their own."""

from __future__ import annotations

import json
import pkgutil
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from numba.core.compiler_lock import global_compiler_lock
from numba.core.event import install_recorder

from distboost import kernels
from distboost.data.edges import load_merge
from distboost.kernels import _jit, gains
from distboost.kernels._jit import KernelCache
from distboost.kernels.split_search import best_splits_by
from distboost.splits.tree_histograms import load_search
from tests.kernels.kernel_programs import CALL, COUNT, PACKAGE, TOLD, TWO_TYPES, WEIGHTS
from tests.programs import Program

# What begins them: the environment counts for modules and for Numba as in a new process.
_AS_NEW = """
import os, sys
import numba
assert "distboost" not in sys.modules
sys.path.insert(0, os.environ["PYTHONPATH"])
numba.config.reload_config()
"""
FIT = f"""
import hashlib, sys
import numpy as np
from distboost import AdaBoostMMClassifier, load
X = np.random.default_rng(0).normal(size=(200, 4))
model = AdaBoostMMClassifier(n_estimators=2, n_jobs=1).fit(X, np.arange(200) % 4)
model.save(sys.argv[1])
found = {{"model": hashlib.sha256(open(sys.argv[1], "rb").read()).hexdigest(), "right": load(sys.argv[1]).score(X, X[:, 0] > 0)}}
{COUNT}
"""


def begun(
    program: str, cache: Path, *arguments: object, package: Path = PACKAGE, stdin: int = subprocess.DEVNULL
) -> Program:
    """The program, forked from a process that has imported Numba."""
    return Program(
        f"{_AS_NEW}\n{program}", *arguments, imported="tests.warm_numba", stdin=stdin,
        environment={"NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(package.parent)},
    )  # fmt: skip


def run(program: str, cache: Path, *arguments: object, package: Path = PACKAGE) -> tuple[dict, str]:
    """What the program found, and what it said."""
    done = begun(program, cache, *arguments, package=package)
    out, said = done.communicate(timeout=100)
    assert done.returncode == 0, said
    return json.loads(out), said


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A cache with the kernel of weights."""
    cache = tmp_path_factory.mktemp("kept")
    assert run(WEIGHTS, cache)[0]["compiled"] == 1
    return cache


@pytest.mark.parametrize(
    "program", [TWO_TYPES, pytest.param(FIT, marks=pytest.mark.soak)], ids=["two kernels", "training"]
)
def test_a_second_process_compiles_nothing(program, tmp_path):
    """This fails, too, where another version of Numba has no more use for our cache."""
    before, said = run(program, tmp_path / "cache", tmp_path / "model")
    assert said == ""
    assert before["loaded"] == 0 < before["compiled"]
    found, said = run(program, tmp_path / "cache", tmp_path / "model")
    assert said == ""
    assert found["compiled"] == 0 < found["loaded"]
    assert [found.get(name) for name in ("model", "weight")] == [
        before.get(name) for name in ("model", "weight")
    ]


def test_a_full_disk(kept, with_mounts, tmp_path):
    """There is room for one kernel of two."""
    cache = tmp_path / "cache"
    room = sum(path.stat().st_size for path in kept.rglob("*.nb?")) * 3 // 2
    cache.mkdir()
    done = with_mounts(
        [f"mount -t tmpfs -o size={room} tmpfs '{cache}'"],
        TWO_TYPES,
        NUMBA_CACHE_DIR=str(cache),
        PYTHONPATH=str(PACKAGE.parent),
    )
    assert json.loads(done.stdout)["weight"] == 1
    assert done.stderr.count(TOLD) == 1
    assert "No space left on device" in done.stderr


def test_processes_that_start_together_compile_once(tmp_path):
    """One compiles; the others wait for its code, as the workers of a machine do."""
    program = WEIGHTS.replace(CALL, f"print(flush=True)\ninput()\n{CALL}")
    processes = [begun(program, tmp_path, stdin=subprocess.PIPE) for _ in range(3)]
    for process in processes:
        process.stdout.readline()  # it has imported what it needs
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    found = [json.loads(process.communicate(timeout=60)[0]) for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert sum(one["compiled"] for one in found) == 1
    assert list(tmp_path.rglob("*.lock")) == []


def test_a_kernel_is_locked_only_by_the_thread_that_may_compile(monkeypatch):
    """Otherwise a thread that compiles a caller could wait for the lock of this kernel, whose holder waits for that thread."""
    held = []
    lock = _jit._lock
    monkeypatch.setattr(
        _jit, "_lock", lambda file: held.append(global_compiler_lock.is_locked()) or lock(file)
    )

    def twice(x):
        return 2 * x

    kernel = _jit.kernel(twice)
    kernel._cache.flush()
    assert kernel(3) == 6
    assert held == [True]
    kernel._cache.flush()


def test_no_kernel_holds_the_text_of_an_error_about_shapes():
    """Numba compiles the text if an array is assigned to a part of another: that takes two seconds, so kernels use loops."""
    load_merge()
    load_search(gains.DIRECTION)
    modules = [
        import_module(f"distboost.kernels.{found.name}") for found in pkgutil.iter_modules(kernels.__path__)
    ]
    functions = [
        best_splits_by(gains.DIRECTION),
        *(each for module in modules for each in vars(module).values()),
    ]
    caches = [
        each._cache._files for each in functions if isinstance(getattr(each, "_cache", None), KernelCache)
    ]
    content = {
        path.name: path.read_bytes() for cache in caches for path in cache._folder.glob(f"{cache._name}-*")
    }
    assert any("merge_distinct" in name for name in content)
    assert any("best_splits" in name for name in content)
    assert [name for name in content if b"raise_with_shape_context" in content[name]] == []
    ordering = [name for name in content if b"10order_bins" in content[name]]  # as symbols are mangled
    assert all(name.startswith("categories") for name in ordering), (
        "each gain's search compiles the order of categories"
    )


def altered(content: bytes) -> bytes:
    """One bit of the machine code, where unpickling does not notice it."""
    at = content.index(b"\x7fELF") + 100
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


@pytest.mark.parametrize(
    "damage",
    [lambda content: b"", lambda content: content[:-100], altered],
    ids=["empty", "cut off", "altered"],
)
def test_a_damaged_file_is_compiled_anew(damage, kept, tmp_path):
    cache = tmp_path / "cache"
    shutil.copytree(kept, cache)
    (file,) = (path for path in cache.rglob("*.nbc") if "response_weights" in path.name)
    file.write_bytes(damage(file.read_bytes()))
    found, said = run(WEIGHTS, cache)
    assert (found["weight"], found["compiled"] > 0) == (1, True)
    assert said.count(TOLD) == 1
    found, said = run(WEIGHTS, cache)
    assert (found["weight"], found["compiled"], said) == (1, 0, "")


def test_code_of_other_sources_is_not_used(tmp_path):
    """What a kernel calls is in another file: both are of the version that is installed."""
    package = tmp_path / "distboost"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    cache = tmp_path / "cache"
    assert run(WEIGHTS, cache, package=package)[0]["weight"] == 1
    exponential = package / "kernels" / "exponential.py"
    exponential.write_text(exponential.read_text().replace("return e_r * ", "return 3.0 * e_r * "))
    before = {path.name for path in cache.rglob("*.nbc")}
    assert run(WEIGHTS, cache, package=package)[0]["weight"] == 3
    after = {path.name for path in cache.rglob("*.nbc")}
    assert len(before) == len(after)  # what nobody will read again is gone
    assert not before & after


def test_what_kernels_call_is_compiled_once_for_all_constants():
    @_jit.compiled
    def raised(x, by):
        return x + by

    @_jit.compiled
    def thrice(x):
        return raised(x, 1) + raised(x, 2) + raised(x, x)

    with install_recorder("numba:compile") as recorder:
        assert thrice(5) == 6 + 7 + 10
    compiled = [what.data["dispatcher"].py_func.__name__ for _, what in recorder.buffer if what.is_start]
    assert compiled == ["thrice", "raised"]


# As where the kernel alone is missing from the cache: nothing that counts references has allocated in the process.
ALLOCATES = """
import numpy as np
from distboost.kernels._jit import compiled, uncounted

@compiled
def total(n):
    return np.zeros(n).sum()

@uncounted
def plus(n):
    return 1.0 + total(n)

assert plus(3) == 1.0
"""


def test_what_allocates_is_compiled_first_for_a_kernel_that_counts_no_references():
    subprocess.run([sys.executable, "-c", ALLOCATES], cwd=PACKAGE.parent, check=True, timeout=120)
