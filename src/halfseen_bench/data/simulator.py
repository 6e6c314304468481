"""A simulator of prospecting: ads data of any size whose right answer is known.

Retargeting pairs (users that the partner knows) are the source, prospecting pairs the target. The
shape is that of the paper's private ``ads-real`` set: 17 observed counts per user, 12 counts per
user and partner that the target lacks, all log-bucketised. The world that rows are drawn from is
in :mod:`halfseen_bench.data.simulator_world`; because it is known, :class:`Truth` can say how far a
prediction is from the best possible one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import Field, ValidationError

from halfseen.blocks import Blocks
from halfseen.errors import InputError, OptionError
from halfseen_bench.data.pairs import Card, DomainPair, Inputs, Labelled, Labels, Sealed
from halfseen_bench.data.simulator_world import MISSING, OBSERVED, Dials, Domain, World, entropy

Floats = npt.NDArray[np.float64]
Part = Literal["train", "test", "check"]

DOMAINS: tuple[Domain, ...] = ("retargeting", "prospecting")
CLASSES = ("no click", "click")
FILES: tuple[()] = ()
"""Nothing to fetch."""

_USER_FEATURES = len(OBSERVED) - 1  # the last one, active_days, is the activity itself
# The fifth number of a row serves nothing any more: without it all rows would be others.
_DRAWS = 6 + _USER_FEATURES + len(MISSING)
_PARTS: tuple[Part, ...] = ("train", "test", "check")


@dataclass(frozen=True)
class SimulatedRows:
    """Some simulated rows: x1 and x2 as whole numbers, and the label."""

    observed: npt.NDArray[np.int64]
    missing: npt.NDArray[np.int64]
    labels: Labels

    @property
    def inputs(self) -> Inputs:
        """(x1, x2) side by side, as networks take them."""
        return np.hstack([self.observed, self.missing]).astype(np.float32)


@dataclass(frozen=True)
class Truth:
    """The best predictions on the target's test rows, p(y=1|x1) and p(y=1|x1,x2); sealed."""

    best_given_observed: Sealed[Floats]
    best_given_all: Sealed[Floats]

    def regret(self, probability: npt.ArrayLike) -> float:
        """Return the expected cross-entropy above the best that x1 allows, in nats.

        It is the mean of KL(p(y|x1) || prediction): no label enters, so that it has no label
        noise. `probability` holds p(y=1), or one column per class.
        """
        best = self.best_given_observed.open("regret")
        given = np.asarray(probability, dtype=np.float64)
        given = given[:, 1] if given.ndim == 2 and given.shape[1] == 2 else given
        if given.shape != best.shape:
            raise InputError(
                f"Predictions of shape {np.shape(probability)} do not fit the {len(best)} rows "
                "of the target's test set."
            )
        if not ((given >= 0) & (given <= 1)).all():
            row = int(np.argmin((given >= 0) & (given <= 1)))
            raise InputError(f"Prediction {row} is {given[row]}, which is not a probability.")
        return float(np.mean(_cross_entropy(best, given) - entropy(best)))


class Scenario(Dials):
    """What is simulated: how many rows of each domain, and the dials of the world."""

    rows: int = Field(default=20_000, ge=1)
    test_rows: int = Field(default=5_000, ge=1)
    seed: int = Field(default=0, ge=0)
    """Fixes every row; more rows leave the first ones as they were."""

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Scenario:
        """Build a scenario from options given by name."""
        for name in options:
            if name not in cls.model_fields:
                raise OptionError(
                    f"The simulator has no option {name!r}; it has {', '.join(cls.model_fields)}."
                )
        try:
            return cls(**options)
        except ValidationError as error:
            wrong = error.errors()[0]
            raise OptionError(f"{wrong['loc'][0]}={wrong['input']!r}: {wrong['msg']}.") from None

    @property
    def sizes(self) -> tuple[tuple[Part, int], tuple[Part, int]]:
        """The parts of each domain with their rows."""
        return ("train", self.rows), ("test", self.test_rows)

    def world(self, domain: Domain) -> World:
        """Return the world that a domain's rows are drawn from."""
        return World(domain, self)


class Simulation(NamedTuple):
    """A simulated problem with its truth."""

    pair: DomainPair
    truth: Truth


class Yardstick(NamedTuple):
    """One predictor that the world itself provides, with its cross-entropy on the target."""

    predictor: str
    expected: float
    monte_carlo: float
    standard_error: float


def load_pair(
    root: Path | None, source: str = "retargeting", target: str = "prospecting", **options: Any
) -> DomainPair:
    """Return the simulated problem as readers do; `options` are those of :class:`Scenario`.

    Nothing is read: `root` is not used.
    """
    if (source, target) != DOMAINS:
        raise OptionError(
            f"The simulator gives 'retargeting' -> 'prospecting', not {source!r} -> {target!r}: "
            "a source needs the user-partner counts, which prospecting lacks."
        )
    return simulate(Scenario.of(options)).pair


def simulate(scenario: Scenario | None = None) -> Simulation:
    """Draw a source and a target, with the best predictions on the target's test rows."""
    scenario = scenario or Scenario()
    source, target = (scenario.world(domain) for domain in DOMAINS)
    parts = [
        [draw(world, 0, rows, part=part, seed=scenario.seed) for part, rows in scenario.sizes]
        for world in (source, target)
    ]
    pair = DomainPair.hiding(
        "->".join(DOMAINS),
        *([Labelled(rows.inputs, rows.labels) for rows in part] for part in parts),
        blocks=Blocks.columns([*OBSERVED, *MISSING], missing=MISSING),
        is_complete=True,
        classes=CLASSES,
        card=card(scenario),
    )
    test = parts[1][1]
    truth = Truth(
        Sealed(target.best_given_observed(test.observed)),
        Sealed(target.best_given_all(test.observed, test.missing)),
    )
    return Simulation(pair, truth)


