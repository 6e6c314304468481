import json
import subprocess
import sys

import pytest

from halfseen import InputError
from halfseen_bench.runner import SweepTask, read_log, run_tasks
from halfseen_bench.tables import paired_difference, summarize


def double(number, trace):
    with open(trace, "a") as file:
        file.write(f"{number}\n")
    if number == 13:
        raise ValueError("thirteen is not a number I like")
    return {"value": 2 * number}


def tasks(trace, numbers):
    return [SweepTask(f"number {n}", {"number": n, "trace": str(trace)}) for n in numbers]


def test_finished_tasks_are_kept_and_never_repeated(tmp_path):
    trace, log = tmp_path / "trace", tmp_path / "runs.jsonl"
    first, _ = run_tasks(tasks(trace, [1, 2]), double, log, jobs=1, quiet=True)
    again, _ = run_tasks(tasks(trace, [1, 2, 3]), double, log, jobs=1, quiet=True)
    assert [result["value"] for result in first] == [2, 4]
    assert [result["value"] for result in again] == [2, 4, 6]
    assert trace.read_text().split() == ["1", "2", "3"]


def test_a_line_cut_off_by_a_kill_is_run_again(tmp_path):
    trace, log = tmp_path / "trace", tmp_path / "runs.jsonl"
    run_tasks(tasks(trace, [1, 2]), double, log, jobs=1, quiet=True)
    log.write_text(log.read_text()[:-8])
    results, _ = run_tasks(tasks(trace, [1, 2]), double, log, jobs=1, quiet=True)
    assert [result["value"] for result in results] == [2, 4]
    assert len([json.loads(line) for line in log.read_text().splitlines()]) == 2


def test_one_failed_task_does_not_end_the_others(tmp_path):
    log = tmp_path / "runs.jsonl"
    results, failures = run_tasks(
        tasks(tmp_path / "trace", [1, 13, 3]), double, log, jobs=2, quiet=True
    )
    assert [result["value"] for result in results] == [2, 6]
    (failure,) = failures
    assert failure.startswith("number 13: thirteen is not a number I like")


def test_a_damaged_log_gets_a_sentence(tmp_path):
    log = tmp_path / "runs.jsonl"
    log.write_text('nonsense\n{"key": "a", "result": {}}\n')
    with pytest.raises(InputError, match=r"Line 1 of .* is not a finished run"):
        run_tasks([], double, log, quiet=True)


def runs(model, accuracies, refined=False, choice="last"):
    return [
        {
            "model": model,
            "divergence": None,
            "refined": refined,
            "seed": seed,
            "epoch_choice": choice,
            "accuracy": accuracy,
        }
        for seed, accuracy in enumerate(accuracies)
    ]


def test_tables_keep_models_refinement_and_choices_apart():
    records = [
        *runs("A", [0.5, 0.6]),
        *runs("A", [0.9, 0.9], choice="oracle"),
        *runs("A", [0.7, 0.7], refined=True),
        *runs("B", [0.4, 0.1]),
    ]
    rows = summarize(records)
    assert [key.label for key in rows] == ["A", "A + refinement", "B"]
    first = next(iter(rows.values()))
    assert first["last"].mean == pytest.approx(55.0)
    assert first["last"].deviation == pytest.approx(7.0711, abs=1e-3)
    assert first["oracle"].mean == pytest.approx(90.0)


def test_differences_are_paired_by_seed():
    records = [*runs("A", [0.5, 0.7, 0.9]), *runs("B", [0.4, 0.6, 0.8])]
    difference = paired_difference(records, "A", "B")
    assert difference.mean == pytest.approx(10.0)
    assert difference.deviation == pytest.approx(0.0, abs=1e-9)
    assert paired_difference(records, "A", "C") is None


def test_logs_of_several_machines_are_one_log_when_put_together(tmp_path):
    logs = [tmp_path / name for name in ("one.jsonl", "two.jsonl")]
    for log, number in zip(logs, (1, 2), strict=True):
        run_tasks(tasks(tmp_path / "t", [number]), double, log, jobs=1, quiet=True)
    whole = tmp_path / "runs.jsonl"
    whole.write_text("".join(log.read_text() for log in logs))
    again, _ = run_tasks(tasks(tmp_path / "t", [1, 2]), double, whole, jobs=1, quiet=True)
    assert [result["value"] for result in again] == [2, 4]
    assert (tmp_path / "t").read_text().split() == ["1", "2"]


def test_two_sweeps_do_not_write_one_log(tmp_path):
    log = tmp_path / "runs.jsonl"
    code = "import sys, fcntl; f = open(sys.argv[1], 'a'); fcntl.flock(f, fcntl.LOCK_EX);"
    code += "print('held', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(log)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(InputError, match="Another sweep is writing to"):
            run_tasks([], double, log, quiet=True)
        other.stdin.close()


def test_reading_a_log_leaves_it_as_it_is(tmp_path):
    log = tmp_path / "runs.jsonl"
    log.write_text('{"key": "a", "result": {}}\n{"key": "b", "res')
    assert read_log(log) == {"a": {}}
    assert log.read_text().endswith('"res'), "a sweep may still be writing this line"


def test_a_packed_log_is_read_and_not_run_again(tmp_path):
    log = tmp_path / "runs.jsonl"
    run_tasks(tasks(tmp_path / "t", [1, 2]), double, log, jobs=1, quiet=True)
    subprocess.run(["gzip", str(log)], check=True)
    again, failures = run_tasks(tasks(tmp_path / "t", [1, 2, 3]), double, log, jobs=1, quiet=True)
    assert [result["value"] for result in again] == [2, 4, 6]
    assert not failures
    assert len(log.read_text().splitlines()) == 1


def test_a_damaged_packed_log_is_one_sentence(tmp_path):
    (tmp_path / "runs.jsonl.gz").write_bytes(b"no gzip")
    with pytest.raises(InputError, match="is no packed log"):
        read_log(tmp_path / "runs.jsonl")
