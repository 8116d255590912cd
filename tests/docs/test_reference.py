"""The reference says what the code says."""

from __future__ import annotations

import re

import pytest

import n00dles
from n00dles_testing.verdicts import Verdict
from tests.docs.reference import PAGES, ROOT


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_up_to_date(name: str) -> None:
    written = (ROOT / "docs" / "reference" / name).read_text(encoding="utf-8")

    assert written == PAGES[name](), "out of date: run `make docs`"


def test_the_reference_names_everything_that_is_public() -> None:
    pages = [(ROOT / "docs" / "reference" / name).read_text(encoding="utf-8") for name in ("n00dles.md", "errors.md")]
    words = set(re.findall(r"\w+", " ".join(pages)))

    assert [name for name in n00dles.__all__ if name not in words] == []


def test_the_reference_names_every_verdict() -> None:
    text = (ROOT / "docs" / "reference" / "verdicts.md").read_text(encoding="utf-8")

    assert [verdict for verdict in Verdict if f"| {verdict.value} |" not in text] == []
