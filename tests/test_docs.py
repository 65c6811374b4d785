"""README.md and docs/: examples run, links lead somewhere, every algorithm is named."""

from __future__ import annotations

import gc
import re
from pathlib import Path

import pytest

from distboost import registry

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# Its blocks are files: tests/algorithms/test_own_algorithm.py runs them.
ELSEWHERE = {"adding-an-algorithm.md"}

EXAMPLE = re.compile(r"(<!-- not run -->\s*)?^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]*)#?([^)\s]*)\)")


def examples(page: Path) -> list[tuple[int, str]]:
    """The Python blocks that are to be run, each with the number of lines before it."""
    text = page.read_text() if page.name not in ELSEWHERE else ""
    return [(text.count("\n", 0, m.start(2)), m[2]) for m in EXAMPLE.finditer(text) if not m[1]]


def headings(page: Path) -> list[str]:
    """The anchors of a page, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", FENCED.sub("", page.read_text()), re.MULTILINE)
    return [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles]


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


# The port of the dashboard may be in use; then Dask drops a socket.
@pytest.mark.filterwarnings(
    "ignore:Port .* is already in use", r"ignore:unclosed <socket.*0\.0\.0\.0:ResourceWarning"
)
@pytest.mark.parametrize("page", [page for page in PAGES if examples(page)], ids=name)
def test_examples_run(page, tmp_path, monkeypatch):
    """One after another in an empty folder, each with names of its own."""
    monkeypatch.chdir(tmp_path)
    for n_before, code in examples(page):
        program = compile("\n" * n_before + code, str(page), "exec", dont_inherit=True)
        exec(program, {"__name__": "__main__"})
    gc.collect()


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page):
    for target, anchor in LINK.findall(FENCED.sub("", page.read_text())):
        if "://" in target:
            continue
        found = page.parent / target if target else page
        assert found.exists(), f"{name(page)} links to {target}"
        assert not anchor or anchor in headings(found), f"{name(page)} links to {target}#{anchor}"


def test_readme_names_every_algorithm():
    rows = [line for line in (ROOT / "README.md").read_text().splitlines() if line.startswith("|")]
    estimators = registry.estimator_names(registry.ALGORITHMS)
    for estimator, algorithm in estimators.items():
        assert sum(f"`{estimator}`" in row and f"`{algorithm}`" in row for row in rows) == 1, algorithm
