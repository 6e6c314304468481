"""The code blocks of README and docs: what kinds there are, and how each is checked.

python      executed, in the order of the page; `print(...)  # text` must print that text
python after a line that is `src/...py`: an excerpt, which must stand in that file
sh          each command is checked by the program it calls, see `COMMANDS`
console     the same for lines that begin with `$ `; what follows is the output
toml        settings of `halfseen fit`
json        parsed
text        output and diagrams, which hold no command
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
GENERATED = {"docs/commands.md", "docs/options.md"}
LANGUAGES = {"python", "sh", "console", "toml", "json", "text"}
FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def name_of(page: Path) -> str:
    """Return a page's path inside the repository."""
    return page.relative_to(ROOT).as_posix()


def is_page(path: Path) -> bool:
    return "_build" not in path.parts and name_of(path) not in GENERATED


PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(path for path in ROOT.glob("docs/**/*.md") if is_page(path)),
]


@dataclass(frozen=True)
class Block:
    """One fenced block."""

    page: Path
    line: int
    language: str
    code: str
    before: str

    def __str__(self) -> str:
        return f"{name_of(self.page)}:{self.line}"

    @property
    def excerpt_of(self) -> Path | None:
        """The source file that the line above names."""
        named = re.fullmatch(r"`(src/\S+\.py)`", self.before)
        return ROOT / named[1] if named else None


def blocks(page: Path) -> Iterator[Block]:
    """Yield a page's blocks; those of the site's own directives are left out."""
    text = page.read_text(encoding="utf-8")
    for found in FENCE.finditer(text):
        start = text[: found.start()]
        if not found[1].startswith("{"):
            before = start.rstrip().rsplit("\n", 1)[-1]
            yield Block(page, start.count("\n") + 1, found[1].strip(), found[2], before)


def commands(block: Block) -> Iterator[tuple[list[str], str]]:
    """Yield the words of each command of a block, and the output shown under it."""
    lines, prompt = block.code.splitlines(), block.language == "console"
    while lines:
        line = lines.pop(0)
        if prompt and not line.startswith("$ "):
            raise AssertionError(f"{block}: {line!r} is no command and follows none")
        line = line.removeprefix("$ ") if prompt else line
        while (words := _words(line)) is None:
            line = line.removesuffix("\\") + "\n" + lines.pop(0).removeprefix("> ")
        output = []
        while prompt and lines and not lines[0].startswith("$ "):
            output.append(lines.pop(0))
        for part in _parts(words):
            yield part, "\n".join(output).strip()


def _words(line: str) -> list[str] | None:
    """Return a command's words, or None where it goes on in the next line."""
    if line.endswith("\\"):
        return None
    try:
        return shlex.split(line, comments=True)
    except ValueError:
        return None


def _parts(words: list[str]) -> Iterator[list[str]]:
    """Split at pipes and the like; leave out redirections and settings of the environment."""
    part: list[str] = []
    rest = iter([*words, ";"])
    for word in rest:
        if word in ("|", "&&", ";"):
            if part:
                yield part
            part = []
        elif word in (">", ">>", "2>"):
            next(rest)
        elif part or not re.fullmatch(r"[A-Z_]+=\S*", word):
            part.append(word)
