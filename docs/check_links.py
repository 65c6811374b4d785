"""Check that every local link of the built site leads to a page, a file or a heading: `python docs/check_links.py build/site`."""

from __future__ import annotations

import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """What a page links to, and the anchors that it has."""

    def __init__(self, file: Path):
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(file.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.add(value)
            elif name == "id" or (tag, name) == ("a", "name"):
                self.anchors.add(value or "")


page = cache(Page)


def broken(site: Path) -> list[str]:
    """The links that lead nowhere, each with its page."""
    found = []
    for file in sorted(site.rglob("*.html")):
        if file.is_relative_to(site / "_static"):  # templates of the theme
            continue
        for link in sorted(page(file).links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            target = target / "index.html" if target.is_dir() else target
            anchor = unquote(parts.fragment)
            if not target.exists() or (
                anchor and target.suffix == ".html" and anchor not in page(target).anchors
            ):
                found.append(f"{file.relative_to(site)}: {link}")
    return found


if __name__ == "__main__":
    links = broken(Path(sys.argv[1]).resolve())
    sys.exit("\n".join(["Links that lead nowhere:", *links]) if links else 0)
