"""The report of a model: every section, from what a fit kept, whatever the names are."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet
import pytest
from hostile import CLASSES, FORMULA, QUOTED, SCRIPT, TINY, understood

import halfseen
import tiny
from halfseen.errors import InputError
from halfseen.evidence import population_stability
from halfseen.members import Sample
from halfseen.model import rows
from halfseen.model.fitting import fit_tables
from halfseen.model.settings import IN_MEMORY, FitSettings
from halfseen.report.facts import ReportFacts
from halfseen.report.facts import imputed as imputed_facts
from halfseen.report.facts.sources import facts_of_fit
from halfseen.report.model import model_page, read_subject
from halfseen.report.page import rendered_page
from halfseen.report.sections import SECTIONS

FORMAT_1 = Path(__file__).parent.parent / "saving" / "format-1"


class Elements(HTMLParser):
    """Every element with its attributes, the headings, and whether a text was taken for markup."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def named(self, tag):
        return [attributes for name, attributes in self.found if name == tag]


def facts_of(folder: Path) -> ReportFacts:
    return ReportFacts.model_validate_json((folder / "report.json").read_text())


def test_every_section_is_there_and_says_how_to_read_it(fitted):
    assert [section.name for section in fitted.sections] == list(SECTIONS)
    assert all(section.parts and not section.absent for section in fitted.sections)
    for _, how in SECTIONS.values():
        assert html.escape(how, quote=False) in html.unescape(fitted.page)


def test_nothing_is_loaded_and_no_name_becomes_markup(fitted):
    elements = Elements(fitted.page)
    assert not re.search(r"https?:|url\(|@import|//cdn", fitted.page)
    for tag, attributes in elements.found:
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
        if "src" in attributes:
            assert attributes["src"].startswith("data:")
        if "href" in attributes:
            assert attributes["href"].startswith("#")
        assert tag not in ("link", "iframe", "object", "base", "i", "b")
    assert len(elements.named("script")) == len(elements.named("style")) == 1
    for name in (SCRIPT, QUOTED, FORMULA, *CLASSES, "&thal;", "<img src=x onerror=alert(1)>"):
        assert name in html.unescape(fitted.page)
    shown = [attributes for tag, attributes in elements.found if attributes.get("role") == "img"]
    assert len(shown) > 10
    assert all(attributes["aria-label"] for attributes in shown)


def test_the_policy_admits_the_pages_own_script_and_style_alone(fitted):
    (policy,) = re.findall(r'Security-Policy" content="([^"]+)"', fitted.page)
    for tag in ("script", "style"):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", fitted.page, flags=re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in html.unescape(policy)
    assert policy.startswith("default-src &#39;none&#39;")


def test_facts_are_those_of_the_tables(fitted):
    facts = facts_of(fitted.folder)
    columns = {column.name: column for column in facts.columns}
    assert [c.name for c in facts.columns if c.role == "missing"] == ["n" * 60, "&thal;"]
    for column in facts.columns:
        assert sum(column.histogram.source) == pytest.approx(1.0)
        assert (column.target_known == 0.0) == (column.role == "missing")
    source, target = (pyarrow.parquet.read_table(p) for p in (fitted.source, fitted.target))
    one, other = (t.column(FORMULA).to_numpy() for t in (source, target))
    shift = columns[FORMULA].shift
    assert shift.population_stability == pytest.approx(population_stability(one, other))
    assert columns[SCRIPT].source_known == 1 - source.column(SCRIPT).null_count / 150
    assert facts.reliability.rows == sum(b.rows for b in facts.reliability.bins) == 30
    described = json.loads((fitted.folder / "model.json").read_text())["metrics"]
    risks = {c.model: c.risk.value for c in facts.candidates}
    assert risks == pytest.approx(described["choice"]["weighted_cross_entropy"])
    (chosen,) = [c for c in facts.candidates if c.chosen]
    measured = described["held_out_source"]["without_missing_block"]
    assert chosen.accuracy == measured["accuracy"]
    assert facts.expectation.accuracy.source.value == pytest.approx(chosen.accuracy, abs=1e-4)
    assert facts.expectation.cross_entropy.weighted.value == pytest.approx(chosen.risk.value)


@pytest.mark.parametrize(
    ("detail", "memory"), [("aggregates", 0), ("aggregates", IN_MEMORY), ("none", IN_MEMORY)]
)
def test_what_may_not_be_kept_is_not(detail, memory, tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "SMALL", 0)
    batches = {"training.batch_size": 16, "training.warmup_batch_size": 16}
    settings = FitSettings(memory=memory, options=TINY | batches)  # streamed: facts from samples
    found = understood(tmp_path)
    fit = fit_tables(found, settings)
    model = fit.model
    if detail != "none":
        model.report = facts_of_fit(found, fit, rows=detail == "all").model_dump(mode="json")
    model.save(tmp_path / "model")
    model.save(tmp_path / "model")  # a model with report data can be replaced
    page = rendered_page(model_page(read_subject(tmp_path / "model")))
    if detail == "none":
        assert not (tmp_path / "model" / "report.json").exists()
        assert "give --source and --target to compute it" in page
    else:
        facts = facts_of(tmp_path / "model")
        assert facts.latents is None
        assert facts.expectation is not None
        assert "latents of single rows were not kept" in page


