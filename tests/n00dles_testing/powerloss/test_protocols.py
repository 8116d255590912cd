from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from n00dles_testing.powerloss.protocols import PROTOCOLS, SaveProtocol, text_of, value_in


def available(name: str) -> SaveProtocol:
    protocol = PROTOCOLS[name]
    if reason := protocol.why_not():
        pytest.skip(reason)
    return protocol


@pytest.mark.parametrize("name", PROTOCOLS)
def test_what_is_saved_is_loaded_also_when_it_is_opened_again(name: str, tmp_path: Path) -> None:
    protocol = available(name)
    place = protocol.open(str(tmp_path))

    found = [place.load()]
    for number in (1, 2, 3):
        place.save(number)
        found.append(place.load())
    place.close()
    place = protocol.open(str(tmp_path))
    found.append(place.load())
    place.close()

    assert found == [None, 1, 2, 3, 3]


@pytest.mark.parametrize(
    ("name", "journal", "synchronous"),
    [
        ("sqlite-full", "delete", 2),
        ("sqlite-extra", "delete", 3),
        ("sqlite-wal-full", "wal", 2),
        ("sqlite-wal-normal", "wal", 1),
        ("sqlite-off", "delete", 0),
    ],
)
def test_sqlite_has_the_settings_of_its_row(name: str, journal: str, synchronous: int, tmp_path: Path) -> None:
    place = PROTOCOLS[name].open(str(tmp_path))

    connection = place._connection  # type: ignore[attr-defined]
    settings = [connection.execute(f"PRAGMA {pragma}").fetchone()[0] for pragma in ("journal_mode", "synchronous")]
    place.close()

    assert settings == [journal, synchronous]


def test_the_row_of_pythons_default_is_pythons_default(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "value.db")

    settings = [connection.execute(f"PRAGMA {pragma}").fetchone()[0] for pragma in ("journal_mode", "synchronous")]
    connection.close()

    assert settings == ["delete", 2]


def test_a_mixture_of_values_is_told_from_a_value_and_from_rubbish() -> None:
    mixed = text_of(2)[:5] + text_of(1)[5:]
    cut = text_of(2)[:5]
    spoilt = [*text_of(2)[:-1], text_of(2)[-1].replace(".", "\0")]

    assert value_in(text_of(7)) == 7
    assert value_in([]) is None
    assert value_in(mixed) == (2, 1)
    for lines in (cut, spoilt, ["no line of ours"]):
        with pytest.raises(ValueError, match=r"lines of the values|invalid literal"):
            value_in(lines)


def test_a_file_that_is_cut_is_not_taken_for_nothing(tmp_path: Path) -> None:
    (tmp_path / "value.json").write_text(json.dumps({"lines": text_of(1)})[:-10])

    with pytest.raises(ValueError, match=r"Unterminated|Expecting"):
        PROTOCOLS["overwrite"].open(str(tmp_path)).load()


def test_a_database_that_is_not_installed_says_so() -> None:
    protocol = SaveProtocol("none", "none", PROTOCOLS["rename"].open, needs="n00dles_is_surely_not_this")

    assert protocol.why_not() == "n00dles_is_surely_not_this is not installed"
