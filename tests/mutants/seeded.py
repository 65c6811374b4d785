"""Faults drawn by a seed: small changes of the syntax tree."""

from __future__ import annotations

import ast
import random
import re
import shlex
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from tests.mutants.faults import HERE, Fault, Function

FOLDERS = HERE / "folders.toml"
PACKAGE = "distboost"

_COMPARED = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is"),
}  # fmt: skip
_ADDED = {ast.Add: ("+", "-"), ast.Sub: ("-", "+")}
_JOINED = {ast.And: ("and", "or"), ast.Or: ("or", "and")}
_TURNED = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "any": "all", "all": "any"}


class Change(NamedTuple):
    """Bytes first .. last - 1 of a file become `text`."""

    kind: str
    first: int
    last: int
    text: str


class _Changes(ast.NodeVisitor):
    """Finds all changes of a file. Annotations and f-strings, whose parts have no positions, are passed over."""

    def __init__(self, source: bytes):
        self.source = source
        lines = source.splitlines(keepends=True)
        self._starts = [0]
        for line in lines:
            self._starts.append(self._starts[-1] + len(line))
        self.found: list[Change] = []

    def _first(self, node: ast.AST) -> int:
        return self._starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]

    def _last(self, node: ast.AST) -> int:
        return self._starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]

    def _operator(self, kind: str, left: ast.AST, right: ast.AST, signs: tuple[str, str]) -> None:
        """The operator between two operands, which may have parentheses and line breaks around it."""
        first, last = self._last(left), self._first(right)
        between = self.source[first:last].decode()
        words = r"\s+".join(map(re.escape, signs[0].split()))
        match = re.fullmatch(rf"([\s)]*)({words})([\s(]*)", between)
        if match:
            start = first + len(match[1].encode())
            self.found.append(Change(kind, start, start + len(match[2].encode()), signs[1]))

    def visit_Compare(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        for left, operator, right in zip(operands, node.ops, operands[1:], strict=False):
            self._operator("comparison", left, right, _COMPARED[type(operator)])
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        text = any(
            isinstance(side, ast.JoinedStr)
            or (isinstance(side, ast.Constant) and isinstance(side.value, str))
            for side in (node.left, node.right)
        )
        if type(node.op) in _ADDED and not text:
            self._operator("sign", node.left, node.right, _ADDED[type(node.op)])
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        for left, right in zip(node.values, node.values[1:], strict=False):
            self._operator("and/or", left, right, _JOINED[type(node.op)])
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if type(node.value) in (int, float):
            self.found.append(Change("constant", self._first(node), self._last(node), repr(node.value + 1)))

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", None)
        if name in _TURNED:
            last = self._last(node.func)
            self.found.append(Change("min/max", last - len(name), last, _TURNED[name]))
        self.generic_visit(node)

    def _delete(self, node: ast.stmt) -> None:
        self.found.append(Change("deletion", self._first(node), self._last(node), "pass"))
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._delete(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        self._delete(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            self._delete(node)
        elif not isinstance(node.value, ast.Constant):
            self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        if all(isinstance(target, (ast.Attribute, ast.Subscript)) for target in node.targets):
            self._delete(node)
        else:
            self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_arguments(self, node: ast.arguments) -> None:
        for default in (*node.defaults, *filter(None, node.kw_defaults)):
            self.visit(default)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.visit(node.args)
        for statement in node.body:
            self.visit(statement)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        pass


def changes(source: bytes) -> list[Change]:
    """All changes of a file, in the order of the file."""
    finder = _Changes(source)
    finder.visit(ast.parse(source))
    return sorted(finder.found, key=lambda change: change[1:])


def arguments_for(file: str) -> tuple[str, ...]:
    """The tests that are run for a fault in a file: those of the longest path that it begins with."""
    with open(FOLDERS, "rb") as opened:
        folders = tomllib.load(opened)["tests"]
    place = max((place for place in folders if f"{file}/".startswith(f"{place}/")), key=len)
    return tuple(shlex.split(folders[place]))


def _tests(root: Path, file: str, source: bytes, change: Change) -> tuple[str, ...]:
    """The files of a file's tests, those first that name it, or what is around the change."""
    names = {Path(file).stem} | {
        node.name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and node.lineno <= _line(source, change) <= node.end_lineno
    }

    def named(path: Path) -> int:
        return len(
            names.intersection(re.findall(r"\w+", f"{path.stem.replace('_', ' ')} {path.read_text()}"))
        )

    folders, files = [], []
    for path in (root / place for place in arguments_for(file)):
        (folders if path.is_dir() else files).append(path)
    for folder in folders:
        files += sorted(folder.rglob("test_*.py"))
    paths = sorted(dict.fromkeys(files), key=named, reverse=True)
    return tuple(path.relative_to(root).as_posix() for path in paths)


def lines_of(source: bytes, name: str) -> range:
    """The lines of a function, by its name and the names around it, such as "Tally.finish"; raises LookupError without it."""
    body: list[ast.stmt] = ast.parse(source).body
    for part in name.split("."):
        found = [
            node
            for statement in body
            for node in ast.walk(statement)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name == part
        ]
        if not found:
            raise LookupError(f"there is no {name}")
        body = found[0].body
    return range(found[0].lineno, found[0].end_lineno + 1)


def in_functions(root: Path, seed: int, functions: Iterable[Function]) -> Iterator[Fault]:
    """A fault in each of the functions."""
    chooser = random.Random(seed)
    for function in functions:
        source = (root / function.file).read_bytes()
        lines = lines_of(source, function.name)
        own = [change for change in changes(source) if _line(source, change) in lines]
        yield _fault(function.file, source, chooser.choice(own), function.tests, function.promise)


def drawn(root: Path, seed: int, n: int, files: Iterable[str] | None = None) -> Iterator[Fault]:
    """n faults of these files, or of the whole package in the tree at `root`: a kind of change first, then one of its places.

    There are fewer if the files do not have so many places.
    """
    if files is None:
        files = [path.relative_to(root).as_posix() for path in (root / PACKAGE).rglob("*.py")]
    sources = {file: (root / file).read_bytes() for file in sorted(files)}
    places: dict[str, list[tuple[str, Change]]] = defaultdict(list)
    for file, source in sources.items():
        for change in changes(source):
            places[change.kind].append((file, change))
    chooser = random.Random(seed)
    for _ in range(min(n, sum(map(len, places.values())))):
        kind = chooser.choice(sorted(kind for kind, found in places.items() if found))
        file, change = places[kind].pop(chooser.randrange(len(places[kind])))
        yield _fault(file, sources[file], change, _tests(root, file, sources[file], change))


def _line(source: bytes, change: Change) -> int:
    return source.count(b"\n", 0, change.first) + 1


def _fault(
    file: str, source: bytes, change: Change, tests: tuple[str, ...], promise: str | None = None
) -> Fault:
    changed = source[: change.first] + change.text.encode() + source[change.last :]
    name = f"{file}:{_line(source, change)} {change.kind}"
    if b">>> " in source:
        module = ".".join(Path(file).with_suffix("").parts)
        tests = (f"tests/test_docstrings.py::test_examples_run[{module}]", *tests)
    return Fault(name, file, source.decode(), changed.decode(), tests, promise)
