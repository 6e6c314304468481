"""Every kind of member by its name: a new one is one file and one call of :func:`register`."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from halfseen.errors import InputError
from halfseen.members.protocol import Learner
from halfseen.targets import TargetType

NETWORKS = "networks"
"""The kind that needs PyTorch, which is imported where such a member is made or loaded."""

MEMBERS: dict[str, Any] = {}
"""Every kind of member, by the name that folders and settings use."""

LEARNERS: dict[str, Callable[[], Learner]] = {}
"""What fits each kind; networks, which have settings, are fitted by a `NetworksLearner`."""

MEMBER_WORDS: dict[str, str] = {NETWORKS: "networks alone"}
"""How screens and reports call them."""


def words_of(kind: str, target_type: TargetType | type[TargetType]) -> str:
    """Return how a sentence calls a member.

    Examples
    --------
    >>> from halfseen.targets import RegressionTarget, ClassTarget
    >>> words_of("regression", ClassTarget), words_of("regression", RegressionTarget())
    ('logistic regression', 'ridge regression')
    """
    words = MEMBER_WORDS.get(kind, kind).partition(",")[0].removesuffix(" alone")
    return target_type.linear_words if kind == "regression" else words


def register(member: type[Any], learner: Callable[[], Learner] | None, words: str) -> None:
    """Make a kind of member known to settings, commands and folders.

    Parameters
    ----------
    member
        A class that follows :class:`~halfseen.members.Member`; its `kind` is its name.
    learner
        Makes what fits it; None where settings of the fit are needed for that.
    words
        How screens and reports call it.
    """
    MEMBERS[member.kind], MEMBER_WORDS[member.kind] = member, words
    if learner is not None:
        LEARNERS[member.kind] = learner


def member_named(kind: str) -> Any:
    """Return the class of a kind of member, or say that there is none."""
    if kind == NETWORKS:
        import_module("halfseen.members.network_members")
    if kind not in MEMBERS:
        raise InputError(f"there is no member of kind {kind!r} in this version of halfseen.")
    return MEMBERS[kind]
