"""Mutated tables and images, through every reader."""

from __future__ import annotations

import contextlib
import gzip
import io
import random
import struct
import tarfile
import zipfile
import zlib
from functools import cache, partial

from PIL import Image

from halfseen import HalfseenError
from halfseen.data.image_folders import open_folder
from halfseen.data.table_files import open_table
from halfseen.model.table_scoring import score_table
from halfseen_bench.data.archives import ArchiveError, members
from torture.kit import Case, Kit, damaged, written

NAMES = {
    "csv": "CSV", "csv.gz": "packed CSV", "parquet": "Parquet", "arrow": "Arrow file",
    "stream": "Arrow stream", "xlsx": "Excel",
}  # fmt: skip
SHEET, STRINGS = "xl/worksheets/sheet1.xml", "xl/sharedStrings.xml"
NAMESPACE = b'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'


def classes(kit: Kit) -> dict[str, Case]:
    """Return the classes of this file."""
    tables: dict[str, Case] = {
        f"mutated {name}": partial(mutate_table, kit, kind, content_of(kit, kind))
        for kind, name in NAMES.items()
    }
    return tables | {
        "workbooks made to burst": partial(burst_workbook, kit, content_of(kit, "xlsx")),
        "mutated PNG or JPEG": partial(mutate_image, kit),
        "pictures made to burst": partial(burst_picture, kit),
        "mutated archive": partial(mutate_archive, kit),
    }


def content_of(kit: Kit, kind: str) -> bytes:
    """Return the rows as a file of one kind."""
    if kind == "csv.gz":
        return gzip.compress(written(kit.frame, "csv"), mtime=0)
    if kind == "xlsx":
        sink = io.BytesIO()
        kit.frame.to_excel(sink, index=False)
        return with_strings(sink.getvalue())
    return written(kit.frame, kind)


def mutate_table(kit: Kit, kind: str, content: bytes, draw: random.Random) -> None:
    """See that a mutated table is scored to the end, or refused with a sentence."""
    kit.input = damaged(content, draw)
    if kind == "xlsx" and draw.random() < 0.8:  # most of the others are no zip archives
        name = draw.choice(zipfile.ZipFile(io.BytesIO(content)).namelist())
        kit.input = repacked(content, {name: damaged(parts_of(content)[name], draw)})
    score(kit, "arrow" if kind == "stream" else kind)


def score(kit: Kit, ending: str) -> None:
    """Score the input of this case, or hear a sentence."""
    path = kit.work / f"table.{ending}"
    path.write_bytes(kit.input)
    with contextlib.suppress(HalfseenError):
        score_table(kit.loaded, open_table(path), kit.work / "scores.parquet")


def parts_of(workbook: bytes) -> dict[str, bytes]:
    """Return the files in a workbook."""
    with zipfile.ZipFile(io.BytesIO(workbook)) as packed:
        return {name: packed.read(name) for name in packed.namelist()}


def repacked(workbook: bytes, changed: dict[str, bytes]) -> bytes:
    """Return a workbook in which some files are others."""
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
        for name, content in (parts_of(workbook) | changed).items():
            packed.writestr(name, content)
    return sink.getvalue()


def with_strings(workbook: bytes) -> bytes:
    """Return a workbook with a table of shared strings, as Excel writes it, for its first cell."""
    parts = parts_of(workbook)
    kind = b"application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
    override = b'<Override PartName="/%s" ContentType="%s"/></Types>' % (STRINGS.encode(), kind)
    types = parts["[Content_Types].xml"].replace(b"</Types>", override)
    cell = b'<c r="A1" t="inlineStr"><is><t>age</t></is></c>'
    sheet = parts[SHEET].replace(cell, b'<c r="A1" t="s"><v>0</v></c>')
    strings = b"<sst %s><si><t>age</t></si></sst>" % NAMESPACE
    return repacked(workbook, {"[Content_Types].xml": types, SHEET: sheet, STRINGS: strings})


