"""The paper's seven models as rows of one table (section 6.1)."""

from __future__ import annotations

from dataclasses import dataclass

from halfseen.blocks import View
from halfseen.errors import OptionError


@dataclass(frozen=True)
class NetworkVariant:
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


VARIANTS: tuple[NetworkVariant, ...] = (
    NetworkVariant("Source-Full", "full", "full", adapts=False, imputes=False),
    NetworkVariant("Adaptation-Full", "full", "full", adapts=True, imputes=False),
    NetworkVariant("Source-ZeroImputation", "full", "zero", adapts=False, imputes=False),
    NetworkVariant("Adaptation-ZeroImputation", "full", "zero", adapts=True, imputes=False),
    NetworkVariant("Source-IgnoreComponent", "ignore", "ignore", adapts=False, imputes=False),
    NetworkVariant("Adaptation-IgnoreComponent", "ignore", "ignore", adapts=True, imputes=False),
    NetworkVariant("Adaptation-Imputation", "ignore", "ignore", adapts=True, imputes=True),
)


def variant_named(name: str) -> NetworkVariant:
    for method in VARIANTS:
        if method.name == name:
            return method
    raise OptionError(f"There is no model {name!r}; choose one of {[m.name for m in VARIANTS]}.")
