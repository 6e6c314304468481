"""A search over settings of a fit: what is tried, kept, gone on with and refused."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

import halfseen
from halfseen import HalfseenError, InputError, OptionError, preset
from halfseen.networks.variants import variant_named
from halfseen.settings import FitSettings
from halfseen.tuning import _Rows, ended_trials, paper_space, search, with_params
from tiny import TINY

Range = pytest.importorskip("optuna").distributions.FloatDistribution

RATES = {"training.learning_rate": [1e-9, 1e-2]}
NETWORKS = {
    "members": ["networks"],
    "options": TINY | {"training.learning_rate": 1e-3},
    "measure": False,
    "device": "cpu",
}


def domains(rows: int = 120) -> tuple[pa.Table, pa.Table]:
    random = np.random.default_rng(0)
    source = dict(zip("abcd", random.normal(size=(4, rows)), strict=True))
    target = pa.table(dict(zip("abc", random.normal(size=(3, rows)) + 0.3, strict=True)))
    source["label"] = np.where(source["a"] + source["d"] > 0, "yes", "no")
    return pa.table(source), target


def searched(**how):
    return search(*domains(), "label", **NETWORKS | {"score": "source_loss", "space": RATES} | how)


def rates(study):
    return [trial.params["training.learning_rate"] for trial in ended_trials(study)]


@pytest.fixture
def without_training(monkeypatch):
    """Let the value of a trial be its learning rate."""

    def value(self, settings, score):
        return settings.options["training.learning_rate"]

    monkeypatch.setattr(_Rows, "value", value)


def test_the_best_settings_win_and_the_given_ones_are_tried_first():
    seen = []
    study = searched(trials=9, on_trial=seen.append)
    # Three settings are all there is: each is tried once.
    assert rates(study)[0] == 1e-3
    assert sorted(rates(study)) == [1e-9, 1e-3, 1e-2]
    assert study.best_params == {"training.learning_rate": 1e-2}
    assert study.best_value == min(trial.value for trial in study.trials if trial.value)
    assert [trial.value for trial in seen] == [trial.value for trial in ended_trials(study)]


def test_settings_and_options_are_varied_over_choices_and_ranges():
    space = {
        "objective.reconstruction_weight": Range(1e-3, 1.0, log=True),
        "refine": [False, True],
    }
    study = searched(score="mutual_information", space=space, trials=3)
    assert study.study_name == "Adaptation-Imputation by mutual_information"
    assert len(ended_trials(study)) == 3
    assert study.best_value == max(trial.value for trial in study.trials)
    best = with_params(FitSettings(**NETWORKS), study.best_params)
    assert best.refine == study.best_params["refine"]
    weight = study.best_params["objective.reconstruction_weight"]
    assert best.options["objective.reconstruction_weight"] == weight
    assert best.options["tables.latent_size"] == 4, "what was given is kept"


def test_without_networks_members_are_searched_and_fit_takes_what_was_found():
    study = search(*domains(), "label", score="source_loss", trials=2, effort="quick")
    assert study.study_name == "Trees and regression by source_loss"
    first = study.trials[0].params
    assert first == {"members": "boosted_trees+forest+regression", "effort": "quick"}
    settings = with_params(FitSettings(label="label"), {"members": "forest+regression"})
    assert settings.members == ("forest", "regression")
    model = halfseen.fit(*domains(), **settings.model_dump(exclude_unset=True))
    assert [member.kind for member in model.members] == ["forest", "regression"]


def test_amounts_are_searched():
    source, target = domains()
    amounts = source.set_column(4, "label", pa.array(source["a"].to_numpy() * 3.3))
    space = {"members": ["boosted_trees+regression", "regression"]}
    how = {"score": "source_loss", "members": ["regression"], "task": "regression"}
    study = search(amounts, target, "label", space=space, trials=2, **how)
    assert study.best_params == {"members": "regression"}, "a line is what the amounts are"
    with pytest.raises(OptionError, match="does not judge regression"):
        search(amounts, target, "label", **how | {"score": "mutual_information"})


def test_a_search_goes_on_where_it_was_stopped(tmp_path, without_training):
    def stop(trial):
        if trial.number == 1:
            raise KeyboardInterrupt

    storage = tmp_path / "new" / "trials.db"
    space = {"training.learning_rate": Range(1e-4, 1e-1, log=True)}
    given = {"space": space, "trials": 4, "storage": storage}
    with pytest.raises(KeyboardInterrupt):
        searched(**given, on_trial=stop)
    seen = []
    study = searched(**given, on_trial=seen.append)
    assert len(seen) == 2
    assert len(set(rates(study))) == 4
    assert rates(study) == rates(searched(**given | {"storage": None})), "as if never stopped"
    assert [p.name for p in storage.parent.iterdir()] == ["trials.db"]
    for other in ({"refine": True}, {"seed": 5}, {"space": RATES}):
        with pytest.raises(InputError, match="The storage holds another search"):
            searched(**given | other)
    beside = searched(**given | {"trials": 1}, models=["Adaptation-IgnoreComponent"])
    assert beside.study_name == "Adaptation-IgnoreComponent by source_loss"


KILLED = """
import sys, time
sys.path[:0] = sys.argv[2:]
import test_tuning as tests
tests._Rows.value = lambda self, settings, score: settings.options["training.learning_rate"]
def told(trial):
    print(trial.number, flush=True)
    time.sleep(60 * trial.number)
