import csv
import io

import pytest

from halfseen import InputError, OptionError
from halfseen_bench.comparison import (
    curve_tables,
    difference_tables,
    overview_tables,
    paper_tables,
    problem_tables,
)
from halfseen_bench.paper import PAPER, paper_cell
from halfseen_bench.rendering import FORMATS, Best, ResultTable, rendered

IMPUTATION, IGNORE = "Adaptation-Imputation", "Adaptation-IgnoreComponent"
METRICS = {"usps:mnist": ["accuracy"]}


def runs(model, accuracies, *, choice="last", divergence="adversarial", labels=False):
    return [
        {
            "pair": "usps:mnist",
            "layout": "The bottom half; framing as_is.",
            "source_rows": 7291,
            "budget": "cpu",
            "preset": "default",
            "variant": "",
            "model": model,
            "divergence": divergence,
            "refined": False,
            "seed": seed,
            "epoch_choice": choice,
            "accuracy": accuracy,
            "uses_target_labels": labels,
        }
        for seed, accuracy in enumerate(accuracies)
    ]


RECORDS = [
    *runs(IGNORE, [0.70, 0.80]),
    *runs(IMPUTATION, [0.80, 0.82]),
    *runs(IMPUTATION, [0.83, 0.85], choice="oracle"),
    *runs("Logistic regression, ignore", [0.5, 0.5], divergence=None),
    *runs("Ceiling: network", [0.9, 0.9], divergence=None, labels=True),
]


def cells(table, label):
    (row,) = (row for row in table.rows if row[0] == label)
    return dict(zip(table.columns, row, strict=True))


def test_ours_stands_beside_the_paper_with_the_choice_stated():
    (table,) = problem_tables(RECORDS, METRICS)
    found = cells(table, IMPUTATION)
    assert found["last"] == "81.0 ± 1.4"
    assert isinstance(found["last"], Best)
    assert found["oracle"] == "84.0 ± 1.4"
    assert found["paper (best)"] == "81.4 ± 0.8"
    assert found["last − paper"] == "−0.4"
    assert found["oracle − paper"] == "+2.6"
    assert not isinstance(cells(table, "Ceiling: network")["last"], Best), "it uses target labels"
    notes = " ".join(table.notes)
    for words in ("over 2 seeds", "chosen with the target test labels", "Table 1", "bottom half"):
        assert words in notes


def test_lower_is_bold_for_losses():
    records = [r | {"cross_entropy": 1 - r["accuracy"]} for r in RECORDS]
    (table,) = problem_tables(records, {"usps:mnist": ["cross_entropy"]}, ["last"])
    assert isinstance(cells(table, IMPUTATION)["last"], Best)
    assert not isinstance(cells(table, IGNORE)["last"], Best)


def test_all_problems_on_one_page():
    other = [r | {"pair": "mnist:usps"} for r in RECORDS[:2]]
    (table,) = overview_tables(
        [*RECORDS, *other], {"usps:mnist": ["accuracy"], "mnist:usps": ["accuracy"]}
    )
    row = list(next(r for r in table.rows if r[0] == IGNORE))
    assert row == [IGNORE, "adversarial", *["75.0 ± 7.1", "80.0 ± 1.4", "−5.0"],
                   *["75.0 ± 7.1", "71.5 ± 3.2", "+3.5"]]  # fmt: skip


def test_every_cell_of_the_paper_is_listed_also_those_without_a_run():
    pairs = ["usps:mnist", "svhn:mnist"]
    first, third = paper_tables(RECORDS, pairs, [""])
    published = [cell for cell in PAPER if cell.pair in pairs and not cell.variant]
    assert len(first.rows) + len(third.rows) == len(published)
    assert [row[0] for row in first.rows] == sorted((row[0] for row in first.rows), reverse=True), (
        "pair by pair, as they were asked for"
    )
    ours = {row[:3]: list(row[3:]) for row in first.rows}
    assert ours["usps:mnist", IMPUTATION, "adversarial"] == [
        "81.4 ± 0.8", "81.0 ± 1.4", "−0.4", "84.0 ± 1.4", "+2.6", "2"
    ]  # fmt: skip
    assert ours["svhn:mnist", IMPUTATION, "transport"] == ["49.2 ± 1.5", *"––––", "0"]
    assert third.rows[0][1] == "Adaptation-Full + refinement"
    with pytest.raises(InputError, match="no cell on these pairs"):
        paper_tables(RECORDS, ["demo"], [""])


def test_differences_are_paired_with_an_interval():
    (table,) = difference_tables(RECORDS, METRICS, IGNORE)
    found = cells(table, IMPUTATION)
    assert found[f"minus {IGNORE}"] == "+6.0"
    # differences 10 and 2: 6 ± 12.706 * 5.657 / sqrt(2)
    assert found["95 % interval"] == "−44.8 to +56.8"
    assert not isinstance(found[f"minus {IGNORE}"], Best), "two seeds do not decide"
    with pytest.raises(InputError, match="shares a seed with 'Nobody'"):
        difference_tables(RECORDS, METRICS, "Nobody")


