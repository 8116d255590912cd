"""Which of many findings to tell: one root cause shows at many crash points, and is told once."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .verdicts import Finding

__all__ = ["few"]

_STORIES = 3
_VARYING = re.compile(r'"(?:[^"\\]|\\.)*"|\d+')
"""What may differ between two faults of one kind: quoted values, and numbers."""


def few(findings: Sequence[Finding]) -> tuple[list[Finding], int]:
    """Return one finding of each kind, the shortest story, three at most; and how many that leaves out."""
    kinds: dict[tuple[str, str], Finding] = {}
    for finding in findings:
        kind = (finding.clause, _VARYING.sub("*", finding.message))
        if kind not in kinds or len(finding.story) < len(kinds[kind].story):
            kinds[kind] = finding
    told = list(kinds.values())[:_STORIES]
    return told, len(findings) - len(told)
