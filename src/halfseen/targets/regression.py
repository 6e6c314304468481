"""Amounts: numbers in the label's unit, averaged, measured by squared error; their intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from halfseen.arrays import Floats, Integers
from halfseen.errors import InputError, OptionError
from halfseen.metrics import (
    Expected,
    Labels,
    Measure,
    coverage,
    mean_absolute_error,
    r_squared,
    root_mean_squared_error,
)
from halfseen.splitting import folds, rarest_class
from halfseen.targets.classification import (
    BIAS_RIDGE,
    PRIOR_ROWS,
    TOLERANCE,
    ClassWeight,
    near_shares,
)

LEVEL = 0.9
"""Share of rows that an interval should hold."""
BINS, BIN_ROWS = 5, 60
"""Amounts of which the interval may have a width of its own, and the rows that each needs."""
OTHER = 0.2
"""What a target's mean errors differ by from what its observed columns let expect, as a share of
them: a standard deviation. An assumption, which five problems of benchmarks/amounts.py fit.
Intervals are so much wider where source rows do not cover the target."""
NARROWEST = 0.05
"""Least reach to one side, as a share of the widest, that a scale is applied to."""
ENOUGH_TO_NARROW = 30
"""Labelled rows from which intervals may become narrower; fewer can only widen them."""


class Target(NamedTuple):
    """How held-out source rows stand to a target.

    `weights` say how much more often each occurs there, `covered` whether they are enough to tell
    anything of it.
    """

    weights: Floats
    covered: bool


Look = Callable[[], Target | None]
"""Looks at a target; None where nothing can be told of it."""


@dataclass(frozen=True)
class IntervalReach:
    """How far the truth lies below and above an amount: the 90 % interval (split conformal).

    Quantiles of what held-out rows differ by, the same everywhere or by the predicted amount, in
    between which they are interpolated; for a target, at least those of rows that are weighted to
    look like it. `at` are predicted amounts, rising; the interval reaches `below` and `above` each.

    References
    ----------
    J. Lei, M. G'Sell, A. Rinaldo, R. Tibshirani, L. Wasserman, "Distribution-free predictive
    inference for regression", JASA 113, 2018.

    R. Tibshirani, R. Barber, E. Candès, A. Ramdas, "Conformal prediction under covariate shift",
    NeurIPS 2019.
    """

    at: tuple[float, ...]
    below: tuple[float, ...]
    above: tuple[float, ...]

    def __post_init__(self) -> None:
        arrays = [np.array(part, dtype=np.float64) for part in (self.at, self.below, self.above)]
        alike = len({array.shape for array in arrays}) == 1 and arrays[0].ndim == 1
        if not alike or not len(self.at) or not all(np.isfinite(a).all() for a in arrays):
            raise InputError("its interval is not one finite number below and above each amount.")
        if (np.diff(arrays[0]) <= 0).any() or min(a.min() for a in arrays[1:]) < 0:
            raise InputError("its interval does not reach from below each amount to above it.")

    @classmethod
    def fitted(cls, amounts: Floats, labels: Floats) -> IntervalReach:
        """Return the reach that suits held-out rows: by amount where that shortens intervals."""
        most = max(1, min(BINS, len(amounts) // BIN_ROWS))
        dealt = np.random.default_rng(0).permutation(len(amounts))
        halves = dealt[::2], dealt[1::2]

        def score(bins: int) -> float:
            return sum(
                cls._of(amounts[one], labels[one], bins).score(amounts[other], labels[other])
                for one, other in (halves, halves[::-1])
            )

        chosen = 1 if most == 1 else min((1, most), key=score)
        return cls._of(amounts, labels, chosen)

    @classmethod
    def _of(cls, amounts: Floats, labels: Floats, bins: int) -> IntervalReach:
        parts = np.array_split(np.argsort(amounts, kind="stable"), bins)
        found: dict[float, tuple[float, float]] = {}
        for part in parts:
            difference, rows = np.sort(labels[part] - amounts[part]), len(part)
            # The ranks that hold the level for one row more.
            tail = (1.0 - LEVEL) / 2 * (rows + 1)
            low = difference[max(int(np.floor(tail)) - 1, 0)]
            high = difference[min(int(np.ceil(rows + 1 - tail)) - 1, rows - 1)]
            found[float(np.median(amounts[part]))] = max(0.0, -low), max(0.0, high)
        below, above = zip(*found.values(), strict=True)
        return cls(tuple(found), tuple(map(float, below)), tuple(map(float, above)))

    def for_target(self, differences: Floats, weights: Floats, *, covered: bool) -> IntervalReach:
        """Return the wider of this reach and that of weighted rows, and more if rows cover little.

        `differences` are those of the truth and held-out rows' amounts; the others are as in
        :class:`Target`.
        """
        further = 1.0 if covered else 1.0 + OTHER
        low, high = (max(0.0, _weighted_end(sign * differences, weights)) for sign in (-1, 1))
        return IntervalReach(
            self.at,
            tuple(further * max(low, side) for side in self.below),
            tuple(further * max(high, side) for side in self.above),
        )

    def scale_for(self, amounts: Floats, labels: Floats) -> float:
        """Return how many times as wide intervals must be to hold the level of labelled rows.

        Split conformal, of what each row misses as a multiple of the interval's side.
        """
        ends = self.times(1.0).around(amounts)
        missed = labels - amounts
        needed = np.sort(
            np.abs(missed) / np.where(missed < 0, amounts - ends[:, 0], ends[:, 1] - amounts)
        )
        rank = int(np.ceil(LEVEL * (len(labels) + 1)))
        scale = float(needed[min(rank, len(labels)) - 1])
        return scale if len(labels) >= ENOUGH_TO_NARROW else max(scale, 1.0)

    def times(self, scale: float) -> IntervalReach:
        """Return the reach so many times as wide, no side of it being next to nothing."""
        least = NARROWEST * max(*self.below, *self.above) or 1.0
        sides = (
            tuple(scale * max(each, least) for each in side) for side in (self.below, self.above)
        )
        return IntervalReach(self.at, *sides)

    def around(self, amounts: Floats) -> Floats:
        """Return the lower and the upper end for each amount: (rows, 2)."""
        below, above = (np.interp(amounts, self.at, side) for side in (self.below, self.above))
        return np.stack([amounts - below, amounts + above], axis=1)

    def score(self, amounts: Floats, labels: Floats) -> float:
        """Return the interval score: its length, and what misses it times 2 / (1 - level)."""
        low, high = self.around(amounts).T
        missed = np.maximum(low - labels, 0.0) + np.maximum(labels - high, 0.0)
        return float((high - low + 2.0 / (1.0 - LEVEL) * missed).mean())


def _weighted_end(differences: Floats, weights: Floats) -> float:
    """Return the weighted quantile that one side reaches to.

    A target's row has a weight too: what such rows have on average, at the far end.
    """
    if not weights.any():
        return float(differences.max())
    order = np.argsort(differences)
    whole = weights.sum() + np.square(weights).sum() / weights.sum()
    rank = np.searchsorted(np.cumsum(weights[order]), (1.0 + LEVEL) / 2 * whole)
    return float(differences[order][min(int(rank), len(order) - 1)])


FOLDS = 5
STRATA = 10
"""Groups of about the same amount that every split has in proportion."""
CONSTRAINT = 1e4
"""How heavy the row is that makes non-negative shares sum to one."""


@dataclass(frozen=True)
class RegressionTarget:
    """A number, in its own unit; every method does what :class:`ClassTarget`'s does."""

    task: ClassVar[str] = "regression"
    loss: ClassVar[str] = "rmse"
    row_loss_words: ClassVar[str] = "mean squared error"
    unit: ClassVar[str] = ""
    linear_words: ClassVar[str] = "ridge regression"
    baseline_words: ClassVar[str] = "the source's mean"
    own_words: ClassVar[str] = "these rows' own mean"
    measures: ClassVar[Mapping[str, Measure]] = {
        "rmse": Measure("RMSE", root_mean_squared_error),
        "mae": Measure("mean absolute error", mean_absolute_error),
        "r2": Measure("R²", r_squared),
        "coverage": Measure(f"share in the {LEVEL:.0%} interval", coverage),
    }
    constant_name: ClassVar[str] = "label_mean"
    graph_output: ClassVar[str] = "amounts"
    networks: ClassVar[bool] = False
    answers_tell: ClassVar[bool] = False
    bounds_inputs: ClassVar[bool] = True

    @property
    def outputs(self) -> int:
        return 1

    # --- labels -------------------------------------------------------------------------

    def targets(self, labels: Labels) -> Floats:
        return labels.astype(np.float64).reshape(len(labels), 1)

    def strata(self, labels: Labels) -> Integers:
        rank = np.argsort(np.argsort(labels.ravel(), kind="stable"), kind="stable")
        return rank * max(1, min(STRATA, len(labels) // STRATA)) // max(1, len(labels))

    def counts(self, labels: Labels) -> tuple[int, ...]:
        return ()

    def class_weights(
        self, labels: Labels, weights: Floats | None, given: ClassWeight
    ) -> Floats | None:
        if given is not None:
            raise OptionError("class_weight is for classes, and amounts have none: weigh rows.")
        return weights

    def known(self, labels: Labels) -> npt.NDArray[np.bool_]:
        return ~np.isnan(labels)

    def read(self, labels: Any) -> Floats:
        try:
            found = np.asarray(labels, dtype=np.float64).reshape(len(labels))
        except (TypeError, ValueError):
            found = np.full(1, np.nan)
        if not np.isfinite(found).all():
            raise InputError(
                "The model predicts amounts, and the labels are not all finite numbers."
            )
        return found

    # --- a linear model -----------------------------------------------------------------

    def fit_linear(
        self, rows: Floats, labels: Labels, weights: Floats | None, penalty: float
    ) -> tuple[Floats, Floats]:
        from sklearn.linear_model import Ridge

        fitted = Ridge(alpha=1.0 / penalty).fit(rows, labels.ravel(), sample_weight=weights)
        return fitted.coef_[None].astype(np.float64), np.array([fitted.intercept_], np.float64)

    def linear_scores(self, rows: Floats, labels: Labels, penalties: Sequence[float]) -> Floats:
        amounts, strata = labels.ravel(), self.strata(labels)
        if rarest_class(strata) < 2 or amounts.min() == amounts.max():
            return np.empty((len(penalties), 0))
        smallest = 1e-12 * amounts.var()
        found = []
        for training, held_out in folds(strata, FOLDS).split(rows, strata):
            column = []
            for penalty in penalties:
                slopes, bias = self.fit_linear(rows[training], amounts[training], None, penalty)
                error = np.square(rows[held_out] @ slopes[0] + bias[0] - amounts[held_out]).mean()
                column.append(-0.5 * np.log(max(error, smallest)))
            found.append(column)
        return np.array(found).T

    # --- answers ------------------------------------------------------------------------

    def answers(self, sums: Floats) -> Floats:
        return sums

    def answers_of_means(self, means: Floats) -> Floats:
        return means

    def mixed(self, shares: Floats, answers: Floats) -> Floats:
        # Not as a product of matrices, whose rounding depends on how many rows there are.
        return np.asarray(
            sum(share * answer for share, answer in zip(shares, answers, strict=True))
        )

    def multiplied(self, shares: Floats, answers: Floats) -> Floats:
        return self.mixed(shares, answers)

    def shifted(self, answer: Floats, bias: Floats) -> Floats:
        return answer + bias

    def fit_shares(
        self,
        answers: Sequence[Floats],
        labels: Labels,
        start: Sequence[float] | None = None,
        weights: Floats | None = None,
    ) -> tuple[float, ...]:
        r"""Return the shares with the least squared error on held-out rows, held near equal ones.

        .. math:: \min_w \sum_i \Big(\sum_m w_m (y_i - f_m(x_i))\Big)^2
                  + 30 \, \sigma^2 \, \| w - w_0 \|^2 , \qquad w \ge 0, \; \sum_m w_m = 1 ,

        with :math:`\sigma^2` the mean squared error of the shares :math:`w_0` to be held near.

        >>> labels = np.arange(500.0)
        >>> knows, lost = labels[:, None] + 1.0, np.full((500, 1), 250.0)
        >>> first, second = RegressionTarget().fit_shares([lost, knows], labels)
        >>> first < 0.1 < second, round(first + second, 6)
        (True, 1.0)
        """
        from scipy.optimize import nnls

        count, near = len(answers), near_shares(len(answers), start)
        missed = labels[:, None] - np.hstack(list(answers))
        if weights is not None:
            missed = missed * np.sqrt(weights / weights.mean())[:, None]
        scale = float(np.sqrt(np.square(missed @ near).mean()))
        if scale == 0.0:
            return tuple(near.tolist())
        held = np.sqrt(PRIOR_ROWS) * np.eye(count)
        # The rows' own part is small: what counts of many rows is their Gram matrix's root.
        root = np.linalg.qr(missed / scale, mode="r")
        whole = CONSTRAINT * np.sqrt(len(labels))
        system = np.vstack([root, held, np.full((1, count), whole)])
        found, _ = nnls(system, np.concatenate([np.zeros(len(root)), held @ near, [whole]]))
        return tuple((found / found.sum()).tolist())

    def fit_bias(self, answer: Floats, labels: Labels) -> tuple[float, ...]:
        """Return the mean difference, as if five rows more showed none.

        >>> RegressionTarget().fit_bias(np.zeros((15, 1)), np.full(15, 4.0))
        (3.0,)
        """
        return (float((labels - answer[:, 0]).sum() / (len(labels) + BIAS_RIDGE)),)

    # --- what is shown and measured -----------------------------------------------------

    def to_predictions(self, answer: Floats, metrics: Mapping[str, Any] | None = None) -> Floats:
        if not metrics or "interval" not in metrics:
            return answer
        return np.hstack([answer, IntervalReach(**metrics["interval"]).around(answer[:, 0])])

    def raw_prediction_of(self, shown: Floats) -> Floats:
        return shown[:, :1]

    def row_losses(self, shown: Floats, labels: Labels) -> Floats:
        losses: Floats = np.square(shown[:, 0] - labels)
        return losses

    def metrics_of(self, shown: Floats, labels: Labels) -> dict[str, Any]:
        found = {name: measure.of(shown, labels) for name, measure in self.measures.items()}
        rounded = {n: None if v is None else float(f"{v:.5g}") for n, v in found.items()}
        return {"rows": len(labels), **rounded}

    def expected(self, shown: Floats, labels: Labels) -> dict[str, Expected]:
        errors = np.abs(shown[:, 0] - labels)
        squares = np.square(errors)
        return {
            "mae": Expected(errors, OTHER * float(errors.mean()), float),
            # Of a square, the share is twice that of its root.
            "rmse": Expected(squares, 2 * OTHER * float(squares.mean()), np.sqrt),
        }

    def risks(self, shown: Floats, labels: Labels, weights: Floats) -> dict[str, float]:
        errors = np.abs(shown[:, 0] - labels)
        mean = float(np.average(np.square(errors), weights=weights))
        return {"rmse": float(np.sqrt(mean)), "mae": float(np.average(errors, weights=weights))}

    def moved(self, before: Floats, after: Floats) -> Floats:
        moved: Floats = np.square(after[:, 0] - before[:, 0])
        return moved

    def constant(self, labels: Labels, weights: Floats | None = None) -> Floats:
        return np.array([np.average(labels, weights=weights)])

    def learned(self, shown: Floats, labels: Labels, look: Look) -> dict[str, Any]:
        reach, seen = IntervalReach.fitted(shown[:, 0], labels), look()
        if seen is not None:
            reach = reach.for_target(labels - shown[:, 0], seen.weights, covered=seen.covered)
        return _kept(reach)

    def recalibrated(
        self, answer: Floats, labels: Labels, metrics: Mapping[str, Any]
    ) -> dict[str, Any]:
        if "interval" not in metrics:
            return {}
        reach = IntervalReach(**metrics["interval"])
        scale = reach.scale_for(answer[:, 0], labels)
        return _kept(reach.times(scale)) | {"interval_scale": scale}

    def normalized(self, shown: npt.NDArray[Any]) -> Floats:
        return shown.astype(np.float64)

    def tolerance(self, shown: Floats) -> float:
        return TOLERANCE * float(np.abs(shown).max(initial=0.0))

    def explained(self, answer: Floats) -> Floats:
        return answer

    def columns(self, shown: Floats) -> dict[str, Any]:
        return dict(zip(("amount", "low", "high"), shown.T, strict=False))

    def predicted(self, shown: Floats) -> npt.NDArray[Any]:
        amounts: Floats = shown[:, 0]
        return amounts


def _kept(reach: IntervalReach) -> dict[str, Any]:
    """Return the reach as metrics keep it."""
    return {"interval": {name: list(values) for name, values in asdict(reach).items()}}