space = {"training.learning_rate": tests.Range(1e-4, 1e-1, log=True)}
tests.searched(space=space, trials=4, storage=sys.argv[1], on_trial=told)
"""


def test_a_killed_search_goes_on_with_what_it_had(tmp_path, without_training, request):
    storage = tmp_path / "trials.db"
    places = [str(request.path.parent), str(request.path.parents[1])]
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, storage, *places], stdout=subprocess.PIPE, text=True
    )
    assert [process.stdout.readline() for _ in range(2)] == ["0\n", "1\n"]
    process.kill()
    process.wait()
    seen = []
    space = {"training.learning_rate": Range(1e-4, 1e-1, log=True)}
    study = searched(space=space, trials=4, storage=storage, on_trial=seen.append)
    assert (len(seen), len(rates(study))) == (2, 4)


def test_a_trial_that_was_interrupted_is_tried_again(tmp_path, monkeypatch, without_training):
    arguments = {"trials": 3, "storage": f"sqlite:///{tmp_path}/t.db"}

    def stop(self, settings, score):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(_Rows, "value", stop)
        with pytest.raises(KeyboardInterrupt):
            searched(**arguments)
    assert sorted(rates(searched(**arguments))) == [1e-9, 1e-3, 1e-2]


@pytest.mark.parametrize("content", ["id,age\n1,30", '{"op_code":0}\n' * 99, "SQLite format 3\0?"])
def test_a_file_that_is_no_database_of_trials_is_left_alone(content, tmp_path):
    storage = tmp_path / "source.csv"
    storage.write_text(content)
    with pytest.raises(HalfseenError, match=r"cannot be kept in .*: name another file"):
        searched(storage=storage)
    assert storage.read_text() == content


def test_a_trial_that_diverges_counts_and_is_told():
    unbounded = NETWORKS["options"] | {"training.gradient_clip": None}
    space = {"training.learning_rate": [1e30]}
    study = searched(options=unbounded, space=space, trials=2)
    (failed,) = (trial for trial in ended_trials(study) if trial.value is None)
    assert len(ended_trials(study)) == 2
    assert "loss became" in failed.user_attrs["error"]


def test_the_agreement_of_several_fits_can_decide():
    options = NETWORKS["options"] | {"training.joint_epochs": 4}
    space = {"training.learning_rate": [1e-9]}
    study = searched(options=options, score="agreement", space=space, trials=2)
    assert study.best_params == {"training.learning_rate": 1e-3}
    assert 0.0 <= study.best_value <= 1.0


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


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"score": "accuracy"}, "'accuracy' is unknown"),
        ({"trials": 0}, "trials=0"),
        ({"space": {}}, "space is empty"),
        ({"space": {"depth": [1]}}, "varies 'depth'"),
        ({"space": {"training.learning_rate": [-1.0]}, "trials": 2}, "learning_rate=-1.0"),
    ],
)
def test_what_cannot_be_searched_is_said(wrong, message):
    with pytest.raises(OptionError, match=message):
        searched(**wrong)
