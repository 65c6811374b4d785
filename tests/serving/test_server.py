"""The server of the page: who may call it, and what becomes of answers."""

from __future__ import annotations

import base64
import os
import socket
import stat
import urllib.request
from collections import Counter
from contextlib import suppress
from threading import Thread
from urllib.error import URLError

import numpy as np
import pytest
import zarr

from distboost.active.records import kind_of, rows_of
from tests.active.commands import asked, fail, run
from tests.serving.servers import Person, label, other


def labels_told(server) -> Counter:
    """How often each row was labelled."""
    return Counter(
        row for event in server.ledger.events if kind_of(event) == "taught" for row in rows_of(event)
    )


def test_nobody_without_a_token(server_of):
    server = server_of()
    for token in ("", "x", server.urls["ann"].partition("#")[2][:-1]):
        stranger = Person(server.address, token)
        for path in (
            "setup",
            "state",
            "rows?n=1",
            "card?row=1",
            "alike?label=1&n=2",
            "picture?row=1&column=0",
        ):
            assert stranger.status(path) == 401
        assert stranger.status("answers", {"answers": [label([1], 1)]}) == 401
    assert server.urls["ann"] != server.urls["bob"]
    assert stat.S_IMODE(os.stat(f"{server.log}.tokens").st_mode) == 0o600
    assert not labels_told(server)


def test_the_page_runs_no_code_of_others(server_of):
    server = server_of()
    with urllib.request.urlopen(server.address, timeout=30) as page:
        policy = page.headers["Content-Security-Policy"]
        text = page.read().decode()
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert '<script type="module" src=' in text
    assert "style=" not in text
    assert Person(server.address, "").status("../../people.py") in (403, 404)


