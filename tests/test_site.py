"""The site: every public name is documented and in the reference, and links lead to pages. `make docs` builds it."""

from __future__ import annotations

import ast
import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

import distboost
from distboost.data.store.manifest import STORE_VERSION
from distboost.io.files import VERSIONS
from distboost.message import Message
from docs import check_links, site_pages

NAMES = [(module, name) for module, names in site_pages.public_names().items() for name in names]
PACKAGE = Path(distboost.__file__).parent


def test_names_of_the_stubs_are_in_the_reference():
    """The stubs are written by another program, and a test keeps them up to date."""
    pages = site_pages.reference()
    for module in ("distboost", "distboost.baselines"):
        stub = PACKAGE / ("__init__.pyi" if module == "distboost" else "baselines.pyi")
        classes = {node.name for node in ast.parse(stub.read_text()).body if isinstance(node, ast.ClassDef)}
        assert len(classes) > 5
        listed = set(re.findall(r"^   (\w+)$", pages[f"{module}.rst"], re.MULTILINE))
        assert classes <= listed
    assert {"distboost", "distboost.baselines", "distboost.errors", "distboost.active"} <= set(
        re.findall(r"^   (distboost[.\w]*)$", pages["reference.rst"], re.MULTILINE)
    )


@pytest.mark.parametrize("module", site_pages.public_names())
def test_public_names_are_in_the_reference(module):
    exported = import_module(module)
    page = site_pages.reference()[f"{module}.rst"].splitlines()
    for name in getattr(exported, "__all__", []):
        if not inspect.ismodule(getattr(exported, name)):
            assert page.count(f"   {name}") == 1


def documented(doc: str) -> set[str]:
    """The names of a docstring's sections Parameters and Attributes."""
    sections = re.split(r"\n(\w[\w ]*)\n-{3,}\n", f"\n{doc}")
    texts = [
        text
        for title, text in zip(sections[1::2], sections[2::2], strict=True)
        if title in ("Parameters", "Attributes")
    ]
    heads = [head.partition(" : ")[0] for text in texts for head in re.findall(r"(?m)^\S.*$", text)]
    return {name.strip().lstrip("*") for head in heads for name in head.split(",")}


@pytest.mark.parametrize(("module", "name"), NAMES, ids=lambda part: str(part))
def test_public_names_have_numpydoc_docstrings(module, name):
    """A summary, and every parameter by its name."""
    value = getattr(import_module(module), name)
    doc = inspect.getdoc(value)
    assert doc
    assert re.match(r"\S[^\n]*[.:]", doc), "a summary is one line that ends with a full stop"
    if not (inspect.isclass(value) and (issubclass(value, Exception) or inspect.isabstract(value))):
        assert set(inspect.signature(value).parameters) <= documented(doc)


def test_what_public_functions_return_is_in_the_reference():
    """So are the types of what estimators keep: their attributes are promised, too."""
    public = {name for _, name in NAMES} | {"BoostingClassifier"}  # the base class of those that are listed
    texts = [inspect.getdoc(getattr(import_module(module), name)) for module, name in NAMES]
    named = [re.findall(r"\nReturns\n-+\n(?:\w+ : )?([A-Z]\w+)$", text, re.MULTILINE) for text in texts]
    named += [re.findall(r"^\w+_ : ([A-Z]\w+)", text, re.MULTILINE) for text in texts]
    assert {"MemoryPlan", "TrainingRecord"} <= {name for found in named for name in found} <= public


def test_attributes_that_pages_use_are_documented():
    """In the docstring of the class, or in one of their own."""
    public = [getattr(import_module(module), name) for module, name in NAMES]
    known = set().union(*(documented(inspect.getdoc(value)) for value in public))
    for value in filter(inspect.isclass, public):
        known |= {
            name
            for name, _ in inspect.getmembers(
                value, lambda found: isinstance(found, property) and found.__doc__
            )
        }
    for page in [site_pages.ROOT / "README.md", *site_pages.DOCS.glob("*.md")]:
        used = set(re.findall(r"\b(?:model|learner|estimator_)\.([a-z]\w*_)\b", page.read_text()))
        assert used <= known, page.name


def test_every_command_is_on_the_page_of_the_command_line():
    page = site_pages.command_line()
    for command in ("train", "plan", "active ask", "active simulate"):
        assert f"## distboost {command}\n\n```text\nUsage: distboost {command} [OPTIONS]" in page
    assert page.count("Usage: ") > 10


