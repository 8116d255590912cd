"""The work file: what each cell came to, a line of JSON each, so that an interrupted table goes on where it was.

A line counts only for the sources that it was made with: their digest stands in it. It has the module of the clause in
it and no other clause's, and of the suite's own stores that of its own, so that mending one leaves the others known.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from n00dles_testing.verdicts import Verdict

from .cells import Cell

__all__ = ["PART", "Outcome", "Sources", "WorkFile"]

_ROOT = Path(__file__).resolve().parents[2]
_PACKAGES = ("n00dles", "n00dles_testing")
PART = (
    "n00dles/context.py",
    "n00dles/dumping.py",
    "n00dles/errors.py",
    "n00dles/records.py",
    "n00dles/serialization.py",
    "n00dles/stores/",
    "n00dles/targets.py",
    "n00dles/threads.py",
    "n00dles/type_names.py",
    "n00dles_testing/channel.py",
    "n00dles_testing/conformance/",
    "n00dles_testing/corpus/",
    "n00dles_testing/crash/__init__.py",
    "n00dles_testing/crash/points.py",
    "n00dles_testing/crash/tokens.py",
    "n00dles_testing/factories.py",
    "n00dles_testing/faults/",
    "n00dles_testing/histories/",
    "n00dles_testing/interpreters.py",
    "n00dles_testing/parent.py",
    "n00dles_testing/powerloss/",
    "n00dles_testing/registered.py",
    "n00dles_testing/servers/",
    "n00dles_testing/targets.py",
    "n00dles_testing/temporary_folder.py",
    "n00dles_testing/tracing/",
    "n00dles_testing/verdicts.py",
)
"""What may have a part in the verdict on a store. A test sees to it that this imports nothing else of ours."""
_OF_A_COMMAND = "n00dles_testing/conformance/disturbing.py"
_STORES = "n00dles_testing/conformance/mutants/"
_CLAUSES = "n00dles_testing/conformance/clauses/"
_TRACED = ("C03", "C04", "P")
_NEEDED_BY = {
    "n00dles_testing/powerloss/": ("P",),
    "n00dles_testing/conformance/power_": ("P",),
    "n00dles_testing/conformance/losing_power.py": ("P",),
    "n00dles_testing/tracing/": _TRACED,
    "n00dles_testing/conformance/trace": _TRACED,
    "n00dles_testing/conformance/disturbed.py": ("C", "W"),
    "n00dles_testing/conformance/deeds.py": ("C",),
    "n00dles_testing/conformance/buffered.py": ("C",),
    "n00dles_testing/conformance/moments.py": ("C03", "C04"),
    "n00dles_testing/conformance/left_by_a_kill.py": ("C03",),
    "n00dles_testing/conformance/retried_saves.py": ("C05",),
    "n00dles_testing/conformance/lost_replies.py": ("C05",),
    "n00dles_testing/conformance/recorded": ("W",),
    "n00dles_testing/conformance/many_workers.py": ("W",),
    "n00dles_testing/conformance/connection_faults.py": ("W",),
    "n00dles_testing/histories/": ("W",),
}
"""What has a part only in clauses whose ids begin like this, by how its path begins."""
_IMPORTED = re.compile(r"^from \.(\w+) import", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Sources:
    """Digests of everything that a verdict may depend on, at one moment; two are equal if nothing has changed.

    `shared` is that of all files but the suite's own stores and what not every clause needs; `modules` has one for each
    module of these stores, and `clauses` one for each clause with what not every clause needs.
    """

    shared: str
    modules: Mapping[str, str] = field(default_factory=dict)
    clauses: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def now(cls) -> Sources:
        """Read the files of both packages that have a part in verdicts."""
        files = {
            path.relative_to(_ROOT).as_posix(): path.read_bytes()
            for package in _PACKAGES
            for path in sorted((_ROOT / package).rglob("*.py"))
            if path.relative_to(_ROOT).as_posix().startswith(PART)
        }
        stores = {Path(name).stem: text for name, text in files.items() if name.startswith(_STORES)}
        apart = (_OF_A_COMMAND, _STORES, _CLAUSES, *_NEEDED_BY)
        return cls(
            _digest({name: text for name, text in files.items() if not name.startswith(apart)}),
            {name: _digest({each: stores[each] for each in _needed(name, stores)}) for name in stores},
            {
                id_: _digest({name: files[name], **_needed_by(id_, files)})
                for name in files
                if name.startswith(_CLAUSES) and (id_ := Path(name).stem.partition("_")[0].upper())
            },
        )

    def of(self, store: str, clause: str) -> str:
        """Return the digest of what a verdict on this store by this clause depends on."""
        module = store.partition(":")[0].rpartition(".")[2]
        parts = (self.shared, self.clauses.get(clause), self.modules.get(module))
        return "-".join(part for part in parts if part)


def _needed_by(clause: str, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files that this clause needs, and not every clause."""
    starts = tuple(start for start, ids in _NEEDED_BY.items() if clause.startswith(ids))
    return {name: text for name, text in files.items() if name.startswith(starts)}


def _needed(module: str, stores: Mapping[str, bytes]) -> set[str]:
    """Return the modules of this folder that one needs, itself among them."""
    found, new = set[str](), {module}
    while new:
        found |= new
        imported = {name for each in new for name in _IMPORTED.findall(stores[each].decode())}
        new = (imported & stores.keys()) - found
    return found


def _digest(files: Mapping[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name in sorted(files):
        digest.update(name.encode() + b"\0" + files[name] + b"\0")
    return digest.hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one cell."""

    verdict: Verdict
    reason: str
    seconds: float


class WorkFile:
    """Outcomes by cell, kept in a file to which each one is appended."""

    def __init__(self, path: Path, sources: Sources) -> None:
        """Read what is there already; lines of other sources, and one that was torn, are passed over."""
        self.outcomes: dict[Cell, Outcome] = {}
        self.path = path
        self.sources = sources
        path.parent.mkdir(parents=True, exist_ok=True)
        text = path.read_text() if path.exists() else ""
        for line in text.splitlines():
            self._read(line)
        if text and not text.endswith("\n"):
            self._append("\n")

    def add(self, found: Iterable[tuple[Cell, Outcome]]) -> None:
        """Keep outcomes, in memory and in the file."""
        found = list(found)
        self.outcomes.update(found)
        self._append("".join(self._line(cell, outcome) for cell, outcome in found))

    def _line(self, cell: Cell, outcome: Outcome) -> str:
        form = {
            "store": cell.store,
            "clause": cell.clause,
            "seed": cell.seed,
            "digest": self.sources.of(cell.store, cell.clause),
            "verdict": outcome.verdict.value,
            "reason": outcome.reason,
            "seconds": round(outcome.seconds, 3),
        }
        return json.dumps(form) + "\n"

    def _read(self, line: str) -> None:
        try:
            form = json.loads(line)
            if form["digest"] != self.sources.of(form["store"], form["clause"]):
                return
            outcome = Outcome(Verdict(form["verdict"]), form["reason"], form["seconds"])
            self.outcomes[Cell(form["seed"], form["store"], form["clause"])] = outcome
        except (ValueError, KeyError, TypeError):
            return

    def _append(self, text: str) -> None:
        with self.path.open("a") as file:
            file.write(text)