def draw(
    world: World, start: int, stop: int, *, part: Part = "train", seed: int = 0
) -> SimulatedRows:
    """Draw the rows `start` to `stop` of one part of a domain.

    Row i takes the same random numbers whatever range it is drawn in: chunks of any size, in any
    order, give the same rows.
    """
    generator = np.random.PCG64([seed, _PARTS.index(part), DOMAINS.index(world.domain)])
    generator.advance(start * _DRAWS)
    uniform = np.random.Generator(generator).random((stop - start, _DRAWS)).T.copy()
    activity = _choose(world.activity[None], 0, uniform[0])
    user = _choose(world.user, activity, uniform[1])
    partner = _choose(world.partner[None], 0, uniform[2])
    partners, intents = world.intent.shape[1:]
    intent = _choose(world.intent.reshape(-1, intents), user * partners + partner, uniform[3])
    user_state = activity * world.user.shape[1] + user
    partner_state = (activity * partners + partner) * intents + intent
    features = [(table, user_state) for table in world.user_counts]
    features += [(table, partner_state) for table in world.partner_counts]
    counts = [
        _choose(table.reshape(-1, table.shape[-1]), state, uniform[6 + place])
        for place, (table, state) in enumerate(features)
    ]
    observed = np.stack([*counts[:_USER_FEATURES], activity], axis=1)
    missing = np.stack(counts[_USER_FEATURES:], axis=1)
    labels = (uniform[5] < world.best_given_all(observed, missing)).astype(np.int64)
    return SimulatedRows(observed, missing, labels)


def stream(
    world: World, rows: int, *, part: Part = "train", seed: int = 0, chunk: int = 100_000
) -> Iterator[SimulatedRows]:
    """Draw any number of rows with the memory of one chunk."""
    for start in range(0, rows, chunk):
        yield draw(world, start, min(start + chunk, rows), part=part, seed=seed)


def yardsticks(
    scenario: Scenario | None = None, *, check_rows: int = 400_000
) -> tuple[Yardstick, ...]:
    """Return the target cross-entropy of the best predictors and of constants, two ways.

    `expected` uses no label: for the constants and for p(y|x1,x2) it is a finite sum over the
    world's states, for p(y|x1) the mean entropy over `check_rows` drawn x1. `monte_carlo` is the
    mean of -log p(label) over as many rows drawn anew, with its standard error.
    """
    scenario = scenario or Scenario()
    world, seed = scenario.world("prospecting"), scenario.seed
    rate, source_rate = world.click_rate(), scenario.world("retargeting").click_rate()
    observed_entropy = sum(
        float(entropy(world.best_given_observed(chunk.observed)).sum())
        for chunk in stream(world, check_rows, part="train", seed=seed)
    )
    expected = {
        "best given x1 and x2": world.best_cross_entropy(),
        "best given x1": observed_entropy / check_rows,
        "constant, target click rate": float(_cross_entropy(rate, rate)),
        "constant, source click rate": float(_cross_entropy(rate, source_rate)),
    }
    sums = np.zeros((2, len(expected)))
    for chunk in stream(world, check_rows, part="check", seed=seed):
        predictions = (
            world.best_given_all(chunk.observed, chunk.missing),
            world.best_given_observed(chunk.observed),
            np.full(len(chunk.labels), rate),
            np.full(len(chunk.labels), source_rate),
        )
        losses = np.array([_cross_entropy(chunk.labels, p) for p in predictions])
        sums += losses.sum(axis=1), (losses**2).sum(axis=1)
    mean = sums[0] / check_rows
    error = np.sqrt((sums[1] / check_rows - mean**2) / check_rows)
    return tuple(
        Yardstick(name, value, float(mean[i]), float(error[i]))
        for i, (name, value) in enumerate(expected.items())
    )


def card(scenario: Scenario) -> Card:
    """Describe a scenario."""
    dials = ", ".join(f"{dial}={getattr(scenario, dial):g}" for dial in Dials.model_fields)
    return Card(
        what="Simulated ads: will this user click on this partner's ad? 17 counts of the user "
        "and 12 of the user at the partner, as log2 buckets.",
        origin=f"Drawn from a known world, seed {scenario.seed}; {dials}.",
        licence="None needed: no person's data.",
        counts={f"{domain} {part}": rows for domain in DOMAINS for part, rows in scenario.sizes},
        missing="The 12 user-partner counts of every prospecting pair.",
    )


def _choose(
    probabilities: Floats, state: npt.NDArray[np.int64] | int, uniform: Floats
) -> npt.NDArray[np.int64]:
    """Draw one value per row from the row of `probabilities` that its state names."""
    states, values = probabilities.shape
    cumulative = np.cumsum(probabilities, axis=1)
    cumulative[:, -1] = 1.0
    steps = (cumulative + np.arange(states)[:, None]).ravel()
    found = np.searchsorted(steps, uniform + state, side="right") - state * values
    return np.asarray(np.minimum(found, values - 1))


def _cross_entropy(truth: npt.ArrayLike, prediction: npt.ArrayLike) -> Floats:
    """-[p log q + (1 - p) log(1 - q)], finite where a certain prediction is right."""
    p, q = np.asarray(truth, dtype=np.float64), np.asarray(prediction, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        yes = np.where(p > 0, -p * np.log(q), 0.0)
        no = np.where(p < 1, -(1 - p) * np.log1p(-q), 0.0)
    return np.asarray(yes + no)
