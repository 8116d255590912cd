"""All families of a campaign, in the order in which they are searched."""

from __future__ import annotations

from .family import Family
from .identity_family import IdentityFamily
from .lives_family import LivesFamily
from .names_family import NamesFamily
from .outputs_family import OutputsFamily
from .rivals_family import RivalsFamily

__all__ = ["FAMILIES", "SCOUTS", "family_named"]

FAMILIES: tuple[Family, ...] = (
    LivesFamily(plans=8, share=0.76),
    LivesFamily(plans=4, on_disk=True, share=0.04),
    NamesFamily(),
    IdentityFamily(),
    OutputsFamily(),
    RivalsFamily(),
)
"""Their shares of the scenarios add up to one."""


SCOUTS = LivesFamily(plans=2, share=0.76, is_scouting=True)
"""What begins: many pipelines, each with few plans, so that each clause finds an occasion early."""


def family_named(name: str) -> Family:
    """Return the family of that name. Raises `LookupError`."""
    return next(iter([family for family in FAMILIES if family.name == name]))
