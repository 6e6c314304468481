"""UCI gas sensor array drift: which of six gases, by an array of 16 sensors that age.

The target's array is taken to have the first 8 sensors alone, months after the source. The
concentration of the gas is left out: it is not an input.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from halfseen.blocks import Blocks
from halfseen.errors import InputError
from halfseen_bench.data.natural import evaluation_note, make_pair, text_lines
from halfseen_bench.data.official import OfficialFile, locate
from halfseen_bench.data.pairs import Card, DomainPair, Inputs, Labelled
from halfseen_bench.data.splitting import Evaluation, check_domains

__all__ = ["CLASSES", "COLUMNS", "DOMAINS", "FILES", "MISSING", "load_pair", "read_batch"]

_BATCHES = {"batches1-2": (1, 2), "batch3": (3,), "batch4": (4,), "batch5": (5,), "batch6": (6,)}
DOMAINS = tuple(_BATCHES)
# No hashes: copies with other line ends are as good, and the archive's own are not published.
FILES = tuple(OfficialFile(f"gas/batch{batch}.dat") for batch in range(1, 7))
CLASSES = ("ethanol", "ethylene", "ammonia", "acetaldehyde", "acetone", "toluene")
_FEATURES = (
    *("DR", "|DR|", "EMAi0.001", "EMAi0.01", "EMAi0.1"),
    *("EMAd0.001", "EMAd0.01", "EMAd0.1"),
)
COLUMNS = tuple(f"{feature}_{sensor}" for sensor in range(1, 17) for feature in _FEATURES)
"""Steady resistance, its normalised value, and moving averages of its rise and decay."""
MISSING = COLUMNS[64:]
"""All features of the sensors 9 to 16."""


def load_pair(
    root: Path,
    source: str = "batches1-2",
    target: str = "batch3",
    *,
    evaluation: Evaluation = "transductive",
    test_fraction: float = 0.2,
    seed: int = 0,
) -> DomainPair:
    """Read two periods of measurements as one problem of six classes.

    Parameters
    ----------
    root
        The data folder; the files lie under it as :data:`FILES` names them.
    source, target
        Two of :data:`DOMAINS`; the batches are in the order of time.
    evaluation, test_fraction, seed
        As in :func:`halfseen_bench.data.heart.load_pair`.
    """
    check_domains(source, target, DOMAINS)
    parts = []
    for domain in (source, target):
        batches = [read_batch(locate(root, FILES[b - 1].path)) for b in _BATCHES[domain]]
        inputs = np.concatenate([batch.inputs for batch in batches])
        parts.append(Labelled(inputs, np.concatenate([batch.labels for batch in batches])))
    absent = [name for c, name in enumerate(CLASSES) if c not in parts[1].labels]
    card = Card(
        what=f"Which of six gases, learned on {source}, predicted on {target} with 8 sensors.",
        origin="UCI Machine Learning Repository, Gas Sensor Array Drift at Different "
        "Concentrations (doi:10.24432/C5MK6M), batch*.dat; Vergara and others (2012), Chemical gas "
        "sensor drift compensation using classifier ensembles, Sensors and Actuators B 166; "
        "Rodriguez-Lujan and others (2014), On the calibration of sensor arrays for pattern "
        "recognition using the minimal number of experiments, Chemometrics and Intelligent "
        "Laboratory Systems 130",
        licence="CC BY 4.0; research use asked",
        counts={source: len(parts[0]), target: len(parts[1])},
        missing=f"Sensors 9 to 16 of {target}, {len(MISSING)} of {len(COLUMNS)} columns, hidden by "
        "hand.",
        notes=(
            "Eight features of each sensor, as in the files; the concentration is left out.",
            f"No row of {target} is {' or '.join(absent)}."
            if absent
            else f"All six gases are in {target}.",
            evaluation_note(evaluation),
        ),
    )
    return make_pair(
        source,
        target,
        source_part=parts[0],
        target_part=parts[1],
        blocks=Blocks.columns(COLUMNS, MISSING),
        classes=CLASSES,
        card=card,
        evaluation=evaluation,
        test_fraction=test_fraction,
        seed=seed,
        is_complete=True,
    )


def read_batch(path: Path) -> Labelled:
    """Return the 128 features and the gases, numbered from 0, of one batch.

    A line is ``class;concentration 1:value ... 128:value``.
    """
    lines = text_lines(path)
    if not lines:
        raise InputError(f"{path} holds no measurements.")
    inputs: Inputs = np.empty((len(lines), len(COLUMNS)), dtype=np.float32)
    labels = np.empty(len(lines), dtype=np.int64)
    for row, (where, line) in enumerate(lines):
        first, *fields = line.split()
        gas = first.partition(";")[0]
        if gas not in ("1", "2", "3", "4", "5", "6"):
            raise InputError(f"{where}: the class {gas!r} is not one of 1 to 6.")
        if len(fields) != len(COLUMNS):
            raise InputError(f"{where} has {len(fields)} features; {len(COLUMNS)} are needed.")
        labels[row] = int(gas) - 1
        inputs[row] = [_value(field, n, where) for n, field in enumerate(fields, start=1)]
    return Labelled(inputs, labels)


def _value(field: str, number: int, where: str) -> float:
    position, _, text = field.partition(":")
    try:
        value = float(text)
    except ValueError:
        value = np.nan
    if position != str(number) or not np.isfinite(value):
        raise InputError(f"{where}: {field!r} is not feature {number} with a number.")
    return value
