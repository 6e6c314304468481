"""Every choice of the method in one place, in groups, and the presets that set them all.

Where the paper and its authors' code differ, the difference is a field here whose name says
what it does. ``preset("paper", ...)`` follows the text, ``preset("reference", ...)`` the
authors' code, ``preset("default", ...)`` is our own choice (docs/method.md says why).
"""

from __future__ import annotations

from halfseen.options.groups import Group, Initialization, Inputs, Normalization, Options
from halfseen.options.making import GROUPS, dotted, make_options, nested, option_names
from halfseen.options.presets import Preset, preset

__all__ = [
    "GROUPS",
    "Group",
    "Initialization",
    "Inputs",
    "Normalization",
    "Options",
    "Preset",
    "dotted",
    "make_options",
    "nested",
    "option_names",
    "preset",
]
