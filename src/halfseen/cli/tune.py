"""`halfseen tune`: a search over settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from halfseen.atomic_files import write_text
from halfseen.cli.fit_config import FIT_ALONE, Config, with_settings
from halfseen.cli.inputs import TablePaths
from halfseen.cli.printing import (
    print_schema,
    print_searches,
    schema_facts,
    trial_words,
)
from halfseen.cli.terminal import Force, Json, Terminal, plain
from halfseen.errors import HalfseenError
from halfseen.outputs import Output, check_outputs, derived_path, head
from halfseen.settings import FitSettings

_TUNED = "# Found by halfseen tune:"


@with_settings(leave_out=FIT_ALONE)
def tune(
    source: Annotated[Path, typer.Argument(help="Complete, labelled rows: a file or a folder.")],
    target: Annotated[Path, typer.Argument(help="Unlabelled rows that lack some columns.")],
    *,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="TOML file to write the best settings into.")
    ],
    score: Annotated[
        str,
        typer.Option(
            help="Score without target labels that decides. dev is the paper's and takes one fit; "
            "agreement found better settings on our pairs (docs/selection.md) and takes three."
        ),
    ] = "dev",
    trials: Annotated[int, typer.Option(min=1, help="Fits of every model.")] = 20,
    storage: Annotated[
        str | None,
        typer.Option(
            help="File or database address that keeps the trials, which several processes or "
            "machines may share; a file beside the output by default."
        ),
    ] = None,
    settings: FitSettings,
    config: Config = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Search settings by a score that needs no target label.

    By default members, and whether they are taught; of networks learning rate and loss weights.

    Every model gets the same number of fits, the settings as given among them. A search that was
    stopped goes on when the same command is run again; with a larger --trials it is extended.

    Example: halfseen tune source.csv target.csv --label click -o best.toml
    """
    from halfseen.tuning import search_tables, with_params

    kept, tables = storage or str(derived_path(output, ".db")), TablePaths.given(source, target)
    outputs = [Output(output, "the settings", lambda path: head(path).startswith(_TUNED.encode()))]
    if "://" not in kept:
        option = "-o" if storage is None else "--storage"
        ours = b"SQLite format 3\0"
        outputs.append(
            Output(Path(kept), "the database of trials", lambda path: head(path).startswith(ours),
                   option=option, is_continued=True)
        )  # fmt: skip
    check_outputs(outputs, tables.read() | {"the settings file": config}, force=force)
    terminal = Terminal(as_json=as_json)
    (inferred,) = tables.inferred(settings, terminal)
    print_schema(inferred, terminal.console)
    networks = "networks" in settings.members_for(
        "table", classes=inferred.schema.target_type.networks
    )
    variants = settings.variants("table") if networks else ()
    each = {v.name: settings.model_copy(update={"models": (v.name,)}) for v in variants}
    each = each or {"Trees and regression": settings}
    terminal.say(f"{trials} fits of each of {', '.join(each)}, kept in {kept}.")
    studies = {}
    try:
        for name, own in each.items():
            studies[name] = search_tables(
                inferred,
                own,
                score=score,
                trials=trials,
                storage=kept,
                on_trial=lambda trial, name=name: plain(  # type: ignore[misc]
                    terminal.errors, f"{name}: {score} {trial_words(trial)}"
                ),
            )
    except KeyboardInterrupt:
        plain(terminal.errors, f"Stopped; {kept} keeps the trials. Run the command again to go on.")
        raise
    found = print_searches(studies, score, terminal)
    complete = [trial for trial in found["trials"] if trial["value"] is not None]
    if not complete:
        raise HalfseenError(f"Every trial failed, the last so: {found['trials'][-1]['error']}")
    direction = 1.0 if studies[complete[0]["model"]].direction.name == "MINIMIZE" else -1.0
    best = min(complete, key=lambda trial: direction * trial["value"])
    comment = f"{_TUNED} {score} {best['value']:.6g}, the best of {len(found['trials'])} trials."
    write_text(output, f"{comment}\n{_toml(with_params(each[best['model']], best['settings']))}")
    terminal.result(f"Settings: {output}, for halfseen fit --config {output}")
    terminal.document(schema_facts(inferred) | found | {"best": best, "settings": output})


def _toml(settings: FitSettings) -> str:
    """Return settings as TOML that ``halfseen fit --config`` reads."""
    from halfseen.options import dotted

    given = settings.model_dump(exclude_unset=True, exclude={"options"}, exclude_none=True)
    for name in ("class_weight", "dates"):
        if isinstance(given.get(name), dict):
            given[name] = [
                f"{key}={','.join(value) if isinstance(value, list | tuple) else value}"
                for key, value in given[name].items()
            ]
    # A JSON text, number, boolean or list of them is TOML too, but for DEL.
    lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in given.items()]
    options = dotted(settings.options).items()
    lines += ["", "[options]", *(f"{name} = {json.dumps(value)}" for name, value in options)]
    return "\n".join(lines).replace("\x7f", "\\u007f") + "\n"
