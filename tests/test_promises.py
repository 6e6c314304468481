"""What once went wrong does not: the gravest promises of `docs/security.md`, seen from outside.

Everything here goes by the command line and HTTP, so that the file runs against any version that
has both: ``HALFSEEN_SETTINGS`` may name a settings file in the words of that version, and
``HALFSEEN_ROOT`` its repository.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet
import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked")

ROOT = Path(os.environ.get("HALFSEEN_ROOT", Path(__file__).parents[1]))
SETTINGS = """
report_data = "none"
members = ["networks"]
[options]
tables.widths = [4]
tables.latent_size = 3
generator.widths = [4]
networks.classifier_widths = [4]
networks.critic_widths = [4]
[options.training]
warmup_epochs = 1
joint_epochs = 1
"""
FORKS = """
import contextlib, importlib, json, os, resource, sys
for name in ("torch._dynamo", "torch.onnx", "sklearn.linear_model", "onnxruntime", "typer.main",
             "halfseen.model.loading", "halfseen.model.table_scoring",
             "halfseen.fitting.pipeline"):
    with contextlib.suppress(ImportError):
        importlib.import_module(name)
from halfseen.cli import main
for line in sys.stdin:
    words, folder, before = json.loads(line)
    child = os.fork()
    if not child:
        os.chdir(folder)
        for number, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(f"../{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        resource.setrlimit(resource.RLIMIT_AS, (6 * 2**30, 6 * 2**30))
        sys.argv = ["halfseen", *words]
        code = 0
        try:
            exec(before)
            main()
        except SystemExit as stop:
            code = stop.code or 0
        except BaseException as error:
            print("Traceback:", repr(error), file=sys.stderr)
            code = 1
        sys.stdout.flush()
        os._exit(code)
    _, status, used = os.wait4(child, 0)
    print(json.dumps([os.waitstatus_to_exitcode(status), used.ru_maxrss]), flush=True)
"""
"""Runs commands, each in a process of its own with at most 6 GiB; libraries are loaded once."""
LARGEST = 1_500_000
"""KiB that a refused command may have taken, of which libraries take a third."""


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str
    memory: int

    def check_refused(self) -> None:
        """Assert one sentence, exit code 2 and little memory."""
        assert self.code == 2, self
        assert self.memory < LARGEST
        assert "Traceback" not in self.err
        assert len(self.err.strip().splitlines()) == 1, self.err


class Commands:
    """`halfseen`, again and again, in a folder with two tables and a model."""

    def __init__(self, root: Path) -> None:
        self.folder = root / "work"
        self.folder.mkdir()
        self._process = subprocess.Popen(
            [sys.executable, "-c", FORKS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=os.environ | {"COLUMNS": "200", "TERM": "dumb"},
        )  # fmt: skip
        settings = os.environ.get("HALFSEEN_SETTINGS")
        (self.folder / "tiny.toml").write_text(Path(settings).read_text() if settings else SETTINGS)
        pa.csv.write_csv(source(), self.folder / "source.csv")
        pa.csv.write_csv(target(), self.folder / "target.csv")

    def run(self, words: str, before: str = "") -> Ended:
        """Run one command; `before` is code that its process executes first."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        order = json.dumps([words.split(), str(self.folder), before])
        print(order, file=self._process.stdin, flush=True)
        code, memory = json.loads(self._process.stdout.readline())
        out, err = ((self.folder.parent / name).read_text() for name in ("out", "err"))
        return Ended(code, out, err, memory)

    def passed(self, words: str, before: str = "") -> Ended:
        """Run one command, which must end well."""
        run = self.run(words, before)
        assert run.code == 0, run
        return run

    def close(self) -> None:
        """End the process that forks."""
        self._process.communicate()


def source(rows: int = 80) -> pa.Table:
    draw = np.random.default_rng(0)
    basket = draw.normal(50, 10, rows)
    spend = basket + draw.normal(0, 5, rows)
    return pa.table(
        {
            "user": np.arange(rows),
            "basket": basket,
            "visits": draw.normal(3, 1, rows),
            "shop": draw.choice(["north", "south"], rows),
            "member": draw.random(rows) < 0.5,
            "spend": spend,
            "click": np.where(spend > 50, "yes", "no"),
        }
    )


def target(rows: int = 70) -> pa.Table:
    return source(rows).drop_columns(["spend", "click"])


FIT = "fit source.csv target.csv --label click --id user --config tiny.toml"


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Iterator[Commands]:
    """Two tables, a model, its graph and its scores."""
    commands = Commands(tmp_path_factory.mktemp("promises"))
    try:
        commands.passed(f"{FIT} -o model")
        commands.passed("export model --onnx model.onnx")
        commands.passed("predict model target.csv -o scores.csv")
        yield commands
    finally:
        commands.close()


@pytest.fixture
def commands(made: Commands, tmp_path: Path) -> Iterator[Commands]:
    """The same, in a folder of the test's own."""
    kept, made.folder = made.folder, tmp_path / "work"
    shutil.copytree(kept, made.folder)
    yield made
    made.folder = kept


def content(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


# --- 1: outputs destroy nothing -----------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        "predict model target.csv -o source.csv",
        "export model --onnx model/model.safetensors",
        "export model --onnx target.csv",
    ],
)
def test_no_output_replaces_what_was_there(words, commands):
    (commands.folder / "README.md").write_text("# Mine")
    before = content(commands.folder)
    commands.run(words).check_refused()
    assert content(commands.folder) == before


