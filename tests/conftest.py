"""Small tensors on many threads mostly wait for each other; workers run one thread each."""

import pytest
import torch

torch.set_num_threads(1)

SMALL = {
    "encoder_widths": (4,),
    "latent_size": 3,
    "generator_widths": (4,),
    "classifier_widths": (4,),
    "critic_widths": (4,),
    "learning_rate": 0.02,
    "warmup_epochs": 1,
    "joint_epochs": 2,
    "channels": (2, 2, 2),
}


@pytest.fixture
def small_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the settings, networks are tiny and training is short: for code that is shown."""
    from halfseen.domain_classifier import DomainClassifier
    from halfseen.model import domains, fitting
    from halfseen.model.fitting import Settings

    for owner, name in ((DomainClassifier, "_options"), (Settings, "options_for")):
        usual = getattr(owner, name)

        def short(*args, usual=usual, **settings):
            return usual(*args, **settings).model_copy(update=SMALL)

        monkeypatch.setattr(owner, name, short)

    def without_facts(*args, usual=fitting.fit_tables, **settings):
        return usual(*args, **settings | {"report": "none"})  # they take seconds

    monkeypatch.setattr(fitting, "fit_tables", without_facts)
    monkeypatch.setattr(domains, "SMALL", 0)  # one part held out instead of five folds
