"""One tiny fitted model for all tests of the commands that take one, and short ways to run them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tables_cli import TINY, Result, halfseen, source_table, target_table, write


@pytest.fixture(scope="session")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a good source, a good target, a tiny configuration and a model."""
    folder = tmp_path_factory.mktemp("tables")
    write(source_table(), folder / "source.parquet")
    write(target_table(), folder / "target.parquet")
    (folder / "tiny.toml").write_text(TINY)
    run = halfseen(
        "fit", folder / "source.parquet", folder / "target.parquet", "--label", "click",
        "--id", "user", "--config", folder / "tiny.toml", "-o", folder / "model",
    )  # fmt: skip
    assert run.code == 0, run.err
    return folder


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


@pytest.fixture
def fit(tables: Path, out: Path) -> Callable[..., Result]:
    def run(source: object = None, target: object = None, *more: object, label: str = "click"):
        return halfseen(
            "fit", source or tables / "source.parquet", target or tables / "target.parquet",
            "--label", label, "--id", "user", "--config", tables / "tiny.toml",
            "-o", out / "model", *more,
        )  # fmt: skip

    return run


@pytest.fixture
def predict(tables: Path, out: Path) -> Callable[..., Result]:
    def run(data: object, *more: object, model: object = None, to: object = None):
        return halfseen("predict", model or tables / "model", data, "-o",
                        to or out / "scores.parquet", *more)  # fmt: skip

    return run
