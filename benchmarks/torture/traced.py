"""Processes under strace: what they ask of the system, and faults in its place."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torture.kit import ended, forked

WRITING = (
    "write", "pwrite64", "writev", "openat", "mkdir", "mkdirat", "rename", "renameat", "renameat2",
    "unlink", "unlinkat", "rmdir", "fsync", "fdatasync", "ftruncate", "flock", "close",
)  # fmt: skip
"""Calls by which something is written, named, locked or brought to the disk."""

_LINE = re.compile(r"^\d+\s+(\w+)\((.*)\)\s+= (-?\d+|\?)(?:<([^>]*)>)?.*?(\(INJECTED\))?$")


@dataclass(frozen=True)
class Call:
    """One system call: its name, its arguments as strace writes them, and what came back."""

    name: str
    arguments: str
    result: int
    path: str = ""
    """What a file that was opened is called."""


def missing_strace() -> str:
    """Return why no process can be traced here; empty where one can."""
    if shutil.which("strace") is None:
        return "strace is not installed"
    try:
        code, calls = traced(lambda: os.write(os.open(os.devnull, os.O_WRONLY), b"x"))
    except (OSError, RuntimeError) as error:
        return f"strace cannot attach here: {error}"
    return "" if code == 0 and calls else "strace sees nothing here"


def traced(work: Callable[[], Any], options: Sequence[str] = ()) -> tuple[int, list[Call]]:
    """Run something in a process of its own, traced; return how it ended and what it asked for."""
    reading, writing = os.pipe()
    begun, beginning = os.pipe()

    def wait_and_work() -> None:
        os.close(writing)
        os.write(beginning, b"!")
        os.read(reading, 1)
        os.close(reading)
        work()

    child = forked(wait_and_work)
    os.close(reading)
    os.close(beginning)
    os.read(begun, 1)  # else calls by which the child begins were counted, or failed, by chance
    os.close(begun)
    with tempfile.NamedTemporaryFile("r") as log:
        command = ["strace", "-f", "-y", "-xx", "-s", str(2**26), "-o", log.name]
        command += ["-e", "trace=" + ",".join(WRITING), *options, "-p", str(child)]
        try:
            with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as strace:
                assert strace.stderr is not None
                said = strace.stderr.readline()
                os.close(writing)  # the child goes on, attached to or not
                code = ended(child)
                strace.stderr.read()
        finally:
            if "attached" not in said:
                raise RuntimeError(said.strip())
        calls = [_call(match) for line in log if (match := _LINE.match(line))]
    return code, calls


def _call(match: re.Match[str]) -> Call:
    name, arguments, result, path, _ = match.groups()
    return Call(name, arguments, -1 if result == "?" else int(result), text_of(path or ""))


def bytes_of(quoted: str) -> bytes:
    r"""Return what strace writes as \x68\x65."""
    return bytes.fromhex(quoted.replace("\\x", ""))


def text_of(quoted: str) -> str:
    """Return a name that strace writes so."""
    return os.fsdecode(bytes_of(quoted))


def inside(call: Call, folder: Path) -> bool:
    """Whether a call names something in a folder, or the folder."""
    hexed = "".join(f"\\x{byte:02x}" for byte in os.fsencode(folder))
    return hexed in call.arguments
