"""Sections on quality: candidates, what to expect on the target, and calibration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from halfseen.errors import InputError
from halfseen.members import MEMBER_WORDS
from halfseen.report.facts import Estimate, Quality, ReportFacts
from halfseen.report.page import (
    Cell,
    Figure,
    Figures,
    Grid,
    Head,
    Judgement,
    Judgements,
    Paragraph,
    Part,
    number,
    percent,
)
from halfseen.report.svg import interval_plot, reliability_plot
from halfseen.saving.folder import Description

__all__ = ["comparison_parts", "expected_parts", "reliability_parts"]

FEW_ROWS = 100
"""Effective rows below which an estimate rests on a handful of rows."""
MEASURES = ("rows", "accuracy", "balanced_accuracy", "cross_entropy", "auc")


def comparison_parts(description: Description, facts: ReportFacts) -> list[Part]:
    """Show the candidates of a fit, the chosen model beside its members, and their weights."""
    parts: list[Part] = []
    if facts.candidates:
        heads = (
            Head("model", numeric=False),
            Head("expected cross-entropy on the target"),
            Head("95% interval, from"),
            Head("to"),
            Head("cross-entropy on the source"),
            Head("accuracy on the source"),
            Head("AUC on the source"),
        )
        rows = tuple(
            (
                Cell(f"{c.model} (chosen)" if c.chosen else c.model, strong=c.chosen),
                number(c.risk.value, ".4f", strong=c.chosen),
                number(c.risk.low, ".4f"),
                number(c.risk.high, ".4f"),
                number(c.cross_entropy, ".4f"),
                percent(c.accuracy),
                number(c.auc),
            )
            for c in facts.candidates
        )
        rule = (
            "The only candidate of this fit."
            if len(facts.candidates) == 1
            else "Chosen by the lowest expected cross-entropy on the target: held-out source rows, "
            "weighted by how much more often their observed columns occur there. No target label "
            "was used."
        )
        parts.append(Grid("Candidates of this fit", heads, rows, (rule, *_rows_note(facts))))
    parts += _measured(description.metrics)
    if not parts:
        return []
    parts.append(
        Paragraph(
            "Choice of epoch: last. A fit of tables trains the planned number of epochs and keeps "
            "the final one; no epoch was chosen by looking at any score."
        )
    )
    weights = description.metrics.get("weights")
    if isinstance(weights, dict) and all(isinstance(w, int | float) for w in weights.values()):
        shown = ", ".join(f"{MEMBER_WORDS.get(n, n)} {w:.2f}" for n, w in weights.items())
        parts.append(
            Paragraph(
                f"The answer is a weighted sum of its members' log-probabilities ({shown}); the "
                "weights were fitted on held-out source rows."
            )
        )
    return parts


def _measured(metrics: Mapping[str, Any]) -> list[Part]:
    held_out = metrics.get("held_out_source")
    named = {
        "missing block hidden, as on the target": _of(held_out, "without_missing_block"),
        "missing block shown": _of(held_out, "with_missing_block"),
    }
    members = metrics.get("members")
    if isinstance(members, dict) and len(members) > 1:
        named |= {MEMBER_WORDS.get(name, str(name)): found for name, found in members.items()}
    rows = []
    for title, measured in named.items():
        if isinstance(measured, dict):
            values = [measured.get(name) for name in MEASURES]
            known = [float(v) if isinstance(v, int | float) else None for v in values]
            rows.append(
                (
                    Cell(title),
                    number(known[0], ",.0f"),
                    percent(known[1]),
                    percent(known[2]),
                    number(known[3], ".4f"),
                    number(known[4], ".4f"),
                )
            )
    if not rows:
        return []
    heads = ("rows", "accuracy", "balanced accuracy", "cross-entropy", "AUC")
    return [
        Grid(
            "The chosen model on held-out source rows",
            (Head("asked with", numeric=False), *(Head(title) for title in heads)),
            tuple(rows),
            ("Source rows: on a shifted target a model usually does worse.",),
        )
    ]


def expected_parts(facts: ReportFacts, rehearsal: Mapping[str, Any] | None) -> list[Part]:
    """Show the expected quality with intervals, the verdicts, the terms and the rehearsal."""
    parts: list[Part] = []
    found = facts.expectation
    if found is not None:
        few = found.accuracy.weighted.effective_rows
        if few < FEW_ROWS:
            parts.append(
                Paragraph(
                    f"The weighted rows are worth {few:.0f} equally weighted ones: too few to "
                    "trust these estimates far.",
                    warning=True,
                )
            )
        parts += [
            Figures(
                (
                    Figure("Accuracy", _intervals("accuracy", found.accuracy)),
                    Figure("Cross-entropy", _intervals("cross-entropy", found.cross_entropy)),
                )
            ),
            _quality_grid(found.accuracy, found.cross_entropy, facts),
        ]
    judged = [Judgement(v.question, v.holds, v.sentence) for v in facts.verdicts]
    if found is not None or judged or rehearsal is not None:
        judged += _rehearsed_verdicts(rehearsal)
        parts.append(Judgements(tuple(judged)))
    if found is not None and "verdicts" in facts.left_out:
        parts.append(Paragraph(f"Other verdicts are left out: {facts.left_out['verdicts']}"))
    if facts.terms:
        heads = (Head("term", numeric=False), Head("value"), Head("trust it", numeric=False))
        rows = tuple(
            (Cell(f"{t.name}, {t.symbol}"), number(t.value), Cell(t.trust)) for t in facts.terms
        )
        note = (
            "Estimates: the first three add up to the bound, the fourth comes on top; no guarantee."
        )
        parts.append(Grid("Terms of the adaptation bound", heads, rows, (note,), folded=True))
    return parts + _rehearsal_grids(rehearsal)


def reliability_parts(facts: ReportFacts) -> list[Part]:
    """Draw how often probabilities came true on held-out source rows."""
    found = facts.reliability
    if found is None or not found.bins:
        return []
    of = f"class {found.of}" if found.of is not None else "the predicted class"
    words = (
        f"Reliability of the probability of {of} in {len(found.bins)} bins; the calibration error "
        f"is {found.error:.3f}."
    )
    points = [(b.predicted, b.observed, b.rows) for b in found.bins]
    drawing = reliability_plot(points, words, "predicted probability", "observed share")
    heads = (Head("predicted, mean"), Head("observed share"), Head("rows"))
    rows = tuple(
        (number(b.predicted), number(b.observed), number(float(b.rows), ",.0f")) for b in found.bins
    )
    return [
        Paragraph(
            f"Expected calibration error {found.error:.3f}, on {facts.measured_on or 'source rows'}"
            ". On a shifted target it is usually larger, by an amount that unlabelled rows cannot "
            "tell."
        ),
        Figures((Figure(f"Probability of {of}", drawing),)),
        Grid(
            "The bins of the curve",
            heads,
            rows,
            ("Larger points hold more rows; whiskers are 95% intervals.",),
            folded=True,
        ),
    ]


def _intervals(measure: str, quality: Quality) -> Any:
    named = [
        ("on the source", quality.source),
        ("on the target, weighted rows", quality.weighted),
        ("on the target, weighted with DEV", quality.dev),
    ]
    words = f"{measure} " + "; ".join(
        f"{name}: {e.value:.3f} ({e.low:.3f} to {e.high:.3f})" for name, e in named
    )
    return interval_plot([(n, e.value, e.low, e.high) for n, e in named], words + ".", ".3f")


def _quality_grid(accuracy: Quality, cross_entropy: Quality, facts: ReportFacts) -> Grid:
    heads = (
        Head("measure", numeric=False),
        Head("value"),
        Head("95% interval, from"),
        Head("to"),
        Head("effective rows"),
    )

    def row(name: str, e: Estimate) -> tuple[Cell, ...]:
        return (
            Cell(name),
            number(e.value),
            number(e.low),
            number(e.high),
            number(e.effective_rows, ",.0f"),
        )

    rows = tuple(
        row(f"{measure}, {name}", getattr(quality, way))
        for measure, quality in (("accuracy", accuracy), ("cross-entropy", cross_entropy))
        for name, way in (
            ("on the source", "source"),
            ("expected on the target, weighted", "weighted"),
            ("expected on the target, DEV", "dev"),
        )
    )
    notes = (
        "Weighted: each source row counts by how much more often its observed columns occur on the "
        "target. DEV: the same with what is known about weights, that their mean is one. Both "
        "assume that classes follow from the observed columns in the same way on the target. "
        "Intervals cover the sampling of source rows, not errors of the weights: they hold the "
        "truth less often than they say.",
        *_rows_note(facts),
    )
    return Grid("Expected quality", heads, rows, notes)


def _rehearsed_verdicts(rehearsal: Mapping[str, Any] | None) -> list[Judgement]:
    checks = None if rehearsal is None else rehearsal.get("checks")
    questions = {
        "conditional": "Is p(z2 | z1) the same in slice and rest (assumption 3)?",
        "posterior": "Is p(y | ẑ) the same in slice and rest (assumption 4)?",
    }
    if not isinstance(checks, dict):
        sentence = (
            "The target has neither the missing block nor labels: whether they follow from the "
            "observed columns as on the source cannot be seen there. `halfseen rehearse --output` "
            "checks it on a slice of the source; give its file with --rehearsal."
        )
        question = "Are p(z2 | z1) and p(y | ẑ) the same in both domains (assumptions 3 and 4)?"
        return [Judgement(question, None, sentence)]
    found = []
    for key, question in questions.items():
        largest, p_value, least = (
            _figure(checks, key, part) for part in ("largest", "p_value", "negligible")
        )
        changed = p_value < 0.01 and largest > least
        sentence = f"Rehearsed on a slice: largest change {largest:.3f}, p = {p_value:.3f}."
        found.append(Judgement(question, not changed, sentence))
    return found


def _rehearsal_grids(rehearsal: Mapping[str, Any] | None) -> list[Part]:
    if rehearsal is None:
        return []
    by_model: dict[str, list[Mapping[str, Any]]] = {}
    for run in _listed(rehearsal, "runs"):
        by_model.setdefault(str(run.get("model")), []).append(run.get("measured") or {})
    heads = (
        Head("model", numeric=False),
        Head("cross-entropy"),
        Head("AUC"),
        Head("accuracy"),
        Head("runs"),
    )
    rows = [
        (
            Cell(model),
            *(number(_mean(runs, m), ".4f") for m in ("cross_entropy", "auc", "accuracy")),
            number(float(len(runs)), ".0f"),
        )
        for model, runs in by_model.items()
    ]
    rows.sort(key=lambda row: row[1].value if row[1].value is not None else float("inf"))
    notes = (str(rehearsal["verdict"]), str(rehearsal["trust"]))
    return [Grid("Rehearsed on a slice of the source", heads, tuple(rows), notes)]


def _listed(rehearsal: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    found = rehearsal.get(name)
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
        raise InputError(f"The rehearsal's {name!r} cannot be understood.")
    return found


def _figure(checks: Mapping[str, Any], key: str, part: str) -> float:
    value = _of(checks.get(key), part)
    if not isinstance(value, int | float):
        raise InputError(f"The rehearsal's check {key!r} has no figure {part!r}.")
    return float(value)


def _mean(runs: Sequence[Mapping[str, Any]], measure: str) -> float | None:
    values = [run.get(measure) for run in runs]
    known = [float(value) for value in values if isinstance(value, int | float)]
    return sum(known) / len(known) if known and len(known) == len(runs) else None


def _of(mapping: Any, key: str) -> Any:
    return mapping.get(key) if isinstance(mapping, dict) else None


def _rows_note(facts: ReportFacts) -> tuple[str, ...]:
    return (f"Source rows: {facts.measured_on}.",) if facts.measured_on else ()
