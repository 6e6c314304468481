"""`halfseen sign`: a model with the name of who wrote it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from halfseen.cli.terminal import Force, Json, Terminal
from halfseen.outputs import Output, check_outputs, head


def sign(
    model: Annotated[Path, typer.Argument(help="Model folder, or a graph from halfseen export.")],
    key: Annotated[Path, typer.Option(help="Private Ed25519 key, a PEM file.")],
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Sign a model with a private key; the signature goes beside it, as MODEL.sig.

    Who has the public key tells with `halfseen verify MODEL --key PUBLIC.pem` that the model is
    yours. Make a pair with: openssl genpkey -algorithm ed25519 -out private.pem; openssl pkey -in
    private.pem -pubout -out public.pem

    Example: halfseen sign model/ --key private.pem
    """
    from halfseen.saving.signing import sign_model, signature_path

    place = signature_path(model)
    output = Output(place, "the signature", lambda path: head(path).startswith(b"halfseen sig"))
    check_outputs([output], {"the model": model, "the key": key}, force=force)
    sign_model(model, key)
    terminal = Terminal(as_json=as_json)
    terminal.result(f"Signature: {place}")
    terminal.document({"model": model, "signature": place})
