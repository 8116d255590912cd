"""What the ledger of a torture proves: whether a call was made twice, whether a run was worked on twice at a time.

The judge goes by the order of the ledger, in which the kernel has put the lines of all processes, and by no clock. A
node is acknowledged when its worker was told so by the store, or when a later life has read it from there.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from n00dles_testing.crash.ledger import Entry
from n00dles_testing.verdicts import Verdict

__all__ = ["Ended", "Fault", "Judge", "Tail"]


@dataclass(frozen=True, slots=True)
class Fault:
    """What must not happen; `run` is None if it concerns no single one."""

    what: str
    run: str | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """What the store holds of a run when everything is over."""

    status: str
    lives: int
    outputs: Mapping[str, Any]


@dataclass
class Judge:
    """Reads entries in their order (`note`), then the records of the store (`close`)."""

    entries: list[Entry] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    acknowledged: set[tuple[str, str]] = field(default_factory=set)
    finished: set[str] = field(default_factory=set)
    lives: dict[str, int] = field(default_factory=dict)
    """Which worker works on a run."""
    saved_by: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    """How many nodes a worker has completed."""
    stalls: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    """How many lives of a run in a row a kill has ended before they had completed a node."""
    kills: int = 0
    kills_in_a_node: int = 0
    kills_before_a_save: int = 0
    server_kills: int = 0
    server_kills_at_work: int = 0
    calls: int = 0
    repeated: int = 0
    _called: set[tuple[str, str]] = field(default_factory=set)
    _in_call: dict[int, set[tuple[str, str]]] = field(default_factory=lambda: defaultdict(set))
    _unsaved: dict[int, set[tuple[str, str]]] = field(default_factory=lambda: defaultdict(set))
    _doomed: set[int] = field(default_factory=set)

    def note(self, entry: Entry) -> None:
        """Take one more entry into account."""
        self.entries.append(entry)
        read = {
            "life_start": self._life_starts,
            "call_start": self._call_starts,
            "call_end": self._call_ends,
            "saved": self._is_saved,
            "outcome": self._life_ends,
            "kill": self._worker_is_killed,
            "server_kill": self._server_is_killed,
        }.get(entry.kind)
        if read is not None:
            read(entry)

    @property
    def at_work(self) -> int:
        """How many runs are worked on by workers that are alive."""
        return sum(worker not in self._doomed for worker in self.lives.values())

    def runs_of(self, worker: int) -> list[str]:
        """Return the runs that a worker works on."""
        return [run for run, other in self.lives.items() if other == worker]

    def _life_starts(self, entry: Entry) -> None:
        run = entry["run"]
        other = self.lives.get(run)
        # Whoever is killed may be dead before its `kill` was written, but not before that was begun: it comes first.
        if other is not None and other not in self._doomed:
            self.faults.append(Fault(f"worker {entry.life} began to work on it while worker {other} still did", run))
        self.lives[run] = entry.life
        self.stalls[run] = max(self.stalls[run], 0)
        self.acknowledged.update((run, node) for node in entry["completed"])

    def _call_starts(self, entry: Entry) -> None:
        call = entry["run"], entry["node"]
        if call in self.acknowledged:
            self.faults.append(Fault(f"node {call[1]!r} was called again after its save was acknowledged", call[0]))
        self.calls += 1
        self.repeated += call in self._called
        self._called.add(call)
        self._in_call[entry.life].add(call)

    def _call_ends(self, entry: Entry) -> None:
        call = entry["run"], entry["node"]
        self._in_call[entry.life].discard(call)
        self._unsaved[entry.life].add(call)

    def _is_saved(self, entry: Entry) -> None:
        nodes = {(entry["run"], node) for node in entry["nodes"]}
        self.acknowledged |= nodes
        self._unsaved[entry.life] -= nodes
        self.saved_by[entry.life] += len(nodes)
        self.stalls[entry["run"]] = -1  # this life does not count, if it is ended by a kill

    def _life_ends(self, entry: Entry) -> None:
        run = entry["run"]
        if self.lives.get(run) == entry.life:
            del self.lives[run]
        if entry["how"] == "finished":
            self.finished.add(run)

    def _worker_is_killed(self, entry: Entry) -> None:
        worker = entry["worker"]
        self._doomed.add(worker)
        for run in self.runs_of(worker):
            self.stalls[run] += 1
        self.kills += 1
        self.kills_in_a_node += bool(self._in_call[worker])
        self.kills_before_a_save += bool(self._unsaved[worker])

    def _server_is_killed(self, entry: Entry) -> None:
        self.server_kills += 1
        self.server_kills_at_work += self.at_work > 0

    def close(self, submitted: Sequence[str], stored: Mapping[str, Ended], right: Mapping[str, Any]) -> None:
        """Hold the records that the store has in the end against the ledger, and against the outputs that are right."""
        for run in submitted:
            if run not in stored:
                self.faults.append(Fault("it is lost: the store does not have it", run))
                continue
            record = stored[run]
            if record.status != "finished":
                self.faults.append(Fault(f"it has not come to its end: its status is {record.status!r}", run))
            for node in sorted(node for owner, node in self.acknowledged if owner == run):
                if node not in record.outputs:
                    self.faults.append(Fault(f"the save of node {node!r} was acknowledged, and is lost", run))
            if record.status == "finished" and record.outputs != right[run]:
                self.faults.append(Fault(f"its outputs are wrong: {dict(record.outputs)}", run))

    def verdict(self, *, server_kills: int) -> tuple[Verdict, str]:
        """Return the verdict and its reason. What was not put to the test, because no kill has met it, is VACUOUS."""
        if self.faults:
            return Verdict.FAIL, f"{len(self.faults)} faults"
        if not self.kills_in_a_node:
            return Verdict.VACUOUS, "no worker was killed in the middle of a node"
        if self.server_kills_at_work < server_kills:
            times = f"{self.server_kills_at_work} and not {server_kills} times"
            return Verdict.VACUOUS, f"the server was killed {times} while runs were at work"
        return Verdict.PASS, "every run has ended, none was lost, and no acknowledged node was called again"

    def story(self, fault: Fault) -> list[str]:
        """Return what has happened to the run of a fault, line by line, with the seconds since the beginning."""
        if fault.run is None or not self.entries:
            return []
        workers = {entry.life for entry in self.entries if entry.get("run") == fault.run}
        began = self.entries[0].at
        return [
            f"{entry.at - began:7.3f} s  {_told(entry)}"
            for entry in self.entries
            if entry.get("run") == fault.run
            or (entry.kind == "kill" and entry["worker"] in workers)
            or entry.kind.startswith("server_")
        ]


def _told(entry: Entry) -> str:
    match entry.kind:
        case "life_start":
            completed = ", ".join(entry["completed"]) or "nothing"
            return f"worker {entry.life}  life {entry['number']} begins; completed: {completed}"
        case "call_start":
            return f"worker {entry.life}  {entry['node']} is called"
        case "call_end":
            return f"worker {entry.life}  {entry['node']} returns"
        case "saved":
            return f"worker {entry.life}  saved and acknowledged: {', '.join(entry['nodes'])}"
        case "outcome":
            error = f": {entry['error']}" if entry.get("error") else ""
            return f"worker {entry.life}  {entry['how']}{error}"
        case "kill":
            return f"worker {entry['worker']}  SIGKILL"
        case "server_kill":
            return "the server is killed"
        case _:
            return "the server is back" if entry.kind == "server_start" else entry.kind


class Tail:
    """Reads a ledger that others are still writing: each entry once, when its line is whole."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._rest = b""

    def read(self) -> list[Entry]:
        """Return what has been added since the last call."""
        *lines, self._rest = (self._rest + self._file.read()).split(b"\n")
        return [Entry(**json.loads(line)) for line in lines if line]

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()
