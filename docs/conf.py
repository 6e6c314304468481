"""How the documentation site is built: `make docs`."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.errors import ExtensionError

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS))

from generated_pages import command_line_page, options_page  # noqa: E402

from halfseen import __version__  # noqa: E402

project = "halfseen"
author = "The halfseen developers"
copyright = "the halfseen developers, BSD-3-Clause"
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]

napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
autodoc_typehints = "none"  # the docstrings say it in words
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
autodoc_class_signature = "separated"

html_theme = "furo"
html_title = "halfseen"
html_static_path = ["_static"]
html_css_files = ["halfseen.css"]
html_copy_source = False
html_show_sphinx = False
html_math_renderer = "mathml"
html_theme_options = {"navigation_with_keys": True}


def inline_math(translator: Any, node: nodes.math) -> None:
    """Write a formula in the text as MathML, which browsers draw without any script."""
    translator.body.append(mathml(node.astext(), block=False))
    raise nodes.SkipNode


def block_math(translator: Any, node: nodes.math_block) -> None:
    """Write a displayed formula."""
    translator.body.append(f'<div class="math">{mathml(node.astext(), block=True)}</div>')
    raise nodes.SkipNode


def mathml(formula: str, *, block: bool) -> str:
    """Return TeX as MathML; a formula that cannot be converted ends the build."""
    return str(convert(formula, display="block" if block else "inline"))


def write_generated_pages(app: Any) -> None:
    """Write the pages that the program tells, before pages are looked for."""
    for name, text in {"commands.md": command_line_page(), "options.md": options_page()}.items():
        page = DOCS / name
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")


def complete_source(app: Any, name: str, source: list[str]) -> None:
    """Give bare tables of results a heading."""
    if name.startswith("results/") and not source[0].startswith("# "):
        source[0] = f"# {Path(name).name.replace('_', ' ').capitalize()}\n\n{source[0]}"


def check_that_pages_stand_alone(app: Any, error: Exception | None) -> None:
    """End the build if a page loads something from another server."""
    loaded = re.compile(r'<(?:script|link|img|iframe)[^>]+(?:src|href)="(?:https?:)?//[^"]*')
    for page in Path(app.outdir).rglob("*.html"):
        if found := loaded.search(page.read_text(encoding="utf-8")):
            raise ExtensionError(f"{page} loads from elsewhere: {found[0]}")


def setup(app: Any) -> None:
    """Register what is not an extension of its own."""
    app.add_html_math_renderer(
        "mathml", inline_renderers=(inline_math, None), block_renderers=(block_math, None)
    )
    app.connect("source-read", complete_source)
    app.connect("build-finished", check_that_pages_stand_alone)
    app.connect("builder-inited", write_generated_pages)
