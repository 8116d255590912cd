"""The field trial: its adapters, what it keeps of a check, and the table that is published."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conformance.backends.published import published
from conformance.field_trial import __main__ as command
from conformance.field_trial import checking, confirming
from conformance.field_trial import subjects as found_in
from conformance.field_trial.environments import Environment, InstallError
from conformance.field_trial.matrix import FOLDER, short
from conformance.field_trial.page import TABLE, pages
from conformance.field_trial.results import CLAUSES, failed_before, read_all, trimmed, word
from conformance.field_trial.server_modules import server_with_modules
from conformance.field_trial.subjects import BACKENDS, Subject, subjects
from n00dles import PipelineContext, StaleContextError
from n00dles_testing.conformance.contract import LEVELS

SUBJECTS = {each.name: each for each in subjects()}
INSTALLED = [name for name in ("lmdb", "duckdb", "fsspec", "shelve") if importlib.util.find_spec(name)]


def finding(**other: Any) -> dict[str, Any]:
    return {"clause": "S05", "message": "it is gone", "story": ["scenario one"], "replay": None, **other}


def result(clause: str, verdict: str = "FAIL", **other: Any) -> dict[str, Any]:
    findings = [finding()] if verdict == "FAIL" else []
    told = {"clause": clause, "title": "what it says", "verdict": verdict, "reason": "", "scenarios": 1}
    return {**told, "findings": findings, **other}


def kept(name: str, *results: dict[str, Any]) -> dict[str, Any]:
    found = checking.Checked(0, "2026-11-30", 2.4, {each["clause"]: each for each in results})
    return trimmed(SUBJECTS[name], found, {"subject": "1.0"}, [])


@pytest.mark.parametrize("subject", SUBJECTS.values(), ids=SUBJECTS)
def test_an_adapter_says_what_it_follows_and_what_is_installed(subject: Subject) -> None:
    page = "`docs/" if subject.is_ours else "https://"
    assert page in subject.about, "the page of the documentation that it follows"
    assert set(subject.gaps) <= set(CLAUSES)
    assert all(subject.gaps.values()), "each with the reason"
    assert subject.server in (None, "postgres", "valkey")
    assert callable(getattr(importlib.import_module(f"conformance.backends.{subject.name}"), "open_store", None))


def test_each_confirmation_belongs_to_a_subject_and_a_clause_that_it_promises() -> None:
    scripts = set((BACKENDS / "confirmations").glob("*.py"))
    named = {script: subject for subject in SUBJECTS.values() for script in subject.confirmations}

    assert scripts == set(named)
    for script, subject in named.items():
        assert script.stem.rpartition("_")[2] in CLAUSES
        assert script.stem.rpartition("_")[2] not in subject.gaps, "a gap is no finding"
        assert "n00dles_testing" not in script.read_text("utf-8")


@pytest.mark.parametrize("name", INSTALLED)
def test_an_adapter_keeps_a_run_and_refuses_a_save_that_is_behind_if_it_can(name: str, tmp_path: Path) -> None:
    store = importlib.import_module(f"conformance.backends.{name}").open_store(str(tmp_path))
    run = store.load_or_create("a/run", {"topic": "cats"})
    behind = store.load_or_create("a/run", {"topic": "dogs"})
    run.checkpoint("writer", {"text": "purr"})
    store.save("a/run", run)
    if "S08" not in SUBJECTS[name].gaps:
        behind.checkpoint("critic", "late")
        with pytest.raises(StaleContextError, match="Load it again"):
            store.save("a/run", behind)

    found: PipelineContext = store.load_or_create("a/run", {})
    store.delete("a/run")
    store.delete("a/run")

    assert (found.inputs, dict(found.completed)) == ({"topic": "cats"}, {"writer": {"text": "purr"}})
    assert store.load_or_create("a/run", {"topic": "anew"}).inputs == {"topic": "anew"}
    getattr(store, "close", lambda: None)()


def test_the_published_release_is_loaded_anew_if_its_first_import_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "published" / "n00dles" / "__init__.py"
    package.parent.mkdir(parents=True)
    package.write_text("raise OSError('too many open files')")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.delitem(sys.modules, "published_n00dles", raising=False)
    with pytest.raises(OSError, match="too many"):
        published()

    package.write_text("is_ready = True")

    assert published().is_ready


@pytest.mark.parametrize(
    ("clause", "verdict", "said"),
    [
        ("S01", "PASS", "pass"),
        ("S12", "PASS", "**fails**, by hand"),
        ("S12", "NOT TRIED", "**fails**, by hand"),
        ("S10", "NOT APPLICABLE", "–"),
        ("P03", "NOT RUN", "not run"),
        ("S08", "FAIL", "gap"),
        ("C04", "FAIL", "**fails**"),
        ("C05", "FAIL", "fails?"),
        ("P02", "FAIL", "fails?"),
    ],
)
def test_only_what_a_script_has_confirmed_is_said_to_fail(clause: str, verdict: str, said: str) -> None:
    told = {"C04": True, "P02": False, "S12": True}
    shown = [{"clause": each, "confirmed": seen} for each, seen in told.items()]
    subject = {"gaps": {"S08": "the last writer wins", "S01": "for speed"}, "confirmations": shown}

    assert word(result(clause, verdict), subject) == said


def test_what_is_kept_names_no_path_of_the_machine_and_ends_with_what_came() -> None:
    calls = [f"call {number}: save() → acknowledged" for number in range(60)]
    story = [*calls, "on disk  runs.db", "came     it is gone from /tmp/n00dles-check-x/S05-1/runs.db", "fix  sync it"]
    told = finding(story=story, replay="n00dles-testing check conformance/backends/lmdb.py:open_store --seed 0")
    where = 'File "/opt/lib/python3.11/asyncio/runners.py", line 1'

    content = kept("lmdb", result("S05", reason=where, findings=[told] * 3))

    (one,) = content["results"]
    assert one["reason"] == 'File "…/runners.py", line 1'
    assert (len(one["findings"]), one["more"]) == (2, 1)
    assert len(one["findings"][0]["story"]) < 30
    assert one["findings"][0]["story"][-2:] == ["came     it is gone from …/runs.db", "fix  sync it"]
    assert one["findings"][0]["replay"] == "n00dles-testing check conformance/backends/lmdb.py:open_store"
    assert (content["seconds"], content["checked_at"]) == (2, "2026-11-30")


def test_each_cell_leads_to_its_story_and_what_was_not_run_is_told(tmp_path: Path) -> None:
    tried = kept("lmdb", result("S05"), result("S10"), result("S01", "PASS"))
    not_run = failed_before(SUBJECTS["diskcache"], "there is no such package")

    table, page, other = pages(tmp_path, [tried, not_run])

    text = table.read_text("utf-8")
    for cell in ("[fails?]({}#s05)", "[gap]({}#s10)", "[pass]({}#passed)", "[·]({}#not-tried-yet)"):
        assert f" {cell.format(f'{FOLDER}/lmdb.md')} |" in text
    assert f"- [diskcache]({FOLDER}/diskcache.md): there is no such package" in text
    assert '<a id="s05"></a>\n\n## S05: what it says\n' in page.read_text("utf-8")
    assert "Known gap: LMDB keeps no checksums." in page.read_text("utf-8")
    assert (
        "Fails?: [S05](#s05). Gaps: [S10](#s10). [Passed](#passed): S01. "
        "[Not tried yet](#not-tried-yet): S02–S04, S06–S09, S11–S18, C01–C06," in page.read_text("utf-8")
    )
    assert "NOT RUN: there is no such package" in other.read_text("utf-8")


@pytest.mark.parametrize(
    ("level", "results", "cell"),
    [
        (3, [("P01", "PASS"), ("P02", "PASS"), ("P03", "PASS")], "[pass](lmdb.md#passed)"),
        (3, [("P01", "PASS"), ("P02", "NOT APPLICABLE"), ("P03", "PASS")], "[pass](lmdb.md#passed)"),
        (3, [(each, "NOT APPLICABLE") for each in ("P01", "P02", "P03")], "[–](lmdb.md#does-not-apply)"),
        (3, [], "[not tried](lmdb.md#not-tried-yet)"),
        (3, [("P01", "PASS")], "[1 pass](lmdb.md#passed), [2 not tried](lmdb.md#not-tried-yet)"),
        (3, [("P01", "FAIL"), ("P02", "UNKNOWN"), ("P03", "NOT RUN")],
         "fails? [P01](lmdb.md#p01), unknown [P02](lmdb.md#p02), not run [P03](lmdb.md#p03)"),
        (2, [("C01", "PASS")],
         "**fails** [C06](lmdb.md#c06), [1 pass](lmdb.md#passed), [4 not tried](lmdb.md#not-tried-yet)"),
        (1, [("S07", "FAIL"), ("S10", "FAIL")], "[2 gaps](lmdb.md#s07), [16 not tried](lmdb.md#not-tried-yet)"),
    ],
)  # fmt: skip
def test_a_level_in_short_names_what_fails_and_counts_the_rest(
    level: int, results: list[tuple[str, str]], cell: str
) -> None:
    shown = [confirming.Confirmation("C06", "lmdb_C06.py", True, "seen")]
    found = checking.Checked(0, "", 1.0, {each: result(each, of) for each, of in results})

    row = short([trimmed(SUBJECTS["lmdb"], found, {"lmdb": "3.0.0"}, shown)])[-1]

    assert row.strip("| ").split(" | ")[level].replace(f"{FOLDER}/", "") == cell


def test_the_published_pages_are_what_the_published_results_say(tmp_path: Path) -> None:
    for page in pages(tmp_path, read_all(command.RESULTS / FOLDER)):
        published = command.RESULTS / page.relative_to(tmp_path)
        assert page.read_text("utf-8") == published.read_text("utf-8"), "run `make field-trial`, and commit the results"


def test_an_interrupted_trial_goes_on_and_a_change_of_the_adapter_or_a_version_begins_anew(tmp_path: Path) -> None:
    subject = SUBJECTS["lmdb"]
    file = tmp_path / "reports" / "lmdb.json"
    file.parent.mkdir()

    def has(level: int, *, adapter: str = checking._digest(subject), version: str = "3.0.0", seed: int = 0) -> bool:
        found = {"seed": 0, "at": "", "seconds": 1.0, "results": {each: {} for each in LEVELS[2][1]}}
        file.write_text(json.dumps({"adapter": adapter, "versions": {"lmdb": "3.0.0"}, **found}))
        return checking.kept(subject, Environment(tmp_path, {"lmdb": version}), tmp_path, seed=seed).has(level)

    assert has(2)
    assert not has(3)
    assert not has(2, adapter="another")
    assert not has(2, version="3.0.1")
    assert not has(2, seed=1)


def test_what_is_said_of_a_subject_is_no_change_of_its_adapter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(found_in, "BACKENDS", tmp_path)
    file = tmp_path / "one.py"

    def digest(text: str) -> str:
        file.write_text(text, encoding="utf-8")
        return checking._digest(Subject("one", "about"))

    first = digest('"""A store."""\nGAPS = {}\nROOM = 1\n')

    assert digest('"""A store, described better."""\nGAPS = {"S10": "no checksum"}\nROOM = 1\n') == first
    assert digest('"""A store."""\nGAPS = {}\nROOM = 2\n') != first


def test_a_change_of_a_store_of_ours_has_it_checked_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "ROOT", tmp_path)
    source = tmp_path / "n00dles" / "stores.py"
    source.parent.mkdir()
    subject = SUBJECTS["n00dles_sqlite"]

    def digest(text: str) -> str:
        source.write_text(text, encoding="utf-8")
        return checking._digest(subject)

    assert digest("SYNC = True\n") == digest("SYNC = True  # always\n")
    assert digest("SYNC = True\n") != digest("SYNC = False\n")


def test_a_confirmation_is_what_a_script_has_seen_and_no_crash_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(found_in, "BACKENDS", tmp_path)
    folder = tmp_path / "confirmations"
    folder.mkdir()
    (folder / "one_S01.py").write_text("print('seen')")
    (folder / "one_S02.py").write_text("import sys; print('not seen'); sys.exit(1)")
    (folder / "one_S03.py").write_text("import no_such_package")
    environment = Environment(tmp_path, {})
    monkeypatch.setattr(Environment, "python", sys.executable)

    told = list(confirming.confirmed(Subject("one", "about"), environment))

    assert [(each.clause, each.confirmed, each.said) for each in told] == [
        ("S01", True, "seen"),
        ("S02", False, "not seen"),
        ("S03", False, "ModuleNotFoundError: No module named 'no_such_package'"),
    ]


def test_the_command_writes_the_table_of_all_and_fails_where_a_subject_was_not_tried(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def tried(subject: Subject, options: argparse.Namespace) -> dict[str, Any]:
        if subject.name == "lmdb":
            return failed_before(subject, "there is no such package")
        return kept(subject.name, result("S10"))

    well = command.main(["--subject", "duckdb", "--results", str(tmp_path)], tried)
    badly = command.main(["--subject", "lmdb", "--results", str(tmp_path)], tried)
    unknown = command.main(["--subject", "sqlite4"])

    assert (well, badly, unknown) == (0, 1, 2)
    said = capsys.readouterr()
    assert "[1/1] duckdb: DuckDB" in said.out
    assert "NOT RUN: there is no such package" in said.out
    assert "no subject is called sqlite4; there are n00dles_memory, n00dles_postgres" in said.err
    text = (tmp_path / TABLE).read_text("utf-8")
    assert "[DuckDB](field-trial/duckdb.md)" in text
    assert "[LMDB](field-trial/lmdb.md): there is no such package" in text
    assert "[TinyDB](field-trial/tinydb.md): nobody has tried it yet" in text


def test_a_server_is_started_with_the_modules_of_its_subject_and_the_next_one_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, python = tmp_path / "lib/python3.11/site-packages/search/search.so", tmp_path / "bin/python"
    for path, text in ((module, ""), (python, "#!/bin/sh\necho /bin/echo\n")):
        path.parent.mkdir(parents=True)
        path.write_text(text)
    python.chmod(0o755)
    monkeypatch.setenv("N00DLES_VALKEY_SERVER", "mine")
    environment = Environment(tmp_path, {})

    with server_with_modules(Subject("one", "about", server_modules=("search/search.so",)), environment):
        program = os.environ["N00DLES_VALKEY_SERVER"]
        said = subprocess.run([program, "valkey.conf"], capture_output=True, text=True, check=True).stdout

    assert said == f"valkey.conf --loadmodule {module}\n"
    assert os.environ["N00DLES_VALKEY_SERVER"] == "mine"
    with (
        pytest.raises(InstallError, match=r"search/none\.so is not in"),
        server_with_modules(Subject("two", "about", server_modules=("search/none.so",)), environment),
    ):
        pass
