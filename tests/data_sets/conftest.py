"""Real files are used where $HALFSEEN_DATA names a folder that has them, else tests skip."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from local_site import site  # noqa: F401

VARIABLE = "HALFSEEN_DATA"


@pytest.fixture(scope="session")
def data_root() -> Path:
    if not os.environ.get(VARIABLE):
        pytest.skip(f"{VARIABLE} is not set: the real files are not at hand")
    return Path(os.environ[VARIABLE])
