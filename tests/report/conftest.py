"""One small model of hostile tables, fitted once, and its report."""

from __future__ import annotations

import pytest
from hostile import TINY, Fitted, understood

from halfseen.model import domains
from halfseen.model.fitting import Fit, Settings, fit_tables
from halfseen.report import embedding
from halfseen.report.model import model_page, read_subject
from halfseen.report.page import write_page


@pytest.fixture
def no_map(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw latents where they happen to lie: t-SNE takes seconds."""
    monkeypatch.setattr(embedding, "in_the_plane", lambda rows: rows[:, :2])


@pytest.fixture(scope="session")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Fitted:
    folder = tmp_path_factory.mktemp("hostile")
    models = ("Adaptation-Imputation", "Source-IgnoreComponent")
    settings = Settings(models=models, options=TINY | {"generator.noise_size": 2})
    with pytest.MonkeyPatch.context() as patched:  # one part held out, as with many rows
        patched.setattr(domains, "SMALL", 0)
        choose = Fit.chosen  # thirty held-out rows may prefer either; the report is of the first
        patched.setattr(Fit, "chosen", lambda fit, some: (some[0], choose(fit, some)[1]))
        model = fit_tables(understood(folder), settings, report="all")
    model.report = model.report.model_copy(update={"command": "halfseen fit '<b>' --label x"})
    model.save(folder / "model")
    page = model_page(read_subject(folder / "model"))
    write_page(folder / "report.html", page)
    return Fitted(
        folder / "model",
        folder / "source.parquet",
        folder / "target.parquet",
        page.sections,
        folder / "report.html",
    )
