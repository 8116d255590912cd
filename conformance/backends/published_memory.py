"""get-n00dles InMemoryStateStore: the store for tests of the published release.

Used as its documentation says (https://docs.n00dles.com), for tests and short-lived scripts. It has the three methods
already, and is checked as it is: the adapter adds nothing.
"""

from __future__ import annotations

from typing import Any

from . import LAST_WRITER_WINS
from .published import published

PACKAGES = ()
PUBLISHED_APART = ("get-n00dles",)
SERVER = None
_LAST_WRITER = "a record of this release has no revision, and the last writer wins"
GAPS = dict.fromkeys(LAST_WRITER_WINS, _LAST_WRITER)


def open_store() -> Any:
    """Open an empty store."""
    return published().InMemoryStateStore()
