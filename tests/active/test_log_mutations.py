"""Logs from strangers: they are continued, or there is one clear error."""

from __future__ import annotations

import copy
import json
import zlib

import numpy as np
import pytest
import zarr
from click.testing import CliRunner

from distboost.active import resume
from distboost.active.from_log import begin
from distboost.active.ledger import Ledger
from distboost.active.records import kind_of, to_line
from distboost.cli import main
from distboost.errors import DataError, DistboostError, StoreError
from tests.active.sessions import committee

MUTATIONS = [400, pytest.param(6000, marks=pytest.mark.soak)]  # of each of the logs


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    """A pool, and the labels of its rows."""
    path = tmp_path_factory.mktemp("pool") / "pool"
    y = np.arange(60) % 3
    X = np.random.default_rng(0).normal(size=(60, 4)) + np.eye(3, 4)[y]
    zarr.create_array(str(path), data=X, chunks=(20, 4))
    return str(path), y


LOGS = {
    "numbers": {},
    "declared": {"classes": [0, 1, 2], "strategy": "entropy"},
    "text": {"diversity": 2},
    "a committee that grows": {"warm_start": True},
}


@pytest.fixture(scope="module")
def logs(pool, tmp_path_factory):
    """The records of logs in which all kinds are."""
    made, folder = {}, tmp_path_factory.mktemp("logs")
    path, y = pool
    for name, settings in LOGS.items():
        labels = np.array(["a", "b", "c"])[y] if name == "text" else y
        learner = begin(committee(2), path, folder / name, n_initial=8, batch_size=4, **settings)
        for _ in range(3):
            rows = learner.query()
            learner.teach(rows[1:], labels[rows[1:]])
        lease = learner.lease(3, by="ann")
        learner.skip(lease[:1], "broken", by="ann").unsure(lease[1:2], by="ann")
        learner.batch_size = 5
        again = learner.lease(2, by="bob", overlap=1.0)
        learner.teach(again, labels[again[::-1]], by="bob")
        if name != "a committee that grows":
            learner.correct(rows[1:2], labels[rows[1:2]], by="bob").withdraw(rows[2:3]).seed(
                np.eye(2, 4), labels[:2]
            )
        made[name] = [json.loads(text[9:]) for text in (folder / name).read_text().splitlines()]
        common = {"asked", "taught", "note", "skipped", "unsure", "setting"}
        assert set(map(kind_of, made[name][1:])) == common | (
            {"trained"} if name == "a committee that grows" else {"corrected", "withdrawn", "seeded"}
        )
    return made


def written(path, records):
    path.write_text("".join(map(to_line, records)))
    return path


def goes_on(path, pool, work=False) -> bool:
    """Whether the log is one; nothing but our own errors is raised."""
    try:
        ledger = Ledger.from_log(path)
    except (StoreError, DataError) as error:
        assert str(path) in str(error)  # noqa: PT017 (most are valid, or not, by chance)
        return False
    rows = [*ledger.rows, *ledger.asked]
    assert len(set(rows)) == len(rows) == len(ledger.labels) + len(ledger.asked)
    assert not set(ledger.skipped) & set(rows)
    assert not rows or 0 <= min(rows) <= max(rows) < ledger.n_rows
    if work:
        try:
            resume(path, pool).query(1)
        except DistboostError:
            return True  # of other rows, with other parameters
        assert Ledger.from_log(path).n_queries == ledger.n_queries + 1
    return True


# One by one.


def change(number, *path, to):
    """Record `number`, or the first of a kind, says something else."""

    def changed(records):
        place = records[number] if isinstance(number, int) else next(r for r in records if number in r)
        for name in path[:-1]:
            place = place[name]
        place[path[-1]] = to(place[path[-1]]) if callable(to) else to

    return changed


def more(record):
    return lambda records: records.append(record)


def first(records, kind):
    return next(record[kind] for record in records if kind in record)


def without(name):
    return lambda records: records[0].pop(name)


