"""What the site has besides the pages of this folder: the reference, the commands, and pages of the repository's other folders.

`conf.py` writes them to docs/generated before each build.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import click

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
GENERATED = DOCS / "generated"

# Pages outside this folder, and their names on the site.
OUTSIDE = {
    ROOT / "README.md": "readme.md",
    ROOT / "CHANGELOG.md": "changelog.md",
    ROOT / "CONTRIBUTING.md": "contributing.md",
    ROOT / "SECURITY.md": "security.md",
    ROOT / "examples" / "data" / "README.md": "example-data.md",
    ROOT / "tests" / "benchmarks" / "README.md": "benchmarking.md",
    ROOT / "tests" / "mutants" / "README.md": "mutants.md",
}
# A picture that GitHub shows in one of two versions, by the reader's theme.
PICTURE = re.compile(
    r'<picture>\s*<source media="\(prefers-color-scheme: dark\)" srcset="([^"]+)">'
    r'\s*<img alt="([^"]*)" src="([^"]+)">\s*</picture>'
)
LINK = re.compile(r"(\]\()([^)#\s:]+)(#[^)\s]*)?\)")

# Modules that `distboost.__all__` does not name, because they are imported by themselves.
FURTHER = ("distboost.active",)
KINDS = ("Classifiers", "Classes", "Errors and warnings", "Functions")


def public_names() -> dict[str, list[str]]:
    """The public names of each public module: those of its `__all__` that are not modules themselves."""
    found = {}
    for module in ["distboost", *_modules(), *FURTHER]:
        exported = import_module(module)
        names = getattr(exported, "__all__", None) or [name for name in vars(exported) if name[0] != "_"]
        found[module] = [name for name in names if not isinstance(getattr(exported, name), ModuleType)]
    return found


def _modules() -> list[str]:
    package = import_module("distboost")
    values = (getattr(package, name) for name in package.__all__)
    return [value.__name__ for value in values if isinstance(value, ModuleType)]


def kind(value: Any) -> str:
    if not inspect.isclass(value):
        return "Functions"
    if issubclass(value, Exception):
        return "Errors and warnings"
    return "Classifiers" if hasattr(value, "predict_proba") else "Classes"


def reference() -> dict[str, str]:
    """The pages of the reference, by file name: a list of modules, and a table of names for each."""
    names = public_names()
    contents = "\n".join(f"   {module}" for module in names)
    pages = {
        "reference.rst": f"API reference\n=============\n\n{_REFERENCE}\n\n.. toctree::\n   :maxdepth: 1\n\n{contents}\n"
    }
    for module, public in names.items():
        summary = inspect.getdoc(import_module(module)) or ""
        parts = [f"{module}\n{'=' * len(module)}\n\n{summary}\n\n.. currentmodule:: {module}\n"]
        for heading in KINDS:
            listed = [name for name in public if kind(getattr(import_module(module), name)) == heading]
            if listed:
                rows = "\n".join(f"   {name}" for name in listed)
                table = f".. autosummary::\n   :toctree: api\n   :nosignatures:\n\n{rows}\n"
                parts.append(f"{heading}\n{'-' * len(heading)}\n\n{table}")
        pages[f"{module}.rst"] = "\n".join(parts)
    return pages


_REFERENCE = "Every public name. Names that are not here are private and may change in any release."


def command_line() -> str:
    """The page of the commands: what `--help` prints."""
    return "# Command line\n\n" + "\n\n".join(_helps(import_module("distboost.cli").main, "distboost"))


def _helps(command: click.Command, name: str) -> Iterator[str]:
    commands = getattr(command, "commands", {})
    # A command keeps the help option of its first context.
    settings = import_module("distboost.cli").main.context_settings
    context = click.Context(command, info_name=name, terminal_width=100, **settings)
    yield f"## {name}\n\n```text\n{command.get_help(context)}\n```\n"
    for part, inner in commands.items():
        yield from _helps(inner, f"{name} {part}")


def relinked(text: str, origin: Path, place: Path) -> str:
    """A page's text, whose links are relative to `origin`, for `place`: links to pages of `OUTSIDE` lead to the site's.

    Of a picture in two versions, the theme of the site shows one by these classes.
    """
    text = PICTURE.sub(r"![\2](\3){.only-light}\n![\2](\1){.only-dark}", text)

    def moved(link: re.Match[str]) -> str:
        target = (origin.parent / link[2]).resolve()
        target = GENERATED / OUTSIDE[target] if target in OUTSIDE else target
        return f"{link[1]}{os.path.relpath(target, place.parent)}{link[3] or ''})"

    return LINK.sub(moved, text)


def generated() -> dict[str, str]:
    """All pages that are made for the site, by file name."""
    pages = reference() | {"command-line.md": command_line()}
    for source, name in OUTSIDE.items():
        pages[name] = relinked(source.read_text(), source, GENERATED / name)
    # The site has a first page of its own.
    pages["readme.md"] = re.sub(r"\A# .*", "# Overview", pages["readme.md"])
    return pages


def write() -> None:
    GENERATED.mkdir(exist_ok=True)
    for name, text in generated().items():
        file = GENERATED / name
        # A page that has not changed keeps its time, so that Sphinx does not read it again.
        if not file.exists() or file.read_text() != text:
            file.write_text(text)
