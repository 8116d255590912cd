"""Run ids: those that people use, and those that stores confuse."""

from __future__ import annotations

from hypothesis import strategies as st

__all__ = ["CONFUSABLE_IDS", "run_ids"]

CONFUSABLE_IDS = (
    "run",
    "RUN",
    "run ",
    " run",
    "run\t",
    "r",
    "run/1",
    "run_1",
    "run%1",
    "run\\1",
    "run.1",
    "run:1",
    "../run",
    "..",
    ".",
    "/run",
    "run/../run",
    "%",
    "run%",
    "r*n",
    "r?n",
    "[r]un",
    "\u00e9",
    "e\u0301",
    "\u212a",
    "k",
    "\u017f",
    "s",
    "\u0130",
    "i",
    "\ufeffrun",
    "run\x00",
    "'; DROP TABLE runs; --",
    "null",
    "0",
    "-1",
    "con",
    "🧨",
)
"""Ids that differ by case, space, Unicode form, wildcard, prefix, separator or path: all of them different runs."""

# Incompressible, so that no index can shorten it.
_MAX_BYTES = 10_000
_WORDS = st.text("abcdefghijklmnopqrstuvwxyz0123456789-_", min_size=1, max_size=40)
_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60)


def run_ids(*, hostile: bool = True) -> st.SearchStrategy[str]:
    """Draw ids of runs; with `hostile` also those that a store may confuse, or that lead out of a folder.

    A store keeps each of them apart from all others, or refuses it (clause S06).

        @given(run_ids(), run_ids())
        def test_runs_are_apart(one, other): ...

    Shrinks to a single character.
    """
    if not hostile:
        return _WORDS
    long = st.builds(_long, st.integers(1, _MAX_BYTES), st.integers(0, 2**32 - 1))
    return st.one_of(_WORDS, _TEXTS, st.sampled_from(CONFUSABLE_IDS), long)


def _long(size: int, seed: int) -> str:
    import random

    return "".join(
        random.Random(seed).choices("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", k=size)
    )
