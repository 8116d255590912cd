"""On a code host no link of README, the documentation or the results is dead, and each cell of a matrix has one.

Of the site, Sphinx sees to that (test_site.py).
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conformance.field_trial.__main__ import README, RESULTS
from conformance.field_trial.matrix import in_readme
from conformance.field_trial.results import read_all
from tests.docs import pages
from tests.docs.links import anchors_of, dead_links
from tests.docs.pages import ROOT

PAGES = [*pages.pages(), ROOT / "CHANGELOG.md", *sorted((ROOT / "conformance" / "results").rglob("*.md"))]
_ROW = re.compile(r"(?m)^\| \[.* \|$")
_MATRIX = re.compile(r"(?s)^\| (?:store|clause) \| (?:contract|\[).*?(?=^$)", re.MULTILINE)


def cells(page: Path) -> list[str]:
    """Return the cells of the matrices on a page, without headings, and the first of each row."""
    rows = [row for table in _MATRIX.findall(page.read_text("utf-8")) for row in _ROW.findall(table)]
    return [cell for row in rows for cell in row.strip("| ").split(" | ")[1:]]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_no_link_of_a_page_is_dead(page: Path) -> None:
    assert dead_links(page) == []


@pytest.mark.parametrize(
    ("name", "least"),
    [("README.md", 40), ("conformance/results/field-trial.md", 400), ("conformance/results/executors.md", 50)],
)
def test_each_cell_of_a_matrix_leads_to_its_story(name: str, least: int) -> None:
    found = cells(ROOT / name)

    assert len(found) >= least
    assert [cell for cell in found if "](" not in cell] == []


def test_the_matrix_in_the_readme_is_what_the_results_say() -> None:
    text = README.read_text("utf-8")

    assert in_readme(text, read_all(RESULTS / "field-trial")) == text, "python -m conformance.field_trial --pages"


@pytest.mark.parametrize("text", ["", "<!-- the matrix, written by `make field-trial` -->\n"])
def test_a_readme_without_a_place_for_the_matrix_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="two comments"):
        in_readme(text, [])


@pytest.mark.parametrize(
    ("link", "is_dead"),
    [
        ("gone.md", True),
        ("other.md#nowhere", True),
        ("#nowhere", True),
        ("other.md#in-code", True),
        ("other.md#s05-what-it-says", False),
        ("other.md#s05", False),
        ("#here-or-there", False),
        ("https://example.org/#x", False),
    ],
)
def test_a_dead_link_is_found(tmp_path: Path, link: str, is_dead: bool) -> None:
    (tmp_path / "other.md").write_text('<a id="s05"></a>\n\n## S05: what it says\n\n```text\n# in code\n```\n')
    page = tmp_path / "page.md"
    page.write_text(f"# Here, or `there`\n\n[it]({link})\n\n```text\n[not a link](nothing.md)\n```\n")

    assert bool(dead_links(page)) == is_dead
    assert anchors_of(page) == {"here-or-there"}
