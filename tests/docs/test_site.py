"""The site: `make site` is to fail at whatever would be wrong on it, and each page has its place in the sidebar."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import ROOT

pytest.importorskip("sphinx", reason="the site is built with the extra `docs`")

FRONT = "# Front\n\nWhat this is.\n\n## Start\n\n- [one](one.md)\n"


_path = list(sys.path)
ANCHORS: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "anchors.py"))
CONF: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "conf.py"))
sys.path[:] = _path  # it is for the process of Sphinx that docs/ is there


def navigation(name: str, text: str) -> list[str]:
    """Return what a page gets below its headings, as the pages that stand in its tables of contents."""
    lines = CONF["navigation"](name, text).splitlines()
    return [line.removeprefix("/") for line in lines if line.startswith(("/", "*"))]


def build(root: Path, output: Path) -> subprocess.CompletedProcess[str]:
    """Read and check all pages as `make site` does, without writing them: that takes half of the time."""
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "dummy"]
    return subprocess.run(
        [*command, "-c", str(ROOT / "docs"), str(root), str(output)],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    done = build(ROOT, tmp_path)

    assert (done.returncode, done.stderr) == (0, "")


def test_each_fault_is_named_and_fails_the_build(tmp_path: Path) -> None:
    faults = {
        "docs/index.md": FRONT + "- [missing](missing.md)\n",
        "docs/one.md": '# One\n\n[a link](gone.md), [an anchor](#nowhere)\n\n<img src="gone.png" alt="it">\n',
        "docs/forgotten.md": "# Forgotten\n",
    }
    for name, text in faults.items():
        page = tmp_path / name
        page.parent.mkdir(exist_ok=True)
        page.write_text(text, encoding="utf-8")

    done = build(tmp_path, tmp_path / "out")

    assert done.returncode != 0
    complaints = [line for line in done.stderr.splitlines() if "WARNING" in line]
    for fault in (
        "'gone.md'",
        "'nowhere'",
        "gone.png",
        "'docs/missing'",
        "forgotten.md: WARNING: document isn't included",
    ):
        assert any(fault in complaint for complaint in complaints), done.stderr


def test_the_sidebar_has_the_sections_and_what_lies_in_none_of_their_folders() -> None:
    text = "[intro](design.md)\n\n## A\n\n[x](how-to/stores.md) [y](how-to/check-a-store.md) [z](design.md#a)\n"

    assert navigation("docs/index", text) == ["docs/how-to/stores", "docs/design"]


def test_the_sidebar_has_a_section_that_belongs_to_another_only_there() -> None:
    text = "## A\n\n[the matrix](../conformance/results/field-trial.md) [all](../conformance/results/index.md)\n"

    assert navigation("docs/index", text) == ["conformance/results/index"]


def test_a_section_has_the_pages_of_its_own_folder_that_it_links_to_in_its_order() -> None:
    text = "# Stores\n\n[b](b.md) [a](a.md#x) [b](b.md) [other](../design.md) [section](operations.md)\n"

    assert navigation("docs/how-to/stores", text) == ["docs/how-to/b", "docs/how-to/a"]


def test_a_section_without_links_has_all_of_its_folder() -> None:
    assert navigation("conformance/results/index", "# Results\n\nSee [the contract](../README.md).\n") == ["*"]


def test_a_page_may_have_a_folder_of_its_own() -> None:
    text = "[calibration](calibration.md) [one](field-trial/one.md#s03)\n"

    assert navigation("conformance/results/field-trial", text) == ["conformance/results/field-trial/one"]


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        ("S03", "s03"),
        ("E01: a completed node is not called again", "e01"),
        ("What happens when…", "what-happens-when"),
        ("`check`, and -k", "check-and--k"),
    ],
)
def test_a_clause_is_linked_by_its_id_and_other_headings_as_on_a_code_host(heading: str, anchor: str) -> None:
    assert ANCHORS["anchor"](heading) == anchor


def test_a_link_to_a_folder_is_left_out_and_one_to_a_file_is_not() -> None:
    text = CONF["without_folders"](ROOT / "docs" / "index", "[a](how-to) and [b](how-to/stores.md)")

    assert text == "a and [b](how-to/stores.md)"


def test_an_anchor_of_its_own_before_a_heading_is_left_out() -> None:
    text = CONF["without_own_anchors"]('<a id="s05"></a>\n\n## S05: what it says\n\n<a id="here"></a> in a text\n')

    assert text == '## S05: what it says\n\n<a id="here"></a> in a text\n'