def test_only_this_machine_can_reach_it(server_of):
    server = server_of()
    own = {found[4][0] for found in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    port = int(server.address.rpartition(":")[2])
    for address in own - {"127.0.0.1"}:
        if not address.startswith("127."):
            with pytest.raises(ConnectionRefusedError), socket.create_connection((address, port), timeout=5):
                pass


def test_a_repeat_is_recorded_once_also_by_another_server(server_of):
    server = server_of()
    ann = server.person("ann")
    rows = ann.rows(4)
    answers = [
        label(rows[:1], 0, seconds=1.5),
        other("skip", rows[1:2], why="torn"),
        other("unsure", rows[2:3]),
        label(rows[3:], 2),
    ]
    assert ann.answer(*answers) == {}
    assert ann.answer(*answers) == {}
    server.kill()
    server.start()
    assert server.person("ann").answer(*answers[:1], *answers, other("undo", rows[3:])) == {}
    kinds = Counter(kind_of(event) for event in server.ledger.events)
    assert (kinds["taught"], kinds["skipped"], kinds["unsure"], kinds["withdrawn"]) == (2, 1, 1, 1)
    assert server.ledger.labelled == {rows[0]: 0}


def test_killed_and_started_again(server_of):
    """The URLs hold, and everybody has the rows that were theirs."""
    server = server_of()
    before = {name: server.person(name).rows(5) for name in ("ann", "bob")}
    urls = server.urls
    server.person("ann").answer(label(before["ann"][:1], 1))
    server.kill()
    with pytest.raises(URLError):
        server.person("ann").get("state")
    server.start()
    assert server.urls == urls
    assert server.person("ann").get("rows?n=4")["open"] == before["ann"][1:]
    assert server.person("bob").get("rows?n=5")["open"] == before["bob"]
    assert server.person("ann").get("state")["history"][0]["row"] == before["ann"][0]


def test_everybody_labels_other_rows_while_a_process_trains(server_of, pool, tmp_path):
    """Two people at the page, and one at the command line."""
    server, y = server_of(), pool[1]
    told: dict[str, list[int]] = {"ann": [], "bob": []}

    def work(name: str) -> None:
        person = server.person(name)
        while len(told[name]) < 40:
            for row in person.rows(3):
                assert person.answer(label([row], y[row])) == {}
                told[name].append(row)

    people = [Thread(target=work, args=(name,), daemon=True) for name in told]
    for one in people:
        one.start()
    run("ask", "--log", server.log, "--by", "cy", "--out", tmp_path / "cy.csv")
    for one in people:
        one.join()
    mine = asked(tmp_path / "cy.csv")
    assert len({*told["ann"], *told["bob"], *mine}) == len(told["ann"]) + len(told["bob"]) + len(mine)
    assert set(labels_told(server).values()) == {1}
    n = len(told["ann"]) + len(told["bob"])
    state = server.person("ann").until(lambda state: state["n_learned"] == n)
    assert state["per_hour"] == {name: len(rows) for name, rows in told.items()}
    server.person("ann").rows(20)  # of the ranking that the process has made meanwhile
    assert server.ledger.audited
    assert not any(kind_of(event) == "error" for event in server.ledger.events)


def test_corrections_and_what_others_have_said(server_of):
    server = server_of()
    ann, bob = server.person("ann"), server.person("bob")
    [row, second] = ann.rows(2)
    ann.answer(label([row], 0))
    [(_, why)] = bob.answer(label([row], 1)).items()
    assert "'ann'" in why
    assert bob.answer(label([row], 0)) == {}
    assert bob.answer(label([row], 1, correct=True)) == {}
    [why] = ann.answer(other("undo", [row])).values()
    assert "'bob'" in why
    assert server.ledger.labelled == {row: 1}
    assert ann.answer(label([10**9], 1), label([second], 1.5), label([second], 1))
    assert server.ledger.labelled == {row: 1, second: 1}
    [third] = bob.rows(1)
    mixed = label([row, third], 0)
    refused = bob.answer(mixed)
    assert refused == bob.answer(mixed) != {}  # also if the first reply was lost
    assert server.ledger.labelled == {row: 1, second: 1, third: 0}


def test_what_is_taken_back_comes_again(server_of):
    ann = server_of().person("ann")
    rows = ann.rows(3)
    ann.answer(label(rows[:2], 0), other("undo", rows[:2]))
    assert set(rows) <= set(ann.rows(3))
    assert ann.get("state")["history"] == []


def test_requests_of_another_form(server_of):
    ann = server_of().person("ann")
    [row] = ann.rows(1)
    strange = [None, 1, {}, {"do": "label"}, label([], 1), label(["1"], 1), {**label([row], 1), "id": "<"}, label([row], " "),
               label([2**70], 1), label([row], 1, seconds=-1), other("drop", [row]), other("skip", [row], why=3)]  # fmt: skip
    for one in strange:
        assert ann.status("answers", {"answers": [one]}) == 400
    for path in (
        "rows?n=x",
        "rows",
        "rows?n=100000",
        "card?row=240",
        "card?row=-1",
        "picture?row=0&column=0",
    ):
        assert ann.status(path) in (400, 404)
    assert ann.get("state")["n_labels"] == 0


def test_a_card(server_of, pool):
    """Values, percentiles, the nearest labelled rows; in the end, what the model says."""
    server, y = server_of(), pool[1]
    ann = server.person("ann")
    ann.answer(*(label([row], y[row]) for row in ann.rows(14)))
    ann.until(lambda state: state["n_learned"] >= 14)
    X = zarr.open_array(pool[0])[:]
    [card] = ann.get("card?row=5")["cards"]
    assert card["values"] == [*X[5, :3], None]
    smaller = (X[:, 0] < X[5, 0]).mean()
    assert card["percent"][0] == pytest.approx(100 * smaller, abs=1)
    assert card["percent"][3] is None
    assert [near["label"] for near in card["near"]] == [str(y[5])] * 3
    assert all(near["row"] in server.ledger.labelled for near in card["near"])
    ann.until(lambda _: ann.get("alike?label=1&n=5")["cards"])
    likely = ann.get("alike?label=1&n=5")["cards"]
    assert all(y[card["row"]] == 1 for card in likely)
    assert all(card["hint"]["guesses"][0]["label"] == "1" for card in likely)
    assert ann.answer(label([card["row"] for card in likely], 1)) == {}


def test_beside_the_values(server_of, tmp_path):
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "a.png").write_bytes(b"a picture")
    (tmp_path / "secret.png").write_bytes(b"a secret")
    lines = [
        "note,page,face",
        "<b>torn</b>,https://example.org/1,a.png",
        "x,y,../secret.png",
        *["x,y,z"] * 238,
    ]
    sheet = tmp_path / "inside" / "rows.csv"
    sheet.write_text("\n".join(lines))
    guide = tmp_path / "guide.txt"
    guide.write_text("Look twice.")
    ann = server_of("--show", sheet, "--image", "2x2", "--guidelines", guide).person("ann")
    setup = ann.get("setup")
    assert (setup["guidelines"], setup["image"], setup["by"]) == ("Look twice.", [2, 2, 1], "ann")
    [card] = ann.get("card?row=0")["cards"]
    assert [(one["kind"], one["text"]) for one in card["shown"]] == [
        ("text", "<b>torn</b>"), ("link", "https://example.org/1"), ("picture", "a.png")]  # fmt: skip
    assert len(card["image"]) == 8  # four bytes, as base64
    with ann.request("picture?row=0&column=2") as answer:
        assert answer.read() == b"a picture"
        assert answer.headers["Content-Type"] == "image/png"
    assert ann.status("picture?row=1&column=2") == 404
    assert ann.status("picture?row=0&column=0") == 404


