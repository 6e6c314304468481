"""The one model: a preprocessor for rows, members that learned from them, and their weights."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from halfseen.alarms import Alarm, sentences
from halfseen.alarms.table_alarms import Watch
from halfseen.arrays import Floats, Matrix, Tensor, same_length
from halfseen.blocks import Blocks
from halfseen.data.preprocessing import ReadRows
from halfseen.data.preprocessors import Preprocessor, TablePreprocessor
from halfseen.data.schema import TableSchema
from halfseen.errors import AlarmWarning, InputError, outside_of_halfseen
from halfseen.evidence import correct_probabilities
from halfseen.members import NETWORKS, SIMPLE, words_of
from halfseen.members.aligned import Aligned
from halfseen.members.protocol import Member
from halfseen.parallel import run_parallel
from halfseen.saving import Description, write_folder
from halfseen.targets import TargetType
from halfseen.weights import Weights

if TYPE_CHECKING:
    from halfseen.explain import Explanation
    from halfseen.members.network_members import NetworksMember
    from halfseen.networks.modules import Networks
    from halfseen.networks.variants import NetworkVariant
    from halfseen.options import Options

SHARE = 131_072
"""Rows that are scored together at most: they stay near the processor, and cores share them."""
GAPS, VALUE = "gaps/", "value/"
"""Before the names of the tensors that fill gaps, and of those that foretell what measuring brings.
"""


@dataclass(eq=False, repr=False)
class Model:
    """Predicts, saves, exports and serves; made by a fit or by :func:`halfseen.load`.

    Parameters
    ----------
    preprocessor
        How rows become inputs.
    members
        What learned p(y | x1), by kind.
    weights
        How much each of them counts.
    seed
        Same rows, settings and seed: the same model.
    metrics, training_data
        On held-out source rows; fingerprints of what it learned from.
    versions
        Of the libraries that it was trained with.
    report
        What ``halfseen report`` shows beside all this, as plain data. Saving writes it, and
        loading leaves it in the folder.
    value_by_row
        What foretells from x1 how much measuring missing columns brings, for each set of them.
    """

    preprocessor: Preprocessor
    members: tuple[Member, ...]
    weights: Weights
    seed: int
    metrics: dict[str, Any] = field(default_factory=dict)
    training_data: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    report: Mapping[str, Any] | None = None
    value_by_row: tuple[Member, ...] = ()

    def __repr__(self) -> str:
        names = ", ".join(map(str, self.preprocessor.classes)) or "an amount"
        seen = f"{len(self.blocks.observed)} inputs observed, {len(self.blocks.missing)} missing"
        return f"Model({names}; {seen}; {self.title})"

    # --- what it is ---------------------------------------------------------------------

    @property
    def blocks(self) -> Blocks:
        """Which inputs are missing on the target."""
        return self.preprocessor.blocks

    @property
    def target_type(self) -> TargetType:
        """What is predicted: one of several classes, or an amount."""
        return self.preprocessor.target_type

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The class labels, in the order of the probabilities; none where it predicts amounts."""
        return np.array(self.preprocessor.classes)

    @property
    def tables(self) -> TablePreprocessor:
        """How tables become inputs."""
        if not isinstance(self.preprocessor, TablePreprocessor):
            raise InputError("This model takes images, which have no columns.")
        return self.preprocessor

    @property
    def schema(self) -> TableSchema:
        """What a table must hold, and how its columns become inputs."""
        return self.tables.schema

    @property
    def alarms(self) -> list[Alarm]:
        """What looked wrong when the model was fitted."""
        return [Alarm.from_dict(alarm) for alarm in self.metrics.get("alarms", ())]

    @property
    def networks_member(self) -> NetworksMember:
        """The member that has latents."""
        for member in self.networks_members:
            return member
        raise InputError(
            "This model has no networks, and so no latents: its columns have drifted, or it was "
            "fitted without them (members=['networks'] asks for networks alone)."
        )

    @property
    def networks_members(self) -> list[NetworksMember]:
        """The members that are networks."""
        return [cast("NetworksMember", m) for m in self.members if m.kind == NETWORKS]

    @property
    def title(self) -> str:
        """What the model is, in a word: the paper's models, or the kinds of its members."""
        found = dict.fromkeys(member.method.name for member in self.networks_members)
        inner = [
            kind
            for m in self.members
            for kind in ([p.member.kind for p in m.parts] if isinstance(m, Aligned) else [m.kind])
        ]
        kinds = ", ".join(dict.fromkeys(inner)).replace("_", " ")
        return " and ".join(found) or kinds.capitalize()

    @property
    def imputes(self) -> bool:
        """Whether a member imputes latents."""
        return any(member.method.imputes for member in self.networks_members)

    @property
    def needs_complete_target(self) -> bool:
        """Whether rows must have the missing block, as those of benchmarks do."""
        return any(member.method.needs_complete_target for member in self.networks_members)

    @property
    def networks(self) -> Networks:
        """g1, g2, r and f."""
        return self.networks_member.networks

    @property
    def method(self) -> NetworkVariant:
        """Which of the paper's seven models the networks are."""
        return self.networks_member.method

    @property
    def options(self) -> Options:
        """Every setting of the networks."""
        return self.networks_member.options

    @property
    def history(self) -> list[dict[str, Any]]:
        """One record per epoch of the networks' training."""
        return self.networks_member.history

    # --- prepared rows ------------------------------------------------------------------

    def prepare(self, X: Any, *, where: str = "X", first_row: int | None = None) -> Matrix:
        """Return rows as the model sees those of a target, the missing block hidden."""
        complete = self.needs_complete_target
        return self.preprocessor.prepare(X, complete=complete, where=where, first_row=first_row)

    def raw_prediction(self, rows: Matrix) -> Floats:
        """Return the members' answer about prepared rows, the missing block hidden."""
        answers = [member.raw_prediction(rows) for member in self.members]
        return self.weights.combined(answers, self.target_type)

    def raw_prediction_complete(self, rows: Matrix) -> Floats:
        """Return the answer of those members that use the missing block, where it is there."""
        found = [member.raw_prediction_complete(rows) for member in self.members]
        used = [answer for answer in found if answer is not None]
        if not used:
            return self.raw_prediction(rows)
        return Weights.equal(len(used)).combined(used, self.target_type)

    def score(self, rows: Matrix, *, complete: bool = False) -> Floats:
        """Return probabilities of prepared rows; or amounts with the ends of their intervals."""
        if not len(rows):
            return self.target_type.to_predictions(
                np.empty((0, self.target_type.outputs)), self.metrics
            )
        answer = self.raw_prediction_complete if complete else self.raw_prediction

        def shown(part: Matrix) -> Floats:
            return self.target_type.to_predictions(answer(part), self.metrics)

        if len(rows) <= SHARE:
            return shown(rows)
        parts = np.array_split(rows, -(-len(rows) // SHARE))
        return np.concatenate(run_parallel([partial(shown, part) for part in parts]))

    def latents(self, rows: Matrix) -> Matrix:
        """Return (z1, ẑ2) of prepared rows: the observed part first, the imputed part after it."""
        return self.networks_member.latents(rows)

    def compared_in(self, rows: Matrix) -> Matrix:
        """Return what scores compare the domains in: latents, or x1 where there are no networks."""
        if self.networks_members:
            return self.latents(rows)
        return self.blocks.flat(rows, "observed")

    @contextmanager
    def source_statistics(self, rows: Matrix) -> Iterator[None]:
        """Let members see source rows as training did, for a while."""
        members, networks = self.members, self.networks_members
        self.members = tuple(
            member.for_source() if isinstance(member, Aligned) else member for member in members
        )
        try:
            with ExitStack() as statistics:
                for member in networks:
                    statistics.enter_context(member.source_statistics(rows))
                yield
        finally:
            self.members = members

    # --- rows as people have them ---------------------------------------------------------

    def predict_proba(self, X: Any, **how: Any) -> Floats:
        """Return the probability of each class, one row each; `how` as for :meth:`shown`."""
        if not self.preprocessor.classes:
            raise InputError(
                "This model predicts amounts, which have no probabilities: predict gives them, "
                "and predict_interval their 90 % intervals."
            )
        return self.predictions(X, **how)

    def predict_interval(self, X: Any, **how: Any) -> Floats:
        """Return the ends of the 90 % interval of each row's amount: (rows, 2)."""
        if self.preprocessor.classes:
            raise InputError("This model predicts classes: predict_proba says how sure it is.")
        found = self.predictions(X, **how)[:, 1:]
        if not found.shape[1]:
            raise InputError("This model was fitted without rows held out, so it has no intervals.")
        return found

    def predictions(self, X: Any, **how: Any) -> Floats:
        """Return class probabilities, or amounts with the ends of their intervals, one row each.

        What looks wrong with the rows is an :class:`~halfseen.errors.AlarmWarning`; `how` as for
        :meth:`scored`.
        """
        shown, read = self.scored(X, **how)
        self._warn(shown, read)
        return shown

    def _warn(self, shown: Floats, read: ReadRows | None) -> None:
        """Raise the alarms of rows of a table as warnings, at the line that asked for them."""
        if read is None or not read.rows:
            return
        watch = Watch(self.schema, self.metrics)
        watch.add(read, shown)
        for says in sentences(watch.alarms()):
            warnings.warn(says, AlarmWarning, stacklevel=outside_of_halfseen())

    def scored(
        self,
        X: Any,
        *,
        target_prior: npt.ArrayLike | None = None,
        where: str = "X",
        first_row: int | None = None,
    ) -> tuple[Floats, ReadRows | None]:
        """Return what is shown of each row, and the rows of a table as they were read.

        Parameters
        ----------
        X
            A pandas, polars or Arrow table with the observed columns in any order, an array with
            the source's columns or the observed ones, or images.
        target_prior
            Known class proportions of the target, in the order of the classes, to correct for.
        where, first_row
            What messages call the rows, and the number of the first.
        """
        preprocessor = self.preprocessor
        complete = self.needs_complete_target
        if isinstance(preprocessor, TablePreprocessor):
            read = preprocessor.read(X, complete=complete, where=where, first_row=first_row)
            rows = preprocessor.inputs(read)
        else:
            read, rows = None, preprocessor.prepare(X, complete=complete, where=where)
        probability = self.score(rows)
        if target_prior is None:
            return probability, read
        if not preprocessor.classes:
            raise InputError("Class proportions correct probabilities, and this predicts amounts.")
        return correct_probabilities(probability, self.class_prior, target_prior), read

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the most probable class, or the amount, of each row."""
        return self.target_type.predicted(self.predictions(X))

    def transform(self, X: Any) -> Matrix:
        """Return the latent (z1, ẑ2) of each row."""
        return self.latents(self.prepare(X))

    def positions(self, y: Any) -> npt.NDArray[Any]:
        """Return labels as positions among the classes, or as amounts."""
        return self.target_type.read(y)

    def evaluate(self, X: Any, y: Any) -> dict[str, Any]:
        """Measure the model on labelled rows of the target, as ``halfseen evaluate`` does.

        Parameters
        ----------
        X, y
            Rows, as for `predict_proba`, and their labels.

        Returns
        -------
        dict
            As :func:`halfseen.model.evaluation.evaluation` returns it.
        """
        positions = self.positions(y)
        shown, read = self.scored(X)
        same_length(X=shown, y=positions)
        self._warn(shown, read)
        return self.evaluate_rows(self.prepare(X), positions)

    def evaluate_rows(self, rows: Matrix, labels: npt.NDArray[Any]) -> dict[str, Any]:
        """Measure the model on prepared rows, beside members that are simple tools themselves."""
        from halfseen.model.evaluation import evaluation

        kind = self.target_type
        alone = {
            words_of(member.kind, kind): kind.to_predictions(member.raw_prediction(rows))
            for member in self.members
            if member.kind in SIMPLE and len(self.members) > 1
        }
        return evaluation(self.score(rows), labels, self.metrics, kind, others=alone)

    def explain(self, X: Any, *, seed: int = 0, where: str = "X") -> Explanation:
        """Say which columns move each row's answer.

        Parameters
        ----------
        X
            Rows of a table, as for `predict_proba`. It takes some thousand answers per row.
        seed
            Of the sample of orders and typical rows.
        where
            What messages call the rows.

        Returns
        -------
        Explanation
            ``importance`` over all rows, ``row(k)`` and ``told(k)`` for one, ``to_dict()``.
        """
        from halfseen.model.explanations import explain  # which speaks of models

        return explain(self, X, seed=seed, where=where)

    def value_of_measuring(
        self, columns: Sequence[str] = (), costs: Mapping[str, float] | None = None
    ) -> list[dict[str, Any]]:
        """Say what measuring missing columns on the target would bring, the most useful first.

        Parameters
        ----------
        columns
            Missing columns to look at; all by default.
        costs
            What measuring a column costs, one where others are given: sets then come by their gain
            per unit.

        Returns
        -------
        list of dict
            ``columns``, their ``cost``, and ``gains``: by how much each measure gets better, with
            the ends of its 90 % interval. It takes a fit with ``value_of_missing``.
        """
        from halfseen.model.value_of_measuring import measured_sets

        return measured_sets(self, columns, costs or {})

    def value_by_row_of(self, X: Any, columns: Sequence[str] = ()) -> Floats:
        """Return how much surer measuring columns (all by default) makes each row's answer.

        In nats the expected fall of its entropy over what they may be; of amounts, of its variance.
        """
        from halfseen.model.value_of_measuring import value_of_rows

        return value_of_rows(self, self.prepare(X), columns)

    @property
    def class_prior(self) -> Floats:
        """Class proportions that the probabilities speak of."""
        if "class_prior" not in self.metrics:
            raise InputError(
                "This model was saved without the class proportions it was trained on, so its "
                "probabilities cannot be corrected for others; fit the model again."
            )
        return np.array(self.metrics["class_prior"], dtype=np.float64)

    def learn_gaps(self, source: Matrix, target: Matrix) -> None:
        """Learn from prepared rows of both domains how gaps are filled, and what that costs."""
        from halfseen.model.gap_costs import gap_costs

        if isinstance(self.preprocessor, TablePreprocessor):
            self.preprocessor = self.tables.with_gap_filling(source, target)
            self.metrics["gap_costs"] = gap_costs(self, target)

    # --- folders --------------------------------------------------------------------------

    def save(self, folder: str | Path) -> None:
        """Write the model as a folder, which :func:`halfseen.load` reads: no pickle."""
        write_folder(folder, self.description(), self.tensors(), report=self.report)

    def tensors(self) -> dict[str, Tensor]:
        """Return what all members learned, by name."""
        gaps = getattr(self.preprocessor, "gaps", None)
        filling = {} if gaps is None else gaps.tensors()
        return (
            {f"{GAPS}{name}": tensor for name, tensor in filling.items()}
            | {
                f"{number}/{name}": tensor
                for number, member in enumerate(self.members)
                for name, tensor in member.tensors().items()
            }
            | {
                f"{VALUE}{number}/{name}": tensor
                for number, member in enumerate(self.value_by_row)
                for name, tensor in member.tensors().items()
            }
        )

    def description(self) -> Description:
        """Return all but the tensors, as plain data."""
        return Description(
            preprocessor=self.preprocessor.to_dict(),
            members=[{"kind": member.kind, **member.describe()} for member in self.members],
            weights=asdict(self.weights),
            seed=self.seed,
            metrics=self.metrics,
            training_data=self.training_data,
            versions=self.versions,
        )
