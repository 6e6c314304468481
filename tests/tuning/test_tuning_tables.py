"""A search on two tables tries the model that `halfseen fit` would fit to them."""

from types import SimpleNamespace

from halfseen.settings import FitSettings
from halfseen.targets import ClassTarget
from halfseen.tuning.table_search import estimator_for


def test_the_estimator_has_every_setting_of_the_fit():
    age, stage, ward = (
        SimpleNamespace(name=name, kind=kind)
        for name, kind in (("age", "numeric"), ("stage", "numeric"), ("ward", "categorical"))
    )
    columns = [age, stage, ward]
    kinds = {"observed": [age, ward], "missing": [stage], "target_type": ClassTarget}
    schema = SimpleNamespace(columns=columns, **kinds)
    settings = FitSettings(
        members=("networks", "regression"),
        effort="quick",
        align=False,
        preset="paper",
        divergence="transport",
        refine=True,
        options={"training.joint_epochs": 3},
        seed=5,
        class_weight="balanced",
        device="cpu",
    )
    found = estimator_for("Adaptation-Imputation", SimpleNamespace(schema=schema), settings)
    assert (found.missing, found.keep, found.categorical) == (["stage"], ["age", "ward"], ["ward"])
    own = found.settings_of_fit(found.random_state)
    named = {"models": ("Adaptation-Imputation",), "report_data": "none"}
    assert own == settings.model_copy(update=named)
    source = estimator_for("Source-IgnoreComponent", SimpleNamespace(schema=schema), settings)
    assert not source.refine, "a model that does not adapt has nothing to refine"
