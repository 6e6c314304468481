"""Options in groups: names, presets, and what is said about mistakes."""

import pytest

from halfseen import OptionError
from halfseen.options import GROUPS, Options, dotted, make_options, nested, option_names
from halfseen.presets import preset

TABLE = preset("default", inputs="table")


def test_dotted_and_nested_settings_mean_the_same():
    flat = {"training.learning_rate": 0.1, "training.batch_size": 8, "generator.widths": [4]}
    deep = {"training": {"learning_rate": 0.1, "batch_size": 8}, "generator": {"widths": [4]}}
    mixed = {"training": {"learning_rate": 0.1}, "training.batch_size": 8, "generator.widths": [4]}
    made = [make_options(settings, TABLE) for settings in (flat, deep, mixed)]
    assert made[0] == made[1] == made[2]
    assert made[0].training.batch_size == 8
    assert made[0].training.weight_decay == TABLE.training.weight_decay
    assert nested(flat) == deep == nested(mixed)
    assert dotted(deep) == flat


def test_presets_survive_json_and_say_which_inputs_they_are_for():
    for inputs in ("image", "table"):
        options = preset("default", inputs=inputs)
        assert options.inputs == inputs
        assert make_options(options.model_dump(mode="json")) == options
        assert Options.model_validate_json(options.model_dump_json()) == options
    assert set(dotted(TABLE.model_dump(exclude={"images"}))) == set(option_names("table"))
    assert not [name for name in option_names("image") if name.startswith("tables.")]
    assert all(name.partition(".")[0] in GROUPS for name in option_names())


def test_every_option_says_what_it_is():
    for model in GROUPS.values():
        assert model.__doc__
        assert all(field.description for field in model.model_fields.values())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"learning_rate": 0.1},
            "no option 'learning_rate'. Did you mean 'training.learning_rate'",
        ),
        ({"networks.dropout": 0.1}, "Did you mean 'networks.classifier_dropout'"),
        ({"networks.dropout": 0.1}, "The options of networks are classifier_widths, c"),
        ({"refine_threshold": 0.9}, "Did you mean 'refinement.threshold'"),
        ({"xyz": 1}, "no option 'xyz'. The groups of options are images, tables"),
        ({"images.channels": (8,)}, r"images.channels does not apply to tables\."),
        ({"images": {"pools": 1}}, r"images.pools does not apply to tables\."),
        ({"tables": None}, "tables=None: these options are for tables"),
        ({"training.augmentation": "affine"}, "training.augmentation='affine' does not apply to t"),
        ({"training": 5}, "training=5: training is a group of options; .* training.learning_rate"),
        ({"training.learning_rate": -1}, r"^training.learning_rate=-1: .* greater than 0\.$"),
        ({"training": {"batch_size": "big"}}, "training.batch_size='big': .* valid integer"),
        ({"training.learning_rate": float("nan")}, "training.learning_rate=nan: .* finite"),
        ({"tables.widths": [4, 0]}, r"tables.widths=\[4, 0\]: .* greater than or equal to 1"),
        ({"objective.terms": 3}, "objective.terms=3: give a mapping"),
    ],
)
def test_mistakes_are_sentences(settings, message):
    with pytest.raises(OptionError, match=message):
        make_options(settings, TABLE)


def test_the_default_of_images_teaches_only_models_that_adapt():
    assert list(preset("default").objective.terms) == ["averaged_teacher"]
    assert preset("default", adapts=False).objective.terms == {}
    for name in ("paper", "reference"):
        assert preset(name) == preset(name, adapts=False)
        assert preset(name).objective.terms == {}
        assert preset(name).training.augmentation == "none"
    assert preset("default", inputs="table") == preset("default", inputs="table", adapts=False)


def test_options_of_tables_do_not_apply_to_images():
    with pytest.raises(OptionError, match=r"tables\.latent_size does not apply to images"):
        make_options({"tables.latent_size": 3}, preset("default", inputs="image"))
