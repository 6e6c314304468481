"""Checkpoints: one safetensors file with a JSON header and a seal, written whole or not at all."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from halfseen.atomic_files import atomic_write
from halfseen.errors import InputError

FORMAT = 2


@dataclass(frozen=True)
class Checkpoint:
    """The state of a run between two epochs."""

    run: str
    """Fingerprint of everything that determines the run: data, options, seed."""
    phase: int
    """How many phases are finished."""
    epoch: int
    """How many epochs of the current phase are finished."""
    model: Mapping[str, Tensor]
    optimizer: Mapping[str, Tensor]
    """Adam's state, by ``field/parameter``."""
    history: list[dict[str, Any]]


def write_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Write to a partial name, then rename: a reader never meets half a file."""
    tensors = {f"model/{name}": tensor for name, tensor in checkpoint.model.items()}
    tensors |= {f"optimizer/{name}": tensor for name, tensor in checkpoint.optimizer.items()}
    owned = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    names = ("run", "phase", "epoch", "history")
    header = {"format": FORMAT} | {name: getattr(checkpoint, name) for name in names}
    text = json.dumps(header)
    content = save(owned, metadata={"halfseen": text, "seal": _seal(text, owned)})
    with atomic_write(path) as partial:
        partial.write_bytes(content)  # safetensors' own error on a full disk is no OSError


def read_checkpoint(path: Path, run: str) -> Checkpoint | None:
    """Return the checkpoint of this very run, or None where there is none yet."""
    if not path.exists():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        text = metadata["halfseen"]
        is_whole = metadata.get("seal") == _seal(text, tensors)
        header = json.loads(text)
        found = header["format"]
    except (SafetensorError, KeyError, TypeError, ValueError, OSError, RecursionError) as error:
        raise InputError(
            f"{path} is not a readable checkpoint ({error}); delete it to start anew."
        ) from error
    if found != FORMAT:
        raise InputError(
            f"{path} has checkpoint format {found}, and this version reads {FORMAT}; delete it to "
            "start anew."
        )
    if not is_whole:
        raise InputError(
            f"{path} was changed after it was written: its SHA-256 is not the one in its seal. "
            "Delete it to start anew."
        )
    if header["run"] != run:
        raise InputError(
            f"{path} belongs to another run (other data, options or seed); delete it, or give "
            "this run a checkpoint file of its own."
        )
    model, optimizer = (
        {name.removeprefix(kind): t for name, t in tensors.items() if name.startswith(kind)}
        for kind in ("model/", "optimizer/")
    )
    return Checkpoint(
        run, header["phase"], header["epoch"], model, optimizer, list(header["history"])
    )


def _seal(header: str, tensors: Mapping[str, Tensor]) -> str:
    found = hashlib.sha256(header.encode("utf-8", "surrogatepass"))
    for name, tensor in sorted(tensors.items()):
        found.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
        found.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()
