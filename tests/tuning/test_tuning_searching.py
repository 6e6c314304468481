from __future__ import annotations

import numpy as np
import pytest

import tiny
from halfseen import (
    HalfSeenClassifier,
    HalfseenError,
    InputError,
    OptionError,
    preset,
)
from halfseen.networks.variants import variant_named
from halfseen.selection import Evidence, evaluate
from halfseen.splitting import held_out_share
from halfseen.tuning import paper_space, search, searching

Range = pytest.importorskip("optuna").distributions.FloatDistribution

RATES = {"training.learning_rate": [1e-9, 1e-2]}


def domains(rows: int = 120) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    source = random.normal(size=(rows, 4))
    target = random.normal(size=(rows, 4)) + 0.3
    return source, np.where(source[:, 0] + source[:, 3] > 0, "yes", "no"), target


def model(*, options=(), **settings) -> HalfSeenClassifier:
    return tiny.classifier(
        missing=[3], options={"training.learning_rate": 1e-3} | dict(options), **settings
    )


def test_the_best_settings_win_and_the_given_ones_are_tried_first():
    seen = []
    found = search(
        model(), *domains(), score="source_loss", space=RATES, trials=9, on_trial=seen.append
    )
    assert found.trials[0].settings == {"training.learning_rate": 1e-3}
    # Three settings are all there is: each is tried once.
    assert sorted(t.settings["training.learning_rate"] for t in found.trials) == [1e-9, 1e-3, 1e-2]
    assert found.best.settings == {"training.learning_rate": 1e-2}
    assert found.table()[0]["source_loss"] == min(trial.value for trial in found.trials)
    assert [(t.number, t.value) for t in seen] == [(t.number, t.value) for t in found.trials]

    X, y, target = domains()
    train, held = held_out_share(np.unique(y, return_inverse=True)[1], 0.2, 0)
    best = found.applied_to(model()).fit(X[train], y[train], X_target=target).model_
    rows = (X[held], y[held], target, X[train])
    again = evaluate(
        best, Evidence.prepared(best.prepare, best.target_type, *rows), ("source_loss",)
    )
    assert again["source_loss"] == found.best.value, "a trial's value is that of its estimator"


def test_options_and_parameters_are_varied_over_choices_and_ranges():
    space = {
        "objective.reconstruction_weight": Range(1e-3, 1.0, log=True),
        "refine": [False, True],
    }
    found = search(model(), *domains(), score="mutual_information", space=space, trials=3)
    assert [trial.model for trial in found.trials] == ["Adaptation-Imputation"] * 3
    assert set(found.trials[0].settings) == {"objective.reconstruction_weight", "refine"}
    assert found.best.value == max(trial.value for trial in found.trials)
    best = found.applied_to(model())
    assert best.refine == found.best.settings["refine"]
    weight = found.best.settings["objective.reconstruction_weight"]
    assert best.options["objective.reconstruction_weight"] == pytest.approx(weight)


def test_a_search_goes_on_where_it_was_stopped(tmp_path):
    def stop(trial):
        if trial.number == 1:
            raise KeyboardInterrupt

    storage = tmp_path / "trials.journal"
    given = {
        "score": "source_loss",
        "space": {"training.learning_rate": Range(1e-4, 1e-1, log=True)},
    }
    with pytest.raises(KeyboardInterrupt):
        search(model(), *domains(), **given, trials=4, storage=storage, on_trial=stop)
    seen = []
    found = search(model(), *domains(), **given, trials=4, storage=storage, on_trial=seen.append)
    assert len(seen) == 2
    assert len(found.trials) == 4
    whole = search(model(), *domains(), **given, trials=4)
    assert [t.value for t in found.trials] == [t.value for t in whole.trials]
    assert [p.name for p in tmp_path.iterdir()] == ["trials.journal"]
    with pytest.raises(InputError, match="The storage holds another search"):
        search(model(refine=True), *domains(), **given, trials=4, storage=storage)
    other = model(model="Adaptation-IgnoreComponent")
    beside = search(other, *domains(), **given, trials=1, storage=storage)
    assert [trial.model for trial in beside.trials] == ["Adaptation-IgnoreComponent"]


def test_trials_in_a_database(tmp_path):
    arguments = {"score": "source_loss", "space": RATES, "storage": f"sqlite:///{tmp_path}/t.db"}
    search(model(), *domains(), **arguments, trials=1)
    seen = []
    found = search(model(), *domains(), **arguments, trials=2, on_trial=seen.append)
    assert len(seen) == 1
    assert len(found.trials) == 2


def test_a_trial_that_was_stopped_is_tried_again(tmp_path, monkeypatch):
    """Whether a process was interrupted, and so could say it, or killed in its first trial."""
    import optuna

    arguments = {"score": "source_loss", "space": RATES, "storage": f"sqlite:///{tmp_path}/t.db"}
    for stopped in (KeyboardInterrupt, SystemExit):

        def stop(self, settings, stopped=stopped):
            raise stopped

        with monkeypatch.context() as patched:
            patched.setattr(searching._Runner, "_value", stop)
            if stopped is SystemExit:
                patched.setattr(optuna.Study, "tell", lambda *_, **__: None)
            with pytest.raises(stopped):
                search(model(), *domains(), **arguments, trials=1)
    found = search(model(), *domains(), **arguments, trials=1)
    assert found.best.settings == {"training.learning_rate": 1e-3}


