"""`halfseen verify`: seal, numbers and answers; exit code 2 where one of them is wrong."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PrivateFormat, PublicFormat
from tables_cli import check_refused, halfseen

from halfseen.saving.folder import read_folder, write_folder
from tiny import classifier


def test_a_whole_model_and_its_graph(tables, tmp_path):
    graph = tmp_path / "model.onnx"
    assert halfseen("export", tables / "model", "--onnx", graph).code == 0
    for path in (tables / "model", graph):
        run = halfseen("verify", path)
        assert run.code == 0, run.err
        assert "Seal: " in run.out
        assert "gives those of the model to known rows" in run.out
        found = json.loads(halfseen("verify", path, "--json").out)
        assert found.pop("model") == str(path)
        assert found == {"sealed": True, "signed": False, "answers_tested": True}


@pytest.mark.parametrize("name", ["model.json", "model.safetensors", "model.onnx"])
def test_a_changed_byte(name, tables, tmp_path, out):
    folder = shutil.copytree(tables / "model", tmp_path / "model")
    path = folder / name
    if name == "model.onnx":
        path = tmp_path / name
        assert halfseen("export", folder, "--onnx", path).code == 0
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)
    check_refused(halfseen("verify", path if name == "model.onnx" else folder), out)


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """Two pairs of keys, as OpenSSL writes them."""
    folder = tmp_path_factory.mktemp("keys")
    plain = serialization.NoEncryption()
    for name in ("ours", "theirs"):
        key = Ed25519PrivateKey.generate()
        (folder / f"{name}.pem").write_bytes(
            key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, plain)
        )
        (folder / f"{name}.pub").write_bytes(
            key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        )
    return folder


def test_a_signature_tells_who_wrote_a_model(tables, keys, tmp_path, out):
    folder, graph = shutil.copytree(tables / "model", tmp_path / "model"), tmp_path / "model.onnx"
    assert halfseen("export", folder, "--onnx", graph).code == 0
    for path in (folder, graph):
        ask = ("verify", path, "--key")
        check_refused(halfseen(*ask, keys / "ours.pub"), out, "has no signature")
        signed = halfseen("sign", path, "--key", keys / "ours.pem")
        assert signed.code == 0, signed.err
        verified = halfseen(*ask, keys / "ours.pub")
        assert verified.code == 0, verified.err
        assert "Signature: made with" in verified.out
        check_refused(halfseen(*ask, keys / "theirs.pub"), out, "was not signed with the key of")
    other = graph.with_name("other.onnx")
    shutil.copy(graph, other)
    shutil.copy(f"{folder}.sig", f"{other}.sig")  # another model's
    check_refused(halfseen("verify", other, "--key", keys / "ours.pub"), out, "was not signed with")


def test_a_model_that_was_forged_and_sealed_again_is_not_ours(tables, keys, tmp_path, out):
    folder = shutil.copytree(tables / "model", tmp_path / "model")
    assert halfseen("sign", folder, "--key", keys / "ours.pem").code == 0
    description, tensors = read_folder(folder)
    forged = {name: -tensor for name, tensor in tensors.items()}
    write_folder(folder, description.model_copy(update={"seal": ""}), forged)
    assert halfseen("verify", folder).code in (0, 2)  # the seal alone cannot tell
    check_refused(
        halfseen("verify", folder, "--key", keys / "ours.pub"), out, "was not signed with the key"
    )


@pytest.mark.parametrize(
    ("command", "key", "words"),
    [
        ("sign", "ours.pub", "is not a private Ed25519 key"),
        ("verify", "ours.pem", "is not a public Ed25519 key"),
        ("sign", "none", "No such file or directory"),
    ],
)
def test_another_key_is_refused(command, key, words, tables, keys, out):
    check_refused(halfseen(command, tables / "model", "--key", keys / key), out, words)


def test_a_signature_replaces_nothing_of_others(tables, keys, tmp_path, out):
    folder = shutil.copytree(tables / "model", tmp_path / "model")
    (tmp_path / "model.sig").write_text("mine")
    check_refused(halfseen("sign", folder, "--key", keys / "ours.pem"), out, "was not written by")
    assert (tmp_path / "model.sig").read_text() == "mine"


def test_nothing_there(tmp_path, out):
    check_refused(halfseen("verify", tmp_path / "none"), out, "There is no model folder")


def test_a_model_that_has_no_graph_says_that_its_answers_were_not_tested(tmp_path):
    inputs = np.random.default_rng(0).normal(size=(40, 3))
    model = classifier(model="Source-Full")
    model.fit(inputs, np.arange(40) % 2, X_target=inputs)
    model.save(tmp_path / "model")
    run = halfseen("verify", tmp_path / "model")
    assert run.code == 0, run.err
    assert "not tested" in run.out
    assert "needs the missing block" in run.out
