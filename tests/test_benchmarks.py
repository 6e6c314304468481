"""The straightforward implementation does the same mathematics, so that ratios compare like."""

import importlib
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from halfseen.networks.modules import Predictor
from halfseen.networks.objective import build_objective
from halfseen.networks.terms import Batch
from halfseen.networks.variants import variant_named
from halfseen_bench.data import Labelled, Sealed

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
NAMES = {
    "encoder": "g1",
    "missing_encoder": "g2",
    "generator": "r",
    "classifier": "f",
    "adaptation": "d1",
    "imputation": "d2",
}


@pytest.fixture
def benchmarks(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import speed_cases
    import straightforward

    return speed_cases, straightforward


def assert_same_step(cases, model, losses, options, domains, method):
    """One step of each from the same weights: same loss, same gradients. Return our objective."""
    torch.manual_seed(0)
    objective = build_objective(domains.blocks, variant_named(method), domains.classes, options)
    objective.double().train()
    model.double().train()
    terms = [part for term in objective.terms.values() for part in term.parts()]
    parts = {part.name: part.module for part in (*objective.network_parts(), *terms)}
    pairs = [
        (own, other)
        for name, module in parts.items()
        if any(True for _ in module.parameters())
        for own, other in zip(
            module.parameters(), getattr(model, NAMES[name]).parameters(), strict=True
        )
    ]
    for own, other in pairs:
        other.data.copy_(own.data)
    for layer in model.modules():
        if isinstance(layer, nn.Dropout):
            layer.p = 0.0
    source, target = domains.source[:16].double(), domains.target[:16].double()
    batch = source, domains.labels[:16], target, cases.STRENGTH
    plainly = losses(model, *batch, options.objective.reconstruction_weight)
    ours = objective.total("joint", objective("joint", Batch(*batch[:3]), strength=cases.STRENGTH))
    assert plainly.item() == pytest.approx(ours.item(), rel=1e-9)
    plainly.backward()
    ours.backward()
    for own, other in pairs:
        assert torch.allclose(own.grad, other.grad, rtol=1e-7, atol=1e-9)
    return objective


@pytest.mark.parametrize("script", sorted(path.stem for path in BENCHMARKS.glob("*.py")))
def test_every_benchmark_knows_the_names_that_it_uses(script, monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    importlib.import_module(script)


@pytest.mark.parametrize("case", ["digits", "colours", "dann", "ads"])
def test_adversarial_steps_and_predictions_are_the_same(benchmarks, case):
    cases, plain = benchmarks
    channels = 3 if case == "colours" else 1
    domains = cases.ads(64) if case == "ads" else cases.digits(channels, 64)
    if case == "ads":
        model = plain.AdsNetworks()
    else:
        model = plain.DigitNetworks(channels, imputes=case != "dann")
    kind = "table" if case == "ads" else "image"
    options = cases.our_options(kind, "adversarial", 16, **{"networks.classifier_dropout": 0.0})
    losses = plain.dann_losses if case == "dann" else plain.adversarial_losses
    method = cases.DANN if case == "dann" else cases.IMPUTING
    objective = assert_same_step(cases, model, losses, options, domains, method)
    rows = domains.target[:40].double()
    expected = plain.predict(model, rows, batch_size=16)
    found = Predictor(objective.networks, options).raw_prediction(rows.numpy())
    assert np.allclose(np.exp(found), expected, atol=1e-9)


def test_every_case_of_speed_runs(benchmarks, monkeypatch):
    cases, _ = benchmarks
    small = {"digits": cases.digits, "ads": cases.ads}
    monkeypatch.setattr(cases, "digits", lambda channels: small["digits"](channels, 600))
    monkeypatch.setattr(cases, "ads", lambda: small["ads"](1200))
    for make in cases.CASES.values():
        case = make()
        case.plainly()
        case.ours()


@pytest.mark.parametrize("two_passes", [True, False])
def test_transport_steps_are_the_same(benchmarks, two_passes):
    cases, plain = benchmarks
    options = cases.our_options("image", "transport", 16, **{"networks.classifier_dropout": 0.0})

    def losses(*given):
        return plain.transport_losses(*given, two_passes=two_passes)

    assert_same_step(
        cases, plain.DigitNetworks(1), losses, options, cases.digits(1, 64), cases.IMPUTING
    )


@pytest.mark.usefixtures("benchmarks")
def test_speed_writes_its_tables(tmp_path, monkeypatch):
    import speed

    output = tmp_path / "speed.json"
    asked = ["ads, data", "--alternations", "2", "--threads", "1", "--output", str(output)]
    monkeypatch.setattr(sys, "argv", ["speed.py", *asked])
    speed.main()
    results = json.loads(output.read_text())
    low, middle, high = results["cases"]["ads, data path alone"]["ratio"]
    assert 0 < low <= middle <= high
    assert f"**{middle:.2f}**" in output.with_suffix(".md").read_text()


def test_time_to_accuracy_goes_on_where_it_stopped(tmp_path, benchmarks):
    import time_to_accuracy

    domains = benchmarks[0].digits(1, 160)
    rows = Labelled(domains.source.numpy(), domains.labels.numpy())
    pair = SimpleNamespace(
        source_train=rows,
        target_train=domains.target.numpy(),
        target_test=domains.blocks.hide(domains.source).numpy(),
        target_test_labels=Sealed(domains.labels.numpy()),
        blocks=domains.blocks,
        classes=tuple("0123456789"),
    )
    output = tmp_path / "times.jsonl"

    def lines_at(level):
        for train in (time_to_accuracy.train_ours, time_to_accuracy.train_plainly):
            train(pair, 0, level, output)
        assert "| 0 |" in time_to_accuracy.table(output, level)
        return [json.loads(line) for line in output.read_text().splitlines()]

    first = lines_at(0.05)
    assert {line["side"] for line in first} == {"ours", "plainly"}
    more = lines_at(0.25)
    assert more[: len(first)] == first
    for side, repeated in (("plainly", 0), ("ours", 1)):  # ours stops before its checkpoint
        own = [line for line in more if line["side"] == side]
        seconds = {(line["phase"], line["epoch"]): line["seconds"] for line in own}
        assert 1 < len(own) <= len(seconds) + repeated
        assert min(seconds.values()) > 0
        assert list(seconds.values()) == sorted(seconds.values())


def test_settings_of_images_are_drawn_against_minutes(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    settings = importlib.import_module("image_settings")
    run = settings.Run("threshold 0.8", settings.STEPS, "usps:mnist", settings.IMPUTE)
    drawn_and_not = [
        (run, 70.0),
        (run._replace(setting=settings.WHOLE, steps=8_277), 60.0),
        (run._replace(steps=settings.FEW), 50.0),
        (run._replace(pair="svhn:mnistm"), 40.0),
        (run._replace(side="top"), 30.0),
        (run._replace(setting="default"), 20.0),  # of a faster machine
    ]
    log, picture = tmp_path / "log.jsonl", tmp_path / "drawn.png"
    with log.open("w") as file:
        for each, accuracy in drawn_and_not:
            curve = [{"step": 100, "seconds": 60, "accuracy": accuracy}]
            file.write(json.dumps(each._asdict() | {"curve": curve}) + "\n")
    drawn = []
    monkeypatch.setattr("matplotlib.axes.Axes.plot", lambda *a, **k: drawn.append(a[1:3]))
    monkeypatch.setattr("matplotlib.axes.Axes.legend", lambda *a, **k: None)
    settings.draw(log, picture)
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert drawn == [([1.0], [70.0]), ([1.0], [60.0])]
