"""UCI gas sensor array drift: which of six gases, by an array of 16 sensors that age.

The target's array is taken to have the first 8 sensors alone, months after the source. The
concentration of the gas is left out: it is not an input.
"""

from __future__ import annotations

import io
import re
from pathlib import Path

import numpy as np
from sklearn.datasets import load_svmlight_file

from halfseen.blocks import Blocks
from halfseen.errors import InputError
from halfseen_bench.data.natural import make_pair
from halfseen_bench.data.official import OfficialFile, content, locate
from halfseen_bench.data.pairs import Card, DomainPair, Labelled
from halfseen_bench.data.splitting import Evaluation, check_domains

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

    The batches are in the order of time; the options are those of
    :func:`halfseen_bench.data.heart.load_pair`.
    """
    check_domains(source, target, DOMAINS)
    parts = []
    for domain in (source, target):
        batches = [read_batch(locate(root, FILES[b - 1].path)) for b in _BATCHES[domain]]
        inputs = np.concatenate([batch.inputs for batch in batches])
        parts.append(Labelled(inputs, np.concatenate([batch.labels for batch in batches])))
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
    )
    return make_pair(
        f"{source}->{target}",
        (parts[0], parts[1]),
        blocks=Blocks.columns(COLUMNS, MISSING),
        classes=CLASSES,
        card=card,
        split=(evaluation, test_fraction, seed),
        is_complete=True,
    )


def read_batch(path: Path) -> Labelled:
    """Return the 128 features and the gases, numbered from 0, of one batch.

    A line is ``class;concentration 1:value ... 128:value``: svmlight's format, but for the
    concentration.
    """
    text = re.sub(rb"(?m)^(\d+);\S+", rb"\1", content(path))
    try:
        matrix, gas = load_svmlight_file(io.BytesIO(text), n_features=len(COLUMNS))
    except ValueError as error:
        raise InputError(f"{path} is no batch of measurements: {error}.") from None
    if not len(gas):
        raise InputError(f"{path} holds no measurements.")
    strange = ~np.isin(gas, range(1, 7))
    incomplete = np.diff(matrix.indptr) != len(COLUMNS)
    inputs = matrix.toarray()
    for bad, words in (
        (strange, "has a class that is not one of 1 to 6"),
        (incomplete, f"has not the {len(COLUMNS)} features that are needed"),
        (~np.isfinite(inputs).all(axis=1), "has a feature that is not a number"),
    ):
        if bad.any():
            raise InputError(f"{path}, measurement {bad.argmax() + 1} {words}.")
    return Labelled(inputs.astype(np.float32), gas.astype(np.int64) - 1)
