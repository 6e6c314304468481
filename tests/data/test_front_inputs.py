"""Bad input gets one clear sentence."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from torch import nn

from halfseen import Blocks, HalfSeenClassifier, HalfseenError
from halfseen.data.frames import label_column, read_frame
from halfseen.errors import AlarmWarning
from tiny import classifier

ROWS = 40


def source(**columns):
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.normal(size=(ROWS, 3)), columns=["age", "chol", "thal"])
    return frame.assign(**columns)


def target(**columns):
    return source(**columns).drop(columns="thal")


LABELS = np.arange(ROWS) % 2


def fit(X=None, y=LABELS, X_target=None, **parameters):
    X = source() if X is None else X
    X_target = target() if X_target is None else X_target
    image = isinstance(X, np.ndarray) and X.ndim > 2
    return classifier(image=image, **parameters).fit(X, y, X_target=X_target)


def broken(frame, column, row, value):
    frame = frame.copy()
    frame.loc[row, column] = value
    return frame


def alone(X):
    with pytest.warns(UserWarning, match="No target was given"):
        return classifier().fit(X, LABELS)


IMAGES = np.zeros((ROWS, 1, 8, 8), dtype=np.float32)

CASES = {
    "no missing block": (
        lambda: fit(X_target=source()),
        r"The target has a value for every column of the source \(n_features=3\), so nothing is "
        r"missing there: name what was never measured with missing=\[\.\.\.\]",
    ),
    "no missing block in arrays": (
        lambda: fit(source().to_numpy(), X_target=source().to_numpy()),
        "The target has a value for every column of the source",
    ),
    "no missing block in images": (
        lambda: fit(IMAGES, X_target=IMAGES),
        "No missing block found: the target's images are complete. .*missing='bottom'",
    ),
    "nothing in common": (
        lambda: fit(X_target=pd.DataFrame({"age": [np.nan] * ROWS})),
        "The target shares no usable column with the source: there is nothing to predict from",
    ),
    "a column that looks unmeasured": (
        lambda: fit(X_target=target(chol=0.0)),
        r"Was it measured on the target\? Column 'chol' is 0 in every target row, and varies in "
        r"the source. Say missing=\['chol'\] if not, keep=\['chol'\] if so",
    ),
    "a column that is mostly empty": (
        lambda: fit(X_target=target(chol=np.where(np.arange(ROWS) < 3, 1.0, np.nan))),
        "Column 'chol' is empty in 92% of the target's rows, and in 0% of the source's",
    ),
    "a table and images": (
        lambda: fit(X_target=IMAGES),
        "The source is a table and the target holds images",
    ),
    "images and a table": (
        lambda: fit(IMAGES, X_target=target(), missing="bottom"),
        "The source holds images and the target is a table",
    ),
    "target lacks an observed column": (
        lambda: fit(X_target=target()[["age"]], missing=["thal"]),
        r"The target lacks column 'chol', which missing=\[\.\.\.\] does not name",
    ),
    "a single class": (lambda: fit(y=np.zeros(ROWS)), "The source labels hold one class, 0.0"),
    "no label but NaN": (lambda: fit(y=np.full(ROWS, np.nan)), "No source row has a label"),
    "an infinite label": (
        lambda: fit(y=np.where(np.arange(ROWS) == 3, np.inf, LABELS)),
        "A source label is infinite",
    ),
    "one class beside None": (
        lambda: fit(y=np.array(["yes", None] * (ROWS // 2), dtype=object)),
        "The source labels hold one class, 'yes'",
    ),
    "continuous labels": (lambda: fit(y=np.linspace(0, 1, ROWS)), "Unknown label type"),
    "fewer rows than a batch": (
        lambda: fit(options={"training.batch_size": 64}),
        "The source has 40 rows, fewer than one batch of 64; set training.batch_size to 40 or less",
    ),
    "fewer labels than rows": (lambda: fit(y=LABELS[:-1]), "40 source rows and 39 labels"),
    "infinite values in the source": (
        lambda: fit(X=broken(source(), "chol", 5, np.inf)),
        "Column 'chol' of the source holds an infinite value in row 5; replace it",
    ),
    "infinite values in the target": (
        lambda: fit(X_target=broken(target(), "age", 2, -np.inf)),
        "Column 'age' of the target holds an infinite value in row 2",
    ),
    "too large a number": (
        lambda: fit(X=broken(source(), "age", 1, 1e300)),
        r"Column 'age' of the source holds numbers up to 1e.300, too large to be scaled; rescale "
        r"it, or drop it with drop=\['age'\]",
    ),
    "different dtypes": (
        lambda: fit(X_target=target(age=["old", "7"] * (ROWS // 2))),
        "Column 'age' holds numbers in the source and texts such as 'old' .row 0. in the target",
    ),
    "texts that have nothing in common": (
        lambda: fit(X=source(age=["old", "older"] * 20), X_target=target(age=["young"] * ROWS)),
        r"Was it measured on the target\? Column 'age' is 'young' in every target row",
    ),
    "texts that have nothing in common, whatever they look like": (
        lambda: fit(
            X=source(age=["old", "older"] * 20), X_target=target(age=["young"] * ROWS), keep=["age"]
        ),
        "No value of column 'age' of the target occurs in the source: the target has young, the "
        r"source old, older. Spell them alike, or leave the column out: drop=\['age'\]",
    ),
    "free text": (
        lambda: fit(
            pd.concat([source()] * 3).assign(age=[f"no {row}" for row in range(3 * ROWS)]),
            np.tile(LABELS, 3),
        ),
        r"Column 'age' has 120 different texts in 120 rows: is it an identifier or free text "
        r"\(drop=\['age'\]\), or numbers with other texts among them \(make them numbers, other "
        r"texts NaN\)\? categorical=\['age'\] ",
    ),
    "values of several kinds": (
        lambda: fit(X=source(age=[1, "old"] * (ROWS // 2))),
        "No value of column 'age' of the target occurs in the source: .*, the source 1, old",
    ),
    "nested values": (
        lambda: fit(X=source(age=[[1, 2]] * ROWS)),
        r"Column 'age' of the source holds list<.*> values; .*drop it \(--drop age; in Python",
    ),
    "dates": (
        lambda: fit(
            X=source(age=pd.Timestamp("2020-01-01")),
            X_target=target(age=pd.Timestamp("2020-01-01")),
        ),
        r"Column 'age' of the source holds dates or times \(.*\), which a model cannot use as they "
        r"are: name the parts .*--dates age=month.*drop it \(--drop age; in Python drop=",
    ),
    "a column twice": (
        lambda: read_frame(pd.DataFrame(np.zeros((2, 2)), columns=["a", "a"]), "the source"),
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
        "The missing block names column 'salt', which the source does not have",
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
    "negative rate": (
        lambda: fit(options={"training.learning_rate": -1.0}),
        "training.learning_rate=-1.0: .* greater than 0",
    ),
    "unknown augmentation": (
        lambda: fit(options={"training.augmentation": "blur"}),
        "augmentation='blur': Input should be 'none', 'mask', 'auto', 'affine', 'wide', ",
    ),
    "unknown device": (lambda: fit(device="abacus"), "device='abacus' is unknown"),
    "unknown model": (
        lambda: fit(model="Adaptation-Half"),
        "There is no model 'Adaptation-Half'; choose one of",
    ),
    "refining without adapting": (
        lambda: fit(model="Source-IgnoreComponent", refine=True),
        "Source-IgnoreComponent does not adapt",
    ),
    "a column with two spec": (
        lambda: fit(drop=["age"], keep=["age"]),
        "Column 'age' is given to both keep and drop",
    ),
    "an unknown column to drop": (
        lambda: fit(drop=["agee"]),
        r"drop names column 'agee', which the source does not have \(did you mean 'age'\?\)",
    ),
    "a position beyond the columns": (
        lambda: fit(source().to_numpy(), X_target=source().to_numpy(), missing=[2], drop=[7]),
        "There is no column 7; there are 3",
    ),
    "no label": (lambda: fit(y=None), "requires y to be passed, but the target y is None"),
    "no target and nothing missing": (
        lambda: alone(source()),
        r"No target was given, so missing=\[\.\.\.\] must name the block",
    ),
    "an array of five axes": (
        lambda: fit(np.zeros((ROWS, 1, 1, 1, 1)), X_target=IMAGES),
        r"The source has shape \(40, 1, 1, 1, 1\); give \(rows, columns\) or images",
    ),
    "pixels that are no number": (
        lambda: fit(IMAGES * np.nan, X_target=IMAGES, missing="bottom"),
        "Image 0 of the source holds NaN or an infinite value in pixel row 0, column 0; replace it",
    ),
    "an image too small for the authors' encoder": (
        lambda: fit(IMAGES, X_target=IMAGES, missing="bottom", preset="reference"),
        "A 8x8 image is too small for 3 5x5 convolutions",
    ),
    "an unknown side": (
        lambda: fit(IMAGES, X_target=IMAGES, missing="middle"),
        "missing='middle' is not understood: name a side",
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
        lambda: HalfSeenClassifier().fit(source(), LABELS, target(), sample_domain=np.ones(ROWS)),
        "Give either X_target or sample_domain, not both",
    ),
    "one domain in the stacked form": (
        lambda: HalfSeenClassifier().fit(source(), LABELS, sample_domain=np.ones(ROWS)),
        "positive numbers for source rows and negative ones for target rows",
    ),
    "a domain mark missing": (
        lambda: HalfSeenClassifier().fit(source(), LABELS, sample_domain=[1, -1]),
        r"sample_domain has shape \(2,\) for 40 rows",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_input_gets_one_clear_sentence(name):
    attempt, message = CASES[name]
    with pytest.raises((HalfseenError, ValueError), match=message) as caught:
        attempt()
    assert "\n" not in str(caught.value).strip()


@pytest.fixture(scope="module")
def fitted():
    return fit()


def test_new_rows_that_do_not_fit_get_a_sentence(fitted):
    for message, rows in {
        "X lacks column 'age', which the model observes .*: none of its": target()[[]].assign(z=1),
        "Column 'chol' of X holds an infinite value in row 1": broken(target(), "chol", 1, np.inf),
        "X holds images, and the model was fitted on a table": IMAGES,
        "X has 5 features, but halfseen is expecting 3 features as input, or 2 without": np.zeros(
            (2, 5)
        ),
        "X has 0 rows and 2 columns: nothing there": target().head(0),
    }.items():
        with pytest.raises(HalfseenError, match=message):
            fitted.model_.predict(rows)


def test_new_cells_that_cannot_be_read_raise_an_alarm_and_are_gaps(fitted):
    much = target().astype({"chol": object})
    much.loc[3:4, "chol"] = "much"
    says = r"chol holds 'much' in row 3 \(and something like it in 1 more\), which cannot be read"
    with pytest.warns(AlarmWarning, match=says) as caught:
        answers = fitted.predict_proba(much)
    assert caught[0].filename == __file__
    with_gaps = broken(broken(target(), "chol", 3, np.nan), "chol", 4, np.nan)
    np.testing.assert_array_equal(answers, fitted.predict_proba(with_gaps))


def test_gaps_are_filled_and_said(fitted):
    gaps = broken(target(), "chol", 9, np.nan)
    model = fit(X_target=gaps)
    assert model.notes_ == [
        "chol has 1 gaps on the target and none on the source: they get the source's median."
    ]
    read = fitted.model_.tables.read(gaps)
    filled = fitted.model_.tables.inputs(read)
    np.testing.assert_array_equal(np.delete(filled, 9, 0), fitted.model_.prepare(target().drop(9)))
    assert fitted.model_.tables.gaps is not None
    np.testing.assert_array_equal(fitted.predict_proba(gaps), fitted.model_.score(filled))
    marked = fit(X=broken(source(), "thal", 7, np.nan))
    assert marked.model_.schema.inputs == ("age", "chol", "thal", "thal is missing")


def test_columns_that_the_source_lacks_are_said_and_ignored(fitted):
    with pytest.warns(UserWarning, match="The target has column 'extra', which the source lacks"):
        model = fit(X_target=target(extra=1.0))
    assert model.notes_ == ["Ignored, because the source lacks them: extra."]
    np.testing.assert_array_equal(model.predict_proba(target()), fitted.predict_proba(target()))


def test_columns_that_say_nothing_are_dropped_and_said():
    model = fit(X=source(same="a", empty=None), X_target=target(same="a", empty=None))
    assert model.model_.schema.dropped == ("empty", "same")
    assert model.notes_ == [
        "Dropped, because the source has no value in them: empty.",
        "Dropped, because the source has one value in them: same.",
    ]


def test_numbers_of_different_kinds_are_no_conflict():
    whole = source(age=np.arange(ROWS))
    part = target(age=pd.array([True, False] * (ROWS // 2), dtype="boolean"))
    assert fit(X=whole, X_target=part).predict(part).shape == (ROWS,)


def test_an_empty_text_column_is_a_missing_column():
    part = target().assign(thal=[None] * ROWS)
    assert fit(X_target=part).blocks_.missing == (2,)


def test_labels_are_taken_as_they_are():
    labels, column = label_column(["b", "a", "b"], 3)
    assert labels.tolist() == column.to_pylist() == ["b", "a", "b"]
    assert fit(y=np.array(["b", "a"] * (ROWS // 2))).classes_.tolist() == ["a", "b"]
