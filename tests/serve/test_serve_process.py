"""`halfseen serve` as a process: started, told to stop, killed, started again."""

from __future__ import annotations

import json
import re
import signal
import sys
import time
import tomllib
from pathlib import Path
from pkgutil import resolve_name

import httpx
import numpy as np
import pytest
import uvicorn
from local_server import ROW, Process, begin_request

import halfseen
import halfseen_serve
from halfseen.cli import main
from halfseen.cli.app import COMMANDS
from halfseen.export.onnx import onnx_model, sealed, write_onnx
from halfseen_serve import cli
from table_models import rows_of, table_model
from tiny import classifier

BODY = json.dumps({"records": [ROW]}).encode()
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("served") / "model"
    table_model().save(path)
    return path


def content_of(folder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_killed_then_started_again_then_told_to_stop(folder):
    before = content_of(folder)
    with Process(folder) as server:
        connection = begin_request(server.port, BODY)
        first = httpx.post(f"http://127.0.0.1:{server.port}/predict", content=BODY, headers=JSON)
        assert first.status_code == 200
        server.process.kill()
        assert server.ended() == -signal.SIGKILL
        connection.close()
    assert content_of(folder) == before
    with Process(folder, "--port", str(server.port)) as again:
        assert again.port == server.port
        second = httpx.post(f"http://127.0.0.1:{again.port}/predict", content=BODY, headers=JSON)
        assert second.json() == first.json()
        assert_finishes_what_it_accepted(again)
    assert content_of(folder) == before
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def assert_finishes_what_it_accepted(server: Process) -> None:
    connection = begin_request(server.port, BODY)
    server.process.send_signal(signal.SIGTERM)
    time.sleep(1)
    with pytest.raises(httpx.ConnectError):  # nothing new is accepted
        httpx.get(f"http://127.0.0.1:{server.port}/health", timeout=1)
    connection.sendall(BODY[len(BODY) // 2 :])
    content = b""
    while chunk := connection.recv(65536):
        content += chunk
    head, _, body = content.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    assert b"\r\nconnection: close" in head.lower()
    assert json.loads(body)["records"][0]["prediction"] in ("no", "yes")
    assert server.ended() == 0
    assert [line["status"] for line in server.log("request")] == [200, 200]
    assert server.log("stopped")
    assert all(json.loads(line)["time"] for line in server.lines)


def test_a_graph_is_served_with_the_token_of_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("HALFSEEN_TOKEN", "a-token-of-some-length")
    model = table_model()
    write_onnx(onnx_model(model), tmp_path / "model.onnx")
    frame = rows_of(model, rows=5)
    with Process(tmp_path / "model.onnx") as server:
        url = f"http://127.0.0.1:{server.port}"
        assert httpx.get(f"{url}/schema").status_code == 401
        answer = httpx.post(
            f"{url}/predict",
            json={"records": frame.astype(object).where(frame.notna(), None).to_dict("records")},
            headers={"Authorization": "Bearer a-token-of-some-length"},
        )
        scored = [[row["p_no"], row["p_yes"]] for row in answer.json()["records"]]
        np.testing.assert_allclose(scored, model.predict_proba(frame), rtol=0, atol=1e-5)
        ready = server.log("ready")[0]
        assert ready["token"] is True
        assert "a-token" not in "".join(server.lines)


def wrong_starts(folder, tmp_path):
    (tmp_path / "noise.onnx").write_bytes(b"noise" * 100)
    (tmp_path / "sealed.onnx").write_bytes(sealed(b"noise" * 100))
    (tmp_path / "weak").write_text("weak\n")
    newer = onnx_model(table_model())
    for entry in newer.metadata_props:
        if entry.key == "halfseen_format":
            entry.value = "3"
    write_onnx(newer, tmp_path / "newer.onnx")
    broken = onnx_model(table_model())
    for entry in broken.metadata_props:
        if entry.key == "halfseen_schema":
            entry.value = entry.value.replace('"kind":"count"', '"kind":"sorcery"')
    write_onnx(broken, tmp_path / "broken.onnx")
    del newer.metadata_props[:]
    write_onnx(newer, tmp_path / "foreign.onnx")
    return [
        ([tmp_path / "absent"], "cannot be read"),
        ([tmp_path / "noise.onnx"], "is not as halfseen export wrote it"),
        ([tmp_path / "sealed.onnx"], "is not a graph that ONNX Runtime can read"),
        ([tmp_path / "newer.onnx"], "has format 3, and this version of halfseen reads up to 2"),
        ([tmp_path / "foreign.onnx"], "not one that halfseen export wrote"),
        ([tmp_path / "broken.onnx"], "cannot be read: columns.4"),
        ([tmp_path], "is not a model folder"),
        ([folder, "--token-file", tmp_path / "weak"], "16 or more ASCII characters"),
        ([folder, "--token-file", tmp_path / "none"], "cannot be read"),
        ([folder, "--host", "192.0.2.1"], "cannot listen on 192.0.2.1"),
    ]


def test_a_wrong_start_is_one_sentence(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(uvicorn.Server, "run", lambda *given, **named: pytest.fail("it started"))
    for arguments, words in wrong_starts(folder, tmp_path):
        given = ["--port", "0", *map(str, arguments)]
        monkeypatch.setattr(sys, "argv", ["halfseen", "serve", *given])
        with pytest.raises(SystemExit) as end:
            main()
        sentence = capsys.readouterr().err
        assert end.value.code == 2
        assert sentence.startswith("error: ")
        assert sentence.count("\n") == 1
        assert words in sentence


def test_export_writes_the_graph(folder, tmp_path, monkeypatch, capsys):
    graph = tmp_path / "out" / "model.onnx"
    monkeypatch.setattr(sys, "argv", ["halfseen", "export", str(folder), "--onnx", str(graph)])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 0
    assert "differ by at most" in capsys.readouterr().out
    assert sorted(path.name for path in graph.parent.iterdir()) == ["model.onnx"]
    assert graph.read_bytes() == sealed(onnx_model(table_model()).SerializeToString())


def test_export_without_its_library_is_one_sentence(monkeypatch, capsys):
    for name in [name for name in sys.modules if re.match(r"halfseen\.export\b|onnx\b", name)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr(halfseen, "export", raising=False)
    monkeypatch.setitem(sys.modules, "onnx", None)
    monkeypatch.setattr(sys, "argv", ["halfseen", "export", "model", "--onnx", "a.onnx"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    assert "pip install 'halfseen[onnx]'" in capsys.readouterr().err


def test_without_the_package_the_command_says_what_to_install(monkeypatch, capsys):
    monkeypatch.delitem(COMMANDS, "serve")
    monkeypatch.setattr(sys, "argv", ["halfseen", "serve", "model", "--port", "0"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    assert capsys.readouterr().err == (
        "error: `halfseen serve` is in a package of its own: pip install halfseen-serve\n"
    )


def test_the_entry_point_adds_the_command():
    project = tomllib.loads((Path(halfseen_serve.__file__).parent / "pyproject.toml").read_text())
    named = project["project"]["entry-points"]["halfseen.commands"]
    commands: dict[str, tuple[str, str]] = {}
    for place in named.values():
        resolve_name(place)(commands)
    assert set(commands) == set(named) == {"serve"}
    assert resolve_name(commands["serve"][0]) is cli.serve


@pytest.fixture(scope="module")
def of_images(tmp_path_factory):
    random = np.random.default_rng(0)
    images, folder = random.normal(size=(40, 1, 6, 6)), tmp_path_factory.mktemp("images") / "model"
    options = {"images.channels": (2,), "images.kernel_size": 3, "images.pools": 0}
    model = classifier(image=True, missing="bottom", options=options)
    model.fit(images, np.arange(40) % 2, X_target=images).save(folder)
    return folder


def test_a_model_of_images_is_not_served(of_images, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["halfseen", "serve", str(of_images), "--port", "0"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    assert capsys.readouterr().err == (
        f"error: {of_images} holds a model of images, and this takes models of tables: use "
        "`halfseen predict`, or halfseen.load in Python.\n"
    )
    assert not list(tmp_path.iterdir())
