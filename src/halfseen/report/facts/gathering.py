"""Gather what a report will show, while the rows are at hand; memory and time are bounded.

Nothing here may cost a user the model: what cannot be computed, for instance because a table is
tiny, is left out with the reason.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning

from halfseen.arrays import normalized
from halfseen.errors import HalfseenError
from halfseen.evidence import (
    AdaptationEffect,
    DomainSeparation,
    adaptation_bound,
    adaptation_effect,
    expected_calibration_error,
    missing_block_dependence,
    self_consistency,
)
from halfseen.evidence.assumptions import LEAST_OVERLAP, LEAST_R2, SIGNIFICANCE
from halfseen.evidence.risk import (
    RiskEstimate,
    deep_embedded_validation,
    importance_weighted_validation,
    source_validation,
)
from halfseen.front.schema import TableSchema
from halfseen.front.summary import TableSummary
from halfseen.members import NetworksMember, Sample
from halfseen.metrics import row_losses
from halfseen.model.model import Model
from halfseen.report.facts import (
    ColumnFacts,
    Estimate,
    Expectation,
    ImputationFacts,
    LatentRows,
    Quality,
    Reliability,
    ReliabilityBin,
    ReportFacts,
    Separability,
    Term,
    Verdict,
)
from halfseen.report.facts.columns import column_facts
from halfseen.report.facts.imputed import imputation_facts

__all__ = ["FactSources", "estimate", "gather"]

CHECKED_ROWS = 1_000
"""Rows of each domain that assumptions are checked on."""
PICTURED_ROWS = 400
"""Rows of each domain whose latents are kept."""
COMPONENTS = 16
"""Principal components that are kept of them: t-SNE sees little beyond."""
BINS = 10
TOLERATED = 0.05
"""How much more a classifier may err that learned from the model's own labels of the target."""

Floats = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float32]
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class FactSources:
    """What facts are gathered from.

    Parameters
    ----------
    schema
        Of the model.
    source, target
        Summaries of both tables.
    model
        As it is saved.
    measured_model
        One that was not trained on `measured`.
    training, measured, pictured
        Source rows: to learn from, to measure on, and to draw.
    target_rows
        Prepared target rows, or a sample of them.
    probability, labels, weight
        What the model says of source rows that it was not trained on, their classes, and how
        much more often such rows occur on the target.
    measured_on
        Which rows these are, in words.
    """

    schema: TableSchema
    source: TableSummary
    target: TableSummary
    model: Model
    measured_model: Model
    training: Sample
    measured: Sample
    pictured: Sample
    target_rows: Matrix
    probability: Floats
    labels: npt.NDArray[np.int64]
    weight: Callable[[], Floats]
    measured_on: str


def gather(material: FactSources, *, rows: bool) -> ReportFacts:
    """Return the facts of a report; `rows` says whether latents of single rows may be kept."""
    left_out: dict[str, str] = {}

    def attempt(section: str, find: Callable[[], T]) -> T | None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                warnings.simplefilter("ignore", RuntimeWarning)
                return find()
        except (HalfseenError, ValueError, ArithmeticError) as error:
            left_out[section] = str(error).partition("\n")[0]
            return None

    drawn = _Sample.of(material, material.model, material.pictured)
    columns: tuple[ColumnFacts, ...] = ()
    more = 0
    if compared := attempt(
        "shifted",
        lambda: column_facts(material.schema, material.source, material.target),
    ):
        columns, more = compared
    effect = attempt(
        "separability",
        lambda: adaptation_effect(drawn.x1_source, drawn.x1_target, drawn.z_source, drawn.z_target),
    )
    verdicts: tuple[Verdict, ...] = ()
    terms: tuple[Term, ...] = ()
    if effect is not None:
        apart = effect.before
        verdicts += attempt("verdicts", lambda: _input_verdicts(material, drawn, apart)) or ()
    if judged := attempt("verdicts", lambda: _model_verdict(material)):
        verdicts, terms = (*verdicts, judged[0]), judged[1]
    if not rows:
        left_out["latents"] = "latents of single rows were not kept (report_data = aggregates)."
    return ReportFacts(
        measured_on=material.measured_on,
        source_rows=material.source.rows,
        target_rows=material.target.rows,
        columns=columns,
        more_columns=more,
        separability=None if effect is None else _separability(drawn, effect),
        verdicts=verdicts,
        terms=terms,
        expectation=attempt("expected", lambda: _expectation(material)),
        reliability=attempt("calibration", lambda: _reliability(material)),
        imputation=attempt("imputation", lambda: _imputation(material)),
        latents=attempt("latents", lambda: _latent_rows(drawn)) if rows else None,
        left_out=left_out,
    )


