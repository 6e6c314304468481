"""The simulated world of ads, in closed form: every probability that the simulator draws from.

One row is one user and one partner. A few hidden states explain the counts::

    activity a ──> user kind u ──> x1: the user's counts over all partners
        │              │
        │              └──> intent m <── partner kind g
        │                     │
        └─────────────────────┴──> x2: the user's counts at this partner
    (x1, x2) ──> y

Three choices make p(y|x1) exact instead of estimated. The hidden states are few, so that sums
over them are short. The activity is itself observed, as the bucket of ``active_days``: shifting
it is a pure covariate shift, after which p(x2|x1) and p(y|x1,x2) are what they were. The label
depends on the hidden states only through (x1, x2), so that p(y|x1,x2) is a formula and each dial
moves one factor of p(x1) p(x2|x1) p(y|x1,x2) alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Literal

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field
from scipy.special import expit, softmax
from scipy.stats import nbinom

from halfseen.arrays import normalized

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Domain = Literal["retargeting", "prospecting"]

# Windows do not overlap ("week" is the six days before the last one, and so on): counts in
# different windows are then independent given the rates.
_USER_KINDS = ("displays", "clicks", "visits", "sales")
_USER_WINDOWS = {"day": 1.0, "week": 4.0, "month": 10.0, "quarter": 20.0}
_PARTNER_KINDS = ("visits", "products", "baskets", "clicks")
_PARTNER_WINDOWS = ("day", "week", "month")

OBSERVED = (
    *(f"user_{kind}_{window}" for kind in _USER_KINDS for window in _USER_WINDOWS),
    "user_active_days",
)
"""Names of x1: 17 counts of the user over all partners."""
MISSING = tuple(f"partner_{k}_{w}" for k in _PARTNER_KINDS for w in _PARTNER_WINDOWS)
"""Names of x2: 12 counts of the user at this partner."""

ACTIVITIES = 6
USER_BUCKETS = 10
PARTNER_BUCKETS = 7
"""A count v falls into bucket floor(log2(v + 1)); the last bucket keeps whatever is above it."""

# Mean counts of a user of middling activity on the last day, per kind (rows: user kinds).
_USER_RATES = np.array(
    [  # displays, clicks, visits, sales
        [5.0, 0.10, 2.0, 0.03],  # strolls: sees much, clicks little
        [3.0, 0.60, 3.0, 0.05],  # compares: clicks a lot, buys little
        [2.0, 0.30, 1.0, 0.30],  # buys: few visits, many sales
        [1.0, 0.03, 0.4, 0.02],  # rare: hardly ever there
    ]
)
# The log-odds of each user kind per step of activity: the rare are rarely active.
_USER_TILT = np.array([0.1, 0.2, 0.1, -0.6])
_ACTIVITY_MEAN, _ACTIVITY_DEVIATION = 3.0, 1.4
_ACTIVITY_GROWTH = 1.6
DISPERSION = 2.0
"""Shape of the negative binomial: the variance is mean + mean² / shape."""

_PARTNER_PROBABILITIES = np.array([0.5, 0.3, 0.2])
# How a partner kind scales its visits, products, baskets and clicks.
_PARTNER_SCALE = np.array([[1.0, 1.0, 1.3, 1.0], [1.2, 1.6, 0.8, 1.0], [0.7, 1.0, 0.6, 1.3]])
# Mean counts at the partner per intent: (intent, kind, window).
_INTENT_RATES = np.array(
    [
        [[0.1, 0.3, 0.5], [0.1, 0.3, 0.6], [0.02, 0.05, 0.05], [0.05, 0.1, 0.2]],  # passing by
        [[0.6, 4.0, 6.0], [1.0, 9.0, 14.0], [0.05, 0.3, 0.3], [0.2, 1.0, 1.5]],  # comparing
        [[5.0, 4.0, 1.0], [4.0, 5.0, 1.0], [2.0, 4.0, 0.3], [1.0, 1.5, 0.5]],  # ready to buy
        [[0.3, 0.5, 5.0], [0.2, 0.5, 8.0], [0.02, 0.1, 4.0], [0.05, 0.2, 2.5]],  # has bought
    ]
)
# Intents a partner kind attracts by itself, and those that a user kind brings along.
_PARTNER_INTENTS = np.array(
    [[0.40, 0.20, 0.25, 0.15], [0.30, 0.40, 0.15, 0.15], [0.45, 0.30, 0.10, 0.15]]
)
_USER_INTENTS = np.array(
    [[0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0], [1.0, 0.0, 0.0, 0.0]]
)
_INTENT_STRENGTH = np.array([-1.0, 0.0, 1.0, 0.0])
"""What the dial of the conditional acts on: prospects are less often ready to buy."""

# The label reads two features of x1 and three of x2 (positions in OBSERVED and MISSING).
_CLICKS, _DISPLAYS = OBSERVED.index("user_clicks_month"), OBSERVED.index("user_displays_month")
_INTEREST = {"partner_visits_day": 0.6, "partner_baskets_week": 0.8, "partner_baskets_month": -0.6}
_INTEREST_LEVELS = 4
_BIAS, _ON_RESPONSE, _ON_INTEREST, _ON_BOTH = -2.0, 0.8, 1.1, 0.5


class Dials(BaseModel):
    """What differs between retargeting (source) and prospecting (target), and how hard it is."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    activity_shift: float = Field(default=0.7, ge=-10, le=10)
    """Prospects are less active: p(a) is tilted by exp(-shift · a). Moves p(x1) alone."""
    click_rate_shift: float = Field(default=0.0, ge=-10, le=10)
    """Added to the log-odds of a click on the target. Moves p(y|x1,x2) alone."""
    conditional_shift: float = Field(default=0.0, ge=-10, le=10)
    """Weaker intents: p(m|u,g) is tilted by exp(-shift · strength(m)). Moves p(x2|x1) alone."""
    predictability: float = Field(default=0.6, ge=0, le=1)
    """How much of x2 follows from x1: 0 nothing, 1 as far as the intent is the user kind's."""
    label_noise: float = Field(default=0.0, ge=0, le=0.5)
    """Probability that a label is replaced by its opposite, in both domains."""


