"""Torture: kills, full disks, flipped bits, hostile tables and requests, for a minute or a night.

    python benchmarks/torture.py --seconds 60 --seed 0

Each class of cases gets the same time. A case survives if nothing is lost, nothing is accepted with
another answer, and what is refused is refused with a sentence of halfseen's own (over HTTP: with a
status of class 4xx). The input of a case that fails is kept in ``--failures``; that of a
case that ends this very process stays in its temporary folder.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import http.client
import io
import json
import logging
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet
import torch

from halfseen import AdaptationImputationClassifier, HalfseenError, load

LARGEST_GROWTH = 2**20
"""KiB that this process may take beyond its beginning: 1 GiB."""
TINY = {
    "tables.widths": (8,), "tables.latent_size": 4, "generator.widths": (8,),
    "networks.classifier_widths": (8,), "networks.critic_widths": (8,),
    "training.warmup_epochs": 1, "training.joint_epochs": 1,
}  # fmt: skip

Case = Callable[[random.Random], None]
"""One case; raises what is wrong, after noting its input in `Kit.input`."""


@dataclass
class Tally:
    """How the cases of one class ended."""

    cases: int = 0
    failed: int = 0
    first_failure: str = ""


@dataclass
class Kit:
    """What cases are made of: a model in all its forms, and rows."""

    root: Path
    frame: pd.DataFrame
    answers: list[Any] = field(default_factory=list)
    input: bytes = b""

    def __post_init__(self) -> None:
        """Fit two models, and write them in every form."""
        from halfseen.export.onnx import onnx_model, write_onnx
        from halfseen.model.loading import load_table_model
        from halfseen.saving.folder import read_folder
        from halfseen.serve import open_scorer

        torch.set_num_threads(1)
        source, label = made_up_rows(120)
        self.models = []
        for seed in range(2):
            model = AdaptationImputationClassifier(
                members=["networks", "regression"], options=TINY, random_state=seed, device="cpu"
            )
            model.fit(source, label, X_target=self.frame)
            model.save(self.root / f"model{seed}")
            self.models.append(read_folder(self.root / f"model{seed}"))
            self.answers.append(model.predict_proba(self.frame))
        self.files = {path.name: path.read_bytes() for path in (self.root / "model0").iterdir()}
        write_onnx(onnx_model(load_table_model(self.root / "model0")), self.root / "model.onnx")
        self.scorer = open_scorer(self.root / "model.onnx")
        self.loaded = load(self.root / "model0")
        self.tables = {k: written(self.frame, k) for k in ("csv", "parquet", "arrow", "stream")}
        self.work = self.root / "work"
        self.work.mkdir()

    def check_same(self, probabilities: Any, number: int = 0) -> None:
        """Refuse another answer."""
        if not np.allclose(probabilities, self.answers[number], rtol=0, atol=1e-5):
            raise AssertionError("another answer was given")


def made_up_rows(rows: int) -> tuple[pd.DataFrame, Any]:
    """Return a table with numbers, categories, booleans and gaps, and labels."""
    draw = np.random.default_rng(0)
    frame = pd.DataFrame({
        "age": draw.normal(50, 9, rows), "visits": draw.poisson(3, rows).astype(float),
        "shop": draw.choice(["north", "south", "ünder"], rows), "member": draw.random(rows) < 0.4,
        "spend": draw.normal(20, 5, rows),
    })  # fmt: skip
    frame.loc[draw.random(rows) < 0.1, "age"] = np.nan
    return frame, np.where(frame["spend"] + 2 * frame["visits"] > 26, "yes", "no")


def damaged(content: bytes, draw: random.Random) -> bytes:
    """Return bytes with some flipped, cut off, doubled, overwritten or moved."""
    found = bytearray(content)
    for _ in range(draw.choice([1, 1, 1, 2, 8])):
        place = draw.randrange(max(1, len(found)))
        how = draw.randrange(8)
        if how < 4 and found:
            found[place % len(found)] ^= 1 << draw.randrange(8)
        elif how == 4:
            del found[place:]
        elif how == 5:
            found[place:place] = found[place : place + draw.randrange(1, 64)]
        elif how == 6:
            found[place : place + 4] = draw.choice([b"\xff" * 4, b"\0" * 4, b"\x7f\xff\xff\xff"])
        else:
            del found[place : place + draw.randrange(1, 16)]
    return bytes(found)


# --- files -------------------------------------------------------------------------------------


def damage_model(kit: Kit, name: str, draw: random.Random) -> None:
    """See that a damaged model is refused, or says the very same."""
    kit.input = damaged(kit.files[name], draw)
    folder = kit.work / "damaged"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(kit.root / "model0", folder)
    (folder / name).write_bytes(kit.input)
    with contextlib.suppress(HalfseenError):
        kit.check_same(load(folder).predict_proba(kit.frame))


def forge_description(kit: Kit, draw: random.Random) -> None:
    """See that what somebody changed and sealed again is refused, or predicts within bounds."""
    data = json.loads(kit.files["model.json"])
    place: Any = data
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = draw.choice(keys)
        if not isinstance(place[key], dict | list) or not place[key] or draw.random() < 0.1:
            break
        place = place[key]
    strange = [None, -1, 0, 10**9, 10**30, 1e300, -0.5, "", "x" * 50, [], {}, [10**9], True]
    place[key] = draw.choice(strange)
    rest = {k: v for k, v in data.items() if k != "seal"}
    text = json.dumps(rest, sort_keys=True, ensure_ascii=False)
    data["seal"] = hashlib.sha256(text.encode()).hexdigest()
    kit.input = json.dumps(data).encode()
    folder = kit.work / "forged"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(kit.root / "model0", folder)
    (folder / "model.json").write_bytes(kit.input)
    with contextlib.suppress(HalfseenError):
        load(folder).predict_proba(kit.frame)


def damage_graph(kit: Kit, draw: random.Random) -> None:
    """See that a damaged graph is refused."""
    from halfseen.serve import open_scorer

    whole = (kit.root / "model.onnx").read_bytes()
    kit.input = damaged(whole, draw)
    path = kit.work / "damaged.onnx"
    path.write_bytes(kit.input)
    with contextlib.suppress(HalfseenError):
        open_scorer(path)
        if kit.input != whole:
            raise AssertionError("a damaged graph was served")


def checkpoint_of(kit: Kit, number: int) -> Any:
    """Return a checkpoint with the tensors of one of the models."""
    from halfseen.networks.training.checkpoints import Checkpoint

    tensors = kit.models[number][1]
    moments = {name: {"exp_avg": tensor.clone()} for name, tensor in tensors.items()}
    return Checkpoint("run", 0, number, tensors, moments, [{"epoch": number, "loss": 0.5}])


def same_checkpoint(kit: Kit, found: Any) -> None:
    """Refuse a checkpoint that is neither of the two."""
    known = checkpoint_of(kit, found.epoch)
    for name, tensor in known.model.items():
        if not torch.equal(found.model[name], tensor):
            raise AssertionError("another checkpoint was read")


def damage_checkpoint(kit: Kit, draw: random.Random) -> None:
    """See that a damaged checkpoint is refused, or is the very same."""
    from halfseen.networks.training.checkpoints import read_checkpoint, write_checkpoint

    path = kit.work / "damaged.safetensors"
    path.unlink(missing_ok=True)
    write_checkpoint(path, checkpoint_of(kit, 0))
    kit.input = damaged(path.read_bytes(), draw)
    path.write_bytes(kit.input)
    with contextlib.suppress(HalfseenError):
        found = read_checkpoint(path, "run")
        same_checkpoint(kit, found)


def damage_journal(kit: Kit, draw: random.Random) -> None:
    """See that a damaged journal is refused, or holds trials of the whole one."""
    from halfseen.tuning.journal import open_journal

    path = kit.work / "whole.journal"
    if not path.exists():
        add_trials(path, 5)
    known = values_of(path)
    kit.input = damaged(path.read_bytes(), draw)
    copy = kit.work / "damaged.journal"
    copy.write_bytes(kit.input)
    with contextlib.suppress(HalfseenError):
        open_journal(copy)
        if kit.input:
            found = values_of(copy)
            if not all(known.get(number) == value for number, value in found.items()):
                raise AssertionError("another value was read")


def add_trials(path: Path, count: int) -> None:
    """Write trials, each with its number as its value."""
    import optuna

    from halfseen.tuning.journal import open_journal

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(storage=open_journal(path), study_name="s", load_if_exists=True)
    for _ in range(count):
        trial = study.ask()
        study.tell(trial, trial.number + 0.5)


def values_of(path: Path) -> dict[int, float]:
    """Return the values of the finished trials of a journal."""
    import optuna

    from halfseen.tuning.journal import open_journal

    try:
        study = optuna.load_study(storage=open_journal(path), study_name="s")
    except KeyError:
        return {}
    return {t.number: t.value for t in study.trials if t.state.is_finished()}


# --- kills and full disks --------------------------------------------------------------------


def forked(work: Callable[[], None]) -> int:
    """Run something in a process of its own; return its id."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 2)
            work()
        code = 0
    except HalfseenError:
        code = 3
    finally:
        os._exit(code)


