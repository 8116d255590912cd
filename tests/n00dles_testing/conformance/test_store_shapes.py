"""A store may come in any shape, and from a factory with or without a location."""

from __future__ import annotations

from pathlib import Path

import pytest

from n00dles.errors import ConfigurationError
from n00dles_testing.conformance import check_store
from n00dles_testing.conformance.target import StoreTarget
from n00dles_testing.verdicts import Verdict

PLAIN = Path(__file__).parent / "plain_store.py"
ALL = ["S01", "C01", "C02"]


@pytest.mark.parametrize(
    "factory", ["open_store", "PlainStore", "AsyncStore", "open_async", "open_in_with", "open_in_async_with"]
)
def test_a_store_of_any_shape_is_taken(factory: str) -> None:
    # C01 opens it here and elsewhere, closes it and opens it again: C02 would do no more with a shape.
    report = check_store(f"{PLAIN}:{factory}", clauses=["S01", "C01"])

    assert [result.verdict for result in report.results] == [Verdict.PASS] * 2


def test_a_factory_without_a_location_is_checked_where_it_opens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAIN_STORE_FOLDER", str(tmp_path))

    report = check_store(f"{PLAIN}:open_without_location", clauses=ALL)

    assert [result.verdict for result in report.results] == [Verdict.PASS] * 3


def test_runs_made_where_the_user_keeps_his_own_are_deleted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sqlite3
    from contextlib import closing

    monkeypatch.setenv("PLAIN_STORE_FOLDER", str(tmp_path))

    check_store(f"{PLAIN}:open_without_location", clauses=["S01", "C01"])

    with closing(sqlite3.connect(tmp_path / "plain.db")) as connection:
        assert connection.execute("SELECT count(*) FROM runs").fetchone() == (0,)


def test_a_factory_that_opens_elsewhere_each_time_cannot_be_checked_for_crashes() -> None:
    report = check_store(f"{PLAIN}:open_somewhere_else_each_time", clauses=ALL)

    assert [result.verdict for result in report.results] == [Verdict.PASS, Verdict.NOT_RUN, Verdict.NOT_RUN]
    assert "Give the factory one argument, the location" in report.results[1].reason
    assert report.grade.level is None


def test_the_database_that_is_named_is_neither_read_nor_written(tmp_path: Path) -> None:
    database = tmp_path / "my.db"
    database.write_bytes(b"no database at all")

    report = check_store(f"sqlite:///{database}", clauses=["S01", "C01"])

    assert report.ok
    assert database.read_bytes() == b"no database at all"
    assert [path.name for path in tmp_path.iterdir()] == ["my.db"]
    assert report.notes[0] == f"checked on fresh copies beside it; {database} itself is neither read nor written"


def test_a_folder_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    report = check_store(f"sqlite:///{tmp_path}/new/folder/my.db", clauses=["S01"])

    assert report.results[0].verdict is Verdict.PASS
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("sqlite:///{tmp}", "is a folder; a SQLite database is a file. Name one: sqlite:///{tmp}/runs.db"),
        ("sqlite:///{tmp}/", "Name one: sqlite:///{tmp}/runs.db"),
        ("sqlite:///", "is a folder; a SQLite database is a file. Name one: sqlite:///runs.db"),
        ("sqlite:////", "/ is a folder; a SQLite database is a file. Name one: sqlite:////runs.db"),
        ("sqlite:///.", "is a folder; a SQLite database is a file. Name one: sqlite:///./runs.db"),
        ("sqlite:///{tmp}/file/x.db", "is a file, not a folder"),
        ("sqlit:///x.db", "no store is known for sqlit://"),
        ("memory://x", "memory:// takes nothing behind it"),
        ("runs.db", "write a URL"),
        ("no.such.module:open_store", "module 'no.such.module' cannot be imported"),
        ("{tmp}/missing.py:open_store", "there is no file"),
    ],
)
def test_a_target_that_means_nothing_says_what_to_write(target: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(ConfigurationError) as caught:
        check_store(target.format(tmp=tmp_path))

    assert message.format(tmp=tmp_path) in str(caught.value)


def test_a_placeholder_in_a_url_takes_the_location() -> None:
    target = StoreTarget.parse("mystore://server/{location}?mode=fast")

    assert target.takes_location
    assert target.note == "{location} in the URL is replaced by fresh temporary folders"


def test_two_checks_with_one_seed_draw_the_same_values() -> None:
    from n00dles_testing.conformance.draw import Draw

    assert Draw("S02:7").outputs(20) == Draw("S02:7").outputs(20)
    assert Draw("S02:7").outputs(20) != Draw("S02:8").outputs(20)
