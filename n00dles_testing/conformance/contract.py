"""The contract's table for stores: every clause id with its level, whether this release checks it or not.

The table is here so that no report can forget a clause: what is not in the registry yet is named as not implemented.
"""

from __future__ import annotations

__all__ = ["LEVELS", "PLAINLY", "clauses_of_level", "level_title"]

LEVELS: dict[int, tuple[str, tuple[str, ...]]] = {
    1: ("contract", tuple(f"S{number:02}" for number in range(1, 19))),
    2: ("crash-safe", tuple(f"C{number:02}" for number in range(1, 7))),
    3: ("power-safe", tuple(f"P{number:02}" for number in range(1, 4))),
    4: ("shared", tuple(f"W{number:02}" for number in range(1, 10))),
}
"""Level number to its name and its clauses. A level is reached together with all below it."""

PLAINLY: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("a kill inside a save", ("C03",)),
    ("faults", ("C04", "C05")),
    ("a power loss", LEVELS[3][1]),
    ("a second worker", ("S08", *LEVELS[4][1])),
    ("damage", ("S10",)),
)
"""What a reader may take for granted, and which clauses it is: said in words wherever these are not checked."""


def clauses_of_level(level: int) -> tuple[str, ...]:
    """Return the ids of the clauses that belong to `level`."""
    return LEVELS[level][1]


def level_title(level: int) -> str:
    """Return a level as it is printed: `level 2 (crash-safe)`, or `no level` for 0."""
    return f"level {level} ({LEVELS[level][0]})" if level else "no level"