def killed(work: Callable[[], None], draw: random.Random, longest: float = 0.06) -> None:
    """Run something in a process of its own, and kill it after a moment."""
    child = forked(work)
    time.sleep(draw.random() * longest)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def save(kit: Kit, folder: Path, number: int) -> None:
    """Write one of the models into a folder."""
    from halfseen.saving.folder import write_folder

    write_folder(folder, *kit.models[number])


def save_in_turns(kit: Kit, folder: Path, times: int = 10**9) -> None:
    """Write one model, then the other, again and again."""
    for number in range(times):
        save(kit, folder, number % 2)


def check_folder(kit: Kit, folder: Path) -> None:
    """Refuse anything but one of the two models, and nothing beside it after the next save."""
    found = load(folder).predict_proba(kit.frame)
    if not any(np.allclose(found, known, rtol=0, atol=1e-6) for known in kit.answers):
        raise AssertionError("neither model is there")
    save(kit, folder, 0)
    others = [path.name for path in folder.parent.iterdir() if path != folder]
    if others:
        raise AssertionError(f"something was left: {others}")


def place_of(kit: Kit, name: str) -> Path:
    """Return a folder for one class of cases, with a model in it."""
    folder = kit.work / name / "model"
    if not folder.exists():
        save(kit, folder, 0)
    return folder


