"""The report of a benchmark's folder: the choice of epoch stated, with what the runs kept."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import numpy as np
import pytest

from halfseen.errors import InputError
from halfseen.report.html import rendered_page
from halfseen_bench.budgets import BUDGETS
from halfseen_bench.report.sweep import sweep_page
from halfseen_bench.suites import SUITES
from halfseen_bench.sweep import Selection, latents_file, plan_runs

MODELS = ("Source-IgnoreComponent", "Adaptation-Imputation")


def history(accuracy: float) -> list[dict]:
    return [
        {"phase": "warm-up", "epoch": 1, "classification": 0.9},
        {"phase": "joint", "epoch": 1, "classification": 0.5, "adaptation": 1.3},
        {"phase": "joint", "epoch": 2, "classification": 0.4, "adaptation": float("nan")},
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A sweep as it is left behind, its figures made up."""
    selection = Selection(models=MODELS, seeds=2)
    random = np.random.default_rng(0)
    lines = []
    for run in plan_runs(SUITES["demo"], BUDGETS["quick"], selection).runs:
        shared = {
            "suite": "demo",
            "pair": "demo",
            "variant": "",
            "budget": "quick",
            "preset": "default",
            "layout": "The lower half <of> it.",
            "source_rows": 674,
            "model": run.model,
            "divergence": run.divergence,
            "refined": False,
            "seed": run.seed,
            "macro_f1": 0.5,
        }
        choices = {"last": 0.4 + 0.1 * run.seed, "dev": 0.5, "oracle": 0.6}
        records = [
            shared | {"epoch_choice": c, "accuracy": a, "calibration_error": 0.1}
            | {"cross_entropy": 1.5}
            for c, a in choices.items()
        ]  # fmt: skip
        result = {
            "records": records,
            "history": history(0.4),
            "run": run.model_dump(mode="json"),
            "rows": {"target test": 300},
        }
        lines.append(json.dumps({"key": run.key, "result": result}))
        if run.seed == 0:
            arrays = {
                "source": random.normal(size=(30, 4)),
                "target": random.normal(size=(40, 4)) + 1,
                "source_labels": np.arange(30) % 3,
                "target_labels": np.arange(40) % 3,
            }
            if run.model == "Adaptation-Imputation":
                images = random.integers(0, 255, (2, 3, 8, 8)).astype(np.uint8)
                arrays |= {
                    "missing_source": arrays["source"][:, 2:],
                    "imputed_source": arrays["source"][:, 2:] / 2,
                    "examples_source": images,
                    "examples_target": images,
                    "examples_nearest": images[:, None],
                    "examples_missing": np.arange(4, 8),
                }
            np.savez(latents_file(tmp_path, run), **arrays)
    (tmp_path / "runs.jsonl").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_the_tables_state_the_choice_of_epoch(folder, no_map):
    page = sweep_page(folder)
    text = html.unescape(rendered_page(page))
    assert not [section.name for section in page.sections if section.absent]
    assert "45.0 ± 7.1" in text
    assert "oracle: best epoch in hindsight, chosen with the target test labels." in text
    assert "The lower half <of> it." in text
    costs = next(p for s in page.sections for p in s.parts if "choosing" in str(p)[:90])
    assert {row[1].text: row[2].value for row in costs.rows} == pytest.approx(
        {"last": 15.0, "dev": 10.0}
    )
    assert "halfseen bench run demo --models" in text
    assert "imputed latents explain" in text
    pictures = re.findall(r'<img src="([^"]{22})[^"]*" alt="([^"]+)"', rendered_page(page))
    assert len(pictures) == 5
    assert {start for start, _ in pictures} == {"data:image/png;base64,"}


def test_latents_that_are_none_are_refused(folder):
    next(folder.glob("latents-*Imputation*.npz")).write_bytes(b"PK")
    with pytest.raises(InputError, match="does not hold latents"):
        sweep_page(folder)


def test_a_log_of_another_version_is_one_sentence(folder):
    log = folder / "runs.jsonl"
    log.write_text(log.read_text().replace('"score_rows"', '"new_field": 1, "score_rows"', 1))
    with pytest.raises(InputError, match=r"new_field.*another version"):
        sweep_page(folder)


def test_a_folder_without_a_finished_run_is_one_sentence(tmp_path):
    (tmp_path / "runs.jsonl").write_text("")
    with pytest.raises(InputError, match="no finished run"):
        sweep_page(tmp_path)
