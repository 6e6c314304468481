"""Take pictures of a report in Chromium, for docs/images.

``python docs/make_report_pictures.py report.html``; docs/report.md says how one is made.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from PIL import Image

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests" / "report"))

from chromium import Chromium, find_chromium  # noqa: E402

# Name, width, theme, where to begin, height, scale.
PICTURES = (
    ("report-desktop.png", 1280, "light", "body", 1500, 1.0),
    ("report-phone.png", 390, "light", "body", 1700, 1.25),
    ("report-dark.png", 1280, "dark", "#section-shifted", 1560, 0.75),
)


def main(page: Path) -> None:
    executable = find_chromium()
    if executable is None:
        sys.exit("There is no Chromium to open the report in.")
    browser = Chromium(executable, Path(tempfile.mkdtemp()))
    try:
        for name, width, theme, first, height, scale in PICTURES:
            browser.resize(width, 900)
            browser.prefer(theme)
            browser.open(page)
            top = f"document.querySelector('{first}').getBoundingClientRect().top + scrollY"
            y = max(0.0, browser.run(top) - 24)
            clip = {"x": 0, "y": y, "width": width, "height": height, "scale": scale}
            path = HERE / "images" / name
            browser.screenshot(path, whole=True, clip=clip)
            Image.open(path).convert("RGB").save(path, optimize=True)
            print(f"wrote {path}, {path.stat().st_size / 1024:.0f} kB")
    finally:
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