def estimate(found: RiskEstimate) -> Estimate:
    """Return a risk as a fact."""
    return Estimate(
        value=found.risk,
        low=found.interval[0],
        high=found.interval[1],
        effective_rows=found.effective_sample_size,
    )


@dataclass(frozen=True, eq=False)
class _Sample:
    """Some rows of both domains: observed columns, latents ẑ and predictions."""

    source: Sample
    x1_source: Matrix
    x1_target: Matrix
    z_source: Floats
    z_target: Floats
    p_source: Floats
    p_target: Floats

    @classmethod
    def of(cls, material: FactSources, model: Model, rows: Sample) -> _Sample:
        blocks = material.schema.blocks
        observed = list(blocks.observed)
        source = rows[_some(len(rows), CHECKED_ROWS)]
        chosen = material.target_rows[_some(len(material.target_rows), CHECKED_ROWS)]
        shown, target = blocks.hide(source.inputs), np.ascontiguousarray(chosen)

        def seen(rows: Matrix) -> tuple[Floats, Floats]:
            return _latents(model, rows), normalized(np.exp(model.log_probabilities(rows)))

        z_target, p_target = seen(target)
        with model.source_statistics(shown):
            z_source, p_source = seen(shown)
        return cls(
            source,
            source.inputs[:, observed],
            target[:, observed],
            z_source,
            z_target,
            p_source,
            p_target,
        )


def _latents(model: Model, rows: Matrix) -> Floats:
    """Return ẑ of rows; of a model without networks, what each of its members says."""
    if any(isinstance(member, NetworksMember) for member in model.members):
        return model.latents(rows).astype(np.float64)
    return np.hstack([member.log_probabilities(rows) for member in model.members])


def _separability(rows: _Sample, found: AdaptationEffect) -> Separability:
    return Separability(
        before_auc=found.before.auc,
        after_auc=found.after.auc,
        before_distance=found.before.proxy_a_distance,
        after_distance=found.after.proxy_a_distance,
        source_rows=len(rows.source),
        target_rows=len(rows.x1_target),
    )


def _model_verdict(material: FactSources) -> tuple[Verdict, tuple[Term, ...]]:
    """Judge the model on rows that it was not trained on."""
    judged = _Sample.of(material, material.measured_model, material.measured)
    labels = judged.source.labels
    consistent = self_consistency(judged.z_source, labels, judged.z_target, judged.p_target)
    verdict = Verdict(
        question="Do the model's own labels of the target teach what the source knows?",
        holds=consistent.loss <= TOLERATED,
        sentence=f"Learned from them, a linear classifier of the latents errs on "
        f"{consistent.back:.1%} of source rows; learned from other source rows, on "
        f"{consistent.forth:.1%}.",
    )
    bound = adaptation_bound(
        judged.p_source, labels, judged.p_target, judged.z_source, judged.z_target
    )
    return verdict, tuple(
        Term(name=term.name, symbol=term.symbol, value=term.value, trust=term.trust)
        for term in bound.terms
    )


