"""S10: what is damaged, and what a store may do with it."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from n00dles_testing.conformance import check_store
from n00dles_testing.conformance.damage import cuts, flips, versions
from n00dles_testing.conformance.mutants import correct_stores
from n00dles_testing.conformance.sqlite_damage import database_damage, database_versions, page_size
from n00dles_testing.verdicts import ClauseResult, Verdict

HERE = Path(__file__).parent
STORES = HERE / "damaged_stores.py"
MUTANTS = "n00dles_testing.conformance.mutants.s10"


def s10_of(target: str) -> ClauseResult:
    [result] = check_store(target, clauses=["S10"]).results
    return result


@pytest.mark.parametrize(
    ("target", "scenario", "message"),
    [
        (f"{MUTANTS}:TakesDamageForAFirstRun", ".json emptied", "the damaged run was taken for a first run"),
        (f"{MUTANTS}:MovesDamageAside", ".json emptied", "the damaged run raised once, and then began anew"),
        (f"{MUTANTS}:MarksWhatIsDamaged", ".json emptied", "a following run has overwritten the damaged bytes"),
        (f"{MUTANTS}:SkipsDamagedLines", "before the text of an input", "the damaged run was taken for a first run"),
        (f"{MUTANTS}:SkipsLaterVersions", "'schema_version' is 999", "the damaged run was taken for a first run"),
        (f"{MUTANTS}:BelievesTheNameOfTheFile", "is that of another run", "another run came under this run's id"),
        (
            f"{STORES}:ReplacesRowsThatItCannotRead",
            "the text in runs.record",
            "the damaged run was taken for a first run",
        ),
        (f"{STORES}:GoesBackByASave", "one bit flipped", "an older state came without an error"),
        (f"{STORES}:EndsTheProcess", ".json emptied", "the process ended with exit status 3 during load a run"),
        (f"{STORES}:GivesNone", ".json emptied", "the store returned None instead of the run"),
    ],
)
def test_damage_that_is_no_error_is_found(target: str, scenario: str, message: str) -> None:
    result = s10_of(target)

    assert result.verdict is Verdict.FAIL
    assert result.findings[0].message.startswith(message)
    assert scenario in result.findings[0].story[0]


@pytest.mark.parametrize(
    ("store", "note"),
    [
        ("CompressedFiles", "not tried: a record of a later version"),
        ("TwoCopies", "not tried: a record of a later version"),
        ("CountsItsSaves", "'version' is 999, as a later release may write it"),
        ("SavesOverDamage", "not tried: a record of a later version"),
        ("ReadsAllAtTheStart", "keeps other runs from being loaded, whose files are whole"),
    ],
)
def test_a_store_may_raise_or_give_the_run(store: str, note: str) -> None:
    result = s10_of(f"{STORES}:{store}")

    assert result.verdict is Verdict.PASS
    assert note in result.reason


@pytest.mark.parametrize("seed", [3, 4])
@pytest.mark.parametrize("target", correct_stores(), ids=lambda target: target.rpartition(":")[2])
def test_no_correct_store_fails_whatever_is_drawn(target: str, seed: int) -> None:
    [result] = check_store(target, clauses=["S10"], seed=seed).results

    assert result.verdict is Verdict.PASS
    assert result.scenarios >= 10


def test_a_store_without_a_checksum_passes_and_is_told_what_it_does_not_see() -> None:
    result = s10_of("n00dles_testing.conformance.mutants.correct:JSONFiles")

    assert result.verdict is Verdict.PASS
    assert "not noticed: only a checksum shows it (" in result.reason
    assert "an error names neither the run nor its file (" in result.reason


def test_every_flipped_bit_and_a_later_version_are_noticed_by_the_store_of_the_project(tmp_path: Path) -> None:
    result = s10_of(f"sqlite:///{tmp_path}/runs.db")

    assert result.verdict is Verdict.PASS
    for note in ("checksum", "names neither", "read all the same", "later version", "older state"):
        assert note not in result.reason


def test_a_store_that_keeps_its_files_out_of_the_location_is_not_judged() -> None:
    result = s10_of(f"{STORES}:KeepsItsFilesElsewhere")

    assert result.verdict is Verdict.NOT_RUN
    assert result.reason.startswith("no file of the location was found that another process reads a run from")


def test_a_store_without_a_location_is_not_judged() -> None:
    result = s10_of(f"{HERE / 'plain_store.py'}:open_somewhere_else_each_time")

    assert result.verdict is Verdict.NOT_RUN
    assert "the factory takes no location" in result.reason


def test_a_file_is_cut_and_flipped_where_the_texts_are() -> None:
    content = b'{"a": "first", "b": "last"}'

    cut = {damage.title: damage.content for damage in cuts("f", content, "last")}
    flipped = {damage.title: damage.content for damage in flips("f", content, "first", "last")}

    assert cut == {
        "emptied": b"",
        "cut to 10 bytes": b'{"a": "fir',
        "cut to half": b'{"a": "first"',
        "cut in the middle of the last output": b'{"a": "first", "b": "la',
        "without its last byte": b'{"a": "first", "b": "last"',
    }
    assert flipped["one bit flipped in the text of an input"] == b'{"a": "girst", "b": "last"}'
    assert flipped["one bit flipped behind the text of the last output"] == b'{"a": "first", "b": "last#}'
    assert len(flipped) == 6


def test_only_a_number_that_is_called_a_version_is_one() -> None:
    record = {"version": "1.0", "schema": 3, "completed": {"version": 1}}

    [damage] = versions("f", json.dumps(record).encode())

    assert json.loads(damage.content) == {**record, "schema": 999}


def test_a_database_is_damaged_in_its_rows_and_pages_whatever_its_tables_are(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection, connection:
        connection.execute("PRAGMA user_version = 4")
        connection.execute("CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID")
        connection.execute("INSERT INTO settings VALUES ('format_version', '2')")
        connection.execute('CREATE TABLE "odd ""name" (id BLOB, first TEXT, last BLOB)')
        connection.execute('INSERT INTO "odd ""name" VALUES (x\'00\', \'["first"]\', CAST(\'["last"]\' AS BLOB))')
    content = (tmp_path / "a.db").read_bytes()

    titles = [damage.title for damage in database_damage("f", content, ["first", "last"])]
    newer = [damage.title for damage in database_versions("f", content)]

    assert page_size(content) == 4096
    assert titles == [
        'the text in odd "name.first cut in half',
        'the text in odd "name.first emptied',
        'the text in odd "name.last cut in half',
        'the text in odd "name.last emptied',
        "the page of the inputs is zeros",
        "the page of the last output is zeros",
    ]
    assert newer == [
        "settings.value is 999, as a later release may write it",
        "its user_version is 999, as a later release may write it",
    ]
