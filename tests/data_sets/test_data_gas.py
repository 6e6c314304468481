from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from halfseen.errors import InputError
from halfseen_bench.data import gas
from halfseen_bench.data.export import pair_tables


def line(label: int, start: float) -> str:
    values = " ".join(f"{n}:{start + n:.6f}" for n in range(1, 129))
    return f"{label};10.000000 {values} "


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Six batches of twelve measurements; from the third on without toluene."""
    (tmp_path / "gas").mkdir()
    for batch in range(1, 7):
        kinds = 6 if batch < 3 else 5
        lines = [line(1 + i % kinds, 1000 * batch + i) for i in range(12)]
        (tmp_path / f"gas/batch{batch}.dat").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_the_second_half_of_the_sensors_is_missing(root):
    pair = gas.load_pair(root, "batches1-2", "batch4")
    assert len(pair.blocks.observed) == len(pair.blocks.missing) == 64
    missing = pair.blocks.names_of(pair.blocks.missing)
    assert (missing[0], missing[-1]) == ("DR_9", "EMAd0.1_16")
    assert pair.card.counts == {"batches1-2": 24, "batch4": 12}
    assert pair.classes[pair.target_test_labels.open("test")[2]] == "ammonia"
    np.testing.assert_array_equal(pair.target_test[0, :64], 4000 + np.arange(1, 65))
    assert (pair.target_test[:, 64:] == 0).all()
    _, complete = pair.complete_target.open("test")
    assert complete[0, 127] == 4128


def test_exported_target_has_the_first_sensors_alone(root):
    tables = {}
    for name, table in pair_tables(gas.load_pair(root)):
        tables.setdefault(name, table)
    assert tables["source"].num_columns == 129
    assert tables["target"].column_names == list(gas.COLUMNS[:64])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("7;10.0 1:1.0", r"batch3.dat, measurement 13 has a class that is not one of 1 to 6"),
        ("1;10.0 1:1.0 2:2.0", "measurement 13 has not the 128 features"),
        (line(1, 0).replace(" 5:", " 6:"), r"batch3.dat is no batch of measurements: .*indices"),
        (line(1, 0).replace(" 5:5", " 5:x"), r"batch3.dat is no batch of measurements: .*x\.0"),
        (line(1, 0).replace("5:5.000000", "5:nan"), "measurement 13 has a feature that is not a"),
    ],
)
def test_bad_line(root, text, message):
    with (root / "gas/batch3.dat").open("a") as file:
        file.write(text + "\n")
    with pytest.raises(InputError, match=message):
        gas.load_pair(root)


def test_an_empty_batch(root):
    (root / "gas/batch3.dat").write_text("\n")
    with pytest.raises(InputError, match=r"batch3.dat (holds no|is no batch of) measurements"):
        gas.load_pair(root)


@pytest.mark.data("gas")
class TestRealFiles:
    def test_classes_of_each_batch(self, data_root):
        counts = {
            batch: np.bincount(gas.read_batch(data_root / file.path).labels, minlength=6).tolist()
            for batch, file in enumerate(gas.FILES, start=1)
        }
        assert counts[1] == [90, 98, 83, 30, 70, 74]
        assert counts[2] == [164, 334, 100, 109, 532, 5]
        assert counts[4] == [64, 43, 12, 30, 12, 0]
        assert counts[6] == [514, 574, 110, 29, 606, 467]