def burst_workbook(kit: Kit, content: bytes, draw: random.Random) -> None:
    """See that a small workbook that stands for much is refused, within bounds of memory."""
    times = draw.choice([1, 10, 100])
    row = b'<row r="%d"><c r="A%d" t="s"><v>0</v></c></row>'
    cells = b"".join(row % (number, number) for number in range(1, 500 * times))
    far = b'<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'
    wide = b'<row r="1"><c r="XFD1"><v>1</v></c></row>' * (20 * times)
    strings = b"<si><t>x</t></si>" * (2_000 * times)
    lengthy = b"<si><t>" + b"x" * (200_000 * times) + b"</t></si>"
    laughs = b"".join(b'<!ENTITY l%d "%s">' % (n + 1, b"&l%d;" % n * 10) for n in range(9))
    sheet = b"<worksheet %s><sheetData>%%s</sheetData></worksheet>" % NAMESPACE
    table = b"<sst %s>%%s</sst>" % NAMESPACE
    changed = draw.choice([
        {SHEET: sheet % cells}, {SHEET: sheet % far}, {SHEET: sheet % wide},
        {SHEET: sheet % (b" " * (1_000_000 * times))}, {STRINGS: table % strings},
        {STRINGS: table % lengthy},
        {STRINGS: b'<!DOCTYPE sst [<!ENTITY l0 "x">%s]>' % laughs
         + table % b"<si><t>&l9;</t></si>"},
    ])  # fmt: skip
    kit.input = repacked(content, changed)
    score(kit, "xlsx")


@cache
def blank(width: int, height: int, kind: int, depth: int) -> bytes:
    """Return a PNG of zeros: some hundred kilobytes, however large."""
    bits = depth * {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[kind]
    packer = zlib.compressobj(9)
    line = bytes(1 + (width * bits + 7) // 8)
    packed = b"".join(packer.compress(line) for _ in range(height)) + packer.flush()
    head = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0)
    colours = chunk(b"PLTE", bytes(6)) + chunk(b"tRNS", bytes(2)) if kind == 3 else b""
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + colours + chunk(b"IDAT", packed)
        + chunk(b"IEND", b"")
    )  # fmt: skip


def chunk(name: bytes, content: bytes) -> bytes:
    """Return a piece of a PNG, with its checksum."""
    return struct.pack(">I", len(content)) + name + content + struct.pack(
        ">I", zlib.crc32(name + content)
    )  # fmt: skip


def burst_picture(kit: Kit, draw: random.Random) -> None:
    """See that a small picture that unpacks to much is refused, or read within bounds of memory."""
    kind, depth = draw.choice([(0, 1), (0, 8), (0, 16), (2, 8), (3, 8), (4, 8), (6, 8), (6, 16)])
    side = draw.choice([9_400, 9_500, *[1_000] * 8])  # below the limit, above it, and ordinary
    shape = draw.choice([(side, side), (side * side // 90, 90), (90, side * side // 90)])
    picture = blank(*shape, kind, depth)
    how = draw.randrange(4)
    if how == 0:  # a head that promises more than comes
        size = struct.pack(">II", draw.choice([2**31 - 1, 60_000, 9_400]), draw.choice([1, 9_400]))
        picture = picture[:16] + size + picture[24:]
        picture = picture[:29] + struct.pack(">I", zlib.crc32(picture[12:29])) + picture[33:]
    elif how == 1:  # texts and profiles that are packed
        packed = zlib.compress(bytes(30_000_000))
        extra = draw.choice([chunk(b"zTXt", b"a\0\0" + packed), chunk(b"iCCP", b"a\0\0" + packed)])
        picture = picture[:33] + extra * draw.choice([1, 5]) + picture[33:]
    kit.input = picture
    read_picture(kit, "png")


def mutate_image(kit: Kit, draw: random.Random) -> None:
    """See that a mutated picture is read, or refused with a sentence."""
    kind = draw.choice(["png", "jpeg"])
    mode = draw.choice(["L", "RGB", "P", "1"] if kind == "png" else ["L", "RGB", "CMYK"])
    sink, pixels = io.BytesIO(), draw.randbytes(24 * 24 * 4)
    Image.frombytes("RGB", (24, 24), pixels[: 24 * 24 * 3]).convert(mode).save(sink, kind)
    kit.input = damaged(sink.getvalue(), draw)
    read_picture(kit, kind)


def read_picture(kit: Kit, kind: str) -> None:
    """Read the input of this case, or hear a sentence."""
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
