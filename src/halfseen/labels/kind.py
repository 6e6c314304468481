"""What a kind of label must know."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from halfseen.arrays import Floats, Integers

if TYPE_CHECKING:
    from halfseen.graph import GraphBuilder

Labels = npt.NDArray[Any]
"""Class positions or amounts, one each; or soft labels, one row each."""


ClassWeight = str | Mapping[Any, float] | None
"""``balanced``, or a weight for each class."""


class Measure(NamedTuple):
    """Something measured on labelled rows: its words, and its value (None where undefined)."""

    words: str
    of: Callable[[Floats, Labels], float | None]


class Expected(NamedTuple):
    """Something that can be expected on a target: a mean of row losses, read in some way.

    `other` is what a target's mean differs by from what its observed columns let expect, a
    standard deviation found on development problems.
    """

    losses: Floats
    other: float
    read: Callable[[float], float]


class Target(NamedTuple):
    """How held-out source rows stand to a target.

    `weights` say how much more often each occurs there, `covered` whether they are enough to tell
    anything of it.
    """

    weights: Floats
    covered: bool


Look = Callable[[], Target | None]
"""Looks at a target; None where nothing can be told of it."""


class LabelKind(Protocol):
    """A kind of label.

    Members give an *answer*, some numbers for each row: log-probabilities of classes, or an
    amount. It is *shown* as probabilities, or as the amount with its interval.
    """

    task: ClassVar[str]
    """What settings call it."""
    loss: ClassVar[str]
    """The measure that models are compared by; lower is better."""
    row_loss_words: ClassVar[str]
    """What a row costs, in words; differences of its mean are told."""
    unit: ClassVar[str]
    linear_words: ClassVar[str]
    """What a penalised linear model of such labels is called."""
    baseline_words: ClassVar[str]
    own_words: ClassVar[str]
    """The simplest predictions, the same for every row: the source's, and the rows' own."""
    constant_name: ClassVar[str]
    """Where a model's metrics keep the source's."""
    measures: ClassVar[Mapping[str, Measure]]
    graph_output: ClassVar[str]
    """What an exported graph calls what is shown."""
    networks: ClassVar[bool]
    """Whether the paper's networks predict it."""
    answers_tell: ClassVar[bool]
    """Whether answers alone tell which model, or map of drifted columns, is plausible."""
    bounds_inputs: ClassVar[bool]
    """Whether a straight line would run away beyond the source's rows."""

    @property
    def outputs(self) -> int:
        """How many numbers an answer has."""

    # --- labels -------------------------------------------------------------------------

    def targets(self, labels: Labels) -> Floats:
        """Return hard or soft labels as what an answer should be: (rows, outputs)."""

    def strata(self, labels: Labels) -> Integers:
        """Return groups of rows that every split has in proportion."""

    def counts(self, labels: Labels) -> tuple[int, ...]:
        """Return how many rows each class has; nothing for amounts."""

    def class_weights(
        self, labels: Labels, weights: Floats | None, given: ClassWeight
    ) -> Floats | None:
        """Return rows' weights times those of their classes, with mean one."""

    def known(self, labels: Labels) -> npt.NDArray[np.bool_]:
        """Say which rows have a label."""

    def read(self, labels: Any) -> Labels:
        """Return labels as people write them as members learn from them."""

    # --- a linear model -----------------------------------------------------------------

    def fit_linear(
        self, rows: Floats, labels: Labels, weights: Floats | None, penalty: float
    ) -> tuple[Floats, Floats]:
        """Return slopes (outputs, inputs) and intercepts of a ridge-penalised linear model."""

    def linear_scores(self, rows: Floats, labels: Labels, penalties: Sequence[float]) -> Floats:
        """Return each fold's mean log-likelihood under each penalty; empty where folds fail."""

    # --- answers ------------------------------------------------------------------------

    def answers(self, sums: Floats) -> Floats:
        """Return answers made of what a linear model or boosted trees sum up."""

    def answers_of_means(self, means: Floats) -> Floats:
        """Return answers made of the mean label in a row's leaves."""

    def add_answers_of_means(self, builder: GraphBuilder, means: str) -> str:
        """Add the same to an ONNX graph, up to what the answer's softmax takes off."""

    def mixed(self, shares: Floats, answers: Floats) -> Floats:
        """Return the mixture of answers (members, rows, outputs)."""

    def multiplied(self, shares: Floats, answers: Floats) -> Floats:
        """Return the weighted mean of answers."""

    def shifted(self, answer: Floats, bias: Floats) -> Floats:
        """Return the answer with something added to each output."""

    def add_shown(
        self,
        builder: GraphBuilder,
        answers: Sequence[str],
        weights: Any,
        metrics: Mapping[str, Any],
    ) -> str:
        """Add what is shown of the members' answers to an ONNX graph."""

    def fit_shares(
        self,
        answers: Sequence[Floats],
        labels: Labels,
        start: Sequence[float] | None = None,
        weights: Floats | None = None,
    ) -> tuple[float, ...]:
        """Return members' shares that suit held-out rows, held near `start` or equal ones."""

    def fit_bias(self, answer: Floats, labels: Labels) -> tuple[float, ...]:
        """Return what to add to each output to suit labelled rows, held near nothing."""

    # --- what is shown and measured -----------------------------------------------------

    def shown(self, answer: Floats, metrics: Mapping[str, Any] | None = None) -> Floats:
        """Return an answer as people read it; a model's metrics may hold what it needs."""

    def answer_of(self, shown: Floats) -> Floats:
        """Return the answer that soft labels would be shown of."""

    def row_losses(self, shown: Floats, labels: Labels) -> Floats:
        """Return what each row costs."""

    def metrics_of(self, shown: Floats, labels: Labels) -> dict[str, Any]:
        """Return what is shown of predictions on labelled rows, rounded."""

    def expected(self, shown: Floats, labels: Labels) -> dict[str, Expected]:
        """Return the measures that can be expected on a target, the headline first."""

    def constant(self, labels: Labels, weights: Floats | None = None) -> Floats:
        """Return the best prediction that is the same for every row: one row of what is shown."""

    def learned(self, shown: Floats, labels: Labels, look: Look) -> dict[str, Any]:
        """Return what a model keeps of held-out rows beside its metrics.

        `look` says how they stand to the target.
        """

    def recalibrated(
        self, answer: Floats, labels: Labels, metrics: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return what labelled target rows put in the place of what a model's metrics keep."""

    def normalized(self, shown: npt.NDArray[Any]) -> Floats:
        """Return what a graph shows in double precision."""

    def tolerance(self, shown: Floats) -> float:
        """Return by how much an exported graph may differ, in single precision."""

    def explained(self, answer: Floats) -> Floats:
        """Return the numbers that columns add up to, in an explanation."""

    def columns(self, shown: Floats) -> dict[str, Any]:
        """Return the columns that scores are written as."""

    def predicted(self, shown: Floats) -> npt.NDArray[Any]:
        """Return the one value for each row that is predicted."""
