"""The reference says what the code says."""

from __future__ import annotations

import re

import pytest

import n00dles
from n00dles_testing.conformance import implemented
from n00dles_testing.conformance.contract import LEVELS
from n00dles_testing.conformance.sentences import SENTENCES
from n00dles_testing.crash.clauses import CLAUSES
from n00dles_testing.verdicts import Verdict
from tests.docs.reference import PAGES, ROOT


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_up_to_date(name: str) -> None:
    written = (ROOT / name).read_text(encoding="utf-8")

    assert written == PAGES[name](), "out of date: run `make docs`"


def test_the_reference_names_everything_that_is_public() -> None:
    pages = [(ROOT / "docs" / "reference" / name).read_text(encoding="utf-8") for name in ("n00dles.md", "errors.md")]
    words = set(re.findall(r"\w+", " ".join(pages)))

    assert [name for name in n00dles.__all__ if name not in words] == []


def test_the_contract_has_a_sentence_for_every_clause_and_says_which_are_checked() -> None:
    text = (ROOT / "docs" / "reference" / "contract.md").read_text(encoding="utf-8")
    sections = {section.split()[0]: section for section in text.split("\n### ")[1:]}

    stores = [id_ for _, ids in LEVELS.values() for id_ in ids]
    assert list(sections) == list(SENTENCES) == [*stores, *(f"E{number:02}" for number in range(1, 19))]
    unchecked = {id_ for id_, section in sections.items() if "Not checked by this release" in section}
    checked = {clause.id for clause in implemented()} | {clause.id for clause in CLAUSES}
    assert unchecked == set(sections) - checked
    graded = {clause.id for clause in implemented() if clause.graded}  # what fails no store has no broken one
    assert [id_ for id_ in sorted(checked - graded) if "\n- `" not in sections[id_]] == []


def test_each_clause_of_an_executor_says_where_its_fault_was_seen_and_how_to_mend_it() -> None:
    text = (ROOT / "docs" / "reference" / "executor-clauses.md").read_text(encoding="utf-8")
    sections = {section.split()[0]: section for section in text.split("\n## ")[1:]}

    assert list(sections) == [f"E{number:02}" for number in range(1, 19)]
    assert [
        id_ for id_, section in sections.items() if not re.search(r"\*\*Seen in:\*\*\n\n- \[.*\]\(https://", section)
    ] == []
    assert [id_ for id_, section in sections.items() if "\n**Fix:** " not in section] == []


@pytest.mark.parametrize("name", ["docs/reference/contract.md", "conformance/README.md"])
def test_each_clause_of_a_store_says_how_to_mend_it(name: str) -> None:
    sections = {
        section.split()[0]: section for section in (ROOT / name).read_text(encoding="utf-8").split("\n### ")[1:]
    }
    stores = [id_ for _, ids in LEVELS.values() for id_ in ids]

    assert [id_ for id_ in stores if "\n**Fix:** " not in sections[id_]] == []


def test_the_page_on_checking_a_store_has_every_clause_in_order() -> None:
    text = (ROOT / "docs" / "how-to" / "check-a-store.md").read_text(encoding="utf-8")

    assert re.findall(r"(?m)^\| ([SCPW]\d\d) \| \S", text) == [id_ for _, ids in LEVELS.values() for id_ in ids]


def test_the_reference_names_every_verdict() -> None:
    text = (ROOT / "docs" / "reference" / "verdicts.md").read_text(encoding="utf-8")

    assert [verdict for verdict in Verdict if f"| {verdict.value} |" not in text] == []
