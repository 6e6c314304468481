"""What can be said of a fit, by options of a command and in a TOML file."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from typer import Argument, Option
from typer.models import OptionInfo

from halfseen.errors import InputError, OptionError

if TYPE_CHECKING:
    from halfseen.cli.terminal import Terminal
    from halfseen.data.column_spec import ColumnSpec
    from halfseen.data.table_files import TableFiles
    from halfseen.model.model import Model
    from halfseen.model.pattern_model import PatternModel
    from halfseen.settings import FitSettings

Names = list[str] | None
Effort = Literal["quick", "default", "best"]
"""As :data:`halfseen.settings.Effort`, which help must not wait for."""

ModelFolder = Annotated[Path, Argument(help="Folder that `halfseen fit` wrote.")]
Rename = Annotated[
    Names, Option(metavar="OLD=NEW", help="Another name for a column of either table.")
]
Models = Annotated[
    Names,
    Option(
        help="The paper's models to choose from or to rehearse; Adaptation-Imputation by default."
    ),
]
Set = Annotated[
    Names,
    Option(
        "--set",
        metavar="NAME=VALUE",
        help="Any option of the networks by its dotted name: training.joint_epochs=50.",
    ),
]
Seed = Annotated[int | None, Option(min=0, help="Same seed, same model.")]
Seeds = Annotated[
    int | None,
    Option(min=1, help="With how many seeds members are trained, which answer together."),
]
Config = Annotated[Path | None, Option(help="TOML file with these settings and any other.")]


class FitConfig(BaseModel):
    """Everything that can be said of a fit but the tables and the output; None is not said.

    What has no option of a command can be said in a file alone.
    """

    model_config = ConfigDict(extra="forbid")

    label: Annotated[str | None, Option(help="Column of the source to predict.")] = None
    task: Annotated[
        Literal["auto", "classification", "regression"] | None,
        Option(
            help="What the label is: classification (classes), regression (an amount), or auto, "
            "which takes fractions of many values for amounts."
        ),
    ] = None
    missing: Annotated[
        Names, Option(help="Columns never measured on the target, beside those found.")
    ] = None
    keep: Annotated[
        Names, Option(help="Columns measured on the target, although they look otherwise.")
    ] = None
    categorical: Annotated[
        Names, Option(help="Columns of numbers that are names of categories.")
    ] = None
    numeric: Annotated[Names, Option(help="Columns of numbers in which texts stand for gaps.")] = (
        None
    )
    rename: Rename = None
    dates: Annotated[
        Names,
        Option(
            metavar="COLUMN=PART,PART",
            help="Parts to read of a column of dates: year, month, day, weekday, hour, days.",
        ),
    ] = None
    drop: Annotated[Names, Option(help="Columns not to use.")] = None
    id: Annotated[Names, Option(help="Columns to carry through to predictions.")] = None
    positive: Annotated[
        str | int | bool | None, Option(help="The class of two that metrics speak of.")
    ] = None
    models: Models = None
    members: Annotated[
        Names,
        Option(
            help="What learns beside each other: networks, boosted_trees, forest, regression; all "
            "by default."
        ),
    ] = None
    effort: Annotated[
        Effort | None,
        Option(
            help="How long it may take: quick (trees and regression), default (also teachers) or "
            "best (also networks, of five folds)."
        ),
    ] = None
    seed: Seed = None
    target_labels: Annotated[
        bool | None,
        Option(
            "--target-labels/--no-target-labels",
            help="Whether labels of target rows are used; by default where some rows have none.",
        ),
    ] = None
    weight: Annotated[
        str | None, Option(help="Column of the source that says how much each row counts.")
    ] = None
    class_weight: Annotated[
        list[str] | dict[str, float] | str | None,
        Option(
            metavar="balanced|CLASS=WEIGHT",
            help="How much rows of each class count: balanced, or class by class.",
        ),
    ] = None
    time_limit: Annotated[
        float | None,
        Option(
            min=0.001,
            metavar="SECONDS",
            help="Leave out what would take longer; trees and regression are always fitted.",
        ),
    ] = None
    seeds: Seeds = None
    report_data: Annotated[
        Literal["aggregates", "none"] | None,
        Option(
            help="What the model keeps for `halfseen report`: aggregates (never a single row), or "
            "none."
        ),
    ] = None
    strict: Annotated[bool | None, Option("--strict", help="Take every alarm as an error.")] = None
    align: bool | None = None
    preset: str | None = None
    divergence: str | None = None
    refine: bool | None = None
    memory_mib: Annotated[int, Field(ge=0)] | None = None
    options: dict[str, Any] = {}

    def spec(self) -> ColumnSpec:
        from halfseen.data.column_spec import ColumnSpec
        from halfseen.data.dates import read_dates
        from halfseen.targets import class_name

        positive = None if self.positive is None else class_name(self.positive)
        own = {"positive": positive, "dates": read_dates(self.dates or ())}
        return ColumnSpec(**self._said_of(ColumnSpec) | own)

    def open(self, path: Path) -> TableFiles:
        """Open a table, with the names that are said for its columns."""
        return open_renamed(path, self.rename)

    def settings(self) -> FitSettings:
        from halfseen.members import NETWORKS
        from halfseen.settings import TREES_AND_LINES, FitSettings

        said = self._said_of(FitSettings) | {"class_weight": _class_weight(self.class_weight)}
        if self.models is not None:
            said["models"] = tuple(dict.fromkeys(self.models))
            if self.members is None and self.preset in (None, "default"):
                said["members"] = (NETWORKS, *TREES_AND_LINES)
        if self.memory_mib is not None:
            said["memory"] = self.memory_mib * 2**20
        settings = FitSettings(**said)
        settings.check()
        return settings

    def _said_of(self, kind: type) -> dict[str, Any]:
        """Return what is said of the fields of a dataclass."""
        said = {each.name: getattr(self, each.name, None) for each in fields(kind)}
        return {n: tuple(v) if isinstance(v, list) else v for n, v in said.items() if v is not None}


FIT_ALONE = ("target_labels", "time_limit", "seeds", "report_data", "strict")
"""Settings that are no options of `tune` and `rehearse`."""
_AS_OPTIONS = {"positive": str, "class_weight": list[str]}
"""Types of options whose settings may be of more types in a file."""


def with_settings(
    *, leave_out: Sequence[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of :class:`FitConfig` in place of its parameter `settings`.

    The command has a parameter ``config`` for the file that options are laid over.
    """
    shared = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[_AS_OPTIONS.get(name, field.annotation), option],
        )
        for name, field in FitConfig.model_fields.items()
        for option in field.metadata
        if isinstance(option, OptionInfo) and name not in leave_out
    ]
    set_ = inspect.Parameter("set_", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Set)

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        def run(**values: Any) -> None:
            given = {option.name: values.pop(option.name) for option in (*shared, set_)}
            command(settings=read_config(values["config"], given), **values)

        parameters: list[inspect.Parameter] = []
        for each in inspect.signature(command, eval_str=True).parameters.values():
            keyword = each.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            parameters += [*shared, set_] if each.name == "settings" else [keyword]
        run.__name__, run.__doc__ = command.__name__, command.__doc__
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return run

    return decorate


