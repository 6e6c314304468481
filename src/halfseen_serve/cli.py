"""`halfseen serve`: a model behind HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from halfseen.errors import OptionError


def add_commands(commands: dict[str, tuple[str, str]]) -> None:
    """Add this package's command; found by its entry point in ``halfseen.commands``."""
    words = "Score rows over HTTP: JSON records, JSON columns or Arrow streams."
    commands["serve"] = ("halfseen_serve.cli:serve", words)


def serve(
    model: Annotated[Path, typer.Argument(help="Model folder, or a graph from halfseen export.")],
    host: Annotated[
        str, typer.Option(help="Address to listen on; the default is this machine alone.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any free port.")] = 8000,
    token_file: Annotated[
        Path | None, typer.Option(help="File with the token that clients must send.")
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="HALFSEEN_TOKEN",
            help="The token itself; better in the environment, where other users do not see it.",
        ),
    ] = None,
    max_rows: Annotated[int, typer.Option(min=1, help="Rows of one request.")] = 100_000,
    max_bytes: Annotated[int, typer.Option(min=1, help="Bytes of one request.")] = 8 * 2**20,
    deadline: Annotated[float, typer.Option(min=0.001, help="Seconds for one request.")] = 30.0,
    max_requests: Annotated[int, typer.Option(min=1, help="Requests under way at once.")] = 64,
    max_total_bytes: Annotated[
        int, typer.Option(min=1, help="Bytes of all requests under way together.")
    ] = 64 * 2**20,
    max_connections: Annotated[int, typer.Option(min=1, help="Connections open at once.")] = 256,
    head_timeout: Annotated[
        float, typer.Option(min=0.001, help="Seconds for the head of a request.")
    ] = 10.0,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            help="Name by which clients may call the server (repeatable). Default: the names of "
            "this machine where it alone is listened to, any name elsewhere."
        ),
    ] = None,
    trust_proxy: Annotated[
        list[str] | None,
        typer.Option(help="Address or network whose X-Forwarded-For is believed (repeatable)."),
    ] = None,
    workers: Annotated[
        int, typer.Option(min=1, help="Processes that answer, for several cores.")
    ] = 1,
) -> None:
    """Score rows over HTTP: JSON records, JSON columns or Arrow streams.

    Prints one JSON object per line of log. SIGTERM and Ctrl-C end it after what it has accepted
    is answered; SIGHUP lets it read the model again.

    Example: halfseen serve model/ --port 8000
    """
    from halfseen_serve import server
    from halfseen_serve.limits import Limits

    if token_file is not None:
        if token is not None:
            raise OptionError("Give either --token-file or a token (--token, HALFSEEN_TOKEN).")
        try:
            token = token_file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise OptionError(f"The token file {token_file} cannot be read: {error}.") from None
    limits = Limits(
        max_rows, max_bytes, deadline, max_requests, max_total_bytes, max_connections, head_timeout
    )
    settings = server.Settings(model, token, limits, allow_host or (), trust_proxy or ())
    server.serve(settings, host, port, workers)
