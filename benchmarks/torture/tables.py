"""Mutated tables and images, through every reader."""

from __future__ import annotations

import contextlib
import gzip
import io
import random
import tarfile
import zipfile
from functools import partial

from PIL import Image

from halfseen import HalfseenError
from halfseen.front.files import open_table
from halfseen.front.image_folders import open_folder
from halfseen.model.scoring import score_table
from halfseen_bench.data.archives import ArchiveError, members
from torture.kit import Case, Kit, damaged, written

NAMES = {
    "csv": "CSV", "csv.gz": "packed CSV", "parquet": "Parquet", "arrow": "Arrow file",
    "stream": "Arrow stream",
}  # fmt: skip


def classes(kit: Kit) -> dict[str, Case]:
    """Return the classes of this file."""
    tables: dict[str, Case] = {
        f"mutated {name}": partial(mutate_table, kit, kind, content_of(kit, kind))
        for kind, name in NAMES.items()
    }
    return tables | {
        "mutated PNG or JPEG": partial(mutate_image, kit),
        "mutated archive": partial(mutate_archive, kit),
    }


def content_of(kit: Kit, kind: str) -> bytes:
    """Return the rows as a file of one kind."""
    if kind == "csv.gz":
        return gzip.compress(written(kit.frame, "csv"), mtime=0)
    return written(kit.frame, kind)


def mutate_table(kit: Kit, kind: str, content: bytes, draw: random.Random) -> None:
    """See that a mutated table is scored to the end, or refused with a sentence."""
    kit.input = damaged(content, draw)
    path = kit.work / f"table.{'arrow' if kind == 'stream' else kind}"
    path.write_bytes(kit.input)
    with contextlib.suppress(HalfseenError):
        score_table(kit.loaded, open_table(path), kit.work / "scores.parquet")


def mutate_image(kit: Kit, draw: random.Random) -> None:
    """See that a mutated picture is read, or refused with a sentence."""
    kind = draw.choice(["png", "jpeg"])
    mode = draw.choice(["L", "RGB", "P", "1"] if kind == "png" else ["L", "RGB", "CMYK"])
    sink, pixels = io.BytesIO(), draw.randbytes(24 * 24 * 4)
    Image.frombytes("RGB", (24, 24), pixels[: 24 * 24 * 3]).convert(mode).save(sink, kind)
    kit.input = damaged(sink.getvalue(), draw)
    folder = kit.work / "images"
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        path.unlink()
    (folder / f"a.{kind}").write_bytes(kit.input)
    with contextlib.suppress(HalfseenError):
        open_folder(folder).looked_at().read((3, 16, 16))


def mutate_archive(kit: Kit, draw: random.Random) -> None:
    """See that a mutated archive unpacks within its bounds, or is refused."""
    sink, kind = io.BytesIO(), draw.choice(["zip", "tar.gz"])
    if kind == "zip":
        with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as packed:
            packed.writestr("a.csv", bytes(5000))
            packed.writestr("b/c.csv", draw.randbytes(500))
    else:
        with tarfile.open(fileobj=sink, mode="w:gz") as packed:
            for name, content in (("a.csv", bytes(5000)), ("b/c.csv", draw.randbytes(500))):
                member = tarfile.TarInfo(name)
                member.size = len(content)
                packed.addfile(member, io.BytesIO(content))
    kit.input = damaged(sink.getvalue(), draw)
    path = kit.work / f"archive.{kind}"
    path.write_bytes(kit.input)
    with contextlib.suppress(ArchiveError):
        unpacked = sum(len(chunk) for _, _, chunks in members(path, 10_000) for chunk in chunks)
        if unpacked > 10_000:
            raise AssertionError(f"{unpacked:,} bytes were unpacked")
