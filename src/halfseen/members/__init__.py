"""What learns p(y | x1): each member in its own way, behind one protocol.

A new member is one file and one call of :func:`register`.
"""

from __future__ import annotations

from halfseen.members.aligned import Aligned, AlignedLearner
from halfseen.members.linear import Regression, RegressionLearner
from halfseen.members.networks import NetworksLearner, NetworksMember
from halfseen.members.registry import LEARNERS, MEMBER_WORDS, MEMBERS, register, words_of
from halfseen.members.tasks import Learner, Member, Sample, Task
from halfseen.members.trees import BoostedTrees, BoostedTreesLearner, Forest, ForestLearner

__all__ = [
    "LEARNERS",
    "MEMBERS",
    "MEMBER_WORDS",
    "Aligned",
    "AlignedLearner",
    "BoostedTrees",
    "BoostedTreesLearner",
    "Forest",
    "ForestLearner",
    "Learner",
    "Member",
    "NetworksLearner",
    "NetworksMember",
    "Regression",
    "RegressionLearner",
    "Sample",
    "Task",
    "register",
    "words_of",
]

register(NetworksMember, None, "networks alone")
register(Regression, RegressionLearner, "penalised regression, observed columns")
register(BoostedTrees, BoostedTreesLearner, "gradient-boosted trees, observed columns")
register(Forest, ForestLearner, "random forest, observed columns")
register(Aligned, None, "behind maps of drifted columns")