WRONG = {
    "a class that is not declared": more({"taught": {"rows": [59], "labels": [7]}}),
    "a row that was taught": lambda records: records.append(next(r for r in records if "taught" in r)),
    "a row taught twice": more({"taught": {"rows": [59, 59], "labels": [1, 1]}}),
    "a row below the first": more({"taught": {"rows": [-1], "labels": [1]}}),
    "a row past the last": more({"taught": {"rows": [60], "labels": [1]}}),
    "a row that is a flag": more({"taught": {"rows": [True], "labels": [1]}}),
    "a row that is a float": more({"taught": {"rows": [1.0], "labels": [1]}}),
    "a row that is text": more({"taught": {"rows": ["1"], "labels": [1]}}),
    "a row that is nothing": more({"taught": {"rows": [None], "labels": [1]}}),
    "rows that are none": more({"taught": {"rows": 3, "labels": [1]}}),
    "no rows": more({"taught": {"rows": [], "labels": []}}),
    "no labels": more({"taught": {"rows": [59]}}),
    "too few labels": more({"taught": {"rows": [58, 59], "labels": [1]}}),
    "too many labels": more({"taught": {"rows": [59], "labels": [1, 2]}}),
    "labels of another kind": more({"taught": {"rows": [59], "labels": ["a"]}}),
    "labels that are nested": more({"taught": {"rows": [59], "labels": [[1]]}}),
    "a label that is nothing": more({"taught": {"rows": [59], "labels": [None]}}),
    "a label that is NaN": more({"taught": {"rows": [59], "labels": [float("nan")]}}),
    "a label that is infinite": more({"taught": {"rows": [59], "labels": [float("inf")]}}),
    "half a label": more({"taught": {"rows": [59], "labels": [0.5]}}),
    "labels of two types": more({"taught": {"rows": [58, 59], "labels": [True, 2]}}),
    "half a character": more({"taught": {"rows": [59], "labels": ["\ud800"]}}),
    "a label of many letters": more({"taught": {"rows": [59], "labels": ["a" * 2000]}}),
    "a vast label": more({"taught": {"rows": [59], "labels": [10**40]}}),
    "more of a teaching": more({"taught": {"rows": [59], "labels": [1], "by": "me"}}),
    "a person that is a number": more({"taught": {"rows": [59], "labels": [1]}, "by": 3}),
    "a person without a name": more({"taught": {"rows": [59], "labels": [1]}, "by": ""}),
    "a person of two lines": more({"taught": {"rows": [59], "labels": [1]}, "by": "a\nb"}),
    "a time that is text": more({"taught": {"rows": [59], "labels": [1]}, "at": "now"}),
    "a time past all": more({"taught": {"rows": [59], "labels": [1]}, "at": 1e300}),
    "a time before all": more({"taught": {"rows": [59], "labels": [1]}, "at": -1.0}),
    "a lease of labels": more({"taught": {"rows": [59], "labels": [1]}, "until": 2e9}),
    "a lease that is text": more({"asked": [59], "until": "later"}),
    "asked again for what has no label": more({"asked": [59], "again": [59], "by": "ann"}),
    "asked again for one's own": lambda records: records.append(
        {"asked": first(records, "taught")["rows"][:1], "again": first(records, "taught")["rows"][:1]}
    ),
    "asked again for text": more({"asked": [], "again": "59"}),
    "a second opinion that nobody asked for": lambda records: records.append(
        {"taught": {"rows": first(records, "taught")["rows"][:1], "labels": [1]}, "by": "bob"}
    ),
    "corrected what was not taught": more({"corrected": {"rows": [59], "labels": [1]}}),
    "corrected to no class": lambda records: records.append({"corrected": {**first(records, "taught"), "labels": [9] * 7}}),
    "withdrawn what nobody knows": more({"withdrawn": [59]}),
    "withdrawn twice": lambda records: records.append({"withdrawn": first(records, "taught")["rows"][:1] * 2}),
    "withdrawn nothing": more({"withdrawn": []}),
    "skipped what was taught": lambda records: records.append({"skipped": {"rows": first(records, "taught")["rows"], "why": ""}}),
    "skipped without a reason": more({"skipped": {"rows": [59]}}),
    "skipped for a number": more({"skipped": {"rows": [59], "why": 3}}),
    "asked for what was skipped": lambda records: records.append({"asked": first(records, "skipped")["rows"]}),
    "asked for what the person cannot tell": lambda records: records.append(
        {"asked": first(records, "unsure"), "by": "ann"}
    ),
    "unsure of no row": more({"unsure": [60]}),
    "seeds of other features": more({"seeded": {"x": [[1, 2]], "labels": [1]}}),
    "seeds of two lengths": more({"seeded": {"x": [[1, 2, 3, 4], [1]], "labels": [1, 1]}}),
    "seeds of text": more({"seeded": {"x": [["1", 2, 3, 4]], "labels": [1]}}),
    "seeds without labels": more({"seeded": {"x": [[1, 2, 3, 4]], "labels": []}}),
    "seeds of no class": more({"seeded": {"x": [[1, 2, 3, 4]], "labels": [9]}}),
    "a setting that may not change": more({"setting": {"random_state": 1}}),
    "a setting that cannot be": more({"setting": {"batch_size": 0}}),
    "two settings": more({"setting": {"batch_size": 3, "diversity": 2}}),
    "a pool of fewer rows": more({"extended": 59}),
    "a pool of half a row more": more({"extended": 60.5}),
    "an error that is none": more({"error": None}),
    "taught a list": more({"taught": [1, 2]}),
    "asked before": lambda records: records.append(next(r for r in records if "asked" in r)),
    "asked twice": more({"asked": [59, 59]}),
    "asked and taught": lambda records: records.append({"asked": first(records, "taught")["rows"]}),
    "asked past the last": more({"asked": [60]}),
    "asked below the first": more({"asked": [-5]}),
    "asked a flag": more({"asked": [False]}),
    "asked a number": more({"asked": 5}),
    "asked nothing": more({"asked": None}),
    "asked vastly": more({"asked": [2**70]}),
    "trained in a log of none that grows": more({"trained": 9}),
    "trained with text": more({"trained": "9"}),
    "trained with a flag": more({"trained": True}),
    "trained below 0": more({"trained": -3}),
    "a note of another name": more({"note": {"command": "rm"}}),
    "a pool that is a number": more({"note": {"pool": 3}}),
    "parameters that are text": more({"note": {"parameters": "n_jobs"}}),
    "parameters that are nested": more({"note": {"parameters": {"callbacks": ["print"]}}}),
    "an infinite parameter": more({"note": {"parameters": {"worker_timeout": float("inf")}}}),
    "a note that is a list": more({"note": ["pool", "x"]}),
    "two notes": more({"note": {"pool": "x", "parameters": {}}}),
    "no note": more({"note": {}}),
    "two records": more({"asked": [59], "note": {"pool": "x"}}),
    "nothing": more({}),
    "something else": more({"forgotten": [3]}),
    **{f"no {name}": without(name) for name in ("pool", "parameters", "classes", "warm_start", "version", "distboost")},
    "one more entry": lambda records: records[0].update(more=1),
    "a pool of no rows": change(0, "pool", 0, to=0),
    "a pool of a flag": change(0, "pool", 0, to=True),
    "a pool of half a row": change(0, "pool", 0, to=60.5),
    "a vast pool": change(0, "pool", 0, to=2**64),
    "a pool of one number": change(0, "pool", to=[60]),
    "a pool that is text": change(0, "pool", to="60"),
    "an algorithm that is none": change(0, "algorithm", to=None),
    "parameters that are a list": change(0, "parameters", to=[1]),
    "a strategy that is none": change(0, "strategy", to="best"),
    "a strategy that is a list": change(0, "strategy", to=["margin"]),
    "no batch": change(0, "batch_size", to=0),
    "a batch that is a float": change(0, "batch_size", to=4.0),
    "diversity that is a flag": change(0, "diversity", to=True),
    "a seed below 0": change(0, "random_state", to=-1),
    "a seed that is none": change(0, "random_state", to=None),
    "a fraction that is a number": change(0, "pool_fraction", to=1),
    "a fraction above 1": change(0, "pool_fraction", to=1.5),
    "a fraction that is NaN": change(0, "pool_fraction", to=float("nan")),
    "warm_start that is a number": change(0, "warm_start", to=1),
    "classes that are text": change(0, "classes", to="abc"),
    "one class": change(0, "classes", to=[1]),
    "classes twice": change(0, "classes", to=[0, 1, 1]),
    "classes not sorted": change(0, "classes", to=[2, 1, 0]),
    "classes of two kinds": change(0, "classes", to=[0, "a"]),
    "classes without those that were taught": change(0, "classes", to=[0, 1]),
    "a class that is nothing": change(0, "classes", to=[0, None]),
    "another version": change(0, "version", to=3),
    "a version that is text": change(0, "version", to="1"),
    "another program": change(0, "distboost", to="models"),
}  # fmt: skip


