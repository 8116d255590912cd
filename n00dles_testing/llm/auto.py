"""Replies that nobody has to write: derived from the request alone, and valid for its JSON schema.

The same request gets the same reply in every process, and another request another one: every text carries a mark of
the request's hash. So a resumed run that sends another prompt than the undisturbed one shows in the output.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from .dice import Dice
from .schema_values import SchemaValues

__all__ = ["automatic_reply"]

_OPENINGS = ("In short", "Three points stand out", "Here is what matters", "To begin with", "As far as one can tell")
_CLAIMS = (
    "costs fall when work is not done twice",
    "small steps are easier to check than large ones",
    "what is written down survives a restart",
    "most failures come from the parts nobody looks at",
    "a second opinion catches what the first one missed",
    "the numbers agree with last year's report",
    "readers prefer short sentences",
    "delays grow with the length of the queue",
)


def automatic_reply(request: str, prompt: str, schema: dict[str, Any] | None) -> str:
    """Return the reply to a canonical request: plain text, or JSON text that is valid for `schema`.

    Raises `SchemaError` for a schema that no value is known for.
    """
    digest = hashlib.sha256(request.encode("utf-8", "surrogatepass")).digest()
    dice = Dice(digest)
    mark = digest[:6].hex()
    if schema is not None:
        return json.dumps(SchemaValues(schema, dice, mark).value(), ensure_ascii=False)
    subject = " ".join(prompt.split()[:6])
    first = dice.below(len(_CLAIMS))
    claims = ", ".join((_CLAIMS * 2)[first : first + 3])
    return f"{dice.choice(_OPENINGS)}, on {subject!r}: {claims} [{mark}]."