def test_images_of_an_array_and_parquet(server_of, tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    images = np.arange(240 * 12, dtype=np.uint8).reshape(240, 2, 2, 3)
    zarr.create_array(tmp_path / "images", data=images, chunks=(50, 2, 2, 3))
    table = pa.table({"text": [f"row {i}" for i in range(240)]})
    parquet.write_table(table, tmp_path / "rows.parquet", row_group_size=70)
    ann = server_of("--image", tmp_path / "images", "--show", tmp_path / "rows.parquet").person("ann")
    for row in (0, 69, 70, 239):
        [card] = ann.get(f"card?row={row}")["cards"]
        assert base64.b64decode(card["image"]) == images[row].tobytes()
        assert card["shown"][0]["text"] == f"row {row}"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--image", "3x3"), "3x3 has 9 values, but rows have 4"),
        (("--show", "short.csv"), "2 rows, but the pool has 240"),
        (("--show", "none.csv"), "there is no file"),
        (("--show", "empty.csv"), "empty.csv is empty"),
        (("--people", "ann,ann"), "each person once"),
        (("--port", "{taken}"), "Pass another port"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_told_at_once(options, said, pool, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "short.csv").write_text("a\n1\n2\n")
    (tmp_path / "empty.csv").write_text("")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        options = [word.format(taken=taken.getsockname()[1]) for word in options]
        assert said in fail("serve", "--log", "labels.log", "--x", pool[0], *options)


def test_strange_tokens(pool, tmp_path):
    (tmp_path / "labels.log.tokens").write_text('{"ann": "short"}')
    said = fail("serve", "--log", tmp_path / "labels.log", "--x", pool[0], "--people", "ann")
    assert "labels.log.tokens has no tokens" in said


def test_terminated_it_leaves_no_process(server_of):
    server = server_of()
    server.person("ann").rows(1)
    with open(f"/proc/{server.process.pid}/task/{server.process.pid}/children") as file:
        children = [int(word) for word in file.read().split()]
    assert children
    server.process.terminate()
    assert server.process.wait(30) == 0
    for child in children:
        with suppress(FileNotFoundError), open(f"/proc/{child}/cmdline") as file:
            assert "distboost" not in file.read()