def read_config(path: Path | None, given: Mapping[str, Any]) -> FitConfig:
    """Return the file's settings, replaced by those given on the command line.

    Examples
    --------
    >>> read_config(None, {"label": "click", "seed": 3, "drop": ["a,b"]}).drop
    ['a', 'b']
    """
    from halfseen.options import dotted

    settings: dict[str, Any] = {}
    if path is not None:
        try:
            settings = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}.") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InputError(f"{path} is not TOML: {error}.") from None
    said = {name: value for name, value in given.items() if value is not None}
    options = dotted(settings.get("options") or {}) | parsed_options(said.pop("set_", ()))
    for name, value in said.items():
        is_list = isinstance(value, list) and name not in ("rename", "dates")
        settings[name] = split_names(value) if is_list else value
    try:
        found = FitConfig(**settings | ({"options": options} if options else {}))
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            raise OptionError(
                f"{path} sets {field!r}, which is no setting; there are "
                f"{', '.join(FitConfig.model_fields)}."
            ) from None
        raise OptionError(f"{field}={first['input']!r}: {first['msg']}.") from None
    if found.label is None:
        raise OptionError("Say which column to predict: --label COLUMN.")
    return found


def split_names(given: list[str]) -> list[str]:
    return [name.strip() for entry in given for name in entry.split(",") if name.strip()]


def parsed_options(entries: Sequence[str]) -> dict[str, Any]:
    """Read ``name=value`` pairs, each value as TOML writes it or as a plain word.

    Examples
    --------
    >>> parsed_options(["training.joint_epochs=3", "objective.divergence=transport"])
    {'training.joint_epochs': 3, 'objective.divergence': 'transport'}
    """
    found: dict[str, Any] = {}
    for entry in entries:
        name, equals, value = entry.partition("=")
        if not equals or not name.strip():
            raise OptionError(f"--set {entry}: write it as NAME=VALUE.")
        try:
            found[name.strip()] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            found[name.strip()] = value.strip()
    return found


def _class_weight(given: Any) -> Any:
    """Read the weights of classes, ``balanced`` or each as CLASS=WEIGHT.

    Examples
    --------
    >>> _class_weight(["balanced"]), _class_weight(["yes=3", "no=1"])
    ('balanced', {'yes': 3.0, 'no': 1.0})
    """
    if not isinstance(given, list):
        return given
    if given == ["balanced"]:
        return given[0]
    found = {}
    for entry in given:
        name, _, text = entry.rpartition("=")
        try:
            found[name] = float(text)
        except ValueError:
            raise OptionError(
                f"--class-weight {entry}: write balanced, or CLASS=WEIGHT for some classes."
            ) from None
    return found


def open_renamed(path: Path, renames: Sequence[str] | None) -> TableFiles:
    """Open a table whose columns get other names, each said as old=new."""
    from halfseen.data.table_files import open_table

    found = {}
    parts = ",(?=[^,=]+=)"  # a name may have a comma
    for entry in (part for given in renames or () for part in re.split(parts, given)):
        old, equals, new = entry.partition("=")
        if not equals or not new.strip():
            raise OptionError(f"--rename {entry}: write it as OLD=NEW.")
        found[old] = new.strip()
    return open_table(path).renamed(found)


def part_and_table(
    model: Model | PatternModel,
    folder: Path,
    data: Path,
    renames: Sequence[str] | None,
    terminal: Terminal,
) -> tuple[Model, TableFiles]:
    """Open a table for a model of tables, and return the part of it that its columns call for."""
    from halfseen.model.loading import table_model
    from halfseen.model.pattern_model import PatternModel

    parts = model.parts if isinstance(model, PatternModel) else (table_model(model, folder),)
    with terminal.status("Reading the table"):
        table = open_renamed(data, renames)
    if not isinstance(model, PatternModel):
        return parts[0], table
    place = model.part_for(table)
    lacks = ", ".join(model.patterns[place])
    terminal.say(f"Part {place + 1} of {len(parts)}, which does without {lacks}.")
    return parts[place], table
