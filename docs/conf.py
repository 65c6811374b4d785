"""The site: `make docs` builds it with Sphinx. Its pages are Markdown, and can be read as files, too."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import distboost
from docs import site_pages

project = "distboost"
author = copyright = "The distboost developers"
version = release = distboost.__version__

SOURCE = "https://github.com/distboost/distboost"

extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc", "myst_parser"]
templates_path = ["_templates"]

# Pages: links to headings are those that GitHub makes.
myst_heading_anchors = 6
myst_enable_extensions = ["colon_fence", "attrs_inline"]

# Reference: types stand in the docstrings; signatures have names and defaults.
default_role = "literal"
toc_object_entries_show_parents = "hide"
autosummary_generate = True
autodoc_typehints = "none"
autodoc_class_signature = "mixed"
numpydoc_show_class_members = False

nitpicky = True

html_theme = "pydata_sphinx_theme"
html_title = "distboost"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {"index": []}
html_theme_options: dict[str, Any] = {
    "logo": {"text": "distboost"},
    "show_prev_next": True,
    "navigation_with_keys": False,
    "navbar_persistent": ["search-button"],
    "icon_links": [{"name": "Source on GitHub", "url": SOURCE, "icon": "fa-brands fa-github"}],
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "footer_start": ["copyright"],
    "footer_end": [],
    "header_links_before_dropdown": 6,
}

# Blocks without a language are formulas or output.
highlight_language = "none"


def _relink(app: Any, docname: str, content: list[str]) -> None:
    """Links of the pages here to pages elsewhere in the repository lead to their copies on the site."""
    page = Path(app.env.doc2path(docname))
    if page.suffix == ".md" and page.parent != site_pages.GENERATED:
        content[0] = site_pages.relinked(content[0], page, page)


def _name_buttons(app: Any, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """The theme's buttons that unfold a section have a picture only: screen readers need a name."""
    navigation = context["generate_toctree_html"]
    context["generate_toctree_html"] = lambda *args, **options: str(navigation(*args, **options)).replace(
        "<summary>", '<summary aria-label="Pages of this section">'
    )


def setup(app: Any) -> None:
    site_pages.write()
    app.connect("source-read", _relink)
    app.connect("html-page-context", _name_buttons, priority=900)  # after the theme