@dataclass(frozen=True)
class World:
    """One domain of the simulated world: its probabilities and its best predictors."""

    domain: Domain
    dials: Dials

    @property
    def is_target(self) -> bool:
        """Whether the dials of shift act here."""
        return self.domain == "prospecting"

    @cached_property
    def activity(self) -> Floats:
        """p(a), the activity level: all that the first dial moves."""
        level = np.arange(ACTIVITIES)
        shift = self.dials.activity_shift if self.is_target else 0.0
        log_odds = -0.5 * ((level - _ACTIVITY_MEAN) / _ACTIVITY_DEVIATION) ** 2 - shift * level
        return np.asarray(softmax(log_odds))

    @cached_property
    def user(self) -> Floats:
        """p(u|a), the user kind, as (a, u)."""
        log_odds = np.outer(np.arange(ACTIVITIES) - _ACTIVITY_MEAN, _USER_TILT)
        return np.asarray(softmax(log_odds, axis=1))

    @property
    def partner(self) -> Floats:
        """p(g), the partner kind."""
        return _PARTNER_PROBABILITIES

    @cached_property
    def intent(self) -> Floats:
        """p(m|u,g), the intent, as (u, g, m)."""
        follow = self.dials.predictability
        probability = (1 - follow) * _PARTNER_INTENTS[None] + follow * _USER_INTENTS[:, None]
        if self.is_target:
            probability = probability * np.exp(-self.dials.conditional_shift * _INTENT_STRENGTH)
        return normalized(probability)

    @cached_property
    def user_means(self) -> Floats:
        """Mean of each x1 but the last, as (feature, a, u)."""
        growth = _ACTIVITY_GROWTH ** (np.arange(ACTIVITIES) - _ACTIVITY_MEAN)
        windows = np.array(list(_USER_WINDOWS.values()))
        means: Floats = np.einsum("uk,w,a->kwau", _USER_RATES, windows, growth)
        return means.reshape(-1, ACTIVITIES, len(_USER_RATES))

    @cached_property
    def partner_means(self) -> Floats:
        """Mean of each x2, as (feature, a, g, m)."""
        growth = _ACTIVITY_GROWTH ** (np.arange(ACTIVITIES) - _ACTIVITY_MEAN)
        growth = growth**self.dials.predictability
        means: Floats = np.einsum("mkw,gk,a->kwagm", _INTENT_RATES, _PARTNER_SCALE, growth)
        return means.reshape(-1, *means.shape[2:])

    @cached_property
    def user_counts(self) -> Floats:
        """p(x1_j | a, u) of each x1 but the last, as (feature, a, u, bucket)."""
        return _bucket_probabilities(self.user_means, USER_BUCKETS)

    @cached_property
    def partner_counts(self) -> Floats:
        """p(x2_j | a, g, m) of each x2, as (feature, a, g, m, bucket)."""
        return _bucket_probabilities(self.partner_means, PARTNER_BUCKETS)

    def click_probability(self, response: Floats, interest: Floats) -> Floats:
        """p(y=1|x1,x2): the label's formula, where the two scores say all there is to know."""
        bias = _BIAS + (self.dials.click_rate_shift if self.is_target else 0.0)
        log_odds = (
            bias
            + _ON_RESPONSE * response
            + _ON_INTEREST * interest
            + _ON_BOTH * response * interest
        )
        noise = self.dials.label_noise
        return np.asarray(noise + (1 - 2 * noise) * expit(log_odds), dtype=np.float64)

    def best_given_all(self, observed: Integers, missing: Integers) -> Floats:
        """p(y=1|x1,x2) of rows of x1 and x2."""
        levels = np.minimum(missing[:, _INTEREST_COLUMNS], _INTEREST_LEVELS - 1)
        return self.click_probability(_RESPONSES[_response(observed)], levels @ _INTEREST_WEIGHTS)

    def best_given_observed(self, observed: Integers) -> Floats:
        """p(y=1|x1) = Σ_u p(u|x1) p(y=1|x1,u), exact: the best that x1 alone allows."""
        click = self._click_given_user[observed[:, -1], _response(observed)]
        return np.asarray((self.user_posterior(observed) * click).sum(axis=1))

    def user_posterior(self, observed: Integers) -> Floats:
        """p(u|x1), as (rows, u)."""
        activity = observed[:, -1]
        log_joint = np.log(self.user)[activity]
        for feature, table in enumerate(self._log_user_counts):
            log_joint += table[activity, observed[:, feature]]
        return np.asarray(softmax(log_joint, axis=1))

    def click_rate(self) -> float:
        """p(y=1), exact: the best constant."""
        return sum(float(weight @ click) for weight, click in self._label_events())

    def best_cross_entropy(self) -> float:
        """Cross-entropy of p(y|x1,x2) against the labels, exact: the mean of its entropy."""
        return sum(float(weight @ entropy(click)) for weight, click in self._label_events())

    def _label_events(self) -> Iterator[tuple[Floats, Floats]]:
        """All (probability, p(y=1)) of what the label can read, one activity level at a time."""
        for level in range(ACTIVITIES):
            response = np.einsum("u,ur->ur", self.user[level], self._response_given_user[level])
            intent = np.einsum("ur,g,ugm->rgm", response, self.partner, self.intent)
            weight = np.einsum("rgm,gmi->ri", intent, self._interest_given_intent[level])
            yield self.activity[level] * weight.ravel(), self._click_table.ravel()

    @cached_property
    def _log_user_counts(self) -> Floats:
        """Log p(x1_j | a, u) as (feature, a, value, u): one row's four values lie together."""
        tiny = np.finfo(np.float64).tiny
        return np.ascontiguousarray(np.log(np.maximum(self.user_counts, tiny)).swapaxes(2, 3))

    @cached_property
    def _click_table(self) -> Floats:
        """p(y=1) for every response (rows) and every combination of interest (columns)."""
        return self.click_probability(_RESPONSES[:, None], _INTERESTS[None, :])

    @cached_property
    def _response_given_user(self) -> Floats:
        """p(response | a, u), as (a, u, response)."""
        clicks, displays = self.user_counts[_CLICKS], self.user_counts[_DISPLAYS]
        result = np.zeros((*clicks.shape[:2], len(_RESPONSES)))
        for click in range(USER_BUCKETS):
            for display in range(USER_BUCKETS):
                index = click - display + USER_BUCKETS - 1
                result[:, :, index] += clicks[:, :, click] * displays[:, :, display]
        return result

    @cached_property
    def _interest_given_intent(self) -> Floats:
        """p(combination of interest | a, g, m), as (a, g, m, combination)."""
        levels = []
        for column in _INTEREST_COLUMNS:
            table = self.partner_counts[column].copy()
            table[..., _INTEREST_LEVELS - 1] = table[..., _INTEREST_LEVELS - 1 :].sum(axis=-1)
            levels.append(table[..., :_INTEREST_LEVELS])
        joint: Floats = np.einsum("agmi,agmj,agmk->agmijk", *levels)
        return joint.reshape(*joint.shape[:3], -1)

    @cached_property
    def _click_given_user(self) -> Floats:
        """p(y=1 | x1, u), as (a, response, u): interest, intent and partner summed out."""
        click = np.einsum("agmi,ri->argm", self._interest_given_intent, self._click_table)
        return np.asarray(np.einsum("argm,g,ugm->aru", click, self.partner, self.intent))


