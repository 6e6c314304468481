"""What learns p(y | x1): each member in its own way, behind one protocol.

A new member is one file and one line in :data:`MEMBERS`.
"""

from __future__ import annotations

from typing import Any

from halfseen.members.linear import Regression, RegressionLearner
from halfseen.members.networks import NetworksLearner, NetworksMember
from halfseen.members.tasks import Learner, Member, Sample, Task

__all__ = [
    "MEMBERS",
    "MEMBER_WORDS",
    "Learner",
    "Member",
    "NetworksLearner",
    "NetworksMember",
    "Regression",
    "RegressionLearner",
    "Sample",
    "Task",
]

MEMBERS: dict[str, Any] = {NetworksMember.kind: NetworksMember, Regression.kind: Regression}
"""Every kind of member, by the name that folders and settings use."""

MEMBER_WORDS = {
    NetworksMember.kind: "networks alone",
    Regression.kind: "logistic regression, observed columns",
}
"""How screens and reports call them."""