def _input_verdicts(
    material: FactSources, rows: _Sample, apart: DomainSeparation
) -> tuple[Verdict, ...]:
    """Judge what :func:`halfseen.evidence.imputation_verdict` judges, each condition by itself."""
    missing = list(material.schema.blocks.missing)
    if not missing:
        return ()
    dependence = missing_block_dependence(rows.x1_source, rows.source.inputs[:, missing])
    return (
        Verdict(
            question="Does the missing block follow from what is observed?",
            holds=dependence.p_value <= SIGNIFICANCE and dependence.r2 >= LEAST_R2,
            sentence=f"On the source, the observed columns explain {max(dependence.r2, 0.0):.1%} "
            f"of the missing ones on rows that were not fitted (p = {dependence.p_value:.3f}).",
        ),
        Verdict(
            question="Do the domains overlap in what is observed?",
            holds=apart.overlap >= LEAST_OVERLAP,
            sentence=f"A classifier tells the domains apart with an AUC of {apart.auc:.3f}; "
            f"on the target, source rows are worth {apart.overlap:.1%} of their number.",
        ),
    )


def _expectation(material: FactSources) -> Expectation:
    right = material.probability.argmax(1) == material.labels
    weight = material.weight()

    def quality(loss: Floats, shown: Callable[[RiskEstimate], Estimate]) -> Quality:
        return Quality(
            source=shown(source_validation(loss)),
            weighted=shown(importance_weighted_validation(loss, weight)),
            dev=shown(deep_embedded_validation(loss, weight)),
        )

    return Expectation(
        cross_entropy=quality(row_losses(material.probability, material.labels), estimate),
        accuracy=quality((~right).astype(np.float64), _accuracy),
        rows=len(material.labels),
    )


def _accuracy(error: RiskEstimate) -> Estimate:
    """Turn an estimated share of errors into one of hits, within what a share can be."""
    low, value, high = (
        float(np.clip(1.0 - share, 0.0, 1.0))
        for share in (error.interval[1], error.risk, error.interval[0])
    )
    return Estimate(value=value, low=low, high=high, effective_rows=error.effective_sample_size)


def _reliability(material: FactSources) -> Reliability:
    """Count how often probabilities came true: of the last of two classes, or of the top one."""
    probability, labels = material.probability, material.labels
    two = probability.shape[1] == 2
    claimed = probability[:, 1] if two else probability.max(1)
    came_true = labels == 1 if two else probability.argmax(1) == labels
    place = np.minimum((claimed * BINS).astype(np.int64), BINS - 1)
    bins = [
        ReliabilityBin(
            rows=int((place == b).sum()),
            predicted=float(np.clip(claimed[place == b].mean(), 0.0, 1.0)),
            observed=float(came_true[place == b].mean()),
        )
        for b in np.unique(place)
    ]
    return Reliability(
        of=material.schema.class_names[1] if two else None,
        rows=len(labels),
        error=expected_calibration_error(probability, labels),
        bins=tuple(bins),
    )


def _imputation(material: FactSources) -> ImputationFacts | None:
    if not material.model.imputes:
        return None
    return imputation_facts(
        material.measured_model.networks_member,
        material.schema,
        material.training[_some(len(material.training), 2 * CHECKED_ROWS)],
        material.measured[_some(len(material.measured), CHECKED_ROWS)],
    )


def _latent_rows(rows: _Sample) -> LatentRows:
    own = _some(len(rows.source), PICTURED_ROWS)
    other = _some(len(rows.x1_target), PICTURED_ROWS)
    before = _components(rows.x1_source[own], rows.x1_target[other])
    after = _components(rows.z_source[own], rows.z_target[other])
    return LatentRows(
        before_source=before[0],
        before_target=before[1],
        after_source=after[0],
        after_target=after[1],
        source_classes=tuple(int(k) for k in rows.source.labels[own]),
        target_classes=tuple(int(k) for k in rows.p_target[other].argmax(1)),
    )


def _components(source: npt.NDArray[Any], target: npt.NDArray[Any]) -> tuple[Any, Any]:
    both = np.vstack([source, target]).astype(np.float64)
    reduced = PCA(min(COMPONENTS, *both.shape), random_state=0).fit_transform(both)
    rounded = [tuple(float(f"{v:.4g}") for v in row) for row in reduced]
    return tuple(rounded[: len(source)]), tuple(rounded[len(source) :])


def _some(rows: int, most: int) -> npt.NDArray[np.intp]:
    return np.sort(np.random.default_rng(0).permutation(rows)[:most])
