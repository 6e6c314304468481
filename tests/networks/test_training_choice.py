import pytest
import torch
from test_training_loop import OPTIONS, StopError, fit, problem, same, weights

from halfseen import InputError
from halfseen.networks.training import EpochChoice, LabelledRows, chosen_epochs
from halfseen.options import make_options
from halfseen.selection import choose_epochs_by

LONG = make_options({"training.joint_epochs": 6, "refinement.epochs": 3}, OPTIONS)
NUMBERS = {"joint": [5.0, 3.0, 4.0, 3.0, 6.0, 7.0], "refine": [2.0, 1.0, 8.0]}


def scripted(numbers=NUMBERS, *, higher_is_better=False, patience=None):
    """A choice whose scores are known beforehand."""
    left = [*numbers["joint"], *numbers["refine"]]
    return EpochChoice("scripted", lambda objective: left.pop(0), higher_is_better, patience)


def timeless(history):
    return [{k: v for k, v in record.items() if k != "seconds"} for record in history]


def states_after_each_epoch(options=LONG, **arguments):
    states = {}

    def keep(objective, record):
        states[record["phase"], record["epoch"]] = weights(objective)

    fit(options, on_epoch=keep, **arguments)
    return states


def test_the_best_epoch_of_the_last_phase_is_what_remains():
    states = states_after_each_epoch(refine=False)
    chosen, history = fit(LONG, refine=False, epoch_choice=scripted())
    assert same(weights(chosen), states["joint", 2]), "the first of equals"
    assert chosen_epochs(history) == {"warm-up": 2, "joint": 2}
    assert [record.get("score") for record in history] == [None, None, *NUMBERS["joint"]]
    assert [record["epoch"] for record in history if record.get("chosen")] == [2]
    best_is_high, _ = fit(LONG, refine=False, epoch_choice=scripted(higher_is_better=True))
    assert same(weights(best_is_high), states["joint", 6])


def test_refinement_starts_from_the_chosen_epoch_and_is_chosen_itself():
    _, history = fit(LONG, epoch_choice=scripted())
    assert chosen_epochs(history) == {"warm-up": 2, "joint": 2, "refine": 2}
    states = states_after_each_epoch(epoch_choice=scripted())
    chosen, _ = fit(LONG, epoch_choice=scripted())
    assert same(weights(chosen), states["refine", 2])
    # The same refinement after the last joint epoch ends elsewhere.
    assert not same(weights(chosen), states_after_each_epoch()["refine", 2])


def test_patience_ends_a_phase_early():
    patient = {"joint": [5.0, 3.0, 4.0, 3.0], "refine": [3.0, 2.0, 1.0]}
    _, history = fit(LONG, epoch_choice=scripted(patient, patience=2))
    phases = [record["phase"] for record in history]
    assert [phases.count(name) for name in ("warm-up", "joint", "refine")] == [2, 4, 3]
    impatient = {"joint": [1.0, 2.0], "refine": [1.0, 2.0]}
    _, history = fit(LONG, epoch_choice=scripted(impatient, patience=1))
    assert chosen_epochs(history) == {"warm-up": 2, "joint": 1, "refine": 1}


def test_what_is_no_number_is_never_chosen():
    nan = float("nan")
    numbers = {"joint": [nan, 2.0, nan, 1.0, nan, nan], "refine": [nan] * 3}
    chosen, history = fit(LONG, epoch_choice=scripted(numbers))
    assert chosen_epochs(history) == {"warm-up": 2, "joint": 4, "refine": 3}
    assert not any(record.get("chosen") for record in history if record["phase"] == "refine")
    assert all(t.isfinite().all() for t in weights(chosen).values())


def jumpy(objective):
    """A number that goes up and down with the weights."""
    return float(
        torch.cat([p.detach().flatten() for p in objective.parameters()]).mul(99).sin().sum()
    )


@pytest.mark.parametrize("patience", [None, 1, 2])
@pytest.mark.parametrize("stop_after", [2, 4, 6])
def test_a_run_stopped_and_resumed_chooses_the_same_epoch(tmp_path, stop_after, patience):
    choice = EpochChoice("jumpy", jumpy, patience=patience)
    whole, history = fit(LONG, epoch_choice=choice)
    path = tmp_path / "run.safetensors"
    seen = []

    def stop(objective, record):
        seen.append(record)
        if len(seen) == stop_after:
            raise StopError

    with pytest.raises(StopError):
        fit(LONG, checkpoint=path, on_epoch=stop, epoch_choice=choice)
    resumed, resumed_history = fit(LONG, checkpoint=path, epoch_choice=choice)
    assert same(weights(whole), weights(resumed))
    assert timeless(history) == timeless(resumed_history)
    again, _ = fit(LONG, checkpoint=path, epoch_choice=choice)
    assert same(weights(whole), weights(again)), "a run that had ended gives its model once more"


def test_a_checkpoint_of_another_choice_is_refused(tmp_path):
    path = tmp_path / "run.safetensors"
    fit(LONG, checkpoint=path, epoch_choice=scripted())
    with pytest.raises(InputError, match="belongs to another run"):
        fit(LONG, checkpoint=path)


def test_scores_see_the_networks_as_they_predict():
    options = make_options(
        {"networks.prediction_statistics": "target", "generator.noise_size": 0}, LONG
    )
    seen = []

    def score(objective):
        assert not objective.training
        seen.append(objective.networks(torch.zeros(1, 5)).detach())
        return float(-len(seen))  # the last is the best

    final, _ = fit(options, refine=False, epoch_choice=EpochChoice("last", score))
    assert torch.equal(final.networks(torch.zeros(1, 5)), seen[-1])


def test_rows_held_out_for_a_score_leave_soft_labels_and_weights_to_the_others():
    given = problem()
    soft = torch.softmax(5 * given.source.inputs[:, :2], 1)
    source = LabelledRows(given.source.inputs, soft, torch.arange(64.0))
    training, choice = choose_epochs_by("source_loss", source, given.target, held_out=0.25)
    rows = training.weights.long()
    assert len(training) == 48
    assert torch.equal(training.labels, soft[rows])
    assert torch.equal(training.inputs, given.source.inputs[rows])
    _, history = fit(refine=False, epoch_choice=choice)
    assert all(record["score"] > 0 for record in history if record["phase"] == "joint")
