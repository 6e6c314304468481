"""One tiny fitted model for all tests of the commands that take one, and short ways to run them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from tables_cli import TINY, Result, halfseen, source_table, target_table, write

from halfseen.fitting import prepared_rows
from halfseen_bench.baselines import CLASSIFIERS
from halfseen_bench.data import demo as demo_data
from halfseen_bench.suites import SUITES


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


@pytest.fixture(scope="module")
def small_demo() -> Iterator[None]:
    """Let the suite of the embedded digits train small networks and few trees on few digits."""
    small = {"images.channels": (2, 2, 4), "generator.widths": (8,), "networks.critic_widths": (8,)}
    demo = SUITES["demo"]
    settings = demo.settings | small
    few = {"Gradient-boosted trees": lambda _, seed: make_pipeline(
        HistGradientBoostingClassifier(max_iter=2, random_state=seed)
    )}  # fmt: skip
    with (
        mock.patch.dict(SUITES, demo=demo.model_copy(update={"settings": settings})),
        mock.patch.dict(CLASSIFIERS, few),
        mock.patch.object(demo_data, "SOURCE_TEST", 1_000),  # leaves 249 and 248 to train on
    ):
        yield


@pytest.fixture
def one_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hold one part of a small source out instead of five in turn: two trainings, not six."""
    monkeypatch.setattr(prepared_rows, "SMALL", 0)


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
