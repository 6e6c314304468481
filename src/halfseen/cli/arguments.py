"""Arguments that the commands on two tables share, and what becomes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

__all__ = ["given_settings", "split_names"]

Names = list[str] | None
ReportDetail = Literal["aggregates", "none"]
"""What a model keeps for a report; never anything about a single row."""
Effort = Literal["quick", "default", "best"]
"""As :data:`halfseen.model.settings.Effort`, which help must not wait for."""

Source = Annotated[Path, typer.Argument(help="Complete, labelled rows: a file or a folder.")]
Target = Annotated[Path, typer.Argument(help="Unlabelled rows that lack some columns.")]
Label = Annotated[str | None, typer.Option(help="Column of the source to predict.")]
Missing = Annotated[
    Names, typer.Option(help="Columns never measured on the target, beside those found.")
]
Keep = Annotated[
    Names, typer.Option(help="Columns measured on the target, although they look otherwise.")
]
Categorical = Annotated[
    Names, typer.Option(help="Columns of numbers that are names of categories.")
]
Numeric = Annotated[Names, typer.Option(help="Columns of numbers in which texts stand for gaps.")]
Rename = Annotated[
    Names, typer.Option(metavar="OLD=NEW", help="Another name for a column of either table.")
]
Dates = Annotated[
    Names,
    typer.Option(
        metavar="COLUMN=PART,PART",
        help="Parts to read of a column of dates: year, month, day, weekday, hour, days.",
    ),
]
Drop = Annotated[Names, typer.Option(help="Columns not to use.")]
Id = Annotated[Names, typer.Option(help="Columns to carry through to predictions.")]
Positive = Annotated[str | None, typer.Option(help="The class of two that metrics speak of.")]
TargetLabels = Annotated[
    bool | None,
    typer.Option(
        "--target-labels/--no-target-labels",
        help="Whether labels of target rows are used; by default where some rows have none.",
    ),
]
Models = Annotated[
    Names, typer.Option(help="Models to choose from; Adaptation-Imputation by default.")
]
Members = Annotated[
    Names,
    typer.Option(
        help="What learns beside each other: networks, boosted_trees, forest, regression; all by "
        "default."
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
Strict = Annotated[bool | None, typer.Option("--strict", help="Take every alarm as an error.")]
Seed = Annotated[int | None, typer.Option(min=0, help="Same seed, same model.")]
Config = Annotated[Path | None, typer.Option(help="TOML file with these settings and any other.")]


def given_settings(*, set_: Names = None, **given: Any) -> dict[str, Any]:
    """Return what the command line says of columns and training, less what it leaves open."""
    found = {
        name: split_names(value)
        if isinstance(value, list) and name not in ("rename", "dates")
        else value
        for name, value in given.items()
        if value is not None
    }
    if set_ is None:
        return found
    from halfseen.cli.config import parsed_options

    return found | {"options": parsed_options(set_)}


def split_names(given: Names) -> list[str] | None:
    """Return names separated by commas, or given one by one."""
    if given is None:
        return None
    return [name.strip() for entry in given for name in entry.split(",") if name.strip()]