# --- 2: nothing damaged answers -----------------------------------------------------------------


def described(folder: Path, change) -> None:
    """Change a description as a forger would: with the seal that belongs to it."""
    path = folder / "model.json"
    data = json.loads(path.read_text())
    change(data)
    if "seal" in data:
        rest = {name: value for name, value in data.items() if name != "seal"}
        text = json.dumps(rest, sort_keys=True, ensure_ascii=False)
        data["seal"] = hashlib.sha256(text.encode()).hexdigest()
    path.write_text(json.dumps(data, indent=2))


def every(data: Any, name: str) -> Iterator[dict[str, Any]]:
    """Give each object that has a key of that name."""
    if isinstance(data, dict):
        if name in data:
            yield data
        data = list(data.values())
    if isinstance(data, list):
        for part in data:
            yield from every(part, name)


def test_one_changed_digit_of_the_description_is_noticed(commands):
    path = commands.folder / "model/model.json"
    text = path.read_text()
    found = re.search(r'"scale": (\d)', text)
    assert found is not None
    place = found.start(1)
    path.write_text(text[:place] + chr(ord(text[place]) ^ 1) + text[place + 1 :])
    commands.run("predict model target.csv -o new.csv").check_refused()


@pytest.mark.parametrize("classes", [["yes", "no"], ["no", "no"]])
def test_other_classes_are_noticed(classes, commands):
    path = commands.folder / "model/model.json"
    data = json.loads(path.read_text())
    for part in every(data, "classes"):
        part["classes"] = classes
    path.write_text(json.dumps(data))
    commands.run("predict model target.csv -o new.csv").check_refused()


