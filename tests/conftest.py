"""Small tensors on many threads mostly wait for each other; workers run one thread each."""

import pytest
import torch

torch.set_num_threads(1)

SMALL = {
    "tables.widths": (4,),
    "tables.latent_size": 3,
    "generator.widths": (4,),
    "networks.classifier_widths": (4,),
    "networks.critic_widths": (4,),
    "training.learning_rate": 0.02,
    "training.warmup_epochs": 1,
    "training.joint_epochs": 2,
    "images.channels": (2, 2, 2),
}


@pytest.fixture
def small_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the settings, networks are tiny and training is short: for code that is shown."""
    from halfseen.domain_classifier import DomainClassifier

    from halfseen.model import domains, fitting
    from halfseen.model.fitting import Settings
    from halfseen.options import make_options, option_names

    for owner, name in ((DomainClassifier, "_options"), (Settings, "options_for")):
        usual = getattr(owner, name)

        def short(*args, usual=usual, **settings):
            options = usual(*args, **settings)
            known = option_names(options.inputs)
            return make_options({n: v for n, v in SMALL.items() if n in known}, options)

        monkeypatch.setattr(owner, name, short)

    def without_facts(*args, usual=fitting.fit_tables, **settings):
        return usual(*args, **settings | {"report": "none"})  # they take seconds

    monkeypatch.setattr(fitting, "fit_tables", without_facts)
    monkeypatch.setattr(domains, "SMALL", 0)  # one part held out instead of five folds
