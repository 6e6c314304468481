"""Bad input gets one clear sentence."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from halfseen.front.inputs import encode_labels, read_inputs
from torch import nn

from halfseen import (
    AdaptationImputationClassifier,
    Blocks,
    DomainAdaptationClassifier,
    HalfseenError,
)

ROWS = 40


def source(**columns):
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.normal(size=(ROWS, 3)), columns=["age", "chol", "thal"])
    return frame.assign(**columns)


def target(**columns):
    return source(**columns).drop(columns="thal")


LABELS = np.arange(ROWS) % 2


def fit(X=None, y=LABELS, X_target=None, **parameters):
    parameters = {"warmup_epochs": 1, "joint_epochs": 1, "device": "cpu", **parameters}
    X = source() if X is None else X
    X_target = target() if X_target is None else X_target
    return AdaptationImputationClassifier(**parameters).fit(X, y, X_target=X_target)


def broken(frame, column, row, value):
    frame = frame.copy()
    frame.loc[row, column] = value
    return frame


IMAGES = np.zeros((ROWS, 1, 8, 8), dtype=np.float32)

CASES = {
    "no missing block": (
        lambda: fit(X_target=source()),
        "No missing block found among 3 columns .*Name what it lacks with missing=",
    ),
    "no missing block in arrays": (
        lambda: fit(source().to_numpy(), X_target=source().to_numpy()),
        "No missing block found",
    ),
    "target has more columns": (
        lambda: fit(X_target=target(extra=1.0)),
        "The target has column 'extra', which the source lacks",
    ),
    "target lacks an observed column": (
        lambda: fit(X_target=target()[["age"]], missing=["thal"]),
        "The target lacks column 'chol', which the model observes",
    ),
    "a single class": (lambda: fit(y=np.zeros(ROWS)), "The source labels hold one class, 0.0"),
    "a label that is NaN": (
        lambda: fit(y=np.where(np.arange(ROWS) == 3, np.nan, LABELS)),
        r"The source label of row 3 is missing \(NaN\)",
    ),
    "a label that is None": (
        lambda: fit(y=np.array(["yes", None] * (ROWS // 2), dtype=object)),
        "The source label of row 1 is missing",
    ),
    "continuous labels": (lambda: fit(y=np.linspace(0, 1, ROWS)), "Unknown label type"),
    "fewer rows than a batch": (
        lambda: fit(batch_size=64),
        "The source has 40 rows, fewer than one batch of 64; set training.batch_size to 40 or less",
    ),
    "fewer labels than rows": (lambda: fit(y=LABELS[:-1]), "40 source rows and 39 labels"),
    "infinite values in the source": (
        lambda: fit(X=broken(source(), "chol", 5, np.inf)),
        r"Column 'chol' of the source holds an infinite value \(inf\) in row 5",
    ),
    "infinite values in the target": (
        lambda: fit(X_target=broken(target(), "age", 2, -np.inf)),
        "Column 'age' of the target holds an infinite value .* in row 2",
    ),
    "NaN in the source": (
        lambda: fit(X=broken(source(), "thal", 7, np.nan)),
        "Column 'thal' of the source is NaN in row 7 .*SimpleImputer",
    ),
    "NaN in an observed column": (
        lambda: fit(X_target=broken(target(), "chol", 9, np.nan)),
        "Column 'chol' of the target is NaN in row 9 .*SimpleImputer.* or name it in missing=",
    ),
    "too large a number": (
        lambda: fit(X=broken(source(), "age", 1, 1e300)),
        "The source holds 1e.300 in row 1, column 0: too large",
    ),
    "different dtypes": (
        lambda: fit(X_target=target(age=["old"] * ROWS)),
        "Column 'age' is Float64 in the source and .* in the target; convert one of them",
    ),
    "text": (
        lambda: fit(X=source(age=["old"] * ROWS), X_target=target(age=["young"] * ROWS)),
        "Column 'age' of the source holds .*, not numbers: encode it first",
    ),
    "dates": (
        lambda: fit(
            X=source(age=pd.Timestamp("2020-01-01")),
            X_target=target(age=pd.Timestamp("2020-01-01")),
        ),
        "Column 'age' of the source holds Datetime",
    ),
    "a column twice": (
        lambda: read_inputs(pd.DataFrame(np.zeros((2, 2)), columns=["a", "a"]), "the source"),
        "The source has a column more than once",
    ),
    "an empty table": (
        lambda: fit(X_target=pl.DataFrame({"age": [], "chol": []})),
        "The target has 0 row",
    ),
    "arrays of different width": (
        lambda: fit(source().to_numpy(), X_target=target().to_numpy()),
        "name the missing block with missing=",
    ),
    "an unknown column in missing": (
        lambda: fit(missing=["salt"]),
        "names column 'salt', which the source does not have",
    ),
    "unknown preset": (lambda: fit(preset="best"), "preset='best' is unknown; choose one of"),
    "unknown divergence": (
        lambda: fit(divergence="cosine"),
        "divergence='cosine' is unknown; choose one of",
    ),
    "unknown option": (
        lambda: fit(options={"learning_speed": 1}),
        "There is no option 'learning_speed'. Did you mean 'training.learning_rate'",
    ),
    "unknown option value": (
        lambda: fit(options={"objective.reconstruction": "cubed"}),
        "reconstruction='cubed': Input should be 'squared' or 'norm'",
    ),
    "negative rate": (lambda: fit(learning_rate=-1.0), "learning_rate=-1.0: .* greater than 0"),
    "unknown augmentation": (
        lambda: fit(augmentation="blur"),
        "augmentation='blur': Input should be 'none', 'affine', 'mask' or 'swap'",
    ),
    "unknown device": (lambda: fit(device="abacus"), "device='abacus' is unknown"),
    "unknown view": (
        lambda: DomainAdaptationClassifier(view="half").fit(source(), LABELS, target()),
        "view='half' is unknown",
    ),
    "refining without adapting": (
        lambda: DomainAdaptationClassifier(adapt=False, refine=True).fit(
            source(), LABELS, target()
        ),
        "Source-IgnoreComponent does not adapt",
    ),
    "an image too small": (
        lambda: fit(IMAGES, X_target=IMAGES, missing="bottom"),
        "A 8x8 image is too small for 3 5x5 convolutions",
    ),
    "an unknown side": (
        lambda: fit(IMAGES, X_target=IMAGES, missing="left"),
        "side='left' is unknown; choose 'top' or 'bottom'",
    ),
    "images of another size": (
        lambda: fit(IMAGES, X_target=IMAGES[:, :, :4], missing="bottom"),
        r"Rows of the target have shape \(1, 4, 8\), but \(1, 8, 8\) is expected",
    ),
    "blocks of another shape": (
        lambda: fit(IMAGES, X_target=IMAGES, missing=Blocks.rows((1, 32, 32))),
        r"The blocks are for rows of shape \(1, 32, 32\), not \(1, 8, 8\)",
    ),
    "an encoder that does not fit": (
        lambda: fit(encoder=nn.Linear(9, 2)),
        r"encoder of the observed block cannot take inputs of shape \(2,\)",
    ),
    "both ways at once": (
        lambda: AdaptationImputationClassifier().fit(
            source(), LABELS, target(), sample_domain=np.ones(ROWS)
        ),
        "Give either X_target or sample_domain, not both",
    ),
    "one domain in the stacked form": (
        lambda: AdaptationImputationClassifier().fit(source(), LABELS, sample_domain=np.ones(ROWS)),
        "positive numbers for source rows and negative ones for target rows",
    ),
    "a domain mark missing": (
        lambda: AdaptationImputationClassifier().fit(source(), LABELS, sample_domain=[1, -1]),
        r"sample_domain has shape \(2,\) for 40 rows",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_input_gets_one_clear_sentence(name):
    attempt, message = CASES[name]
    with pytest.raises((HalfseenError, ValueError), match=message) as caught:
        attempt()
    assert "\n" not in str(caught.value).strip()


def test_new_rows_that_do_not_fit_get_a_sentence():
    model = fit()
    with pytest.raises(HalfseenError, match="X lacks column 'age'"):
        model.predict(target().drop(columns="age"))
    with pytest.raises(HalfseenError, match="'chol' of X is NaN in row 0"):
        model.predict(broken(target(), "chol", 0, np.nan))


def test_numbers_of_different_kinds_are_no_conflict():
    whole = source(age=np.arange(ROWS))
    part = target(age=pd.array([True, False] * (ROWS // 2), dtype="boolean"))
    assert fit(X=whole, X_target=part).predict(part).shape == (ROWS,)


def test_an_empty_text_column_is_a_missing_column():
    part = target().assign(thal=[None] * ROWS)
    assert fit(X_target=part).blocks_.missing == (2,)


def test_labels_are_encoded_in_order():
    classes, encoded = encode_labels(["b", "a", "b"], 3)
    assert classes.tolist() == ["a", "b"]
    assert encoded.tolist() == [1, 0, 1]
