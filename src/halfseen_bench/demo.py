"""The demo: seven models and an outsider on digits that need no download."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from halfseen.files import write_text
from halfseen.networks.methods import METHODS, method_named
from halfseen.options import Options, make_options, preset
from halfseen_bench.data.demo import demo_pair
from halfseen_bench.models import TREES, Record, fit_and_measure, measure_trees
from halfseen_bench.runner import Task, run_tasks

__all__ = ["PICTURED", "DemoResult", "demo_options", "run_demo"]

PICTURED = ("Source-IgnoreComponent", "Adaptation-Imputation")
"""Models whose latents the report shows."""

DEMO_NETWORK: dict[str, Any] = {
    # Smaller than the default's: the images have half its side, and three minutes are short.
    "images.channels": (16, 32, 64),
    "images.kernel_size": 3,
    "images.padding": "same",
    "images.pools": 3,
    "generator.widths": (128, 128),
    "networks.critic_widths": (100,),
}
DEMO_EPOCHS = {
    "training.warmup_epochs": 5,
    "training.joint_epochs": 20,
    "refinement.epochs": 5,
}


@dataclass(frozen=True)
class DemoResult:
    """What a demo leaves behind."""

    records: list[Record]
    histories: dict[str, list[dict[str, Any]]]
    failures: list[str]
    output: Path


def demo_options(divergence: str, *, imputes: bool, quick: bool = False) -> Options:
    """Return the default options for images, at the demo's size."""
    base = preset("default", inputs="image", divergence=divergence, imputes=imputes)
    epochs = dict.fromkeys(DEMO_EPOCHS, 1) if quick else DEMO_EPOCHS
    return make_options(DEMO_NETWORK | epochs, base)


def run_demo(
    output: Path,
    *,
    divergence: str = "adversarial",
    seeds: int = 3,
    jobs: int | None = None,
    quick: bool = False,
    quiet: bool = False,
) -> DemoResult:
    """Train every model with every seed, write ``results.json`` and return the results.

    A demo that was stopped continues where it was when it is given the same output folder.
    """
    output.mkdir(parents=True, exist_ok=True)
    names = [method.name for method in METHODS]
    tasks = [
        Task(
            _key(name, divergence, seed, quick),
            {
                "name": name,
                "divergence": divergence,
                "seed": seed,
                "quick": quick,
                "output": str(output),
            },
        )
        for seed in range(seeds)
        for name in (*names, TREES)
    ]
    log = output / "runs.jsonl"
    results, failures = run_tasks(
        tasks, run_one, log, jobs=jobs, title="training seven models", quiet=quiet
    )
    records = [record for result in results for record in result["records"]]
    write_text(output / "results.json", json.dumps(records, indent=1))
    histories = {r["name"]: r["history"] for r in reversed(results) if r["history"]}
    return DemoResult(records, histories, failures, output)


def run_one(name: str, divergence: str, seed: int, quick: bool, output: str) -> dict[str, Any]:
    """Fit and measure one model; every seed deals the digits to the domains anew."""
    pair = demo_pair(seed)
    if name == TREES:
        return {"name": name, "records": measure_trees(pair, seed=seed), "history": []}
    method = method_named(name)
    records, history = fit_and_measure(
        pair,
        method,
        demo_options(divergence, imputes=method.imputes, quick=quick),
        seed=seed,
        latents=latents_file(Path(output), name) if seed == 0 and name in PICTURED else None,
    )
    return {"name": name, "records": records, "history": history}


def latents_file(output: Path, name: str) -> Path:
    """Return where a pictured model's latents are kept."""
    return output / f"latents-{name}.npz"


def _key(name: str, divergence: str, seed: int, quick: bool) -> str:
    """Name a run; other settings give other keys, so that no stale result is shown."""
    options = demo_options(divergence, imputes=True, quick=quick).model_dump_json()
    settings = hashlib.sha256(options.encode()).hexdigest()[:8]
    return f"{name}/{divergence}/seed {seed}/{settings}"
