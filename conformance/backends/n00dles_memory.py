"""n00dles InMemoryStateStore: a dict, for tests.

A store of this project, opened as its documentation shows (`docs/reference/n00dles.md`). The adapter adds nothing.
"""

from __future__ import annotations

from n00dles import InMemoryStateStore

PACKAGES = ("n00dles-testing",)
IS_OURS = True
SERVER = None
GAPS: dict[str, str] = {}


def open_store() -> InMemoryStateStore:
    """Open an empty one."""
    return InMemoryStateStore()