def test_the_unaltered_log_is_continued(logs, pool, tmp_path):
    assert goes_on(written(tmp_path / "log", logs["declared"]), pool[0], work=True)


@pytest.mark.parametrize("kind", WRONG)
def test_altered_logs(kind, logs, pool, tmp_path):
    records = copy.deepcopy(logs["declared"])
    WRONG[kind](records)
    path = written(tmp_path / "log", records)
    content = path.read_bytes()
    with pytest.raises(
        StoreError, match=r"line \d+ of .*log is damaged, .*Restore it|log is a log of version .*install"
    ):
        Ledger.from_log(path)
    with pytest.raises((StoreError, DataError)):
        resume(path, pool[0])
    assert path.read_bytes() == content
    done = CliRunner().invoke(main, ["active", "status", "--log", str(path)])
    assert done.exit_code == 1
    assert done.output.startswith("Error: ")


TRAINED = {
    "again": [11, 11],
    "less than before": [14, 11],
    "with more than were taught": [11, 50],
    "with none": [0],
}


@pytest.mark.parametrize("kind", TRAINED)
def test_invalid_runs(kind, logs, tmp_path):
    records = [r for r in logs["a committee that grows"] if "trained" not in r]
    written(tmp_path / "log", [*records, *({"trained": n} for n in TRAINED[kind])])
    with pytest.raises(StoreError, match=r"line \d+ of .*log is damaged, .*it says"):
        Ledger.from_log(tmp_path / "log")


