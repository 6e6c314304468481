"""What learns p(y | x1): each member in its own way, behind one protocol.

A new member is one file and one call of :func:`register`. Networks are fetched when they are
first asked for: nothing else waits for PyTorch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from halfseen.members.aligned import Aligned, AlignedLearner, Mapped
from halfseen.members.linear import Regression, RegressionLearner
from halfseen.members.protocol import (
    LEARNERS,
    NETWORKS,
    SIMPLE,
    Learner,
    Member,
    Sample,
    TrainingJob,
    member_named,
    register,
    words_of,
)
from halfseen.members.trees import BoostedTrees, BoostedTreesLearner, Forest, ForestLearner

if TYPE_CHECKING:
    from halfseen.members.network_members import NetworksLearner, NetworksMember

__all__ = [
    "LEARNERS", "NETWORKS", "SIMPLE", "Aligned", "AlignedLearner", "BoostedTrees",
    "BoostedTreesLearner", "Forest", "ForestLearner", "Learner", "Mapped", "Member",
    "NetworksLearner", "NetworksMember", "Regression", "RegressionLearner", "Sample",
    "TrainingJob", "member_named", "register", "words_of",
]  # fmt: skip

register(Regression, RegressionLearner, "penalised regression, observed columns")
register(BoostedTrees, BoostedTreesLearner, "gradient-boosted trees, observed columns")
register(Forest, ForestLearner, "random forest, observed columns")
register(Aligned, None, "members behind maps of drifted columns")


def __getattr__(name: str) -> Any:
    if name not in ("NetworksLearner", "NetworksMember"):
        raise AttributeError(f"module 'halfseen.members' has no attribute {name!r}")
    from halfseen.members import network_members

    return getattr(network_members, name)
