"""Functions of the package stay short: those of kernels, and docstrings, do not count."""

from __future__ import annotations

import ast
from pathlib import Path

import distboost

PACKAGE = Path(distboost.__file__).parent
MOST_LINES = 60
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


def docstring_lines(function: ast.AST) -> int:
    """Of a function, and of what is defined in it."""
    texts = [
        node.body[0]
        for node in ast.walk(function)
        if isinstance(node, FUNCTIONS | ast.ClassDef) and ast.get_docstring(node)
    ]
    return sum(text.end_lineno - text.lineno + 1 for text in texts)


def test_functions_are_short():
    found = {}
    for path in PACKAGE.rglob("*.py"):
        if path.parent.name != "kernels":
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, FUNCTIONS):
                    lines = node.end_lineno - node.lineno + 1 - docstring_lines(node)
                    found[f"{path.relative_to(PACKAGE)}: {node.name}"] = lines
    assert len(found) > 1000
    assert {name: lines for name, lines in found.items() if lines > MOST_LINES} == {}
