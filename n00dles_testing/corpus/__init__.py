"""Hostile values: what stores and serializers lose, each with what must become of it.

    for hostile in hostile_values():
        ctx = PipelineContext("run-1", {})
        if hostile.expected == "kept":
            ctx.checkpoint("node", hostile.value())
        else:
            with pytest.raises(SerializationError):
                ctx.checkpoint("node", hostile.value())

`KEPT` is what JSON holds exactly. `BENT` is what `json.dumps` takes and turns into something else, `FOREIGN` what JSON
has no form for, `BOTTOMLESS` what no parser gets through. Clause S03 of the contract is checked with all four, S04 with
`MODELS`: Pydantic models of which a careless dump loses something. The corpus has no dependency on the suite: take it
for a store, a serializer or an executor of your own.
"""

from __future__ import annotations

from .bent import BENT
from .foreign import BOTTOMLESS, FOREIGN
from .hostile import Expected, Hostile, same
from .kept import KEPT
from .models import MODELS, HostileModel

__all__ = [
    "BENT",
    "BOTTOMLESS",
    "FOREIGN",
    "KEPT",
    "MODELS",
    "Expected",
    "Hostile",
    "HostileModel",
    "hostile_values",
    "same",
]


def hostile_values(expected: Expected | None = None) -> tuple[Hostile, ...]:
    """Return the whole corpus, or only the values that must be kept, or refused. Titles are unique."""
    return tuple(each for each in (*KEPT, *BENT, *FOREIGN, *BOTTOMLESS) if expected in (None, each.expected))
