"""The token of a sequence of operations, for `n00dles-testing replay`: store, seed and operations in one word.

Reading one builds texts, numbers, lists and dicts, and nothing else: nothing in it is executed or unpickled. The store
that it names is imported only when it is replayed, as `check` does.
"""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import dataclass
from typing import Self

from ...crash.tokens import BadTokenError, below_here, is_target
from .operations import Plan, PlanError

__all__ = ["PREFIX", "PlanToken"]

PREFIX = "s1"
_MOST_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class PlanToken:
    """One sequence on one store: `target` as `check` takes it, the seed of that check, and what was played."""

    target: str
    seed: int
    plan: Plan

    def encode(self, folder: str | None = None) -> str:
        """Return the token: letters, digits, `_` and `-`. The same sequence gives the same one on every machine.

        A file below `folder`, or the current one, is named by its relative path.
        """
        form = {"target": below_here(self.target, folder), "seed": self.seed, "plan": self.plan.to_dict()}
        text = json.dumps(form, sort_keys=True, separators=(",", ":"))
        return PREFIX + base64.urlsafe_b64encode(zlib.compress(text.encode(), 9)).decode().rstrip("=")

    @classmethod
    def decode(cls, text: str) -> Self:
        """Read a token. Raises `BadTokenError`."""
        form = _unpacked(text.strip().removeprefix(PREFIX))
        if not isinstance(form, dict) or form.keys() != {"target", "seed", "plan"}:
            raise BadTokenError("the token is damaged, or of another release: it holds no sequence of operations.")
        target, seed = form["target"], form["seed"]
        if not is_target(target) or type(seed) is not int:
            raise BadTokenError("the token is damaged: its store and its seed are of other types than they should be.")
        try:
            return cls(target, seed, Plan.from_dict(form["plan"]))
        except (PlanError, RecursionError) as error:
            raise BadTokenError(f"the token says what cannot be played: {error}.") from error


def _unpacked(body: str) -> object:
    try:
        packed = base64.b64decode(body.encode("ascii") + b"=" * (-len(body) % 4), altchars=b"-_", validate=True)
        unpacking = zlib.decompressobj()
        data = unpacking.decompress(packed, _MOST_BYTES)
        if not unpacking.eof or unpacking.unused_data:
            raise BadTokenError(
                "the token is cut short, too long, or something follows it; copy all of what stands after `replay`."
            )
        return json.loads(data)
    except BadTokenError:
        raise
    except (zlib.error, RecursionError, ValueError) as error:
        raise BadTokenError(
            "this is no token that a failure of S17 has printed, or a damaged one; copy all of what stands after "
            "`replay`."
        ) from error