def kill_while_saving(kit: Kit, draw: random.Random) -> None:
    """See that after a kill the folder is one of the two models."""
    folder = place_of(kit, "killed")
    killed(partial(save_in_turns, kit, folder), draw)
    check_folder(kit, folder)


def kill_while_keeping_checkpoints(kit: Kit, draw: random.Random) -> None:
    """See that after a kill the checkpoint is one of the two."""
    from halfseen.networks.training.checkpoints import read_checkpoint, write_checkpoint

    path = kit.work / "kept" / "run.safetensors"
    if not path.exists():
        write_checkpoint(path, checkpoint_of(kit, 0))

    def work() -> None:
        for number in range(10**9):
            write_checkpoint(path, checkpoint_of(kit, number % 2))

    killed(work, draw)
    same_checkpoint(kit, read_checkpoint(path, "run"))


def kill_while_searching(kit: Kit, draw: random.Random) -> None:
    """See that after a kill the journal holds every trial that was finished before."""
    path = kit.work / "search" / f"{draw.randrange(20)}.journal"
    before = values_of(path) if path.exists() else {}
    killed(partial(add_trials, path, 10**6), draw, longest=0.3)
    if path.exists():
        found = values_of(path)
        if not before.items() <= found.items():
            raise AssertionError("finished trials were lost")
        if any(value != number + 0.5 for number, value in found.items()):
            raise AssertionError("another value was read")
        if len(found) > 300:
            path.unlink()