def test_a_folder_that_keeps_no_data_has_a_report_with_fewer_sections(fitted, tmp_path):
    folder = Path(shutil.copytree(fitted.folder, tmp_path / "model"))
    (folder / "report.json").unlink()
    page = model_page(read_subject(folder))
    left_out = {section.name for section in page.sections if section.absent}
    assert left_out == {"shifted", "latents", "expected", "calibration", "imputation"}


def test_a_folder_of_an_older_version_is_refused_with_the_remedy():
    with pytest.raises(InputError, match=r"has format 1, of halfseen 0\.1, .* does not read: fit"):
        read_subject(FORMAT_1)


def test_an_estimators_folder_has_a_report_too(tmp_path):
    images = np.random.default_rng(0).normal(size=(24, 1, 32, 32)).astype(np.float32)
    small = {"images.channels": (2, 2, 4), "training.warmup_epochs": 0}
    model = tiny.classifier(
        image=True, missing="bottom", options=small | {"networks.critic_widths": (4,)}
    ).fit(images, np.arange(24) % 2, X_target=images + 0.1)
    model.save(tmp_path / "model")
    page = model_page(read_subject(tmp_path / "model"))
    filled = {section.name for section in page.sections if not section.absent}
    assert filled == {"missing", "training", "command"}
    assert "16 are never seen on the target (rows 16 to 31" in rendered_page(page)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"model": "0" * 64}, "does not belong to the model"),
        ({"format": 2}, "has format 2"),
        ({"columns": [{"name": 3}]}, "cannot be understood"),
        ({"latents": {"before_source": [["x"]]}}, "cannot be understood"),
        ({"separability": {"source_rows": -1}}, "cannot be understood"),
    ],
)
def test_strange_report_data_are_refused_and_do_not_touch_the_model(
    change, complaint, fitted, tmp_path
):
    folder = Path(shutil.copytree(fitted.folder, tmp_path / "model"))
    data = json.loads((folder / "report.json").read_text())
    (folder / "report.json").write_text(json.dumps(data | change))
    with pytest.raises(InputError, match=complaint):
        read_subject(folder)
    assert halfseen.load(folder).schema.label


def test_a_rehearsal_is_shown_with_its_verdicts(fitted, tmp_path, no_map):
    check = {"largest": 0.4, "p_value": 0.001, "negligible": 0.1}
    measured = {"cross_entropy": 0.41, "auc": 0.9, "accuracy": 0.8}
    rehearsal = {
        "runs": [{"model": "<u>A</u>", "measured": measured}],
        "checks": {"conditional": check, "posterior": check | {"p_value": 0.5}},
        "verdict": "A would have won.",
        "trust": "One seed.",
    }
    path = tmp_path / "rehearsal.json"
    path.write_text(json.dumps(rehearsal))
    page = rendered_page(model_page(read_subject(fitted.folder, rehearsal=path)))
    assert "A would have won. One seed." in page
    against = "omething speaks against it"
    assert page.count(against) == fitted.page.count(against) + 1
    assert "&lt;u&gt;A&lt;/u&gt;" in page
    path.write_text("[]")
    with pytest.raises(InputError, match="rehearse"):
        read_subject(fitted.folder, rehearsal=path)


def test_a_perfect_generator_recovers_and_a_blind_one_does_not(monkeypatch, tmp_path):
    found = understood(tmp_path)
    random = np.random.default_rng(0)
    inputs = random.normal(size=(200, len(found.schema.inputs))).astype(np.float32)
    some = Sample(inputs, np.zeros(200, np.int64))
    true = inputs[:, list(found.schema.blocks.missing)].astype(np.float64)

    model = SimpleNamespace(networks=SimpleNamespace(noise_size=0))

    def facts(imputed):
        monkeypatch.setattr(imputed_facts, "_latents", lambda *_: (true, imputed))
        return imputed_facts.imputation_facts(model, found.schema, some, some)

    perfect, blind = facts(true), facts(true[random.permutation(200)])
    assert perfect.explained == perfect.spread == 1.0
    assert all(c.kept > 0.99 and c.recovered > 0.99 for c in perfect.columns)
    assert all(c.kept > 0.99 and c.recovered < 0.0 for c in blind.columns)
    assert blind.spread == pytest.approx(1.0)