def test_trials_in_parallel(tmp_path):
    storage = tmp_path / "trials.journal"
    space = {"training.learning_rate": Range(1e-4, 1e-1, log=True)}
    found = search(
        model(), *domains(), score="source_loss", space=space, trials=3, n_jobs=2, storage=storage
    )
    assert len(found.trials) == 3
    assert all(trial.state == "complete" for trial in found.trials)
    assert found.trials[0].settings == {"training.learning_rate": 1e-3}


def without_training(monkeypatch) -> None:
    """Let the value of a trial be its learning rate."""

    def rate(self, settings):
        return settings["training.learning_rate"]

    monkeypatch.setattr(searching._Runner, "_value", rate)


def test_a_search_goes_on_whatever_byte_of_its_journal_a_kill_came_at(tmp_path, monkeypatch):
    without_training(monkeypatch)
    arguments = {"score": "source_loss", "space": RATES, "trials": 3}
    storage = tmp_path / "trials.journal"
    search(model(), *domains(), **arguments, storage=storage)
    whole = storage.read_bytes()
    ends = [place for place, byte in enumerate(whole) if byte == ord("\n")]
    assert len(ends) > 10
    for end in (0, *ends):
        for cut in (end + 1, end + 20):  # between two lines, and within one
            storage.write_bytes(whole[:cut])
            for _ in range(2):
                found = search(model(), *domains(), **arguments, storage=storage)
                rates = sorted(trial.settings["training.learning_rate"] for trial in found.trials)
                assert rates == [1e-9, 1e-3, 1e-2], f"cut at byte {cut}"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda line: line[:-5] + b"\n", "is damaged .*delete it to begin anew"),
        (lambda line: b"\xff\x00\n", "is damaged"),
        (lambda line: b"{}\n", "is damaged"),
        (lambda line: b'{"op_code":4}\n', "is damaged"),
        (lambda line: b'{"op_code":99,"worker_id":""}\n', "is damaged"),
    ],
)
def test_a_damaged_journal_is_refused(damage, message, tmp_path, monkeypatch):
    without_training(monkeypatch)
    storage = tmp_path / "trials.journal"
    arguments = {"score": "source_loss", "space": RATES, "storage": storage}
    search(model(), *domains(), **arguments, trials=1)
    lines = storage.read_bytes().splitlines(keepends=True)
    lines[2] = damage(lines[2])
    storage.write_bytes(b"".join(lines))
    with pytest.raises(InputError, match=message):
        search(model(), *domains(), **arguments, trials=2)
    assert storage.read_bytes() == b"".join(lines)


@pytest.mark.parametrize("content", ["id,age\n1,30", "id,age", '{"my": "notes"}', "\n\n"])
def test_a_file_that_is_no_journal_is_left_alone(content, tmp_path):
    storage = tmp_path / "source.csv"
    storage.write_text(content)
    with pytest.raises(InputError, match="not the journal of a search"):
        search(model(), *domains(), score="source_loss", space=RATES, storage=storage)
    assert storage.read_text() == content


def test_a_storage_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    for storage in (tmp_path, tmp_path / "file" / "trials.journal"):
        with pytest.raises(HalfseenError, match=r"cannot be kept in|could not be written"):
            search(model(), *domains(), score="source_loss", space=RATES, storage=storage)


def test_a_trial_that_diverges_counts_and_is_told():
    unbounded = {"training.gradient_clip": None}
    found = search(
        model(options=unbounded),
        *domains(),
        score="source_loss",
        space={"training.learning_rate": [1e30]},
        trials=2,
    )
    assert sorted(trial.state for trial in found.trials) == ["complete", "failed"]
    (failed,) = (trial for trial in found.trials if trial.state == "failed")
    assert "loss became" in failed.note
    assert failed.value is None


def test_the_agreement_of_several_fits_can_decide():
    found = search(
        model(options={"training.joint_epochs": 4}), *domains(), score="agreement",
        space={"training.learning_rate": [1e-9]}, trials=2,
    )  # fmt: skip
    assert len(found.trials) == 2
    assert found.best.settings == {"training.learning_rate": 1e-3}
    assert 0.0 <= found.best.value <= 1.0


def test_the_papers_grids():
    imputing, ignoring = (
        variant_named(f"Adaptation-{name}") for name in ("Imputation", "IgnoreComponent")
    )
    digits = paper_space(imputing, preset("paper", inputs="image"))
    assert list(digits) == ["training.learning_rate", "objective.reconstruction_weight"]
    assert digits["training.learning_rate"] == pytest.approx(
        [10**-2, 10**-2.5, 1e-3, 10**-3.5, 1e-4]
    )
    ads = paper_space(ignoring, preset("paper", inputs="table", divergence="transport"))
    assert ads == {
        "training.learning_rate": (1e-4, 1e-5, 1e-6, 1e-7),
        "objective.adaptation_weight": (0.1, 0.01, 1e-3),
    }


def test_what_cannot_be_searched_is_said():
    for wrong, message in (
        ({"score": "accuracy"}, "'accuracy' is unknown"),
        ({"trials": 0}, "trials=0"),
        ({"space": {}}, "space is empty"),
        ({"space": {"depth": [1]}}, "varies 'depth'"),
        ({"space": {"training.learning_rate": [-1.0]}, "trials": 2}, "learning_rate=-1.0"),
        ({"held_out": 0.0}, "held_out=0.0"),
    ):
        with pytest.raises(OptionError, match=message):
            search(model(), *domains(), **{"score": "source_loss", "space": RATES, **wrong})
