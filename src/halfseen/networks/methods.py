"""The paper's seven models as rows of one table (section 6.1)."""

from __future__ import annotations

from dataclasses import dataclass

from halfseen.blocks import View
from halfseen.errors import OptionError


@dataclass(frozen=True)
class Method:
    """What a model is shown of each domain, whether it adapts and whether it imputes.

    An imputing model encodes the source's x2 too, apart from what the views show.
    """

    name: str
    source_view: View
    target_view: View
    adapts: bool
    imputes: bool

    @property
    def needs_complete_target(self) -> bool:
        """Whether the model sees the target's x2: possible in benchmarks only."""
        return self.target_view == "full"


METHODS: tuple[Method, ...] = (
    Method("Source-Full", "full", "full", adapts=False, imputes=False),
    Method("Adaptation-Full", "full", "full", adapts=True, imputes=False),
    Method("Source-ZeroImputation", "full", "zero", adapts=False, imputes=False),
    Method("Adaptation-ZeroImputation", "full", "zero", adapts=True, imputes=False),
    Method("Source-IgnoreComponent", "ignore", "ignore", adapts=False, imputes=False),
    Method("Adaptation-IgnoreComponent", "ignore", "ignore", adapts=True, imputes=False),
    Method("Adaptation-Imputation", "ignore", "ignore", adapts=True, imputes=True),
)


def method_named(name: str) -> Method:
    for method in METHODS:
        if method.name == name:
            return method
    raise OptionError(f"There is no model {name!r}; choose one of {[m.name for m in METHODS]}.")
