"""Pages that are made from the program: the commands, and the options."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from halfseen.cli.app import command
from halfseen.options import GROUPS
from halfseen.presets import preset
from halfseen.settings import FitSettings

COMMANDS = """# Every command

Made from the commands' own help. What they have in common (where text goes, `--json`, exit codes,
shell completion) is under [the terminal](terminal.md).
"""
OPTIONS = """# Every setting

## Settings of a fit

Each is a parameter of `halfseen.fit`, a line of a TOML file and, where it is marked, an option of
`halfseen fit`; most are parameters of the estimators.

{settings}

What `halfseen.Options`, the setting `options`, holds for the networks stands below, in groups.
Pass any of them as `options={"training.learning_rate":
0.001}` or as nested mappings, or in a TOML file under `[options.training]`; those that estimators
have as parameters of their own can be given there too. The values are those of
Adaptation-Imputation with the adversarial divergence, by preset and kind of inputs.
"""
SHARED = {"verbose", "quiet", "help"}


def command_line_page() -> str:
    """Return the page as Markdown."""
    parts = [COMMANDS]
    for words, part in commands(command(whole=True), ("halfseen",)):
        parts += [f"## {' '.join(words)}", *_paragraphs(part), _synopsis(words, part)]
        rows = [_row(parameter) for parameter in part.params if parameter.name not in SHARED]
        if rows:
            parts.append("\n".join(["| name | default | what |", "|---|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


def options_page() -> str:
    """Return the page of all options as Markdown."""
    kinds = [(name, inputs) for inputs in ("table", "image") for name in ("default", "paper")]
    presets = [preset(name, inputs=inputs) for name, inputs in kinds]  # type: ignore[arg-type]
    parts = [OPTIONS.replace("{settings}", settings_table())]
    for group, model in GROUPS.items():
        groups = [getattr(options, group) for options in presets]
        shown = [(kind, own) for kind, own in zip(kinds, groups, strict=True) if own is not None]
        head = " | ".join(f"{inputs}s, {name}" for (name, inputs), _ in shown)
        rows = [f"| option | {head} | what |", "|---" * (len(shown) + 2) + "|"]
        for name, field in model.model_fields.items():
            values = " | ".join(f"`{getattr(own, name)}`" for _, own in shown)
            rows.append(f"| `{group}.{name}` | {values} | {field.description or ''} |")
        parts += [f"## {group}", inspect.cleandoc(model.__doc__ or ""), "\n".join(rows)]
    return "\n\n".join(parts) + "\n"


def settings_table() -> str:
    """Return what each setting of a fit is, as Markdown."""
    rows = ["| setting | default | option | what |", "|---|---|---|---|"]
    for name, field in FitSettings.model_fields.items():
        option = f"`--{name.replace('_', '-')}`" if field.json_schema_extra else ""
        rows.append(f"| `{name}` | `{field.default!r}` | {option} | {field.description} |")
    return "\n".join(rows)


def commands(group: Any, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield every command with the words that call it."""
    for name, part in group.commands.items():
        if hasattr(part, "commands"):
            yield from commands(part, (*words, name))
        else:
            yield (*words, name), part


def _paragraphs(part: Any) -> Iterator[str]:
    for paragraph in inspect.cleandoc(part.help).split("\n\n"):
        words = " ".join(paragraph.split())
        if words.startswith("Example: "):
            yield f"```sh\n{words.removeprefix('Example: ')}\n```"
        else:
            yield words


def _synopsis(words: tuple[str, ...], part: Any) -> str:
    arguments = [p for p in part.params if p.param_type_name == "argument"]
    shown = [p.name.upper() if p.required else f"[{p.name.upper()}]" for p in arguments]
    return f"`{' '.join([*words, '[OPTIONS]', *shown])}`"


def _row(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        name = f"`{parameter.name.upper()}`"
    else:
        name = ", ".join(f"`{text}`" for text in (*parameter.opts, *parameter.secondary_opts))
    default = parameter.default
    if default is True:
        default = parameter.opts[0]
    plain = default is None or default == () or default is False or callable(default)
    stated = "required" if parameter.required else "" if plain else f"`{default}`"
    return f"| {name} | {stated} | {' '.join((parameter.help or '').split())} |"
