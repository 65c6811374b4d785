"""The report and the site in Chromium: nothing is wider than a phone, no code is cut, tables sort, names run nothing.

`make browser` runs these.
"""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest

import distboost
from distboost import GDMCBoostClassifier
from tests.test_report_page import HOSTILE, many

pytestmark = pytest.mark.browser

# What a reader would measure, written into the page before it is printed.
PROBE = """<script>
addEventListener("load", () => {
  const table = document.querySelector("#classes table.sortable");
  const column = () => [...table.tBodies[0].rows].map((row) => row.cells[4].textContent);
  const before = column().join();
  table.tHead.rows[0].cells[4].querySelector("button").click();
  const sorted = column().map(Number);
  const probe = document.createElement("pre");
  probe.textContent = JSON.stringify("probe") + " too-wide=" + (document.documentElement.scrollWidth > innerWidth)
    + " moved=" + (column().join() !== before)
    + " filled=" + [...document.querySelectorAll(".chart")].every(
      (chart) => chart.clientWidth >= chart.closest("figure").clientWidth - 1)
    + " legible=" + [...document.querySelectorAll(".chart text")].every(
      (text) => parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a >= 11 || text.hasAttribute("transform"))
    + " sorted=" + sorted.every((value, i) => !i || sorted[i - 1] <= value) + " run=" + ("ran" in window);
  document.body.append(probe);
});
</script></body>"""

# Each page of the site in a frame, which is made wider and narrower. What holds more than it shows must be a table.
FRAME = """<iframe style="height: 900px"></iframe><script>
const frame = document.querySelector("iframe"), pages = PAGES, found = [];
const wide = (part) => part.scrollWidth > part.clientWidth && !part.matches(".pst-scrollable-table-container")
  && (part.matches("html, pre") || /auto|scroll/.test(getComputedStyle(part).overflowX));
frame.onload = () => {
  const page = frame.contentDocument;
  for (const width of [1400, 800, 390]) {
    frame.style.width = width + "px";
    for (const part of page.querySelectorAll("*"))
      if (wide(part) || part.matches("summary:not([aria-label])") && !part.innerText.trim())
        found.push(`${page.URL} at ${width}: ${part.tagName}.${part.className}`);
  }
  next();
};
const next = () => {
  const page = pages.shift();
  if (page) frame.src = page;
  else document.body.append(Object.assign(document.createElement("pre"), { textContent: JSON.stringify(found) }));
};
next();
</script>"""


@pytest.fixture(scope="module")
def chromium():
    found = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if found is None:
        pytest.fail("there is no Chromium: apt-get install chromium, or set CHROMIUM to its path")
    return found


@pytest.fixture(scope="module", params=[5, 60])
def page(request, tmp_path_factory):
    names = [
        *(one.replace("alert", "window.ran=alert") for one in HOSTILE),
        *(f"class {i}" for i in range(60)),
    ]
    X, y = many(request.param, names=names)
    X = pd.DataFrame(X, columns=["<img src=x onerror='window.ran=1'>", *(f"{i}" * 100 for i in range(5))])
    model = GDMCBoostClassifier(n_estimators=3, max_depth=2, learning_rate=0.3).fit(X, y)
    path = tmp_path_factory.mktemp("page") / "report.html"
    distboost.report(model, X, y, path)
    path.write_text(path.read_text().replace("</body>", PROBE))
    return path


def run(chromium, tmp_path, page, *options, timeout=90) -> str:
    command = [
        chromium,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={tmp_path}/profile",
        *options,
    ]
    return subprocess.run(
        [*command, page.as_uri()], capture_output=True, text=True, timeout=timeout, check=True
    ).stdout


def colours(scheme) -> str:
    return f"--blink-settings=preferredColorScheme={int(scheme == 'light')}"


@pytest.mark.parametrize("width", [390, 800, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_fits_and_sorts(width, scheme, chromium, page, tmp_path):
    shown = run(chromium, tmp_path, page, f"--window-size={width},900", colours(scheme), "--dump-dom")
    [found] = re.findall(r"<pre>.*?</pre>", shown)
    assert "too-wide=false moved=true filled=true legible=true sorted=true run=false" in found


def test_a_page_is_printed(chromium, page, tmp_path):
    run(chromium, tmp_path, page, "--no-pdf-header-footer", f"--print-to-pdf={tmp_path}/page.pdf")
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.timeout(300)  # more than a hundred pages
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_of_the_site_is_too_wide(scheme, chromium, tmp_path):
    site = Path(__file__).parents[1] / "build" / "site"
    pages = [page.as_uri() for page in site.rglob("*.html") if "_static" not in page.parts]
    assert len(pages) > 100, "make docs builds the site"
    frame = tmp_path / "frame.html"
    frame.write_text(FRAME.replace("PAGES", json.dumps(pages)))
    options = [colours(scheme), "--allow-file-access-from-files", "--dump-dom"]
    shown = run(chromium, tmp_path, frame, *options, timeout=280)
    [found] = re.findall(r"<pre>(.*?)</pre>", shown)
    assert json.loads(html.unescape(found)) == []
