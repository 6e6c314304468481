"""One small model of hostile tables, fitted once, and its report."""

from __future__ import annotations

import pytest
from hostile import TINY, Fitted, understood

from halfseen.fitting import prepared_rows
from halfseen.fitting.pipeline import fit_tables
from halfseen.fitting.report_facts import facts_of_fit
from halfseen.report.html import write_page
from halfseen.report.model_page import model_page, read_subject
from halfseen.settings import FitSettings


@pytest.fixture(scope="session")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Fitted:
    folder = tmp_path_factory.mktemp("hostile")
    settings = FitSettings(models=("Adaptation-Imputation",), options=TINY)
    with pytest.MonkeyPatch.context() as patched:  # one part held out, as with many rows
        patched.setattr(prepared_rows, "SMALL", 0)
        found = understood(folder)
        fit = fit_tables(found, settings)
    facts = facts_of_fit(found, fit)
    told = facts.model_copy(update={"command": "halfseen fit '<b>' --label x"})
    model = fit.model
    model.report = told.model_dump(mode="json")
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