def two_writers(kit: Kit, draw: random.Random) -> None:
    """Let two processes save into one folder, and kill one of them now and then."""
    folder = place_of(kit, "shared")
    children = [forked(partial(save_in_turns, kit, folder, 5)) for _ in range(2)]
    if draw.random() < 0.5:
        time.sleep(draw.random() * 0.05)
        os.kill(children[0], signal.SIGKILL)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    if codes[1] != 0 or codes[0] not in (0, -signal.SIGKILL):
        raise AssertionError(f"a writer ended with {codes}")
    check_folder(kit, folder)


def full_disk(kit: Kit, draw: random.Random) -> None:
    """Stop writing after some bytes: the former model stays, and the refusal is a sentence."""
    folder = place_of(kit, "full")
    most = draw.randrange(2 * sum(map(len, kit.files.values())))

    def work() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        save(kit, folder, 1)

    code = os.waitstatus_to_exitcode(os.waitpid(forked(work), 0)[1])
    if code not in (0, 3):
        raise AssertionError(f"saving ended with {code}")
    check_folder(kit, folder)


# --- tables and requests --------------------------------------------------------------------


def written(frame: pd.DataFrame, kind: str) -> bytes:
    """Return a table as the bytes of a file."""
    table, sink = pa.Table.from_pandas(frame), io.BytesIO()
    if kind == "csv":
        pa.csv.write_csv(table, sink)
    elif kind == "parquet":
        pa.parquet.write_table(table, sink, row_group_size=30)
    else:
        new = pa.ipc.new_stream if kind == "stream" else pa.ipc.new_file
        with new(sink, table.schema) as writer:
            writer.write_table(table, 30)
    return sink.getvalue()


def mutate_table(kit: Kit, kind: str, draw: random.Random) -> None:
    """See that a mutated table is scored to the end, or refused with a sentence."""
    from halfseen.front.files import open_table
    from halfseen.model.scoring import score_table

    kit.input = damaged(kit.tables[kind], draw)
    path = kit.work / f"table.{'arrow' if kind == 'stream' else kind}"
    path.write_bytes(kit.input)
    with contextlib.suppress(HalfseenError):
        score_table(kit.loaded, open_table(path), kit.work / "scores.parquet")


def mutate_request(kit: Kit, port: int, draw: random.Random) -> None:
    """See that no request is answered with 5xx, and that a good one is answered after it."""
    rows = kit.frame.drop(columns="spend", errors="ignore").head(5)
    good = rows.astype(object).where(rows.notna(), None).to_dict("records")
    json_body = json.dumps({"records": good}).encode()
    arrow = draw.random() < 0.5
    kit.input = damaged(written(rows, "stream") if arrow else json_body, draw)
    kind = "application/vnd.apache.arrow.stream" if arrow else "application/json"
    for body, media in ((kit.input, kind), (json_body, "application/json")):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        connection.request("POST", "/predict", body, {"Content-Type": media})
        answer = connection.getresponse()
        content = json.loads(answer.read())
        connection.close()
        if answer.status >= 500:
            raise AssertionError(f"status {answer.status}")
        if answer.status != 200 and set(content) != {"error", "field"}:
            raise AssertionError(f"another shape: {content}")
    if answer.status != 200:
        raise AssertionError("a good request was refused")


@contextlib.contextmanager
def served(kit: Kit) -> Iterator[int]:
    """Serve the graph on a thread; give its port."""
    import uvicorn

    from halfseen.serve import Limits, create_app
    from halfseen.serve.run import configured, listen

    logging.disable(logging.CRITICAL)
    server = uvicorn.Server(configured(create_app(kit.scorer, Limits()), Limits()))
    listener = listen("127.0.0.1", 0)
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(10)
        logging.disable(logging.NOTSET)


