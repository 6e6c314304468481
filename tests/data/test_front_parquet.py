"""Texts in Parquet: every encoding, quickly, and never more of them at once than fits."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from halfseen.data import untrusted_files
from halfseen.data.table_files import open_table
from halfseen.errors import InputError

TEXTS = [None if n % 97 == 0 else f"text number {n * 7919 % 100_003}" for n in range(90_000)]


@pytest.mark.parametrize(
    "options",
    [
        {},  # a dictionary, given up when it became too large
        {"dictionary_pagesize_limit": 2**26},
        {"use_dictionary": False},
        {"data_page_version": "2.0", "compression": "zstd"},
        {"use_dictionary": False, "column_encoding": {"text": "DELTA_BYTE_ARRAY"}},
        {"use_dictionary": False, "column_encoding": {"text": "DELTA_LENGTH_BYTE_ARRAY"}},
        {"row_group_size": 7000, "write_page_index": True, "compression": "gzip"},
    ],
)
def test_texts_of_parquet_in_every_encoding(options, tmp_path):
    table = pa.table({"text": TEXTS, "few": ["a", "b", None] * 30_000})
    pq.write_table(table, tmp_path / "a.parquet", **options)
    found = pa.Table.from_batches(open_table(tmp_path / "a.parquet").batches())
    assert found.equals(table)


def test_what_differs_is_not_read_as_a_dictionary(tmp_path):
    """A dictionary of ids grew with every batch, and was handed over whole each time."""
    table = pa.table({"text": TEXTS, "few": ["a", "b", None] * 30_000})
    pq.write_table(table, tmp_path / "a.parquet", dictionary_pagesize_limit=2**18)
    assert untrusted_files.reading_plan(tmp_path / "a.parquet", 0, table.column_names, 65_536) == (
        65_536,
        ["few"],
    )


def test_long_texts_that_differ_are_read_a_few_at_a_time(tmp_path, monkeypatch):
    """A quarter of a megabyte took four gigabytes."""
    texts = [pa.array(["x" * 10**6 + str(n)]) for n in range(60)]
    table = pa.table({"text": pa.chunked_array(texts)})
    path = tmp_path / "a.parquet"
    pq.write_table(table, path, compression="zstd", use_dictionary=False)
    assert path.stat().st_size < 20_000
    monkeypatch.setattr(untrusted_files, "FEW_TEXTS", 8_000_000)
    batches = list(open_table(path).batches())
    assert max(batch.nbytes for batch in batches) < 12_000_000
    assert sum(batch.num_rows for batch in batches) == 60
    monkeypatch.setattr(untrusted_files, "FEW_TEXTS", 400_000)
    monkeypatch.setattr(untrusted_files, "LARGEST_BATCH", 1_500_000)
    with pytest.raises(InputError, match=r"Column 'text' of .* unpack to 4,000,0.* short names"):
        list(open_table(path).batches())


def test_pages_that_lead_nowhere_are_refused(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": ["a", "b"]}), path)
    content = bytearray(path.read_bytes())
    content[4:12] = b"\xff" * 8  # the header of the first page
    path.write_bytes(content)
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        list(open_table(path).batches())


def test_pages_of_numbers_are_bounded_before_room_is_made_for_them(tmp_path, monkeypatch):
    """Before, 4 kB whose page claimed two gigabytes took two gigabytes."""
    path = tmp_path / "table.parquet"
    pq.write_table(
        pa.table({"age": [float(n) for n in range(30)]}),
        path,
        use_dictionary=False,
        compression="none",
    )
    begin = pq.read_metadata(path).row_group(0).column(0).data_page_offset
    content = bytearray(path.read_bytes())
    # Kind of the page, unpacked size, packed size: each a field of Thrift, sizes of two bytes.
    assert content[begin : begin + 3] == b"\x15\x00\x15"
    assert content[begin + 5] == 0x15
    content[begin + 6 : begin + 8] = b"\xfe\x7f"  # 8,191 bytes, more than the file has
    longer = tmp_path / "longer.parquet"
    longer.write_bytes(content)
    with pytest.raises(InputError, match="the headers of its pages lead nowhere"):
        list(open_table(longer).batches(["age"]))
    monkeypatch.setattr(untrusted_files, "LARGEST_PAGE", 100)
    with pytest.raises(InputError, match=r"'age' of .* has a page that unpacks to 2\d\d bytes"):
        list(open_table(path).batches(["age"]))


def test_the_most_that_rows_in_sequence_unpack_to():
    pages = untrusted_files.ColumnPages(((10, 500), (10, 700), (10, 100)), (0, 0, 0))
    assert pages.largest(5) == 1200
