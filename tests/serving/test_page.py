"""The page in Chromium: rows, keys, answers that wait for the server. `make browser` runs these."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from distboost.active.records import kind_of, rows_of
from tests import chromium
from tests.chromium import Chromium
from tests.serving.servers import label

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        chromium.found() is None, reason="no Chromium: apt-get install chromium, or set CHROMIUM"
    ),
]

ROW = "document.querySelector('#row')?.textContent"
HAS_ROW = f"/^Row \\d+/.test({ROW})"
IS_SENT = "document.querySelector('#sent').textContent === 'All answers are stored.'"


@pytest.fixture
def browser(tmp_path):
    found = Chromium(tmp_path / "profile")
    yield found
    found.kill()


def row_of(tab) -> int:
    tab.wait(HAS_ROW)
    return int(re.match(r"Row (\d+)", tab.text("#row"))[1])


def answer(tab, key: str) -> int:
    """Press a key, and wait for the next row; returns the one that was answered."""
    row = row_of(tab)
    tab.press(key)
    tab.wait(f"!/^Row {row}\\b/.test({ROW})")
    return row


def test_keys_label_rows(server_of, browser, pool):
    server = server_of("--classes", "0,1,2")
    tab = browser.tab(server.urls["ann"])
    rows = [answer(tab, "1") for _ in range(4)]
    skipped, unsure, wrong = answer(tab, "-"), answer(tab, "?"), answer(tab, "2")
    tab.press("Backspace")
    tab.wait(f"/^Row {wrong}\\b/.test({ROW})")
    tab.wait(IS_SENT)
    assert answer(tab, "0") == wrong
    tab.wait(IS_SENT)
    ledger = server.ledger
    assert ledger.labelled == {**dict.fromkeys(rows, 1), wrong: 0}
    assert (list(ledger.skipped), list(ledger.undecided)) == ([skipped], [unsure])
    assert all(event["by"] == "ann" for event in ledger.events if kind_of(event) == "taught")
    tab.wait("document.querySelectorAll('#history button').length === 7")
    tab.value("document.querySelectorAll('#history button')[6].click()")  # the first row, to correct it
    tab.wait(f"{ROW} === 'Row {rows[0]}, labelled 1'")
    answer(tab, "2")
    tab.wait(IS_SENT)
    assert server.ledger.labelled[rows[0]] == 2


def test_answers_wait_for_the_server(server_of, browser):
    """It is killed, and comes again: no answer is lost or doubled, and the rows that are here can be answered meanwhile."""
    server = server_of("--classes", "0,1,2")
    tab = browser.tab(server.urls["ann"])
    rows = [answer(tab, "1") for _ in range(3)]
    tab.wait(IS_SENT)
    server.kill()
    rows += [answer(tab, "2") for _ in range(3)]
    tab.wait("document.querySelector('#sent').textContent.includes('3 answers are kept')")
    tab.send("Page.reload")  # there is no page then
    server.start()
    tab.open(server.urls["ann"])
    tab.wait(HAS_ROW)
    tab.wait(IS_SENT)
    rows.append(answer(tab, "0"))
    tab.wait(IS_SENT)
    taught = Counter(
        row for event in server.ledger.events if kind_of(event) == "taught" for row in rows_of(event)
    )
    assert taught == dict.fromkeys(rows, 1)
    assert list(server.ledger.labelled.values()) == [1, 1, 1, 2, 2, 2, 0]


def test_many_at_once_and_new_classes(server_of, browser, pool):
    server, y = server_of(), pool[1]
    names = ["barn", "house", "tree"]
    ann = server.person("ann")
    tab = browser.tab(server.urls["bob"])
    row = row_of(tab)
    tab.press("+")
    tab.wait("document.querySelector('#new-class').open")
    tab.value(
        f"document.querySelector('#new-name').value = {names[y[row]]!r}; document.querySelector('#create').click()"
    )
    tab.wait(f"!/^Row {row}\\b/.test({ROW})")
    tab.wait(IS_SENT)
    assert server.ledger.labelled == {row: names[y[row]]}
    ann.answer(*(label([row], names[y[row]]) for row in ann.rows(20)))
    ann.until(lambda _: len(ann.get("alike?label=house&n=8")["cards"]) > 4)
    tab.wait("document.querySelectorAll('#classes button').length === 3")
    tab.value("document.querySelector('#many').click()")
    tab.value("{const one = document.querySelector('#grid-class'); one.value = 'tree'; one.onchange()}")
    tab.wait("document.querySelectorAll('.tile').length > 3")
    tab.value("document.querySelector('.tile').click()")
    n = tab.value("document.querySelectorAll('.tile').length")
    tab.value("document.querySelector('#confirm').click()")
    tab.wait("document.querySelector('#last').textContent.includes('rows: tree')")
    tab.wait(IS_SENT)
    [told] = [
        event for event in server.ledger.events if kind_of(event) == "taught" and len(rows_of(event)) > 1
    ]
    assert (len(rows_of(told)), set(told["taught"]["labels"])) == (n - 1, {"tree"})


@pytest.mark.parametrize("width", [360, 1280])
def test_the_page_fits_and_runs_no_names(width, server_of, browser, tmp_path):
    sheet = tmp_path / "rows.csv"
    strange = "<img src=x onerror=window.ran=1>"
    sheet.write_text("\n".join([strange, *[f"{strange}{'long' * 50}"] * 240]))
    guide = tmp_path / "guide.txt"
    guide.write_text(f"{strange}\n{'wide' * 100}")
    server = server_of("--show", sheet, "--image", "2x2", "--guidelines", guide)
    tab = browser.tab(server.urls["ann"], width)
    row_of(tab)
    tab.value("document.querySelector('#card details').open = true")
    assert tab.value("document.documentElement.scrollWidth <= innerWidth")
    assert tab.value("window.ran === undefined")
    assert strange in tab.text("#card")
    assert strange in tab.text("#guidelines")
    assert "<b>height</b>" in tab.text("#card table")
