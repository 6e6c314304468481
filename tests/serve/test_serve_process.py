"""`halfseen serve` as a process: started, told to stop, killed, started again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time

import httpx
import numpy as np
import pytest
from local_server import COMMAND, ROW, Process, answer_of, begin_request

from halfseen.artifact.onnx_export import onnx_model, write_onnx
from table_models import rows_of, table_model

BODY = json.dumps({"records": [ROW]}).encode()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("served") / "model"
    table_model().save(path)
    return path


def content_of(folder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_sigterm_lets_an_accepted_request_finish(folder):
    with Process(folder) as server:
        connection = begin_request(server.port, BODY)
        server.process.send_signal(signal.SIGTERM)
        time.sleep(1)
        with pytest.raises(httpx.ConnectError):  # nothing new is accepted
            httpx.get(f"http://127.0.0.1:{server.port}/health", timeout=1)
        connection.sendall(BODY[len(BODY) // 2 :])
        status, body = answer_of(connection)
        assert status == 200
        assert json.loads(body)["records"][0]["prediction"] in ("no", "yes")
        assert server.ended() == 0
        (request,) = [line for line in server.log("request") if line["path"] == "/predict"]
        assert request["status"] == 200
        assert all(json.loads(line)["time"] for line in server.lines)


def test_killed_in_a_request_and_started_again_nothing_is_corrupt(folder):
    before = content_of(folder)
    with Process(folder) as server:
        connection = begin_request(server.port, BODY)
        first = httpx.post(f"http://127.0.0.1:{server.port}/predict", content=BODY, headers=JSON)
        server.process.kill()
        assert server.ended() == -signal.SIGKILL
        connection.close()
    assert content_of(folder) == before
    with Process(folder, "--port", str(server.port)) as again:
        second = httpx.post(f"http://127.0.0.1:{again.port}/predict", content=BODY, headers=JSON)
        assert again.port == server.port
        assert second.json() == first.json()
    assert content_of(folder) == before
    assert sorted(path.name for path in folder.parent.iterdir()) == [folder.name]


JSON = {"Content-Type": "application/json"}


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


def run(*arguments, **environment) -> subprocess.CompletedProcess:
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | environment,
    )


def wrong_starts(folder, tmp_path):
    (tmp_path / "noise.onnx").write_bytes(b"noise" * 100)
    (tmp_path / "weak").write_text("weak\n")
    newer = onnx_model(table_model())
    for entry in newer.metadata_props:
        if entry.key == "halfseen_format":
            entry.value = "2"
    write_onnx(newer, tmp_path / "newer.onnx")
    del newer.metadata_props[:]
    write_onnx(newer, tmp_path / "foreign.onnx")
    return [
        ([tmp_path / "absent"], "cannot be read"),
        ([tmp_path / "noise.onnx"], "is not a graph that ONNX Runtime can read"),
        ([tmp_path / "newer.onnx"], "has format 2, and this version of halfseen reads up to 1"),
        ([tmp_path / "foreign.onnx"], "not one that halfseen export wrote"),
        ([tmp_path], "is not a model folder"),
        ([folder, "--token-file", tmp_path / "weak"], "16 or more ASCII characters"),
        ([folder, "--token-file", tmp_path / "none"], "cannot be read"),
        ([folder, "--host", "192.0.2.1"], "cannot listen on 192.0.2.1"),
    ]


def test_a_wrong_start_is_one_sentence(folder, tmp_path):
    # One process for all, because starting Python and torch is what takes the time.
    cases = wrong_starts(folder, tmp_path)
    code = (
        "import sys, json\nfrom halfseen.cli import main\n"
        "for arguments in json.loads(sys.argv[1]):\n"
        "    sys.argv = ['halfseen', 'serve', *arguments]\n"
        "    try:\n        main()\n"
        "    except SystemExit as end:\n        print('exit', end.code, file=sys.stderr)\n"
    )
    arguments = json.dumps([[str(part) for part in case] for case, _ in cases])
    done = subprocess.run(
        [COMMAND[0], "-c", code, arguments], capture_output=True, text=True, timeout=60
    )
    lines = done.stderr.splitlines()
    assert len(lines) == 2 * len(cases), done.stderr
    for (_, words), sentence, end in zip(cases, lines[::2], lines[1::2], strict=True):
        assert sentence.startswith("error: ")
        assert words in sentence
        assert end == "exit 2"


def test_export_writes_graph_and_card(folder, tmp_path):
    done = run("export", folder, "--onnx", tmp_path / "out" / "model.onnx")
    assert done.returncode == 0, done.stderr
    assert "differ by at most" in done.stdout
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["model.md", "model.onnx"]
    assert (tmp_path / "out" / "model.md").read_text().startswith("# Model card: sick")
    assert (tmp_path / "out" / "model.onnx").read_bytes() == onnx_model(
        table_model()
    ).SerializeToString()
