"""The report as a browser shows it: quiet, closed to the network, operable, accessible."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
from chromium import Chromium, find_chromium
from hostile import FORMULA

from halfseen.report.html import write_page
from halfseen.report.model_page import model_page, patterns_page, read_subject

pytestmark = pytest.mark.browser

AXE = "4.14.0"
PHONE, DESKTOP = (390, 844), (1280, 900)
SHIFTED = "document.querySelector('#section-shifted table')"
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "halfseen-tests"


@pytest.fixture(scope="module")
def browser(tmp_path_factory, request):
    executable = find_chromium()
    if executable is None:
        pytest.skip("There is no Chromium to open the report in.")
    fitted = request.getfixturevalue("fitted")  # only where somebody will look at it
    opened = Chromium(executable, tmp_path_factory.mktemp("profile"))
    opened.resize(*DESKTOP)
    opened.open(fitted.html)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def axe() -> str:
    """The text of axe-core, from a cache or the npm registry."""
    script = CACHE / f"axe-core-{AXE}.min.js"
    if not script.exists():
        if shutil.which("npm") is None:
            pytest.skip("axe-core is not cached, and there is no npm to fetch it.")
        CACHE.mkdir(parents=True, exist_ok=True)
        command = ["npm", "pack", f"axe-core@{AXE}", "--pack-destination", str(CACHE)]
        if subprocess.run(command, capture_output=True, timeout=120).returncode:
            pytest.skip("axe-core is not cached, and npm could not fetch it.")
        with tarfile.open(CACHE / f"axe-core-{AXE}.tgz") as archive:
            script.write_bytes(archive.extractfile("package/axe.min.js").read())
    return script.read_text()


def column(browser, place):
    cells = f"[...{SHIFTED}.tBodies[0].rows].map(r => r.cells[{place}].dataset.value)"
    return [float(value) for value in browser.run(cells)]


def test_the_page_is_quiet_and_asks_for_nothing(browser):
    for width, height in (PHONE, DESKTOP):
        browser.resize(width, height)
        assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.complaints == []
    assert all(address.startswith(("file:", "data:")) for address in browser.requests)
    assert browser.run("document.querySelectorAll('svg').length") > 10


def test_tables_are_sorted_by_mouse_and_keyboard(browser):
    head = f"{SHIFTED}.tHead.rows[0].cells[4]"
    browser.run(f"{head}.querySelector('button').click()")
    assert browser.run(f"{head}.getAttribute('aria-sort')") == "descending"
    gaps = column(browser, 4)
    assert gaps == sorted(gaps, reverse=True)
    assert len(gaps) == 3
    browser.run(f"{head}.querySelector('button').focus()")
    browser.press("Enter")
    assert browser.run(f"{head}.getAttribute('aria-sort')") == "ascending"
    assert column(browser, 4) == sorted(gaps)
    assert browser.run(f"{SHIFTED}.querySelectorAll('[aria-sort]').length") == 1
    assert "ascending" in browser.run("document.getElementById('spoken').textContent")


def test_the_theme_follows_the_system(browser):
    paper = "getComputedStyle(document.body).backgroundColor"
    browser.prefer("dark")
    dark = browser.run(paper)
    browser.prefer("light")
    light = browser.run(paper)
    assert dark != light


@pytest.fixture(scope="module")
def pages(fitted, tmp_path_factory):
    """Every kind of page on a model: its report, with alarms, and of parts."""
    folder = tmp_path_factory.mktemp("pages")
    subject = read_subject(fitted.folder)
    subject.description.metrics["alarms"] = [
        {"kind": "one class", "says": "All rows are <b>alike</b>."},
        {"kind": "unit", "says": f"{FORMULA} is in grams.", "columns": [FORMULA]},
    ]
    write_page(folder / "alarms.html", model_page(subject))
    twice = [read_subject(fitted.folder), read_subject(fitted.folder)]
    write_page(folder / "parts.html", patterns_page("<model>", twice))
    return {"report": fitted.html} | {page.stem: page for page in folder.iterdir()}


@pytest.mark.parametrize("page", ["report", "alarms", "parts"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(browser, axe, pages, theme, page):
    size = PHONE if theme == "dark" else DESKTOP
    browser.resize(*size)
    browser.prefer(theme)
    browser.open(pages[page])
    assert browser.run("document.documentElement.scrollWidth") <= size[0]
    browser.run("document.querySelectorAll('details').forEach(d => { d.open = true })")
    browser.run(f"{axe}; 0")
    found = browser.run("axe.run(document).then(r => r.violations)")
    broken = [(rule["id"], [node["html"][:200] for node in rule["nodes"]][:3]) for rule in found]
    assert broken == []
    assert browser.complaints == []