def test_links_between_pages_lead_to_their_copies():
    page = site_pages.DOCS / "memory.md"
    text = "[a](../tests/benchmarks/README.md#how) [b](design.md) [c](https://x.y/z) [d](../examples/demo.py) [e](#f)"
    assert site_pages.relinked(text, page, page) == (
        "[a](generated/benchmarking.md#how) [b](design.md) [c](https://x.y/z) [d](../examples/demo.py) [e](#f)"
    )
    origin, place = site_pages.ROOT / "CONTRIBUTING.md", site_pages.GENERATED / "contributing.md"
    assert site_pages.relinked("[a](docs/design.md#b)", origin, place) == "[a](../design.md#b)"


def test_a_picture_in_two_versions_is_shown_by_the_theme_of_the_site():
    origin, place = site_pages.ROOT / "README.md", site_pages.GENERATED / "readme.md"
    picture = """<picture>
      <source media="(prefers-color-scheme: dark)" srcset="docs/images/b.svg">
      <img alt="A curve" src="docs/images/a.svg">
    </picture>"""
    assert site_pages.relinked(picture, origin, place) == (
        "![A curve](../images/a.svg){.only-light}\n![A curve](../images/b.svg){.only-dark}"
    )


def test_broken_links_of_a_site_are_found(tmp_path):
    (tmp_path / "a.html").write_text(
        '<a href="b.html#x">good</a><a href="b.html#y">bad</a><a href="c.html">bad</a><a href="#x">bad</a>'
        '<a href="b.html#viewport">bad: a name, but no place on the page</a><a href="b.html#z">good</a>'
    )
    (tmp_path / "b.html").write_text(
        '<meta name="viewport"><p id="x">here</p><a name="z"></a><a href="https://elsewhere.org/c.html">not checked</a>'
    )
    assert check_links.broken(tmp_path) == [
        "a.html: #x",
        "a.html: b.html#viewport",
        "a.html: b.html#y",
        "a.html: c.html",
    ]


def messages() -> list[str]:
    """The texts in the package's code, with … for values."""
    found = []
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.JoinedStr):
                found.append("".join(v.value if isinstance(v, ast.Constant) else "…" for v in node.values))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(re.sub(r"%[a-z]|%\.\d[a-z]", "…", node.value))
    return found


def test_messages_of_the_page_on_troubleshooting_are_those_of_the_code():
    page = (site_pages.DOCS / "troubleshooting.md").read_text()
    quoted = re.findall(r"^\| `([^`]+)`(?: \([^|]*\))? \|", page, re.MULTILINE)
    assert len(quoted) > 20
    known = [Message(text) for text in messages()]
    assert [text for text in quoted if not any(text.strip(" …") in message for message in known)] == []


def titles() -> dict[str, str]:
    """The title of each page of the site but those of the reference, by the name that a table of contents has for it."""
    texts = {f"generated/{name}": text for name, text in site_pages.generated().items()}
    for page in site_pages.DOCS.rglob("*.md"):
        if page.parent != site_pages.GENERATED:
            texts[str(page.relative_to(site_pages.DOCS))] = page.read_text()
    return {
        name.rpartition(".")[0]: text.splitlines()[0].removeprefix("# ")
        for name, text in texts.items()
        if not name.startswith("generated/distboost")
    }


def contents(page: Path) -> list[str]:
    """What the tables of contents of a page name."""
    blocks = re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(), re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line and line[0] != ":"]


def test_every_page_is_in_a_table_of_contents():
    listed = [entry for page in site_pages.DOCS.glob("*.md") for entry in contents(page)]
    assert sorted(listed) == sorted(titles().keys() - {"index"})


def test_a_page_has_one_name_of_its_own():
    """No two pages have the same title, and the page of its section links to each by its title."""
    named = titles()
    assert len(set(named.values())) == len(named)
    for section in site_pages.DOCS.glob("*.md"):
        text = site_pages.relinked(section.read_text(), section, section)
        for page in contents(section):
            assert re.search(rf"\[{re.escape(named[page])}\]\({page}\.(md|rst)\)", text), (section.name, page)


def test_the_page_on_formats_has_the_versions_of_the_code():
    page = (site_pages.DOCS / "formats.md").read_text()
    assert [int(n) for n in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)] == [*VERSIONS]
    assert f"| model file, checkpoint | {', '.join(map(str, VERSIONS))} |" in page
    assert f"| binned store | {STORE_VERSION} |" in page


def test_the_documents_of_a_release_name_this_version():
    """The citation has the date of the changelog, and the policy on security the version that gets corrections."""
    version = distboost.__version__
    changelog, citation, security = (
        (site_pages.ROOT / name).read_text() for name in ("CHANGELOG.md", "CITATION.cff", "SECURITY.md")
    )
    [released] = re.findall(rf"^## \[{re.escape(version)}\] - ([\d-]+)$", changelog, re.MULTILINE)
    assert f"\nversion: {version}\ndate-released: {released}\n" in citation
    assert f"\n| {version.rpartition('.')[0]} | yes |\n" in security
