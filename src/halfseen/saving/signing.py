"""Signatures: who wrote a model, where a seal only tells that it is whole.

A signature is a file beside the model, its name with ``.sig``: Ed25519 over the SHA-256 of all
that decides an answer. Keys are PEM files, as OpenSSL and ``cryptography`` write them.
"""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

from halfseen.errors import HalfseenError, InputError, reason
from halfseen.files import write_text
from halfseen.saving.folder import read_folder

_BEGINNING = "halfseen signature 1 "
_LARGEST_KEY = 2**14


def signature_path(model: Path) -> Path:
    """Return where the signature of a model is."""
    return model.with_name(f"{model.name}.sig")


def sign_model(model: Path, key: Path) -> None:
    """Sign a model folder or an exported graph with a private key."""
    private = _read_key(key, is_private=True)
    signature = base64.b64encode(private.sign(_message(model))).decode()
    write_text(signature_path(model), f"{_BEGINNING}{signature}\n")


def check_signature(model: Path, key: Path) -> None:
    """Refuse a model that was not signed with the private half of a public key."""
    public, path = _read_key(key, is_private=False), signature_path(model)
    try:
        text = path.read_text(encoding="ascii")
        if not text.startswith(_BEGINNING) or len(text) > 200:
            raise ValueError
        signature = base64.b64decode(text.removeprefix(_BEGINNING), validate=False)
    except OSError as error:
        raise InputError(
            f"{model} has no signature: {path} cannot be read ({error.strerror}). `halfseen sign` "
            "makes one."
        ) from None
    except ValueError:
        raise InputError(f"{path} is not a signature; sign the model again.") from None
    from cryptography.exceptions import InvalidSignature

    try:
        public.verify(signature, _message(model))
    except InvalidSignature:
        raise InputError(
            f"{model} was not signed with the key of {key}, or was changed since: do not use it "
            "before you know which."
        ) from None


def _message(model: Path) -> bytes:
    """Return what is signed: the kind of model and its hash."""
    if model.is_dir():
        return f"halfseen folder {read_folder(model)[0].seal}".encode()
    try:
        with model.open("rb") as file:
            return f"halfseen graph {hashlib.file_digest(file, 'sha256').hexdigest()}".encode()
    except OSError as error:
        raise InputError(f"{model} cannot be read: {reason(error)}") from None


def _read_key(path: Path, *, is_private: bool) -> Any:
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric import ed25519
        from cryptography.hazmat.primitives.serialization import (
            load_pem_private_key,
            load_pem_public_key,
        )
    except ImportError as error:
        raise HalfseenError(
            f"Signatures need a library of their own ({error}); install it with: "
            "pip install 'halfseen[sign]'"
        ) from None
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST_KEY)
        key: Any = (
            load_pem_private_key(content, password=None)
            if is_private
            else load_pem_public_key(content)
        )
    except OSError as error:
        raise InputError(f"The key {path} cannot be read: {reason(error)}") from None
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, ed25519.Ed25519PrivateKey if is_private else ed25519.Ed25519PublicKey):
        raise InputError(
            f"{path} is not a {'private' if is_private else 'public'} Ed25519 key in PEM without a "
            "password; `halfseen sign --help` says how to make a pair."
        )
    return key
