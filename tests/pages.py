"""An HTML page, read as a browser reads it."""

from __future__ import annotations

from html.parser import HTMLParser

EMPTY = {"meta", "br", "img", "link", "input"}


class Page(HTMLParser):
    """The elements of a page, with their attributes and texts.

    elements: tags and attributes
    tables: for each, its caption and the texts of the cells of each row
    """

    def __init__(self, text: str):
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.tables: list[tuple[str, list[list[str]]]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag == "table":
            self.tables.append(("", []))
        elif tag == "tr":
            self.tables[-1][1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][1][-1].append("")
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if {"style", "script"} & set(self.open):
            return
        self.texts.append(data)
        if "td" in self.open or "th" in self.open:
            self.tables[-1][1][-1][-1] += data
        elif "caption" in self.open:
            self.tables[-1] = (self.tables[-1][0] + data, self.tables[-1][1])

    def table(self, caption: str) -> list[list[str]]:
        """The rows of the first table whose caption begins so, without its head."""
        return next(rows for text, rows in self.tables if text.startswith(caption))[1:]

    def with_class(self, name: str) -> list[dict[str, str]]:
        return [attrs for _, attrs in self.elements if name in (attrs.get("class") or "").split()]
