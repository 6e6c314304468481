import json
import os
import resource
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load

from halfseen import Blocks, HalfseenError, InputError, TrainingDivergedError, preset
from halfseen.networks.loop import SEAL, read_checkpoint, write_checkpoint
from halfseen.networks.train import LabelledRows, TrainingProblem, fit_objective
from halfseen.networks.variants import variant_named
from halfseen.options import make_options

OPTIONS = make_options(
    {
        "tables.widths": (16,),
        "tables.latent_size": 8,
        "generator.widths": (16,),
        "networks.classifier_widths": (16,),
        "networks.critic_widths": (16,),
        "networks.classifier_dropout": 0.3,
        "networks.normalization": "batch",
        "training.learning_rate": 1e-2,
        "training.batch_size": 16,
        "training.warmup_batch_size": 16,
        "training.warmup_epochs": 2,
        "training.joint_epochs": 3,
        "refinement.epochs": 2,
        "training.augmentation": "mask",
    },
    preset("paper", inputs="table"),
)


def problem(seed=0, rows=64):
    generator = torch.Generator().manual_seed(seed)
    source = torch.randn(rows, 5, generator=generator)
    target = torch.randn(rows, 5, generator=generator) + 0.5
    labels = (source[:, 0] + source[:, 4] > 0).long()
    blocks = Blocks.columns(5, [3, 4])
    return TrainingProblem(blocks, LabelledRows(source, labels), blocks.hide(target), 2)


def fit(options=OPTIONS, name="Adaptation-Imputation", refine=True, **arguments):
    arguments = {"seed": 7, "device": "cpu", **arguments}
    return fit_objective(problem(), variant_named(name), options, refine=refine, **arguments)


def weights(objective):
    return {name: tensor.clone() for name, tensor in objective.state_dict().items()}


def same(first, second):
    return all(torch.equal(first[name], second[name]) for name in first)


def test_same_seed_gives_identical_weights_and_leaves_the_callers_generators_alone():
    torch.manual_seed(123)
    np.random.seed(123)  # noqa: NPY002
    states = torch.random.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    threads = torch.get_num_threads()
    first, _ = fit()
    torch.rand(5)
    torch.random.set_rng_state(states[0])
    second, _ = fit()
    other, _ = fit(seed=8)
    assert same(weights(first), weights(second))
    assert not same(weights(first), weights(other))
    assert torch.equal(states[0], torch.random.get_rng_state())
    assert np.array_equal(states[1], np.random.get_state()[1])  # noqa: NPY002
    assert torch.get_num_threads() == threads


def test_target_statistics_under_noise_are_the_seeds_too():
    options = make_options({"networks.prediction_statistics": "target"}, OPTIONS)
    state = torch.random.get_rng_state()
    first, _ = fit(options)
    assert torch.equal(state, torch.random.get_rng_state())
    torch.rand(5)
    second, _ = fit(options)
    assert same(weights(first), weights(second))


def test_history_names_phases_and_losses():
    _, history = fit()
    assert [record["phase"] for record in history] == ["warm-up"] * 2 + ["joint"] * 3 + [
        "refine"
    ] * 2
    assert [record["epoch"] for record in history] == [1, 2, 1, 2, 3, 1, 2]
    assert {"adaptation", "imputation", "reconstruction", "classification"} <= set(history[2])
    assert {"pseudo_label", "entropy", "classification"} <= set(history[-1])
    json.dumps(history)


def test_training_lowers_the_classification_loss():
    options = make_options(
        {
            "training.warmup_epochs": 20,
            "training.augmentation": "none",
            "networks.classifier_dropout": 0.0,
        },
        OPTIONS,
    )
    _, history = fit(options)
    losses = [r["classification"] for r in history if r["phase"] == "warm-up"]
    assert losses[-1] < 0.5 * losses[0]


def test_epoch_hook_sees_each_epoch_and_adds_to_its_record():
    seen = []

    def hook(objective, record):
        seen.append((record["phase"], objective.networks(problem().target).shape))
        return {"extra": len(seen)}

    plain, _ = fit()
    hooked, history = fit(on_epoch=hook)
    assert [record["extra"] for record in history] == [1, 2, 3, 4, 5, 6, 7]
    assert seen[0] == ("warm-up", (64, 2))
    assert same(weights(plain), weights(hooked)), "looking must not change training"


class StopError(Exception):
    pass


@pytest.mark.parametrize("stop_after", [1, 2, 4, 5, 6])
def test_a_run_stopped_between_epochs_and_resumed_ends_with_the_same_weights(tmp_path, stop_after):
    whole, history = fit()
    path = tmp_path / "run.safetensors"
    seen = []

    def stop(objective, record):
        seen.append(record)
        if len(seen) == stop_after + 1:
            raise StopError

    with pytest.raises(StopError):
        fit(checkpoint=path, on_epoch=stop)
    resumed, resumed_history = fit(checkpoint=path)
    assert same(weights(whole), weights(resumed))
    timeless = [{k: v for k, v in r.items() if k != "seconds"} for r in history]
    assert timeless == [{k: v for k, v in r.items() if k != "seconds"} for r in resumed_history]