# --- the run --------------------------------------------------------------------------------


def classes_of(kit: Kit) -> dict[str, Case]:
    """Return what is tried, processes first: the server's threads should not be forked."""
    return {
        "kill while a model is saved": partial(kill_while_saving, kit),
        "kill while checkpoints are kept": partial(kill_while_keeping_checkpoints, kit),
        "kill while a search goes on": partial(kill_while_searching, kit),
        "two writers of one model": partial(two_writers, kit),
        "full disk while a model is saved": partial(full_disk, kit),
        "damaged model.json": partial(damage_model, kit, "model.json"),
        "damaged model.safetensors": partial(damage_model, kit, "model.safetensors"),
        "forged model.json": partial(forge_description, kit),
        "damaged checkpoint": partial(damage_checkpoint, kit),
        "damaged journal": partial(damage_journal, kit),
        "damaged graph": partial(damage_graph, kit),
        "mutated CSV": partial(mutate_table, kit, "csv"),
        "mutated Parquet": partial(mutate_table, kit, "parquet"),
        "mutated Arrow file": partial(mutate_table, kit, "arrow"),
        "mutated Arrow stream": partial(mutate_table, kit, "stream"),
    }


def torture(
    seed: int, seconds: float, failures: Path, most: int | None = None, only: str = ""
) -> dict[str, Tally]:
    """Run every class for its share of the time, or for at most so many cases."""
    # In memory, where there is a place: kills come at more moments if nothing waits for a disk.
    place = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=place) as root:
        kit = Kit(Path(root), made_up_rows(40)[0].drop(columns="spend"))
        cases = classes_of(kit)
        with contextlib.ExitStack() as stack:
            names = [name for name in (*cases, "mutated requests") if only in name]
            found = {}
            for name in names:
                if name not in cases:
                    cases[name] = partial(mutate_request, kit, stack.enter_context(served(kit)))
                found[name] = run_class(
                    kit, name, cases[name], seed, seconds / len(names), most, failures
                )
    return found


def run_class(
    kit: Kit, name: str, case: Case, seed: int, seconds: float, most: int | None, failures: Path
) -> Tally:
    """Run one class; keep the inputs of what fails."""
    tally, end = Tally(), time.monotonic() + seconds
    while time.monotonic() < end and (most is None or tally.cases < most):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        kit.input = b""
        try:
            case(random.Random(f"{seed} {name} {tally.cases}"))
            if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before > LARGEST_GROWTH:
                raise AssertionError("more than 1 GiB was taken")
        except Exception as error:
            tally.failed += 1
            tally.first_failure = tally.first_failure or f"case {tally.cases}: {error!r}"[:300]
            failures.mkdir(parents=True, exist_ok=True)
            (failures / f"{seed} {name} {tally.cases}").write_bytes(kit.input)
        tally.cases += 1
    return tally


def table_of(found: dict[str, Tally]) -> str:
    """Return the outcome as a Markdown table."""
    lines = ["| class | cases | survived | failed |", "| --- | ---: | ---: | ---: |"]
    total = Tally(sum(t.cases for t in found.values()), sum(t.failed for t in found.values()))
    for name, tally in {**found, "all": total}.items():
        lines.append(
            f"| {name} | {tally.cases:,} | {tally.cases - tally.failed:,} | {tally.failed:,} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="classes whose name contains this")
    parser.add_argument("--failures", type=Path, default=Path("torture-failures"))
    given = parser.parse_args()
    found = torture(given.seed, given.seconds, given.failures, only=given.only)
    print(table_of(found))
    for name, tally in found.items():
        if tally.failed:
            print(f"{name}: {tally.first_failure}", file=sys.stderr)
    sys.exit(any(tally.failed for tally in found.values()))


if __name__ == "__main__":
    main()
