"""The objective as a list of terms.

A new term is a file with a subclass of :class:`Term` under :func:`register`, and its line in
`FURTHER`; ``options={"objective.terms": {"its_name": {}}}`` switches it on. Its weight, phases,
words, modules and hooks are its own: nothing else need know it.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TypeVar

from halfseen.errors import OptionError
from halfseen.networks.terms.paper import Adaptation, Classification, Imputation, Refinement
from halfseen.networks.terms.term import Losses, Part, PhaseName, Setup, State, Term, TermSettings
from halfseen.options.making import TERM_SETTINGS

__all__ = [
    "Losses",
    "Part",
    "PhaseName",
    "Setup",
    "State",
    "Term",
    "TermSettings",
    "loss_words",
    "make_terms",
    "register",
]

FURTHER = ("averaged_teacher",)
"""Files of terms that options can switch on."""

BUILT_IN: dict[str, type[Term]] = {
    "adaptation": Adaptation,
    "imputation": Imputation,
    # Before classification, so that the target passes f first, as it always did.
    "refinement": Refinement,
    "classification": Classification,
}
_REGISTERED: dict[str, type[Term]] = {}

AnyTerm = TypeVar("AnyTerm", bound=type[Term])


def register(name: str) -> Callable[[AnyTerm], AnyTerm]:
    """Add a term under the name by which ``objective.terms`` switches it on; a decorator.

    Examples
    --------
    >>> register("entropy_again")(Refinement)
    Traceback (most recent call last):
    halfseen.errors.OptionError: The term 'entropy_again' brings the loss 'pseudo_label', which \
'refinement' has already: choose another name.
    """

    def add(term: AnyTerm) -> AnyTerm:
        if name in BUILT_IN or not name.isidentifier():
            raise OptionError(
                f"A term cannot be called {name!r}: choose a name of letters, digits and "
                f"underscores that is none of {', '.join(BUILT_IN)}."
            )
        for other, known in (BUILT_IN | _REGISTERED).items():
            for loss in term.words:
                if loss in known.words and other != name:
                    raise OptionError(
                        f"The term {name!r} brings the loss {loss!r}, which {other!r} has "
                        "already: choose another name."
                    )
        _REGISTERED[name] = term
        TERM_SETTINGS[name] = term.Settings
        return term

    return add


def make_terms(setup: Setup) -> dict[str, Term]:
    """Return the terms of a model: what its method brings, then what the options switch on."""
    method = setup.networks.method
    applies = {
        "adaptation": method.adapts,
        "imputation": method.imputes,
        "refinement": method.adapts,
        "classification": True,
    }
    # In this order: every term draws its initial weights after those before it.
    terms = {name: term(setup) for name, term in BUILT_IN.items() if applies[name]}
    for name, settings in setup.options.objective.terms.items():
        term = _REGISTERED[name]
        if term.needs_target and not method.adapts:
            raise OptionError(
                f"objective.terms.{name} looks at target rows in training, and {method.name} does "
                "not adapt: choose a model that adapts, or leave the term out."
            )
        terms[name] = term(setup, term.Settings(**settings))
    return terms


def loss_words() -> dict[str, str]:
    """Return every loss that a term can bring, in the order of the terms, with its words."""
    terms = BUILT_IN | _REGISTERED
    return {loss: words for term in terms.values() for loss, words in term.words.items()}


for _file in FURTHER:
    import_module(f"{__name__}.{_file}")
