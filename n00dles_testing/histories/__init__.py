"""Histories of concurrent calls on a store: kept in files, judged, and a failure shown as the calls that conflict.

    history = read_history(Path("history.jsonl"))
    judgement = judge(history)
    assert judgement.verdict is Verdict.PASS, judgement.reason

What is judged is linearizability (Herlihy and Wing, 1990) of `load_or_create`, `save` and `delete`, and with it that no
acknowledged save is lost; see `judging` for the rules and `assumptions` for what makes a history VACUOUS.
"""

from .calls import Call, History
from .diagram import diagram
from .file import DamagedHistoryError, read_history, write_history
from .judging import Judgement, judge
from .violations import RULES, Violation

__all__ = [
    "RULES",
    "Call",
    "DamagedHistoryError",
    "History",
    "Judgement",
    "Violation",
    "diagram",
    "judge",
    "read_history",
    "write_history",
]
