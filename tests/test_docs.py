"""README.md and docs/: blocks of code run, links lead somewhere, every algorithm is named."""

from __future__ import annotations

import gc
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from distboost import registry
from docs import site_pages
from docs.site_pages import GENERATED
from tests.programs import Program

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted(p for p in (ROOT / "docs").rglob("*.md") if p.parent != GENERATED)]
# Blocks of the one are files, which tests/algorithms/test_own_algorithm.py runs; that of the other is run below.
ELSEWHERE = {"adding-an-algorithm.md", "README.md"}

EXAMPLE = re.compile(r"(<!-- not run -->\s*)?^```(python|bash|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]*)#?([^)\s]*)\)")


# Commands are run by forked processes: importing takes longer than most of them. The shell only tells their arguments.
TELL = r"""distboost() { printf '%s\0' "$@"; printf '\n'; }""" + "\n"
COMMAND = "from distboost.cli import main; main()"


class Example(NamedTuple):
    """A block of a page, in the language "python", "bash" or "sh"."""

    n_before: int
    language: str
    code: str

    def run(self, page: Path) -> None:
        """In this folder."""
        if self.language == "python":
            program = compile("\n" * self.n_before + self.code, str(page), "exec", dont_inherit=True)
            exec(program, {"__name__": "__main__"})
        else:
            for command in commands(self.code):
                if "simulate" in command:
                    command += ["--repeats", "1", "--max-labels", "60"]
                if "--workers" in command:  # the commands' own tests start two
                    command[command.index("--workers") + 1] = "1"
                program = Program(COMMAND, *command, stdout=subprocess.DEVNULL)
                _, complaints = program.communicate(timeout=500)
                assert program.returncode == 0, complaints


def commands(code: str) -> list[list[str]]:
    """The arguments of each `distboost` in a block that has no other commands."""
    block = subprocess.run(
        ["bash", "-euc", TELL + code], check=True, stdout=subprocess.PIPE, text=True, timeout=20
    )
    return [line.split("\0")[:-1] for line in block.stdout.splitlines()]


def examples(page: Path) -> list[Example]:
    """The blocks that are to be run: those without the comment `<!-- not run -->` above."""
    text = page.read_text() if page.name not in ELSEWHERE else ""
    return [Example(text.count("\n", 0, m.start(3)), m[2], m[3]) for m in EXAMPLE.finditer(text) if not m[1]]


def headings(page: Path) -> list[str]:
    """The anchors of a page, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", FENCED.sub("", page.read_text()), re.MULTILINE)
    return [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles]


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


# The port of the dashboard may be in use; then Dask drops a socket. shap calls matplotlib as its next version forbids, and
# notices whether an earlier test has seeded NumPy's own generator.
@pytest.mark.filterwarnings(
    "ignore:Port .* is already in use",
    r"ignore:unclosed <socket.*0\.0\.0\.0:ResourceWarning",
    "ignore::PendingDeprecationWarning",
    "ignore:The NumPy global RNG was seeded:FutureWarning",
)
@pytest.mark.timeout(600)  # some pages start clusters and many commands
@pytest.mark.parametrize("page", [page for page in PAGES if examples(page)], ids=name)
def test_examples_run(page, tmp_path, monkeypatch):
    """One after another in an empty folder, each with names of its own."""
    monkeypatch.chdir(tmp_path)
    for example in examples(page):
        example.run(page)
    gc.collect()


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page):
    for target, anchor in LINK.findall(FENCED.sub("", page.read_text())):
        if "://" in target:
            continue
        found = page.parent / target if target else page
        if found.parent == GENERATED:  # by `make docs`
            assert found.name in site_pages.generated(), f"{name(page)} links to {target}"
            continue
        assert found.exists(), f"{name(page)} links to {target}"
        assert not anchor or anchor in headings(found), f"{name(page)} links to {target}#{anchor}"


def test_every_algorithm_is_named():
    pages = [ROOT / "README.md", ROOT / "docs" / "baselines.md"]
    text = "".join(page.read_text() for page in pages)
    for estimator, algorithm in registry.estimator_names(registry.ALGORITHMS).items():
        assert f"`{estimator}`" in text, estimator
        assert f"`{algorithm}`" in text, algorithm


def test_the_first_program_prints_what_readme_shows(tmp_path):
    """In a process of its own, as a newcomer runs it."""
    text = (ROOT / "README.md").read_text()
    program, output = re.findall(
        r"^```python\n(.*?)^```\n+```text\n(.*?)^```", text, re.MULTILINE | re.DOTALL
    )[0]
    found = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=100, cwd=tmp_path
    )
    assert found.stdout == output
