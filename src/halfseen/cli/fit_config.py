"""What fits share: settings as options over a TOML file, and where the model is written."""

from __future__ import annotations

import inspect
import shutil
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, get_args

from typer import Option

from halfseen.cli.terminal import Terminal, plain
from halfseen.errors import InputError, OptionError
from halfseen.outputs import Output, check_outputs, head
from halfseen.settings import FitSettings

Config = Annotated[Path | None, Option(help="TOML file with these settings and any other.")]
Set = Annotated[
    list[str] | None,
    Option(
        "--set",
        metavar="NAME=VALUE",
        help="Any option of the networks by its dotted name: training.joint_epochs=50.",
    ),
]
FLAGS = {
    "target_labels": "--target-labels/--no-target-labels",
    "strict": "--strict",
}
"""How options of yes and no are written."""
AS_TYPED = {"positive": str, "class_weight": list[str], "dates": list[str]}
"""Types of options whose settings may be of more types in a file."""
WHOLE = ("rename", "dates", "class_weight")
"""Lists whose entries may hold commas."""


def option_of(name: str) -> Any:
    """Return the annotation of a command's option for a setting: its type and its help."""
    field = FitSettings.model_fields[name]
    extra: Any = field.json_schema_extra or {}
    kind: Any = AS_TYPED.get(name, field.annotation)
    if any("tuple" in str(each) for each in (kind, *get_args(kind))):
        kind = list[str]
    flags = [FLAGS[name]] if name in FLAGS else []
    option = Option(*flags, metavar=extra.get("metavar"), help=field.description)
    return Annotated[kind | None, option]


def with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of :class:`FitSettings` in place of its parameter `settings`.

    The command has a parameter ``config`` for the file that options are laid over.
    """
    keyword = inspect.Parameter.KEYWORD_ONLY
    shared = [
        inspect.Parameter(name, keyword, default=None, annotation=option_of(name))
        for name, field in FitSettings.model_fields.items()
        if field.json_schema_extra
    ]
    shared.append(inspect.Parameter("set_", keyword, default=None, annotation=Set))

    def run(**values: Any) -> None:
        given = {option.name: values.pop(option.name) for option in shared}
        command(settings=read_settings(values["config"], given), **values)

    parameters: list[inspect.Parameter] = []
    for each in inspect.signature(command, eval_str=True).parameters.values():
        own = each.replace(kind=keyword)
        parameters += shared if each.name == "settings" else [own]
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


def read_settings(path: Path | None, given: Mapping[str, Any]) -> FitSettings:
    """Return the file's settings, replaced by those given on the command line."""
    settings: dict[str, Any] = {}
    if path is not None:
        try:
            settings = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}.") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InputError(f"{path} is not TOML: {error}.") from None
        unknown = [name for name in settings if name not in FitSettings.model_fields]
        if unknown:
            raise OptionError(
                f"{path} sets {unknown[0]!r}, which is no setting; there are "
                f"{', '.join(FitSettings.model_fields)}."
            )
    named = {name: value for name, value in given.items() if value is not None}
    options, changed = settings.get("options") or {}, parsed_options(named.pop("set_", ()))
    if changed:
        from halfseen.options import dotted

        options = dotted(options) | changed
    for name, value in named.items():
        is_list = isinstance(value, list) and name not in WHOLE
        settings[name] = split_names(value) if is_list else value
    settings["class_weight"] = _class_weight(settings.get("class_weight"))
    read = FitSettings(**settings | {"options": options})
    if read.label is None:
        raise OptionError("Say which column to predict: --label COLUMN.")
    read.check()  # says what contradicts itself, before any table is read
    return read


def split_names(given: Sequence[str]) -> tuple[str, ...]:
    """Return the names in lists that commas part."""
    return tuple(name.strip() for entry in given for name in entry.split(",") if name.strip())


def parsed_options(entries: Sequence[str]) -> dict[str, Any]:
    """Read ``name=value`` pairs, each value as TOML writes it or as a plain word."""
    parsed: dict[str, Any] = {}
    for entry in entries:
        name, equals, value = entry.partition("=")
        if not equals or not name.strip():
            raise OptionError(f"--set {entry}: write it as NAME=VALUE.")
        try:
            parsed[name.strip()] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            parsed[name.strip()] = value.strip()
    return parsed


def _class_weight(given: Any) -> Any:
    """Read the weights of classes, ``balanced`` or each as CLASS=WEIGHT."""
    if not isinstance(given, list):
        return given
    if given == ["balanced"]:
        return given[0]
    weights = {}
    for entry in given:
        name, _, text = entry.rpartition("=")
        try:
            weights[name] = float(text)
        except ValueError:
            raise OptionError(
                f"--class-weight {entry}: write balanced, or CLASS=WEIGHT for some classes."
            ) from None
    return weights


def check_place(
    output: Path | None, read: Mapping[str, Path | None], *, dry_run: bool, force: bool
) -> None:
    """Refuse a place for the model that would destroy something, and none where one is needed."""
    from halfseen.saving import DESCRIPTION, PATTERNS, check_replaceable

    if output is None:
        if dry_run:
            return
        raise OptionError("Say where to write the model: -o FOLDER (or --dry-run to see the plan).")
    if output.name in ("", ".."):
        raise OptionError(f"{output} is no folder of the model's own; name one with -o.")

    def is_model(folder: Path) -> bool:
        check_replaceable(folder)
        described = any(b'"format"' in head(folder / name) for name in (DESCRIPTION, PATTERNS))
        return described or not any(folder.iterdir())

    def is_unfinished(folder: Path) -> bool:
        return all("safetensors" in file.name for file in folder.iterdir())

    places = [
        Output(output, "the model", is_model, is_folder=True),
        Output(_unfinished(output), "the unfinished model", is_unfinished, is_folder=True),
    ]
    check_outputs(places, read, force=force)


@contextmanager
def going_on(output: Path, terminal: Terminal) -> Iterator[Path]:
    """Give the folder that keeps the state of an unfinished fit, and say what it is good for."""
    unfinished = _unfinished(output)
    if unfinished.is_dir():
        terminal.say(f"Going on where an earlier fit of the same model stopped ({unfinished}).")
    try:
        yield unfinished
    except KeyboardInterrupt:
        kept = unfinished.is_dir() and any(unfinished.iterdir())
        plain(
            terminal.errors,
            "The same command goes on from the last finished epoch."
            if kept
            else "Nothing was kept: the same command starts anew.",
        )
        raise


def save_model(model: Any, output: Path, started: float, terminal: Terminal) -> dict[str, Any]:
    """Write a model and tell so; return what a document says of it."""
    model.save(output)
    shutil.rmtree(_unfinished(output), ignore_errors=True)
    seconds = time.perf_counter() - started
    terminal.detail(f"{seconds:.1f} s in all.")
    terminal.result(f"Model: {output}")
    return {"model": output, "seconds": round(seconds, 3)}


def _unfinished(output: Path) -> Path:
    return output.with_name(f".{output.name}.unfinished")
