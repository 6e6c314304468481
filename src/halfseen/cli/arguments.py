"""Options that commands on two tables share, and how they become the settings of a fit."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict, get_type_hints

import typer

Names = list[str] | None
ReportDetail = Literal["aggregates", "none"]
"""What a model keeps for a report; never anything about a single row."""
Effort = Literal["quick", "default", "best"]
"""As :data:`halfseen.model.settings.Effort`, which help must not wait for."""
Task = Literal["auto", "classification", "regression"]
"""As :data:`halfseen.front.roles.Task`."""

Source = Annotated[Path, typer.Argument(help="Complete, labelled rows: a file or a folder.")]
Target = Annotated[Path, typer.Argument(help="Unlabelled rows that lack some columns.")]
Rename = Annotated[
    Names, typer.Option(metavar="OLD=NEW", help="Another name for a column of either table.")
]
Models = Annotated[
    Names,
    typer.Option(
        help="The paper's models to choose from or to rehearse; Adaptation-Imputation by default."
    ),
]
Set = Annotated[
    Names,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Any option of the networks by its dotted name: training.joint_epochs=50.",
    ),
]
Seed = Annotated[int | None, typer.Option(min=0, help="Same seed, same model.")]
Seeds = Annotated[
    int | None,
    typer.Option(min=1, help="With how many seeds members are trained, which answer together."),
]
Config = Annotated[Path | None, typer.Option(help="TOML file with these settings and any other.")]


class TableOptions(TypedDict):
    """What every command that fits two tables can be told, each a field of ``FitConfig``."""

    label: Annotated[str | None, typer.Option(help="Column of the source to predict.")]
    task: Annotated[
        Task | None,
        typer.Option(
            help="What the label is: classification (classes), regression (an amount), or auto, "
            "which takes fractions of many values for amounts."
        ),
    ]
    missing: Annotated[
        Names, typer.Option(help="Columns never measured on the target, beside those found.")
    ]
    keep: Annotated[
        Names, typer.Option(help="Columns measured on the target, although they look otherwise.")
    ]
    categorical: Annotated[
        Names, typer.Option(help="Columns of numbers that are names of categories.")
    ]
    numeric: Annotated[
        Names, typer.Option(help="Columns of numbers in which texts stand for gaps.")
    ]
    rename: Rename
    dates: Annotated[
        Names,
        typer.Option(
            metavar="COLUMN=PART,PART",
            help="Parts to read of a column of dates: year, month, day, weekday, hour, days.",
        ),
    ]
    drop: Annotated[Names, typer.Option(help="Columns not to use.")]
    id: Annotated[Names, typer.Option(help="Columns to carry through to predictions.")]
    weight: Annotated[
        str | None,
        typer.Option(help="Column of the source that says how much each row counts."),
    ]
    class_weight: Annotated[
        Names,
        typer.Option(
            metavar="balanced|CLASS=WEIGHT",
            help="How much rows of each class count: balanced, or class by class.",
        ),
    ]
    positive: Annotated[str | None, typer.Option(help="The class of two that metrics speak of.")]
    models: Models
    members: Annotated[
        Names,
        typer.Option(
            help="What learns beside each other: networks, boosted_trees, forest, regression; all "
            "by default."
        ),
    ]
    effort: Annotated[
        Effort | None,
        typer.Option(
            help="How long it may take: quick (trees and regression), default (also teachers) or "
            "best (also networks, of five folds)."
        ),
    ]
    seed: Seed
    set_: Set


class FitOptions(TableOptions):
    """What `halfseen fit` can be told beside that."""

    target_labels: Annotated[
        bool | None,
        typer.Option(
            "--target-labels/--no-target-labels",
            help="Whether labels of target rows are used; by default where some rows have none.",
        ),
    ]
    time_limit: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            metavar="SECONDS",
            help="Leave out what would take longer; trees and regression are always fitted.",
        ),
    ]
    seeds: Seeds
    report_data: Annotated[
        ReportDetail | None,
        typer.Option(
            help="What the model keeps for `halfseen report`: aggregates (never a single row), or "
            "none."
        ),
    ]
    strict: Annotated[bool | None, typer.Option("--strict", help="Take every alarm as an error.")]


def with_settings(options: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command these options in place of its parameter `settings`.

    The command has a parameter ``settings: FitConfig``, and ``config`` for the file that options
    are laid over.
    """
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in get_type_hints(options, include_extras=True).items()
    ]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        def run(**values: Any) -> None:
            from halfseen.cli.config import read_config

            given = _given({option.name: values.pop(option.name) for option in shared})
            command(settings=read_config(values["config"], given), **values)

        parameters: list[inspect.Parameter] = []
        own = inspect.signature(command, eval_str=True, locals={"FitConfig": Any})
        for each in own.parameters.values():
            keyword = each.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            parameters += shared if each.name == "settings" else [keyword]
        run.__name__, run.__doc__ = command.__name__, command.__doc__
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return run

    return decorate


def _given(options: dict[str, Any]) -> dict[str, Any]:
    """Return what the command line says, less what it leaves open."""
    from halfseen.cli.config import parsed_options

    given = {
        name: split_names(value)
        if isinstance(value, list) and name not in ("rename", "dates", "set_")
        else value
        for name, value in options.items()
        if value is not None
    }
    return given | ({"options": parsed_options(given.pop("set_"))} if "set_" in given else {})


def split_names(given: list[str]) -> list[str]:
    """Return names separated by commas, or given one by one."""
    return [name.strip() for entry in given for name in entry.split(",") if name.strip()]
