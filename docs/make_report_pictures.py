"""Take pictures of three reports in Chromium, for docs/images: good, shifted and hopeless.

``python docs/make_report_pictures.py heart/``, with the folder that ``halfseen data export heart
cleveland:hungarian --format csv -o heart/`` writes.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from pathlib import Path

import pandas as pd
from PIL import Image

import halfseen
from halfseen.report.html import write_page
from halfseen.report.model_page import model_page, read_subject

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests" / "report"))

from chromium import Chromium, find_chromium  # noqa: E402

WIDTH, HEIGHT, SCALE = 1180, 760, 0.62


def tables(folder: Path) -> dict[str, tuple[pd.DataFrame, pd.DataFrame]]:
    """Return a source and a target each: the same hospital, its older patients, another one."""
    here, there = (pd.read_csv(folder / f"{name}.csv") for name in ("source", "target"))
    shared = list(there.columns.drop("label", errors="ignore"))
    learned, others = here[::2], here[1::2][shared]
    spoiled = there[shared].assign(trestbps=there.trestbps / 10)  # another unit
    return {
        "good": (learned, others),
        "shifted": (learned, others[others.age > 52]),
        "hopeless": (here, spoiled),
    }


def main(folder: Path) -> None:
    executable = find_chromium()
    if executable is None:
        sys.exit("There is no Chromium to open reports in.")
    place = Path(tempfile.mkdtemp())
    browser = Chromium(executable, place / "browser")
    try:
        for name, (source, target) in tables(folder).items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                halfseen.fit(source, target, "label", effort="quick").save(place / name)
            page = place / f"{name}.html"
            write_page(page, model_page(read_subject(place / name)))
            browser.resize(WIDTH, HEIGHT)
            browser.prefer("light")
            browser.open(page)
            path = HERE / "images" / f"report-{name}-light.png"
            clip = {"x": 0, "y": 0, "width": WIDTH, "height": HEIGHT, "scale": SCALE}
            browser.screenshot(path, whole=True, clip=clip)
            Image.open(path).convert("RGB").quantize(64).save(path, optimize=True)
            print(f"wrote {path.name}, {path.stat().st_size / 1024:.0f} kB")
    finally:
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
