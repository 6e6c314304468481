"""Labels that the shift turns round: nothing in unlabelled rows tells, a few labels do."""

import numpy as np
import pandas as pd

import halfseen


def rows_of(seed: int, shift: float) -> pd.DataFrame:
    values = np.random.default_rng(seed).normal(shift, 1.0, (400, 4))
    return pd.DataFrame(values, columns=list("abcd"))


def test_a_few_labels_tell_that_the_shift_turned_the_classes_round():
    source, target = rows_of(0, 0.0), rows_of(1, 0.5).drop(columns="d")
    source["sick"] = np.where(source.a + source.b > 0, "yes", "no")
    turned = np.where(target.a + target.b > 0, "no", "yes")
    model = halfseen.fit(source, target, "sick", members=["regression"], report=False)
    found = model.evaluate(target[:60], turned[:60])
    assert any(verdict.startswith("Worse than") for verdict in found["verdicts"])
    assert any("Other than the fit let expect" in verdict for verdict in found["verdicts"])


def test_a_few_labels_in_the_fit_turn_the_answer_round_again():
    source, target = rows_of(0, 0.0), rows_of(1, 0.5).drop(columns="d")
    source["sick"] = np.where(source.a + source.b > 0, "yes", "no")
    turned = np.where(target.a + target.b > 0, "no", "yes")
    target["sick"] = np.where(np.arange(len(target)) < 100, turned, None)
    model = halfseen.fit(source, target, "sick", members=["regression"], report=False)
    unseen = target[100:].drop(columns="sick")
    assert (model.predict(unseen) == turned[100:]).mean() > 0.5
