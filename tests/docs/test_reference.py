"""The reference says what the code says."""

from __future__ import annotations

import pytest

from tests.docs.reference import PAGES, ROOT


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_up_to_date(name: str) -> None:
    written = (ROOT / "docs" / "reference" / name).read_text(encoding="utf-8")

    assert written == PAGES[name](), "out of date: run `make docs`"


def test_the_reference_of_n00dles_names_every_public_name() -> None:
    import n00dles

    text = (ROOT / "docs" / "reference" / "n00dles.md").read_text(encoding="utf-8")

    assert [name for name in n00dles.__all__ if f"`{name}" not in text] == []
