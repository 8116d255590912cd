"""The tables of broken and correct stores: what counts, that an interrupted one goes on, that the last one is whole."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.tables import results
from conformance.tables.__main__ import RESULTS, SEEDS, main
from conformance.tables.cells import MEMORY, SQLITE, Cell, Job, Subjects, jobs
from conformance.tables.filling import try_job
from conformance.tables.page import NAME
from conformance.tables.results import Outcome, Sources, WorkFile
from n00dles_testing.conformance.mutants import left_out
from n00dles_testing.verdicts import Verdict

TODAY = Subjects.of_today()
MUTANTS = {mutant.target: mutant for mutant in TODAY.mutants}
HOW = "run `make tables` (it takes hours, and goes on where it was), and commit conformance/results/"

SETTLED = Sources("settled")

Found = list[tuple[Cell, Outcome]]


class Checks:
    """Stands in for the real checks: each store does as it should, but for the verdicts that are given."""

    def __init__(self, otherwise: dict[Cell, Verdict] | None = None) -> None:
        self.otherwise = otherwise or {}
        self.tried: list[Cell] = []

    def __call__(self, job: Job) -> Found:
        cells = [Cell(job.seed, job.store, clause) for clause in job.clauses]
        self.tried += cells
        return [(cell, Outcome(self.verdict(cell), "because", 0.5)) for cell in cells]

    def verdict(self, cell: Cell) -> Verdict:
        mutant = MUTANTS.get(cell.store)
        caught = mutant is not None and cell.clause in mutant.caught_by
        return self.otherwise.get(cell, Verdict.FAIL if caught else Verdict.PASS)


@pytest.fixture(autouse=True)
def _settled_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sources, "now", lambda: SETTLED)


def tables(folder: Path, checks: Checks, *more: str) -> int:
    words = ["--seeds", "2", "--work", f"{folder}/work.jsonl", "--results", f"{folder}/results", *more]
    return main(words, checks)


def written(folder: Path) -> dict[str, Any]:
    form: dict[str, Any] = json.loads((folder / f"{NAME}.json").read_text())
    return form


def row(form: dict[str, Any], store: str) -> dict[str, Any]:
    [found] = [
        each for each in form["mutants"] + form["stores"] if store.endswith(each.get("mutant", each.get("store")))
    ]
    return dict(found)


def test_every_store_meets_every_clause_that_it_has_to() -> None:
    cells = TODAY.cells(3)

    for mutant in TODAY.mutants:
        for clause in TODAY.clauses:
            met = {cell.seed for cell in cells if (cell.store, cell.clause) == (mutant.target, clause)}
            strangers = {0} if mutant.let_pass_by([clause]) else set()
            assert met == ({0, 1, 2} if clause in mutant.caught_by else strangers)
    for store in (MEMORY, SQLITE, *TODAY.stores):
        assert {(store, seed) for seed in range(3)} <= {(cell.store, cell.seed) for cell in cells}
    assert sorted(
        cell for job in jobs(cells) for cell in (Cell(job.seed, job.store, each) for each in job.clauses)
    ) == (sorted(cells))


def test_where_all_is_well_the_command_says_so_and_writes_both_files(tmp_path: Path) -> None:
    assert tables(tmp_path, Checks()) == 0

    form, page = written(tmp_path / "results"), (tmp_path / "results" / f"{NAME}.md").read_text()
    assert {each["caught"] for each in form["mutants"]} == {2}
    assert {each["clean"] for each in form["stores"]} == {2}
    assert f"- {len(TODAY.mutants)} of {len(TODAY.mutants)} broken stores were caught" in page
    assert f"- {len(TODAY.stores)} of {len(TODAY.stores)} correct stores were clean" in page


@pytest.mark.parametrize("came", [Verdict.PASS, Verdict.VACUOUS, Verdict.UNKNOWN, Verdict.NOT_RUN])
def test_a_mutant_that_is_missed_once_is_told(came: Verdict, tmp_path: Path) -> None:
    mutant = TODAY.mutants[0]

    assert tables(tmp_path, Checks({Cell(1, mutant.target, mutant.breaks): came})) == 1

    assert row(written(tmp_path / "results"), mutant.target)["caught"] == 1


@pytest.mark.parametrize("came", [Verdict.FAIL, Verdict.VACUOUS, Verdict.UNKNOWN])
def test_a_false_alarm_is_told(came: Verdict, tmp_path: Path) -> None:
    mutant = TODAY.mutants[0]
    stranger = mutant.let_pass_by(TODAY.clauses)[0]

    alarms = {Cell(0, mutant.target, stranger): came, Cell(1, SQLITE, "S05"): came}

    assert tables(tmp_path, Checks(alarms)) == 1
    form = written(tmp_path / "results")
    assert row(form, mutant.target)["unrelated"] == [stranger]
    assert row(form, SQLITE)["clean"] == 1
    assert row(form, SQLITE)["alarms"] == [f"S05 {came.value}, seed 1: because"]


def test_a_clause_that_does_not_apply_is_no_alarm(tmp_path: Path) -> None:
    assert tables(tmp_path, Checks({Cell(seed, MEMORY, "C01"): Verdict.NOT_APPLICABLE for seed in (0, 1)})) == 0

    assert row(written(tmp_path / "results"), MEMORY)["left_out"] == ["C01"]


def test_an_interrupted_table_goes_on_where_it_was(tmp_path: Path) -> None:
    class Interrupted(Checks):
        def __call__(self, job: Job) -> Found:
            if len(self.tried) > 40:
                raise KeyboardInterrupt
            return super().__call__(job)

    first, second, third = Interrupted(), Checks(), Checks()
    with pytest.raises(KeyboardInterrupt):
        tables(tmp_path, first)
    with (tmp_path / "work.jsonl").open("a") as file:
        file.write('{"store": "torn')

    assert tables(tmp_path, second) == 0
    assert tables(tmp_path, third) == 0

    assert set(first.tried).isdisjoint(second.tried)
    assert {*first.tried, *second.tried} == TODAY.cells(2)
    assert third.tried == []


def test_what_other_sources_gave_is_not_used(tmp_path: Path) -> None:
    cell = Cell(0, MEMORY, "S01")
    WorkFile(tmp_path / "work.jsonl", Sources("then")).add([(cell, Outcome(Verdict.PASS, "", 1.0))])

    assert WorkFile(tmp_path / "work.jsonl", Sources("then")).outcomes == {cell: Outcome(Verdict.PASS, "", 1.0)}
    assert WorkFile(tmp_path / "work.jsonl", Sources("now")).outcomes == {}


FOLDER = "n00dles_testing/conformance/mutants"
CLAUSES = "n00dles_testing/conformance/clauses"
FILES = {
    "n00dles/stores/store.py": "",
    "n00dles_testing/conformance/judge.py": "",
    f"{CLAUSES}/s01_create.py": "",
    f"{CLAUSES}/p01_opens.py": "",
    "n00dles_testing/powerloss/states.py": "",
    "n00dles_testing/report/page.py": "",
    f"{FOLDER}/s01.py": "",
    f"{FOLDER}/s02.py": "from .s01 import Broken\n",
}
BROKEN, BUILT_ON_IT = f"{FOLDER}.s01:Broken", f"{FOLDER}.s02:Broken"
STORES = (MEMORY, BROKEN, BUILT_ON_IT)


@pytest.mark.parametrize(
    ("changed", "outdated"),
    [
        ("n00dles_testing/report/page.py", set()),
        ("n00dles_testing/conformance/judge.py", {(store, clause) for store in STORES for clause in ("S01", "P01")}),
        (f"{FOLDER}/s01.py", {(store, clause) for store in (BROKEN, BUILT_ON_IT) for clause in ("S01", "P01")}),
        (f"{FOLDER}/s02.py", {(BUILT_ON_IT, "S01"), (BUILT_ON_IT, "P01")}),
        (f"{CLAUSES}/p01_opens.py", {(store, "P01") for store in STORES}),
        ("n00dles_testing/powerloss/states.py", {(store, "P01") for store in STORES}),
    ],
)
def test_what_a_verdict_depends_on_makes_it_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str, outdated: set[tuple[str, str]]
) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(results, "_ROOT", tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    before = Sources.now()

    (tmp_path / changed).write_text("x = 2\n" + FILES[changed])
    after = Sources.now()

    cells = {(store, clause) for store in STORES for clause in ("S01", "P01")}
    assert {cell for cell in cells if after.of(*cell) != before.of(*cell)} == outdated
    assert (after != before) is bool(outdated)


BESIDE_IT = {
    "n00dles/__init__.py",
    "n00dles_testing/__init__.py",
    "n00dles/pipeline.py",
    "n00dles_testing/on_executors.py",
}
"""Imported for names, to tell a pipeline from a factory, and to share clauses out, each of which is checked as ever."""


def test_what_has_a_part_in_verdicts_imports_nothing_else_of_ours() -> None:
    root = Path(results.__file__).parents[2]
    files = {
        path.relative_to(root).as_posix(): path
        for package in ("n00dles", "n00dles_testing")
        for path in (root / package).rglob("*.py")
    }
    parts = {name: path for name, path in files.items() if name.startswith(results.PART)}

    imported = {
        (name, other)
        for name, path in parts.items()
        for module in imports(ast.parse(path.read_text()), name.split("/")[:-1])
        for other in (f"{module}.py", f"{module}/__init__.py")
        if other in files
    }

    assert ("n00dles/stores/sqlite.py", "n00dles/stores/sqlite_records.py") in imported
    assert {pair for pair in imported if pair[1] not in {*parts, *BESIDE_IT}} == set()


def imports(tree: ast.AST, package: list[str]) -> Iterator[str]:
    """Yield what may be modules: everything that is imported, also in functions, but not for the sake of types."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name.replace(".", "/") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else []
            base = "/".join([*start, *filter(None, (node.module or "").split("."))])
            yield from (base, *(f"{base}/{alias.name}" for alias in node.names))
        else:
            yield from imports(node, package)