KILLED = """
import pathlib, sys, time, torch
torch.set_num_threads(1)  # as in the tests: other thread counts round differently
sys.path.insert(0, {tests!r})
import test_training_loop as t
def slow(objective, record):
    print(record["phase"], record["epoch"], flush=True)
    time.sleep(0.3)
t.fit(checkpoint=pathlib.Path(sys.argv[1]), on_epoch=slow)
"""


def test_a_killed_process_resumes_to_the_same_weights(tmp_path):
    path = tmp_path / "run.safetensors"
    script = tmp_path / "killed.py"
    script.write_text(KILLED.format(tests=os.path.dirname(__file__)))
    process = subprocess.Popen(
        [sys.executable, str(script), str(path)], stdout=subprocess.PIPE, text=True
    )
    for line in process.stdout:
        if line.strip() == "joint 2":
            break
    time.sleep(0.1)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert path.exists()
    seen = []
    resumed, _ = fit(checkpoint=path, on_epoch=lambda o, record: seen.append(record) or {})
    whole, _ = fit()
    assert len(seen) in (3, 4), "only what was left is run again"
    assert same(weights(whole), weights(resumed))
    assert [p.name for p in tmp_path.iterdir() if "partial" in p.name] == []


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    path = tmp_path / "run.safetensors"
    fit(checkpoint=path)
    with pytest.raises(InputError, match="belongs to another run"):
        fit(checkpoint=path, seed=8)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(InputError, match="was changed after it was written"):
        fit(checkpoint=path)


def test_a_damaged_checkpoint_is_never_gone_on_with(tmp_path):
    """Scrambled bytes went on into a model that predicts NaN."""
    path = tmp_path / "run.safetensors"
    fit(checkpoint=path)
    content = path.read_bytes()
    kept = [read_checkpoint(path, json.loads(header_of(content))["run"])]
    for position in np.random.default_rng(0).choice(8 * len(content), 300, replace=False):
        damaged = bytearray(content)
        damaged[position // 8] ^= 1 << position % 8
        path.write_bytes(damaged)
        with pytest.raises(InputError, match="was changed after it was written"):
            kept.append(read_checkpoint(path, kept[0].run))
    path.write_bytes(content)
    assert read_checkpoint(path, kept[0].run).epoch == kept[0].epoch


def header_of(content):
    return load(content[:-SEAL])["facts"].numpy().tobytes()


def test_a_checkpoint_on_a_full_disk_is_a_sentence_and_keeps_the_last_one(tmp_path):
    path = tmp_path / "run.safetensors"
    fit(checkpoint=path)
    before = path.read_bytes()
    kept = read_checkpoint(path, json.loads(header_of(before))["run"])
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) // 2, limits[1]))
    try:
        with pytest.raises(HalfseenError, match=r"run\.safetensors could not be written"):
            write_checkpoint(path, kept)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["run.safetensors"]


def test_a_loss_that_is_not_finite_stops_with_a_sentence():
    options = make_options({"training.learning_rate": 1e30}, OPTIONS)
    with pytest.raises(TrainingDivergedError) as caught:
        fit(options)
    message = str(caught.value)
    assert "loss became" in message
    assert "in epoch" in message
    assert "Try a lower training.learning_rate (it was 1e+30)" in message


def test_gradient_clipping_bounds_the_gradient(monkeypatch):
    norms = []
    original = torch.nn.utils.clip_grad_norm_

    def spy(parameters, largest):
        total = original(parameters, largest)
        norms.append(torch.stack([p.grad.norm() for p in parameters if p.grad is not None]).norm())
        return total

    monkeypatch.setattr(torch.nn.utils, "clip_grad_norm_", spy)
    fit(make_options({"training.gradient_clip": 0.01}, OPTIONS))
    assert norms
    assert max(norms) <= 0.0101


def test_target_labels_have_no_way_in():
    """What carries target rows is a plain tensor, and the problem takes nothing else of them."""
    given = problem()
    assert type(given.target) is torch.Tensor
    with pytest.raises(TypeError, match="target_labels"):
        replace(given, target_labels=torch.zeros(64))


def test_refinement_of_the_classifier_alone_leaves_the_encoders():
    options = make_options(
        {"refinement.modules": "classifier", "networks.normalization": "none"}, OPTIONS
    )
    before, _ = fit(options, refine=False)
    after, _ = fit(options, refine=True)
    first, second = weights(before), weights(after)
    changed = {name.split(".")[1] for name in first if not torch.equal(first[name], second[name])}
    assert changed == {"classifier"}
