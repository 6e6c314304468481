"""What one text means, each by itself."""

from __future__ import annotations

import pyarrow as pa

from halfseen.data.column_types import meaning_of
from halfseen.data.schema import Written
from halfseen.data.values import (
    Marked,
    ReadNumber,
    as_categories,
    cells_of,
    counts,
    is_gap,
    marked_number,
    number_of,
    outline,
)


def test_numbers_that_people_write():
    assert marked_number("$1234.50", ".") == Marked(1234.5, frozenset({"$"}))
    assert marked_number("(1.2)", ".") == Marked(-1.2, frozenset({"()"}))
    assert marked_number("1.234,5", ",").value == 1234.5
    assert marked_number("1.234,5", ".") is None
    assert marked_number("-1,5e-05", ",").value == -1.5e-05
    assert marked_number("1,5e-05", ",").value == 1.5e-05


def test_a_number_is_read_as_its_column_is_written():
    assert number_of("1.5", Written()).value == 1.5
    assert str(number_of("n/a", Written()).value) == "nan"
    assert number_of("26,249", Written(), 20.0, 30.0) == ReadNumber(26.249, otherwise=True)
    assert number_of("5%", Written()).value is None


def test_what_a_text_may_be():
    assert meaning_of("NA").kind == "word"
    assert meaning_of("1,5").comma.value == 1.5
    assert meaning_of("noon").kind == "text"
    assert is_gap(" N/A ")
    assert not is_gap("0")


def test_zero_weights_however_they_are_written():
    assert counts(pa.array(["1", "0", "0,0", ""])).to_pylist() == [True, False, False, True]


def test_categories_of_numbers_and_texts():
    def read(values, **how):
        return as_categories(pa.array(values), "x", where="a.csv", **how).to_pylist()

    assert read([3.0, 0.5, None]) == ["3", "0.5", None]
    assert read(["x", "", "NA"]) == ["x", None, "NA"]
    assert read(["3.0", "1.10"], known=["3"]) == ["3", "1.10"]
    assert read(["12345678901234567"], stored="number") == read([12345678901234567])
    assert cells_of([1.0, "1.10", True, None])[0].to_pylist() == ["1", "1.10", "true", None]


def test_texts_as_the_eye_sees_them():
    assert outline("\ufeffage\u200b") == outline("\uff41ge") == "age"
