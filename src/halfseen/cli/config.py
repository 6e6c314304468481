"""Settings of `halfseen fit`, from its options and from a TOML file."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from halfseen.cli.arguments import Effort, ReportDetail, Task
from halfseen.errors import InputError, OptionError
from halfseen.options import Preset, dotted

if TYPE_CHECKING:
    from halfseen.cli.terminal import Terminal
    from halfseen.front.files import TableFiles
    from halfseen.front.roles import Roles
    from halfseen.model.model import Model
    from halfseen.model.patterns import PatternModel
    from halfseen.model.settings import FitSettings


class FitConfig(BaseModel):
    """Everything that can be said about a fit but the tables and the output."""

    model_config = ConfigDict(extra="forbid")

    label: str
    task: Task = Field("auto", description="classification, regression, or auto")
    missing: list[str] = []
    keep: list[str] = []
    categorical: list[str] = []
    numeric: list[str] = []
    rename: list[str] = Field([], description="columns of either table as old=new")
    dates: list[str] = Field([], description="parts of dates as column=part,part")
    drop: list[str] = []
    id: list[str] = []
    positive: str | int | bool | None = None
    weight: str | None = Field(None, description="column of the source: how much a row counts")
    class_weight: list[str] | dict[str, float] | str | None = Field(
        None, description="'balanced', or the weight of each class"
    )
    time_limit: Annotated[float, Field(gt=0)] | None = Field(
        None, description="seconds to keep to, by leaving members out"
    )
    target_labels: bool | None = Field(
        None, description="whether labels of target rows are used; by default where some lack one"
    )
    models: Annotated[list[str], Field(min_length=1)] = ["Adaptation-Imputation"]
    members: Annotated[list[str], Field(min_length=1)] | None = Field(
        None, description="what learns beside each other; all kinds by default"
    )
    effort: Effort = Field("default", description="how long a fit may take: quick, default or best")
    align: bool = Field(True, description="whether drifted columns are mapped")
    preset: Preset = "default"
    divergence: str = "adversarial"
    refine: bool = False
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    seeds: Annotated[int, Field(ge=1)] = Field(
        1, description="with how many seeds members are trained, which answer together"
    )
    memory_mib: Annotated[int, Field(ge=0)] = Field(
        256, description="prepared rows beyond this are streamed from disk"
    )
    report_data: ReportDetail = Field(
        "aggregates", description="what the model keeps for `halfseen report`: aggregates or none"
    )
    strict: bool = Field(False, description="whether an alarm ends the command")
    options: dict[str, Any] = Field(
        {}, description="fields of halfseen.Options, in groups: [options.training]"
    )

    def roles(self) -> Roles:
        """Return what is said of the columns."""
        from halfseen.front.dates import read_dates
        from halfseen.front.roles import Roles
        from halfseen.labels import class_name

        positive = None if self.positive is None else class_name(self.positive)
        own = {"positive": positive, "dates": read_dates(self.dates)}
        return Roles(**self._shared_with(Roles) | own)

    def open(self, path: Path) -> TableFiles:
        """Open a table, with the names and the parts of dates that are said for its columns."""
        from halfseen.front.dates import read_dates

        return open_renamed(path, self.rename).with_dates(read_dates(self.dates))

    def settings(self) -> FitSettings:
        """Return what is said of the training."""
        from halfseen.members import NETWORKS
        from halfseen.model.settings import TREES_AND_LINES, FitSettings

        own: dict[str, Any] = {
            "models": tuple(dict.fromkeys(self.models)),
            "memory": self.memory_mib * 2**20,
            "class_weight": _class_weight(self.class_weight),
        }
        if "models" in self.model_fields_set and self.members is None and self.preset == "default":
            own["members"] = (NETWORKS, *TREES_AND_LINES)
        settings = FitSettings(**self._shared_with(FitSettings) | own)
        settings.check()
        return settings

    def _shared_with(self, kind: type) -> dict[str, Any]:
        """Return the settings that a dataclass has under the same names."""
        names = [each.name for each in fields(kind) if each.name in type(self).model_fields]
        values = {name: getattr(self, name) for name in names}
        return {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}


def _class_weight(given: Any) -> Any:
    """Read the weights of classes, ``balanced`` or each as CLASS=WEIGHT.

    Examples
    --------
    >>> _class_weight(["balanced"]), _class_weight(["yes=3", "no=1"])
    ('balanced', {'yes': 3.0, 'no': 1.0})
    """
    if not isinstance(given, list) or given == ["balanced"]:
        return given if not isinstance(given, list) else given[0]
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


def read_config(path: Path | None, given: Mapping[str, Any]) -> FitConfig:
    """Return the file's settings, replaced by those given on the command line.

    Examples
    --------
    >>> read_config(None, {"label": "click", "seed": 3}).seed
    3
    """
    settings: dict[str, Any] = {}
    if path is not None:
        try:
            settings = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}.") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InputError(f"{path} is not TOML: {error}.") from None
    options = dotted(settings.get("options") or {}) | dotted(given.get("options") or {})
    try:
        return FitConfig(**{**settings, **given, **({"options": options} if options else {})})
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        if first["type"] == "missing":
            raise OptionError(f"Say which column to predict: --{field} COLUMN.") from None
        if first["type"] == "extra_forbidden":
            raise OptionError(
                f"{path} sets {field!r}, which is no setting; there are "
                f"{', '.join(FitConfig.model_fields)}."
            ) from None
        raise OptionError(f"{field}={first['input']!r}: {first['msg']}.") from None


def open_renamed(path: Path, renames: Sequence[str] | None) -> TableFiles:
    """Open a table whose columns get other names, each said as old=new."""
    from halfseen.front.files import open_table

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
    from halfseen.model.patterns import PatternModel

    parts = model.parts if isinstance(model, PatternModel) else (table_model(model, folder),)
    with terminal.status("Reading the table"):
        table = open_renamed(data, renames).with_dates(parts[0].schema.dates)
    if not isinstance(model, PatternModel):
        return parts[0], table
    place = model.part_for(table)
    lacks = ", ".join(model.patterns[place])
    terminal.say(f"Part {place + 1} of {len(parts)}, which does without {lacks}.")
    return parts[place], table


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
