"""Files, classes and functions of the package stay short: kernels, generated stubs and docstrings do not count."""

from __future__ import annotations

import ast
from pathlib import Path

import distboost

PACKAGE = Path(distboost.__file__).parent
MOST_LINES = {"file": 400, "class": 250, "function": 60}
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


def docstring_lines(tree: ast.AST) -> int:
    """Of a definition, and of those in it."""
    texts = [
        node.body[0]
        for node in ast.walk(tree)
        if isinstance(node, FUNCTIONS | ast.ClassDef | ast.Module) and ast.get_docstring(node)
    ]
    return sum(text.end_lineno - text.lineno + 1 for text in texts)


def sizes(path: Path):
    """(kind, name, lines) of a file and of what it defines."""
    content = path.read_text()
    yield "file", "", len(content.splitlines())
    for node in ast.walk(ast.parse(content)):
        if isinstance(node, FUNCTIONS | ast.ClassDef):
            kind = "class" if isinstance(node, ast.ClassDef) else "function"
            yield kind, node.name, node.end_lineno - node.lineno + 1 - docstring_lines(node)


def test_files_classes_and_functions_are_short():
    modules = [path for path in PACKAGE.rglob("*.py") if path.parent.name != "kernels"]
    assert len(modules) > 100
    found = [(path.relative_to(PACKAGE), *size) for path in modules for size in sizes(path)]
    assert [item for item in found if item[-1] > MOST_LINES[item[1]]] == []


def test_the_classifier_is_short():
    lines = len((PACKAGE / "estimators" / "base.py").read_text().splitlines())
    assert lines <= 200
