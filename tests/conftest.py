"""Small tensors on many threads mostly wait for each other; workers run one thread each."""

import os
from dataclasses import replace
from pathlib import Path

# For what is started from here, too: the workers, and commands in processes of their own.
os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

import pytest

REAL_DATA = "HALFSEEN_DATA"
"""Names the folder of real files; tests that are marked with a family skip where it is not."""


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in item.iter_markers("data"):
        if not os.environ.get(REAL_DATA):
            pytest.skip(f"{REAL_DATA} is not set: the real files are not at hand")
        for family in marker.args:
            if not (Path(os.environ[REAL_DATA]) / family).is_dir():
                pytest.skip(f"{REAL_DATA} has no folder {family!r}")


@pytest.fixture
def small_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the settings, networks are tiny and training is short: for code that is shown."""
    import lightgbm

    from halfseen.cli import fit_config
    from halfseen.fitting import prepared_rows
    from halfseen.members import trees
    from halfseen.options import make_options, option_names
    from halfseen.settings import FitSettings
    from tiny import TINY

    short_and_small = TINY | {"training.learning_rate": 0.02, "images.channels": (2, 2, 2)}

    usual = FitSettings.options_for

    def short(*args, **settings):
        options = usual(*args, **settings)
        known = option_names(options.inputs)
        return make_options({n: v for n, v in short_and_small.items() if n in known}, options)

    monkeypatch.setattr(FitSettings, "options_for", short)
    read = fit_config.read_settings

    def without_facts(*args, **settings):
        return read(*args, **settings).model_copy(update={"report_data": "none"})

    monkeypatch.setattr(fit_config, "read_settings", without_facts)  # facts take seconds
    monkeypatch.setattr(prepared_rows, "SMALL", 0)  # one part held out instead of five folds
    forest, boost = trees.ForestLearner.fit, lightgbm.train

    def small(learner, task):
        return forest(replace(learner, size=8), task)

    def few(settings, data, rounds, **more):
        return boost(settings, data, min(rounds, 20), **more)

    monkeypatch.setattr(trees.ForestLearner, "fit", small)
    monkeypatch.setattr(lightgbm, "train", few)
