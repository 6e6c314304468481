"""Sections on the answer: what to expect of it, how it is made, and calibration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from halfseen.alarms import Alarm, sentences
from halfseen.errors import InputError
from halfseen.evidence.density_ratio import ENOUGH_OVERLAP
from halfseen.model.summaries import member_words, told
from halfseen.report.facts import Expectation, ReportFacts
from halfseen.report.html import (
    Cell,
    Figure,
    Figures,
    Grid,
    Head,
    Judgement,
    Judgements,
    Paragraph,
    Part,
    Tile,
    grid,
    number,
    percent,
)
from halfseen.report.svg import reliability_plot
from halfseen.targets import LABEL_KINDS, target_type_of

FEW_ROWS = 100
"""Effective rows below which an estimate rests on a handful of rows."""
WORDS = {
    "balanced_accuracy": "balanced accuracy",
    **{n: m.words for kind in LABEL_KINDS.values() for n, m in kind.measures.items()},
}
"""What measures are called."""
SHARES = ("accuracy", "balanced_accuracy", "coverage")
"""Measures that are shown in percent."""


def alarm_tiles(alarms: Sequence[Alarm]) -> list[Tile]:
    """Return what must be read before any number: how many alarms there are, and of what."""
    if not alarms:
        return []
    named = [": ".join([a.kind, *([", ".join(a.columns)] if a.columns else [])]) for a in alarms]
    more = f" and {len(named) - 3} more" if len(named) > 3 else ""
    value = f"{len(alarms)} alarm{'s' if len(alarms) > 1 else ''}"
    return [Tile("Looks wrong", value, "; ".join(named[:3]) + more, bad=True)]


def expected_tiles(facts: ReportFacts, alarms: Sequence[Alarm] = ()) -> list[Tile]:
    """Return the headline: the expected accuracy or error, or that nobody can tell and why."""
    found = facts.expectation
    name = next(iter(found.target)) if found is not None else "accuracy"
    title = f"Expected {WORDS.get(name, name)} on the target"
    if found is None and "expected" not in facts.left_out:
        return []
    if found is None or not found.tells:
        why = facts.left_out["expected"] if found is None else _overlap_sentence(found)
        return [Tile(title, "Cannot be told", f"{why} {_label_some(name)}", bad=True)]
    expected, shown = found.target[name], ".1%" if name == "accuracy" else ".4g"
    words = (
        f"90% interval around {expected.value:{shown}}; {found.source[name].value:{shown}} on the "
        "source."
    )
    few = found.effective_rows < FEW_ROWS
    if few:
        words += f" Careful: it rests on {found.effective_rows:.0f} effective rows."
    if alarms:
        words += " Careful: it does not hold if an alarm is right."
    shown = ".0%" if name == "accuracy" else ".3g"
    value = f"{expected.low:{shown}} to {expected.high:{shown}}"
    return [Tile(title, value, words, bad=few or bool(alarms))]


def expected_parts(facts: ReportFacts, alarms: Sequence[Alarm] = ()) -> list[Part]:
    """Show what is known of the quality on the target, the warning beside its number."""
    of_rows = [alarm for alarm in alarms if not alarm.columns]
    parts: list[Part] = [Paragraph(f"Alarm: {s}", warning=True) for s in sentences(of_rows)]
    found = facts.expectation
    if found is not None:
        covered = Judgement(
            "Do the source rows cover the target, in what both have observed?",
            found.tells,
            _overlap_sentence(found),
        )
        unseen = Judgement(
            "Do labels follow from the observed columns on the target as on the source?",
            None,
            f"No unlabelled row can tell. {_label_some(next(iter(found.target)))} `halfseen "
            "rehearse` shows what the shift of the observed columns alone would do.",
        )
        parts += [Judgements((covered, unseen)), _quality_grid(found, facts.measured_on)]
    return parts


def answer_parts(metrics: Mapping[str, Any]) -> list[Part]:
    """Say how the answer is made: members, maps, teachers; and when a simple tool would do."""
    try:
        sentences = list(told(metrics))
        return [*_measured(metrics), *(Paragraph(s) for s in sentences), *_choice(metrics)]
    except (AttributeError, KeyError, TypeError, ValueError):
        raise InputError("The metrics in model.json cannot be understood: fit again.") from None


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
    titles = (Head("predicted, mean"), "observed share", "rows")
    rows = [(b.predicted, b.observed, number(float(b.rows), ",.0f")) for b in found.bins]
    note = "Larger points hold more rows; whiskers are 95% intervals."
    return [
        Paragraph(
            f"Expected calibration error {found.error:.3f}, on {facts.measured_on or 'source rows'}"
            ". On a shifted target it is usually larger, by an amount that unlabelled rows cannot "
            "tell."
        ),
        Figures((Figure(f"Probability of {of}", drawing),)),
        grid("The bins of the curve", titles, rows, [note], folded=True),
    ]


def _label_some(measure: str) -> str:
    told = "accuracy within ten points" if measure == "accuracy" else "`halfseen evaluate` measures"
    return f"To know, label a hundred target rows drawn at random: {told}."


def _overlap_sentence(found: Expectation) -> str:
    worth = (
        f"On the target, the {found.rows:,} source rows are worth {found.overlap:.1%} of their "
        "number"
    )
    if found.tells:
        return f"{worth}, at least {ENOUGH_OVERLAP:.0%} as an estimate needs."
    return f"{worth}, below {ENOUGH_OVERLAP:.0%}: too few of them look like its rows."


def _quality_grid(found: Expectation, measured_on: str) -> Grid:
    words = {name: WORDS.get(name, name) for name in found.source}
    rows: list[tuple[Cell | str | float, ...]] = [
        (f"{words[n]} on the source", e.value, e.low, e.high) for n, e in found.source.items()
    ]
    notes = [f"Source rows: {measured_on}."] if measured_on else []
    if found.tells:
        rows += [
            (f"{words[n]} expected on the target", e.value, e.low, e.high)
            for n, e in found.target.items()
        ]
        notes.append(
            "Expected: each source row counts by how much more often its observed columns occur on "
            f"the target (deep embedded validation; worth {found.effective_rows:,.0f} equally "
            "weighted rows). Intervals cover the sampling of source and target rows, and by how "
            "much labels followed from the observed columns in another way on other problems; on "
            "yours it may be more."
        )
    else:
        unknown = Cell("cannot be told", strong=True)
        rows += [(f"{word} on the target", unknown, "–", "–") for word in words.values()]
    return grid("Quality", ("measure", "value", "90% interval, from", "to"), rows, notes)


def _measured(metrics: Mapping[str, Any]) -> list[Part]:
    """Show the answer and each of its members on held-out source rows, with their weights."""
    held_out, weights = metrics.get("held_out_source", {}), metrics.get("weights", {})
    named = {
        ("the answer, missing block hidden as on the target", None): held_out.get(
            "without_missing_block"
        )
    }
    members = metrics.get("members", {})
    if len(members) > 1:
        heaviest = sorted(members, key=lambda name: -float(weights.get(name, 0.0)))
        kind = target_type_of(metrics)
        named |= {(member_words(n, kind), weights.get(n)): members[n] for n in heaviest}
    named |= {("with the missing block shown", None): held_out.get("with_missing_block")}
    known = {title: measured for title, measured in named.items() if measured}
    if not known:
        return []
    measures = [name for name in next(iter(known.values())) if name in WORDS]
    rows: list[tuple[Any, ...]] = []
    for (title, weight), measured in known.items():
        values = (
            percent(measured.get(n)) if n in SHARES else number(measured.get(n), ".5g")
            for n in measures
        )
        count = number(measured.get("rows"), ",.0f")
        rows.append((Cell(title, strong=not rows), number(weight, ".2f"), *values, count))
    titles = ("who", "weight", *(WORDS[name] for name in measures), "rows")
    note = "Source rows: on a shifted target a model usually does worse."
    return [grid("The answer and its members, on held-out source rows", titles, rows, [note])]


def _choice(metrics: Mapping[str, Any]) -> list[Part]:
    choice = metrics.get("choice")
    if not choice:
        return []
    risks = sorted(choice["weighted_cross_entropy"].items(), key=lambda entry: entry[1])
    rows = [(Cell(name, strong=not k), number(r, ".4f")) for k, (name, r) in enumerate(risks)]
    titles = ("model", "expected cross-entropy on the target")
    return [grid("Models of the networks", titles, rows, [f"Chosen by the {choice['rule']}."])]
