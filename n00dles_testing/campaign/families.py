"""All families of a campaign, in the order in which they are searched."""

from __future__ import annotations

from .family import Family
from .identity_family import IdentityFamily
from .lives_family import LivesFamily
from .names_family import NamesFamily
from .outputs_family import OutputsFamily
from .rivals_family import RivalsFamily

__all__ = ["FAMILIES", "family_named"]

FAMILIES: tuple[Family, ...] = (
    LivesFamily(share=0.76),
    LivesFamily(on_disk=True, share=0.04),
    NamesFamily(),
    IdentityFamily(),
    OutputsFamily(),
    RivalsFamily(),
)
"""Their shares of the scenarios add up to one."""


def family_named(name: str) -> Family:
    """Return the family of that name. Raises `LookupError`."""
    return next(iter([family for family in FAMILIES if family.name == name]))
