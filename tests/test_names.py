"""Each name of the package has one meaning."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import distboost

PACKAGE = Path(distboost.__file__).parent


def test_classes_have_names_of_their_own():
    places = defaultdict(list)
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(str(path.relative_to(PACKAGE)))
    assert len(places) > 300
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
