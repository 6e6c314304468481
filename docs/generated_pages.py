"""Pages that are made from the program: the commands, and the options."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from halfseen.cli.app import command
from halfseen.options import Options, preset

COMMANDS = """# Every command

Made from the commands' own help. What they have in common (where text goes, `--json`, exit codes,
shell completion) is under [the terminal](terminal.md).
"""
OPTIONS = """# Every option

What `halfseen.Options` holds. Pass any of them as `options={"name": value}`, or in the `[options]`
of a TOML file; those that estimators have as parameters of their own can be given there too. The
values are those of Adaptation-Imputation with the adversarial divergence, by preset and kind of
inputs.
"""
SHARED = {"verbose", "quiet", "help"}


def command_line_page() -> str:
    """Return the page as Markdown."""
    parts = [COMMANDS]
    for words, part in commands(command(), ("halfseen",)):
        parts += [f"## {' '.join(words)}", *_paragraphs(part), _synopsis(words, part)]
        rows = [_row(parameter) for parameter in part.params if parameter.name not in SHARED]
        if rows:
            parts.append("\n".join(["| name | default | what |", "|---|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


def options_page() -> str:
    """Return the page of all options as Markdown."""
    kinds = [(name, inputs) for inputs in ("table", "image") for name in ("default", "paper")]
    presets = [preset(name, inputs=inputs).model_dump() for name, inputs in kinds]  # type: ignore
    head = " | ".join(f"{inputs}s, {name}" for name, inputs in kinds)
    rows = [f"| option | {head} | what |", "|---" * (len(kinds) + 2) + "|"]
    for name, field in Options.model_fields.items():
        shown = " | ".join(f"`{values[name]}`" for values in presets)
        rows.append(f"| `{name}` | {shown} | {field.description or ''} |")
    return f"{OPTIONS}\n" + "\n".join(rows) + "\n"


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
