"""Values that JSON holds exactly: of every shape, and with everything in them that has broken a store."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from n00dles.serialization import MAX_DEPTH

from .model_values import HOSTILE_TEXTS

__all__ = ["INTEGERS", "NUMBERS", "json_values"]

INTEGERS = (2**31, 2**53 - 1, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63) - 1, 10**40, -(10**400))
"""Integers at which something ends: a column, a float, a C type."""

NUMBERS = (-0.0, 5e-324, 2.2250738585072014e-308, 1e308, -1.7976931348623157e308, 1e16, 1e22, 0.1, 1.0)
"""Floats that a text of too few digits, or an integer, does not give back."""

_LETTERS = st.characters(exclude_categories=["Cs"])
_TEXTS = st.one_of(st.text(_LETTERS, max_size=20), st.sampled_from(HOSTILE_TEXTS))
_SCALARS: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from(INTEGERS),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(NUMBERS),
    _TEXTS,
)


def json_values(*, max_depth: int = MAX_DEPTH, max_leaves: int = 20) -> st.SearchStrategy[Any]:
    """Draw values that `n00dles` stores as they are: null, booleans, numbers, texts, lists and dicts with text keys.

    No NaN, no lone surrogate, nothing that would come back as something else. `max_depth` bounds the nesting, which is
    drawn as deep as that now and then; 0 gives scalars only. `max_leaves` is about how many scalars there are.

        @given(json_values())
        def test_it_comes_back(value):
            assert typed(load(save(value))) == typed(value)      # 1 is not 1.0, and 0.0 is not -0.0

    Shrinks to None.
    """
    if max_depth <= 0:
        return _SCALARS
    # `recursive` nests at most as deep as it has leaves, in practice far less; depth has a strategy of its own.
    wide = st.recursive(_SCALARS, _around, max_leaves=max_leaves)
    if max_depth < max_leaves:
        wide = wide.filter(lambda value: _depth(value) <= max_depth)
    return st.one_of(_SCALARS, wide, st.builds(_nested, _SCALARS, st.integers(1, max_depth), st.booleans()))


def _around(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.lists(inner, max_size=4), st.dictionaries(_TEXTS, inner, max_size=4))


def _nested(value: Any, levels: int, in_dicts: bool) -> Any:
    for _ in range(levels):
        value = {"in": value} if in_dicts else [value]
    return value


def _depth(value: Any) -> int:
    if isinstance(value, dict):
        value = list(value.values())
    return 1 + max(map(_depth, value), default=0) if isinstance(value, list) else 0