def filled(path: Path, number: float) -> bytes:
    """Set every single-precision number of a tensor file; return the new content."""
    tensors = bytearray(path.read_bytes())
    (length,) = struct.unpack("<Q", tensors[:8])
    for facts in json.loads(tensors[8 : 8 + length]).values():
        if facts.get("dtype") == "F32":
            first, last = (8 + length + place for place in facts["data_offsets"])
            tensors[first:last] = struct.pack("<f", number) * ((last - first) // 4)
    path.write_bytes(tensors)
    return bytes(tensors)


def test_weights_that_are_no_numbers_are_refused_however_they_are_sealed(commands):
    sha256 = hashlib.sha256(
        filled(commands.folder / "model/model.safetensors", float("nan"))
    ).hexdigest()
    described(commands.folder / "model", lambda data: data.update(sha256=sha256))
    commands.run("predict model target.csv -o new.csv").check_refused()


def test_a_changed_weight_of_a_graph_is_not_served(commands):
    import onnx

    path = commands.folder / "model.onnx"
    graph = bytearray(path.read_bytes())
    weights = next(
        tensor.raw_data
        for tensor in onnx.load_from_string(bytes(graph)).graph.initializer
        if tensor.data_type == onnx.TensorProto.FLOAT and len(tensor.raw_data) > 16
    )
    graph[graph.index(weights) + 3] ^= 0x80  # the sign of the first one
    path.write_bytes(graph)
    server = Server(commands.folder, "model.onnx")
    server.close()
    assert server.port == 0


KILL = """
import signal
left = {after}
def hook(event, given):
    global left
    if event == "os.rename" and {which}:
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(hook)
"""
"""Kills a process as it is about to rename something for the last of so many times."""


def test_a_scrambled_checkpoint_is_not_gone_on_with(commands):
    kill = KILL.format(after=1, which="str(given[1]).endswith('.safetensors')")
    assert commands.run(f"{FIT} -o new", kill).code == -9
    checkpoints = [p for p in commands.folder.rglob("*.safetensors") if p.parent.name != "model"]
    assert checkpoints
    for path in checkpoints:
        filled(path, float("nan"))
    run = commands.run(f"{FIT} -o new")
    assert run.code == 2
    assert "was changed after it was written" in run.err


# --- 3 and 4: tables and descriptions ----------------------------------------------------------


def test_a_description_of_huge_networks_is_refused_before_they_are_built(commands):
    def enlarge(data):
        for name in ("shape", "widths"):
            for part in every(data, name):
                if isinstance(part[name], list):
                    part[name] = [200_000_000]

    described(commands.folder / "model", enlarge)
    commands.run("predict model target.csv -o new.csv").check_refused()


@pytest.mark.parametrize("column", ["shop", "user"])
def test_a_few_bytes_of_parquet_do_not_become_gigabytes(column, commands):
    rows = 20_000
    table = target(rows)
    codes = pa.array(np.zeros(rows, np.int32))
    text = pa.DictionaryArray.from_arrays(codes, pa.array(["x" * 100_000]))
    table = table.set_column(table.column_names.index(column), column, text)
    path = commands.folder / "bomb.parquet"
    pa.parquet.write_table(table, path, store_schema=False)
    assert path.stat().st_size < 4_000_000
    commands.run("predict model bomb.parquet -o new.parquet").check_refused()


@pytest.mark.parametrize("column", ["shop", "user"])
def test_a_text_that_is_not_utf8_is_refused(column, commands):
    letters = bytearray(b"north" * 70)
    letters[5 * 41] = 0xFF
    offsets = pa.array(range(0, 5 * 71, 5), pa.int32()).buffers()[1]
    texts = pa.StringArray.from_buffers(70, offsets, pa.py_buffer(bytes(letters)))
    table = target()
    table = table.set_column(table.column_names.index(column), column, texts)
    pa.parquet.write_table(table, commands.folder / "bad.parquet")
    commands.run("predict model bad.parquet -o new.parquet").check_refused()
    assert not (commands.folder / "new.parquet").exists()


# --- 5: files that are replaced -----------------------------------------------------------------


def test_a_model_is_there_whenever_the_process_that_replaces_it_is_killed(commands):
    """Renames that a process never comes to are none at which it could be killed."""
    places = "str(given[1]).endswith('model')"
    for after in (0, 1):
        commands.run(f"{FIT} --seed 1 -o model", KILL.format(after=after, which=places))
        commands.passed("predict model target.csv -o scores.csv")
    commands.passed(f"{FIT} -o model")
    left = [path.name for path in commands.folder.iterdir() if path.name.startswith(".")]
    assert left == []


def test_a_link_is_not_replaced_by_a_folder(commands):
    (commands.folder / "link").symlink_to("model")
    commands.run(f"{FIT} -o link").check_refused()
    assert (commands.folder / "link").is_symlink()


def test_what_is_written_reaches_the_disk(commands):
    count = """
real = os.fsync
def fsync(handle):
    real(handle)
    print("synced", os.path.basename(os.readlink(f"/proc/self/fd/{handle}")), file=sys.stderr)
os.fsync = fsync
"""
    run = commands.passed("predict model target.csv -o new.csv", count)
    synced = re.findall(r"synced (\S+)", run.err)
    assert synced[-2].endswith("new.csv"), "the file, before it has its name"
    assert synced[-1] == "work", "the folder, with the name in it"


# --- 6: ordinary faults --------------------------------------------------------------------------

SMALL_DISK = "resource.setrlimit(resource.RLIMIT_FSIZE, (900, 900))"
"""As good as a full disk: no file may grow beyond 900 bytes."""


@pytest.mark.parametrize(
    ("words", "before"),
    [
        (f"{FIT} -o new", SMALL_DISK),
        ("predict model target.csv -o " + "n" * 300 + ".csv", ""),
        ("predict " + "n" * 300 + " target.csv -o new.csv", ""),
    ],
    ids=["disk", "long output", "long model"],
)
def test_ordinary_faults_are_sentences(words, before, commands):
    commands.run(words, before).check_refused()


# --- 7: the terminal and the server ---------------------------------------------------------------


def test_no_column_name_commands_the_terminal(commands):
    table = source().append_column("\x1b[2J\x1b]0;mine\x07", pa.array(np.arange(80.0)))
    pa.parquet.write_table(table, commands.folder / "escape.parquet")
    run = commands.run(
        "fit escape.parquet target.csv --label click --id user --config tiny.toml --dry-run"
    )
    assert "0;m" in run.out + run.err
    assert "\x1b" not in run.out + run.err


class Server:
    """`halfseen serve` as a process; without a port where it ended before it was ready."""

    def __init__(self, folder: Path, model: str) -> None:
        code = "from halfseen.cli import main; main()"
        command = [sys.executable, "-c", code, "serve", model, "--port", "0"]
        self._process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)
        self.log: list[dict[str, Any]] = []
        self.port = 0
        assert self._process.stderr is not None
        for line in self._process.stderr:
            if '"ready"' in line:
                self.port = int(json.loads(line)["url"].rpartition(":")[2])
                break
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stderr is not None
        self.log.extend(json.loads(line) for line in self._process.stderr if line[0] == "{")

    def line(self, path: str) -> dict[str, Any]:
        """Return what was logged of a path, which may be a little after the answer."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            for line in self.log:
                if line.get("path", "").startswith(path):
                    return line
            time.sleep(0.05)
        raise AssertionError(self.log)

    def close(self) -> None:
        """Let it end."""
        self._process.terminate()
        self._process.wait(60)


@pytest.fixture(scope="module")
def server(made: Commands) -> Iterator[Server]:
    """A server of the model for all requests."""
    server = Server(made.folder, "model")
    assert server.port
    yield server
    server.close()


def exchange(port: int, request: bytes) -> tuple[bytes, bytes]:
    """Send bytes, read until the server closes; return head and body of the answer."""
    answer = b""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        with contextlib.suppress(ConnectionError):
            connection.sendall(request)
        while chunk := connection.recv(65536):
            answer += chunk
    head, _, body = answer.partition(b"\r\n\r\n")
    return head, body


def posted(body: bytes, *headers: str, media: str = "application/json") -> bytes:
    lines = ["POST /predict HTTP/1.1", "Host: localhost", f"Content-Type: {media}", *headers]
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode() + body


def test_no_header_changes_the_client_in_the_log(server):
    forged = "Host: localhost\r\nX-Forwarded-For: 203.0.113.9\r\nConnection: close"
    exchange(server.port, f"GET /who HTTP/1.1\r\n{forged}\r\n\r\n".encode())
    assert server.line("/who")["client"] == "127.0.0.1"


def test_a_long_path_is_logged_in_short(server):
    exchange(server.port, b"GET /long%s HTTP/1.0\r\n\r\n" % (b"x" * 40_000))
    assert len(json.dumps(server.line("/long"))) < 800


def test_no_redirect_follows_the_host_header(server):
    request = b"GET /schema/ HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"
    assert b"evil.example" not in exchange(server.port, request)[0]


def test_what_is_not_http_is_answered_as_every_error_is(server):
    assert set(json.loads(exchange(server.port, b"nonsense\r\n\r\n")[1])) == {"error", "field"}


def test_two_lengths_of_one_body_are_refused(server):
    lengths = ("Content-Length: 4", "Transfer-Encoding: chunked")
    head, body = exchange(server.port, posted(b"2\r\n{}\r\n0\r\n\r\n", *lengths))
    assert head.startswith(b"HTTP/1.1 400"), head
    assert "not valid HTTP" in json.loads(body)["error"]


def test_a_boolean_of_seven_is_a_number_in_arrow_as_everywhere(server):
    assert seven(server.port).startswith(b"HTTP/1.1 200")


def test_bodies_of_all_clients_are_bounded_together(server):
    assert 429 in statuses_of_many(server.port)


def seven(port: int) -> bytes:
    """Send a boolean of 7 as Arrow; return the head of the answer."""
    table = target(3)
    table = table.set_column(table.column_names.index("member"), "member", pa.array([7.0, 0, 1]))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    body = sink.getvalue().to_pybytes()
    media = "application/vnd.apache.arrow.stream"
    return exchange(port, posted(body, f"Content-Length: {len(body)}", media=media))[0]


def statuses_of_many(port: int) -> set[int]:
    """Begin twelve bodies of 8 MB, more than is held at once; return what is answered to some."""
    found, size = set(), 8_000_000
    with contextlib.ExitStack() as stack:
        connections = []
        for _ in range(12):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            connection.settimeout(5)
            with contextlib.suppress(ConnectionError, TimeoutError):
                connection.sendall(posted(b"x" * (size - 1), f"Content-Length: {size}"))
            connections.append(connection)
        for connection in reversed(connections):
            connection.settimeout(0.5)
            with contextlib.suppress(ConnectionError, TimeoutError):
                found.add(int(connection.recv(4096).split()[1]))
    return found


def test_a_graph_has_no_score_for_infinities(made):
    import onnxruntime

    rows: dict[str, Any] = {
        "basket": np.array([np.inf]), "visits": np.array([3.0]),
        "shop": np.array(["north"], dtype=object), "member": np.array([1.0]),
    }  # fmt: skip
    session = onnxruntime.InferenceSession(made.folder / "model.onnx")
    given = {value.name: rows[value.name] for value in session.get_inputs()}
    assert np.isnan(session.run(["probabilities"], given)[0]).all()


# --- 8: supply -----------------------------------------------------------------------------------


def test_versions_are_pinned_and_imports_declared():
    pins = re.findall(r"^([\w.-]+)==", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert {"torch", "numpy", "pyarrow", "starlette", "pytest"} <= {pin.lower() for pin in pins}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    declared = [*project["dependencies"], *(one for extra in extras for one in extra)]
    names = {re.split(r"[\s<>=!~;\[]", one)[0].lower() for one in declared}
    assert {"onnx", "markupsafe"} <= names
    assert "Report a vulnerability" in (ROOT / "SECURITY.md").read_text()