def test_a_learning_curve_has_a_column_per_number_of_source_rows():
    fewer = [r | {"source_rows": 50, "accuracy": r["accuracy"] - 0.2} for r in RECORDS[:3]]
    (table,) = curve_tables([*RECORDS, *fewer], METRICS)
    assert table.columns[2:] == ("50 source rows", "7,291 source rows")
    assert list(table.rows[0][2:]) == ["55.0 ± 7.1", "75.0 ± 7.1"]
    assert cells(table, IMPUTATION)["7,291 source rows"] == "81.0 ± 1.4"
    assert cells(table, IMPUTATION)["50 source rows"] == "60.0 (n=1)"
    assert cells(table, "Ceiling: network")["50 source rows"] == "–"
    (table,) = curve_tables([*RECORDS, *fewer], METRICS, versus=IGNORE)
    found = cells(table, IMPUTATION)
    assert found["50 source rows"] == "+10.0 (–)", "one seed has no interval"
    assert found["7,291 source rows"] == "+6.0 (−44.8 to +56.8)"
    with pytest.raises(InputError, match="shares a seed with 'Nobody'"):
        curve_tables(RECORDS, METRICS, versus="Nobody")


def test_every_format_holds_the_same_cells():
    tables = problem_tables(RECORDS, METRICS)
    texts = {form: rendered(tables, form) for form in FORMATS}
    assert "| **81.0 ± 1.4** |" in texts["markdown"]
    assert r"\bfseries 81.0 ± 1.4 &" in texts["latex"]
    assert ">81.0 ± 1.4</td>" in texts["html"]
    assert "font-weight: bold" in texts["html"]
    for form in ("latex", "html"):
        assert "oracle − paper" in texts[form], "the names of columns"
    assert texts["html"].count("<tr>") == 1 + len(tables[0].rows)
    parsed = list(csv.reader(io.StringIO(texts["csv"])))
    assert all(len(line) == len(tables[0].columns) + 1 for line in parsed)
    assert parsed[2][3] == "81.0 ± 1.4*"
    with pytest.raises(OptionError, match="no format 'pdf'"):
        rendered(tables, "pdf")


def test_text_is_escaped():
    table = ResultTable("a & b", ("x<y",), (("1 % | 2",),))
    assert r"a \& b" in rendered([table], "latex")
    assert ">x&lt;y</th>" in rendered([table], "html")
    assert r"1 % \| 2" in rendered([table], "markdown")


@pytest.mark.parametrize(
    ("pair", "model", "divergence", "refined", "variant", "metric", "expected"),
    [
        ("usps:mnist", IMPUTATION, "adversarial", False, "", "accuracy", (81.4, 0.8)),
        ("mnist:usps", IMPUTATION, "transport", False, "", "accuracy", (66.8, 1.3)),
        ("mnist:mnistm", IGNORE, "transport", False, "", "accuracy", (26.8, 4.4)),
        ("svhn:mnist", "Source-ZeroImputation", None, False, "", "accuracy", (31.5, 2.0)),
        ("usps:mnist", "Adaptation-Full", "transport", False, "", "accuracy", (93.9, 0.6)),
        ("ads-kaggle", IMPUTATION, "adversarial", False, "", "cross_entropy", (0.389, 0.014)),
        ("ads-real", IGNORE, "adversarial", False, "", "cross_entropy", (0.634, 0.0082)),
        ("kitchen:electronics", IMPUTATION, "adversarial", False, "", "accuracy", (78.18, None)),
        ("dvd:books", "Source-Full", None, False, "", "accuracy", (71.95, None)),
        ("svhn:mnist", IMPUTATION, "adversarial", True, "", "accuracy", (58.6, 1.8)),
        ("ads-kaggle", IMPUTATION, "adversarial", True, "", "cross_entropy", (0.317, 0.0023)),
        ("usps:mnist", IMPUTATION, "adversarial", False, "L1 off", "accuracy", (51.3, 2.5)),
        ("mnist:mnistm", IMPUTATION, "adversarial", False, "ADV only", "accuracy", (30.0, 3.7)),
        ("ads-kaggle", IMPUTATION, "adversarial", False, "λ_MSE=1", "cross_entropy",
         (0.401, 0.0014)),
        ("books:kitchen", IMPUTATION, "adversarial", False, "MSE only", "accuracy", (71.39, None)),
    ],
)  # fmt: skip
def test_paper_cells(pair, model, divergence, refined, variant, metric, expected):
    cell = paper_cell(pair, model, divergence, metric, refined=refined, variant=variant)
    assert (cell.mean, cell.deviation) == expected


def test_the_paper_has_so_many_cells():
    by_table = {t: sum(c.table == t for c in PAPER) for t in sorted({c.table for c in PAPER})}
    assert by_table == {"Table 1": 54, "Table 2": 28, "Table 3": 9, "Table 4": 33}
    assert paper_cell("usps:mnist", "Random forest, ignore", None, "accuracy") is None
