from __future__ import annotations

import threading
from pathlib import Path

import pytest

from n00dles_testing.powerloss.placing import clear, place
from n00dles_testing.powerloss.tree import Tree


def test_a_tree_takes_the_place_of_all_that_was_there(tmp_path: Path) -> None:
    for name in ("before", "there"):
        (tmp_path / name / "closed").mkdir(parents=True)
        (tmp_path / name / "closed" / name).write_text(name)
    (tmp_path / "there" / "closed").chmod(0o000)

    place(Tree.read(tmp_path / "before"), str(tmp_path / "there"))

    assert Tree.read(tmp_path / "there").listing() == {"closed": None, "closed/before": b"before"}


def test_what_is_not_there_need_not_be_cleared(tmp_path: Path) -> None:
    clear(str(tmp_path / "nowhere"))

    assert list(tmp_path.iterdir()) == []


def test_somebody_who_writes_there_once_more_is_cleared_away_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree, written = Tree(), threading.Event()

    def writes_to(folder: str) -> None:
        if not written.is_set():
            written.set()
            (Path(folder) / "sub").mkdir(parents=True)
            raise FileExistsError(folder)
        Path(folder).mkdir()

    monkeypatch.setattr(Tree, "write_to", lambda self, folder: writes_to(folder))
    place(tree, str(tmp_path / "there"))

    assert list((tmp_path / "there").iterdir()) == []