def entropy(probability: Floats) -> Floats:
    """Entropy of a yes-or-no event, in nats."""
    inside = np.clip(probability, 1e-300, 1.0)
    outside = np.clip(1.0 - probability, 1e-300, 1.0)
    result = -(probability * np.log(inside) + (1.0 - probability) * np.log(outside))
    return np.asarray(result + 0.0, dtype=np.float64)


def _bucket_probabilities(means: Floats, buckets: int) -> Floats:
    """Probability of each bucket of counts with these means."""
    highest = 2 ** np.arange(1, buckets) - 2  # the largest count of every bucket but the last
    success = DISPERSION / (DISPERSION + means[..., None])
    cumulative = nbinom.cdf(highest, DISPERSION, success)
    ends = np.zeros((*means.shape, 1)), np.ones((*means.shape, 1))
    return np.diff(np.concatenate([ends[0], cumulative, ends[1]], axis=-1), axis=-1)


def _response(observed: Integers) -> Integers:
    """Return which of the responses each row has."""
    return observed[:, _CLICKS] - observed[:, _DISPLAYS] + USER_BUCKETS - 1


# The log2 of the user's own click-through rate, roughly, around its middle and within bounds.
_RESPONSES = np.clip((np.arange(2 * USER_BUCKETS - 1) - (USER_BUCKETS - 1) + 2.5) / 1.5, -1.5, 1.5)
_INTEREST_COLUMNS = [MISSING.index(name) for name in _INTEREST]
_INTEREST_WEIGHTS = np.array(list(_INTEREST.values()))
_INTERESTS = np.asarray(list(product(range(_INTEREST_LEVELS), repeat=3))) @ _INTEREST_WEIGHTS
