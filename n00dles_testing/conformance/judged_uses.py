"""What users of one store object did, held against what ought to have come of it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from .expect import BrokenClause, VacuousCheck
from .records import Record, show
from .scenario import Scenario
from .used_elsewhere import output_of

__all__ = ["Uses"]

_WHY = "it was acknowledged, and no other use of the same store object may change that"


@dataclass
class Uses:
    """The uses of a scenario. `first` is who has opened the store: whatever that one is refused at first is a fault.

    `shared` are runs that several users save at the same time, `ignored` those that nothing is asked of. `refusals`
    takes what else was refused: by whom, and the first error. What is acknowledged is told to the scenario.
    """

    s: Scenario
    first: str
    refusals: dict[str, str]
    shared: set[str] = field(default_factory=set)
    ignored: set[str] = field(default_factory=set)

    def judge(self, came: dict[str, Any], limit: float) -> None:
        """Read what they told, and raise `BrokenClause` for the first fault.

        Raises `VacuousCheck` if some calls were not made, and it was not the store that prevented them.
        """
        self._own: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        self._tried: defaultdict[str, dict[str, Any]] = defaultdict(dict)
        self._others_came = False
        under_way: dict[str, dict[str, Any]] = {}
        for entry in came["entries"]:
            self._others_came = self._others_came or entry["who"] != self.first
            if "node" in entry:
                self._tried[entry["run_id"]][entry["node"]] = output_of(entry["who"], entry["node"])
            if entry.get("begins"):
                under_way[entry["who"]] = entry
            else:
                under_way.pop(entry["who"], None)
                self._one(entry)
        failed, died = came["failed"], came.get("died", "")
        if under_way or (died and not failed):
            self._no_end(list(under_way.values()), died, limit)
        if failed:
            raise VacuousCheck(f"not all have used the store, and it was not its doing: {'; '.join(failed)}")
        if not came["has_ended"]:
            raise VacuousCheck(
                f"not all were through, and for {limit:.0f} s nobody has begun a call: the machine was busy"
            )

    def _one(self, entry: dict[str, Any]) -> None:
        who, call, run_id = entry["who"], entry["call"], entry["run_id"]
        told = _told(entry)
        if "raised" in entry:
            self.s.tell(f"{told} → raised {entry['raised']}")
            self._refused(who, call, run_id, entry["raised"])
        elif call == "load_or_create":
            record = Record.from_dict(entry["record"])
            self.s.tell(f"{told} → {record}")
            if run_id not in self.ignored:
                self._loaded(who, run_id, record, entry["inputs"])
        else:
            self.s.tell(f"{told} → {'acknowledged' if call == 'save' else 'done'}")
            if call == "save" and run_id not in self.ignored:
                self._saved(who, run_id, entry["node"])

    def _refused(self, who: str, call: str, run_id: str, error: str) -> None:
        if who == self.first and not self._others_came:
            details = (("allowed", "the call returns"), ("came", error), ("why", "nobody else has used the store yet"))
            raise BrokenClause(f"{call} raised {error}", details)
        if run_id not in self.shared:  # there it may be a conflict
            self.refusals.setdefault(f"refused to {who}", f"{call} raised {error}")

    def _loaded(self, who: str, run_id: str, record: Record, inputs: dict[str, Any]) -> None:
        known = self.s.acknowledged
        if run_id not in known:
            known[run_id] = Record.new(inputs)
        if run_id not in self.shared:
            self.s.expect(record).equals(known[run_id], because=_WHY)
            return
        must = known[run_id].completed if who == self.first else dict.fromkeys(self._own[who, run_id])
        wanted = {node: self._tried[run_id][node] for node in {*must, *record.completed} if node in self._tried[run_id]}
        self.s.expect(record.by_name()).equals(
            Record(known[run_id].inputs, wanted, tuple(sorted(wanted))),
            because=f"{_WHY}: {', '.join(must) or 'nothing'}",
        )

    def _saved(self, who: str, run_id: str, node: str) -> None:
        self._own[who, run_id].add(node)
        self.s.acknowledged[run_id] = self.s.acknowledged[run_id].after({node: output_of(who, node)})

    def _no_end(self, under_way: list[dict[str, Any]], died: str, limit: float) -> None:
        for entry in under_way:
            self.s.tell(_told(entry))
        calls = ", ".join(f"{entry['call']} of {entry['who']}" for entry in under_way) or "a user"
        what = f"the process {died}" if died else f"it has not returned within {limit:.0f} s"
        details = (("allowed", "it returns, or raises an error at once"), ("came", what))
        why = ("why", "whoever uses a store from there cannot go on, and does not learn why")
        raise BrokenClause(f"{calls}: {what}", (*details, why))


def _told(entry: dict[str, Any]) -> str:
    arguments = [*map(show, filter(None, [entry["run_id"]])), *filter(None, [entry.get("node")])]
    return f"{entry['who']}: {entry['call']}({', '.join(arguments)})"