def test_what_cannot_be_tried_is_told_and_nothing_is_written(tmp_path: Path) -> None:
    class Broken(Checks):
        def __call__(self, job: Job) -> Found:
            if job.store == SQLITE:
                raise RuntimeError("no disk")
            return super().__call__(job)

    assert tables(tmp_path, Broken()) == 1

    assert not (tmp_path / "results").exists()


def test_sources_that_change_meanwhile_end_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checks = Checks()
    monkeypatch.setattr(Sources, "now", lambda: Sources("then") if len(checks.tried) > 40 else SETTLED)

    assert tables(tmp_path, checks) == 1

    kept = WorkFile(tmp_path / "work.jsonl", SETTLED).outcomes
    assert 0 < len(kept) < len(checks.tried) < len(TODAY.cells(2))


def test_a_part_of_the_tables_is_not_written(tmp_path: Path) -> None:
    checks = Checks()

    assert tables(tmp_path, checks, "S05") == 0

    assert {MUTANTS[cell.store].breaks for cell in checks.tried} == {"S05"}
    assert not (tmp_path / "results").exists()
    assert tables(tmp_path, checks, "nobody") == 2


def test_a_store_is_really_checked() -> None:
    [(cell, outcome)] = try_job(Job(MEMORY, 3, ("S05",)))

    assert (cell, outcome.verdict) == (Cell(3, MEMORY, "S05"), Verdict.PASS)


def test_the_tables_that_are_kept_have_every_store_and_every_clause() -> None:
    path = RESULTS / f"{NAME}.json"
    if not path.exists():
        pytest.skip(f"no tables of the stores are kept for this release yet: {HOW}")
    form = json.loads(path.read_text())

    mutants = {(each["mutant"], each["breaks"], tuple(each["also"])) for each in form["mutants"]}
    stores = {each["store"] for each in form["stores"]}
    lately = {(each.target.rpartition("mutants.")[2], each.breaks, each.also_breaks) for each in TODAY.mutants}
    known = {each.rpartition("mutants.")[2] for each in (*TODAY.stores, *left_out())}
    assert mutants == lately, f"broken stores have changed since: {HOW}"
    assert stores == known, f"correct stores have changed since: {HOW}"
    assert [each["clause"] for each in form["clauses"]] == [*TODAY.clauses], f"clauses have changed since: {HOW}"
    assert form["seeds"] >= SEEDS
    assert all(each["caught"] == each["runs"] and not each["unrelated"] for each in form["mutants"])
    assert all(each["clean"] == each["runs"] for each in form["stores"])
