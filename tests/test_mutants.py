"""The list of faults applies to this tree, and the runner tells faults that are caught from those that are not."""

from __future__ import annotations

import ast
from collections import Counter

import pytest

from tests.mutants.faults import PROMISES, ROOT, DoesNotApplyError, Fault, listed
from tests.mutants.run import CAUGHT, NOT_APPLIED, NOT_JUDGED, OUT_OF_TIME, SURVIVED, Mutants, grouped, split
from tests.mutants.seeded import changes, drawn

FAULTS = listed()


def test_each_fault_applies_once_and_is_python():
    wrong = []
    for fault in FAULTS:
        try:
            ast.parse(fault.applied((ROOT / fault.file).read_text()))
        except (DoesNotApplyError, SyntaxError) as error:
            wrong.append(f"{fault.name}: {error}")
        if fault.old == fault.new:
            wrong.append(f"{fault.name}: it changes nothing")
    assert wrong == []


def test_names_are_different():
    assert [name for name, n in Counter(fault.name for fault in FAULTS).items() if n > 1] == []


def test_the_tests_of_all_faults_are_there():
    assert [place for place in grouped(FAULTS) if not (ROOT / place).exists()] == []


def test_each_promise_has_at_least_five_faults():
    known = Counter(fault.promise for fault in FAULTS if fault.promise is not None)
    assert known.keys() == set(PROMISES)
    assert min(known.values()) >= 5


def test_drawn_faults_are_python_and_depend_on_the_seed_alone():
    faults = list(drawn(ROOT, 3, 30))
    assert faults == list(drawn(ROOT, 3, 30))
    assert faults != list(drawn(ROOT, 4, 30))
    for fault in faults:
        assert ast.dump(ast.parse(fault.new)) != ast.dump(ast.parse(fault.old))
        assert [place for place in split(fault.tests)[0] if not (ROOT / place).exists()] == []


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
    return root


def test_verdicts(small, tmp_path):
    def fault(old: str, new: str, *tests: str) -> Fault:
        return Fault(f"{new} for {old}", "module.py", old, new, ("tests/test_module.py", *tests))

    faults = {
        fault("2 * x", "3 * x"): CAUGHT,
        fault("return 2", "return (2"): CAUGHT,  # not even imported
        fault("x / 2", "x / 3"): SURVIVED,
        fault("x / 4", "x / 3"): NOT_APPLIED,
        fault("return", "yield"): NOT_APPLIED,  # it is there twice
        fault("x / 2", "x // 2", "-k", "half"): NOT_JUDGED,  # there is no such test
    }
    mutants = Mutants(small, tmp_path / "copies")
    ((place, done),) = mutants.unfaulty([fault("", "")], 1)
    assert (place, done.code) == ("tests/test_module.py", 0)
    verdicts = list(mutants.judged(list(faults), jobs=2))
    assert {verdict.fault: verdict.state for verdict in verdicts} == faults
    caught = next(verdict for verdict in verdicts if verdict.fault.new == "3 * x")
    assert caught.by == "tests/test_module.py::test_double"
    assert "3 * x" not in (small / "module.py").read_text()
    assert [path.name for path in (tmp_path / "copies").iterdir()] == ["base"]
    broken = fault("2 * x", "2 * x + 0")
    mutants.confirm = True
    tests = mutants.base / "tests" / "test_module.py"
    right = tests.read_text()
    tests.write_text("def test_double():\n    assert False\n")
    assert mutants.verdict(0, broken).state == NOT_JUDGED
    tests.write_text(right)
    mutants.limit = 0.5
    endless = fault("2 * x", "__import__('time').sleep(60)")
    assert mutants.verdict(0, endless).state == OUT_OF_TIME


def test_a_fragment_that_is_not_there_once_is_an_error():
    with pytest.raises(DoesNotApplyError, match="has the fragment 'a' 2 times"):
        Fault("name", "file", "a", "b", ()).applied("a a")


def test_tests_are_grouped_by_file():
    def fault(*tests: str) -> Fault:
        return Fault("name", "file", "a", "b", tests)

    faults = [fault("one", "-k", "x or y"), fault("two"), fault("one", "two", "-k", "z")]
    assert grouped(faults) == {"one": ("-k", "(x or y) or (z)"), "two": ()}