def test_a_training_with_one_class(logs, tmp_path):
    header, *_ = logs["a committee that grows"]
    written(tmp_path / "log", [header, {"taught": {"rows": [1, 2], "labels": [0, 0]}}, {"trained": 2}])
    with pytest.raises(StoreError, match=r"line 3 of .*trained with 2 of 2 rows"):
        Ledger.from_log(tmp_path / "log")


PARAMETERS = {
    "unknown": change(0, "parameters", to={"depth": 3}),
    "out of range": change(0, "parameters", "n_estimators", to=-1),
    "of another type": change(0, "parameters", "learning_rate", to="fast"),
    "a place to write to": change(0, "parameters", to={"checkpoint": "/tmp/elsewhere"}),
    "pairs that are none": change(0, "parameters", "class_weight", to=[1, 2]),
    "an unknown algorithm": change(0, "algorithm", to="gamble-2"),
    "noted: unknown": more({"note": {"parameters": {"depth": 3}}}),
    "noted: what decides": more({"note": {"parameters": {"n_estimators": 3}}}),
    "noted: out of range": more({"note": {"parameters": {"n_jobs": -7}}}),
    "noted: what is called": more({"note": {"parameters": {"callbacks": "print"}}}),
}  # fmt: skip


@pytest.mark.parametrize("kind", PARAMETERS)
def test_estimators_that_cannot_be(kind, logs, pool, tmp_path):
    records = copy.deepcopy(logs["numbers"])
    PARAMETERS[kind](records)
    path = written(tmp_path / "log", records)
    with pytest.raises(DataError, match=r"the log .*/log"):
        resume(path, pool[0])
    at = ["--log", str(path), "--out", str(tmp_path / "out.csv")]
    done = CliRunner().invoke(main, ["active", "ask", *at])
    assert done.exit_code == 1
    assert done.output.startswith("Error: the log ")


def raw(text):
    """A line with a checksum that fits, whatever it says."""
    return f"{zlib.crc32(text.encode()):08x} {text}\n"


RAW = {
    "an entry twice": '{"asked": [1], "asked": [59]}',
    "other spaces": '{"asked":[59]}',
    "a number past the largest": '{"taught": {"labels": [1e999], "rows": [59]}}',
    "no number": '{"taught": {"labels": [NaN], "rows": [59]}}',
    "nested deeply": '{"asked": ' + "[" * 10**5 + "]" * 10**5 + "}",
    "a vast number": '{"asked": [' + "9" * 5000 + "]}",
    "a list": "[59]",
    "a text": '"asked"',
    "nothing": "",
}


