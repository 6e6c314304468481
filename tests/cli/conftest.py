"""One tiny fitted model for all tests of the commands that take one."""

from __future__ import annotations

from pathlib import Path

import pytest
from tables_cli import TINY, halfseen, source_table, target_table, write


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
