"""The token of a campaign's scenario, for `n00dles-testing replay`: executor, pipeline and plan as data, in one word.

Reading one executes nothing, and needs no database of hypothesis: what it names is imported when it is replayed.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from dataclasses import dataclass
from typing import Self

from ..crash.tokens import BadTokenError
from ..strategies import SpecError, from_json, to_json
from .families import FAMILIES
from .family import Trial

__all__ = ["PREFIX", "CampaignToken"]

PREFIX = "c1"
_SHOWN = 4
_MOST_BYTES = 2_000_000


@dataclass(frozen=True, slots=True)
class CampaignToken:
    """One scenario: the executor as `module:object` or `file.py:object` (None: that of n00dles), and the trial."""

    executor: str | None
    trial: Trial

    def encode(self) -> str:
        """Return the token: letters, digits, `_` and `-`. The same scenario gives the same one on every machine."""
        form = {
            "executor": self.executor,
            "family": self.trial.family,
            "spec": to_json(self.trial.spec),
            "rest": list(self.trial.rest),
        }
        text = json.dumps(form, sort_keys=True, separators=(",", ":"))
        return PREFIX + base64.urlsafe_b64encode(zlib.compress(text.encode(), 9)).decode().rstrip("=")

    @classmethod
    def decode(cls, text: str) -> Self:
        """Read a token. Raises `BadTokenError`."""
        body = text.strip().removeprefix(PREFIX)
        try:
            packed = base64.b64decode(body.encode("ascii") + b"=" * (-len(body) % 4), altchars=b"-_", validate=True)
            unpacking = zlib.decompressobj()
            data = unpacking.decompress(packed, _MOST_BYTES)
            if not unpacking.eof or unpacking.unused_data:
                raise BadTokenError(
                    "the token is cut short, too long, or something follows it; copy all of what stands after `replay`."
                )
            form = json.loads(data)
            executor, family, rest = form["executor"], form["family"], form["rest"]
            texts = [family, *rest, *([] if executor is None else [executor])]
            if not isinstance(rest, list) or not all(isinstance(each, str) for each in texts):
                raise BadTokenError("the token is damaged: its fields are of other types than they should be.")
            trial = Trial(family, from_json(form["spec"]), tuple(rest))
            if any(each.name == family and not each.is_sound(trial) for each in FAMILIES):
                raise BadTokenError(
                    f"the token says what cannot be tried: {', '.join(rest[:_SHOWN])} of the family {family!r}."
                )
            return cls(executor, trial)
        except (binascii.Error, zlib.error, UnicodeError, RecursionError, ValueError, KeyError, TypeError) as error:
            if isinstance(error, BadTokenError):
                raise
            known = error if isinstance(error, SpecError) else type(error).__name__
            raise BadTokenError(
                f"this is no token of a campaign, or a damaged one ({known}); copy all of it."
            ) from error
