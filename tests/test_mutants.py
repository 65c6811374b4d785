"""The list of functions applies to this tree, and the runner tells faults that are caught from those that are not."""

from __future__ import annotations

import ast
from collections import Counter

import pytest

from tests.mutants.faults import PROMISES, ROOT, Fault, Function, listed
from tests.mutants.run import CAUGHT, NOT_JUDGED, OUT_OF_TIME, SURVIVED, Mutants
from tests.mutants.seeded import changes, drawn, in_functions, lines_of

FUNCTIONS = listed()


def test_each_function_has_faults_that_are_python():
    for fault in in_functions(ROOT, 0, FUNCTIONS):
        assert ast.dump(ast.parse(fault.new)) != ast.dump(ast.parse(fault.old))


def test_functions_and_their_tests_are_there_once():
    assert len({(one.file, one.name) for one in FUNCTIONS}) == len(FUNCTIONS)
    assert [place for one in FUNCTIONS for place in one.tests if not (ROOT / place).exists()] == []


def test_each_promise_has_at_least_five_functions():
    known = Counter(one.promise for one in FUNCTIONS if one.promise is not None)
    assert known.keys() == set(PROMISES)
    assert min(known.values()) >= 5


def test_a_function_is_found_by_the_names_around_it():
    source = b"def f(): pass\n\nclass A:\n    def f(self):\n        def g():\n            return 1\n        return g\n"
    assert lines_of(source, "f") == range(1, 2)
    assert lines_of(source, "A.f") == range(4, 8)
    assert lines_of(source, "A.f.g") == range(5, 7)
    with pytest.raises(LookupError, match=r"there is no A\.g\.f"):
        lines_of(source, "A.g.f")


def test_drawn_faults_are_python_and_depend_on_the_seed_alone():
    faults = list(drawn(ROOT, 3, 30))
    assert faults == list(drawn(ROOT, 3, 30))
    assert faults != list(drawn(ROOT, 4, 30))
    for fault in faults:
        assert ast.dump(ast.parse(fault.new)) != ast.dump(ast.parse(fault.old))
        assert [place for place in fault.tests if not (ROOT / place.partition("::")[0]).exists()] == []
    assert {fault.file for fault in drawn(ROOT, 3, 30, ["distboost/threads.py"])} == {"distboost/threads.py"}


def test_changes_of_a_file():
    source = (
        "def f(α: int = 1) -> int:\n"
        '    """1 + 1"""\n'
        "    if α < 2 and not (α) > 3:\n"
        '        print(f"{α + 1}")\n'
        "    return max(α, 5) - α\n"
    )
    found = {
        source.encode()[: change.first].decode() + change.text + source.encode()[change.last :].decode()
        for change in changes(source.encode())
    }
    assert found == {
        source.replace("= 1)", "= 2)"), source.replace("< 2", "<= 2"), source.replace("< 2", "< 3"),
        source.replace("and", "or"), source.replace(") > 3", ") >= 3"), source.replace("> 3", "> 4"),
        source.replace('print(f"{α + 1}")', "pass"), source.replace("max", "min"), source.replace("5", "6"),
        source.replace(") - α", ") + α"),
    }  # fmt: skip


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A repository of one module with one test, which needs no plugin of pytest."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    root = tmp_path / "repository"
    (root / "tests").mkdir(parents=True)
    (root / "module.py").write_text("def double(x):\n    return 2 * x\n\n\ndef half(x):\n    return x / 2\n")
    (root / "tests" / "test_module.py").write_text(
        "from module import double\n\ndef test_double():\n    assert double(3) == 6\n"
    )
    (root / "tests" / "conftest.py").write_text("import module\n")
    return root


def test_verdicts(small, tmp_path):
    source = (small / "module.py").read_text()

    def fault(old: str, new: str, *tests: str) -> Fault:
        return Fault(
            f"{new} for {old}",
            "module.py",
            source,
            source.replace(old, new),
            ("tests/test_module.py", *tests),
        )

    faults = {
        fault("2 * x", "3 * x"): CAUGHT,
        fault("return 2", "return (2"): CAUGHT,  # not even imported
        fault("x / 2", "x / 3"): SURVIVED,
        fault("x / 2", "x // 2", "-k", "half"): NOT_JUDGED,  # there is no such test
        fault("2 * x", "__import__('time').sleep(60)"): OUT_OF_TIME,
    }
    mutants = Mutants(small, tmp_path / "copies", limit=5)
    assert list(mutants.judged(list(faults), jobs=1, seconds=0)) == []
    verdicts = list(mutants.judged(list(faults), jobs=2))
    assert {verdict.fault: verdict.state for verdict in verdicts} == faults
    caught = next(verdict for verdict in verdicts if "3 * x" in verdict.fault.name)
    assert caught.by == "tests/test_module.py::test_double"
    slow = next(verdict for verdict in verdicts if verdict.state == OUT_OF_TIME)
    assert slow.by == "no test failed within 5 s: tests/test_module.py::test_double"
    assert (small / "module.py").read_text() == source == (mutants.base / "module.py").read_text()
    assert [path.name for path in (tmp_path / "copies").iterdir()] == ["base"]
    (mutants.base / "tests" / "test_module.py").write_text(
        "def test_double():\n    assert False\n"
    )  # without the fault, too
    mutants = Mutants(mutants.base, tmp_path / "others")
    assert [verdict.state for verdict in mutants.judged([fault("x / 2", "x / 3")], jobs=1)] == [NOT_JUDGED]


def test_the_fault_of_a_function_is_in_it(small):
    found = [*in_functions(small, 0, [Function("module.py", "half", ("tests/test_module.py",))])]
    assert [fault.new for fault in found] == [found[0].old.replace("x / 2", "x / 3")]
