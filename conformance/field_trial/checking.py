"""Running the suite on one subject, in the subject's own environment."""

from __future__ import annotations

import ast
import hashlib
import json
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from n00dles_testing.conformance.contract import LEVELS
from n00dles_testing.report.json_file import write_whole

from .environments import Environment
from .subjects import BACKENDS, ROOT, Subject

__all__ = ["CheckError", "Checked", "check", "kept"]

_SAID = ("GAPS", "NOT_RUN", "__all__")
"""What is said about a subject, and does not change what is run."""
_TOLD = 500


class CheckError(Exception):
    """The suite could not be run on a subject; the message is what it said."""


@dataclass
class Checked:
    """What the suite has found in a subject so far: a result for each clause that was tried, as in its report."""

    seed: int
    at: str = ""
    seconds: float = 0.0
    results: dict[str, dict[str, Any]] = field(default_factory=dict)

    def has(self, level: int) -> bool:
        """Whether all clauses of a level were tried."""
        return set(LEVELS[level][1]) <= set(self.results)


def kept(subject: Subject, environment: Environment, work: Path, *, seed: int) -> Checked:
    """Return what earlier runs have found with the same adapter, versions and seed; without one, nothing."""
    file = _file(subject, work)
    if file.is_file():
        found = json.loads(file.read_text("utf-8"))
        if found.pop("adapter") == _digest(subject) and found.pop("versions") == environment.versions:
            checked = Checked(**found)
            if checked.seed == seed:
                return checked
    return Checked(seed)


def check(subject: Subject, environment: Environment, work: Path, found: Checked, *, level: int) -> None:
    """Run the clauses of a level on a subject, add their results to what was `found`, and keep all that in `work`.

    Raises `CheckError` if there is no report: the store could not be opened, or the command was ended.
    """
    file = _file(subject, work)
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="n00dles-field-trial-") as folder:
        report = Path(folder, "report.json")
        clauses = [word for clause in LEVELS[level][1] for word in ("--clause", clause)]
        server = ["--server", subject.server] if subject.server else []
        command = [environment.python, "-P", "-m", "n00dles_testing", "check", subject.target, *clauses, *server]
        with open(file.with_suffix(f".{level}.log"), "w", encoding="utf-8") as log:
            arguments = ["--seed", str(found.seed), "--json", str(report)]
            done = subprocess.run([*command, *arguments], cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, check=False)
        if not report.is_file():
            said = Path(log.name).read_text("utf-8").strip().splitlines()
            raise CheckError(f"check ended with {done.returncode}: {(said or ['it said nothing'])[-1][:_TOLD]}")
        told = json.loads(report.read_text("utf-8"))
    found.results |= {each["clause"]: each for each in told["results"]}
    found.seconds += told["seconds"]
    found.at = told["written_at"][:10]
    write_whole(
        file,
        json.dumps({"adapter": _digest(subject), "versions": environment.versions, **asdict(found)}),
    )


def _file(subject: Subject, work: Path) -> Path:
    return work / "reports" / f"{subject.name}.json"


def _digest(subject: Subject) -> str:
    """Return a digest of what the adapter runs: its own file, what it imports from beside it, and a store of ours."""
    ours = sorted((ROOT / "n00dles").rglob("*.py")) if subject.is_ours else []
    texts = [ast.dump(ast.Module(list(_run(path)), [])) for path in (*_files(subject.path), *ours)]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def _files(path: Path) -> list[Path]:
    beside = [
        BACKENDS / f"{each.module}.py"
        for each in ast.parse(path.read_text("utf-8")).body
        if isinstance(each, ast.ImportFrom) and each.level == 1 and each.module
    ]
    return [path, *(file for each in beside for file in _files(each))]


def _run(path: Path) -> Iterator[ast.stmt]:
    """Return what a module does: without its texts, and what it says of the subject."""
    for each in ast.parse(path.read_text("utf-8")).body:
        value = each.value if isinstance(each, ast.Assign | ast.Expr) else None
        is_text = isinstance(value, ast.Constant) and isinstance(value.value, str)
        names = (
            [target.id for target in each.targets if isinstance(target, ast.Name)]
            if isinstance(each, ast.Assign)
            else []
        )
        is_import = isinstance(each, ast.ImportFrom) and each.level == 1
        if not (is_text or is_import or set(names) & set(_SAID)):
            yield each