@pytest.mark.parametrize("kind", RAW)
def test_altered_lines(kind, logs, tmp_path):
    path = written(tmp_path / "log", logs["numbers"])
    path.write_text(path.read_text() + raw(RAW[kind]))
    with pytest.raises(StoreError, match=rf"line {len(logs['numbers']) + 1} of .*log is damaged"):
        Ledger.from_log(path)
    path.write_text(raw(RAW[kind]))
    with pytest.raises(StoreError, match=r"line 1 of .*log is damaged"):
        Ledger.from_log(path)


# By chance.

KINDS = [
    "asked",
    "taught",
    "corrected",
    "withdrawn",
    "skipped",
    "unsure",
    "seeded",
    "setting",
    "extended",
    "trained",
    "note",
    "other",
]

STRANGE = [
    0, 1, -1, 2, 7, 59, 60, 10**6, 2**31, 2**63 - 1, 2**63, 10**30, 0.5, -0.0, 1.0, 1e308, float("nan"), float("inf"), True,
    False, None, "", "a", "margin", "x" * 3000, "\ud800", "\x1b[31m", "[/]", [],
    [0], [59], [58, 59], ["a"], [0, 1, 2], [True], [[1]],
    {"rows": [59], "why": ""}, {"x": [[1, 2, None, 0.5]], "labels": [1]}, {"x": "/nowhere", "labels": [1]}, {"batch_size": 9},
    {}, {"a": 1}, {"pool": "x"}, {"n_jobs": 1}, {"rows": [59], "labels": [1]}, {"rows": [59], "labels": ["a"]},
]  # fmt: skip


def mutated(records, rng):
    """Records as someone might have meant them."""
    records = copy.deepcopy(records)
    for _ in range(rng.integers(1, 3)):
        number, way = int(rng.integers(len(records))), rng.integers(6)
        if way == 0:
            del records[number]
        elif way == 1:
            records.insert(number, copy.deepcopy(records[rng.integers(len(records))]))
        elif way == 2:
            name = str(rng.choice(KINDS))
            records.insert(max(number, 1), {name: strange(rng)})
        else:
            altered(records[number] if records else {}, rng)
        if not records:
            break
    return records


def altered(place, rng):
    """One of the values in it, however deep."""
    while True:
        names = sorted(place) if isinstance(place, dict) else list(range(len(place)))
        if not names:
            return
        name = names[rng.integers(len(names))]
        if isinstance(place[name], (dict, list)) and place[name] and rng.integers(4):
            place = place[name]
            continue
        way = rng.integers(6)
        if way == 0:
            del place[name]
        elif way == 1 and isinstance(place, dict):
            place[
                str(
                    rng.choice(
                        [
                            "more",
                            "n_jobs",
                            "pool",
                            "checkpoint",
                            "classes",
                            "by",
                            "at",
                            "until",
                            "again",
                            "audit",
                        ]
                    )
                )
            ] = strange(rng)
        else:
            place[name] = strange(rng)
        return


def strange(rng):
    return copy.deepcopy(STRANGE[rng.integers(len(STRANGE))])


@pytest.mark.parametrize("mutations", MUTATIONS)
@pytest.mark.parametrize("name", LOGS)
def test_mutations(name, mutations, logs, pool, tmp_path):
    rng = np.random.default_rng(sorted(LOGS).index(name))
    valid = 0
    for number in range(mutations):
        path = written(tmp_path / "log", mutated(logs[name], rng))
        valid += goes_on(path, pool[0], work=number % 10 == 0)
    assert mutations // 50 < valid < mutations // 2  # both are tried


@pytest.mark.parametrize("mutations", MUTATIONS)
def test_mutated_bytes(mutations, logs, pool, tmp_path):
    content = written(tmp_path / "log", logs["text"]).read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(mutations):
        changed = bytearray(content[: rng.integers(1, len(content) + 1)] if rng.integers(2) else content)
        for at in rng.integers(0, len(changed), rng.integers(0, 3)):
            changed[at] ^= int(rng.integers(1, 256))
        (tmp_path / "log").write_bytes(changed)
        goes_on(tmp_path / "log", pool[0])
