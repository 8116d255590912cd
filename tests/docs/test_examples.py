"""Whatever the README and the documentation show is run, and must do what the page says (pages.py has the rules)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs import pages
from tests.docs.pages import ROOT, Block, PageError, blocks_of, matches

SECONDS_A_PAGE = 480
"""A page takes 25 s or so on a machine that does little else; among several runs of tests it is ten times slower."""

PAGES = pages.pages()
BLOCKS = [block for page in PAGES for block in blocks_of(page)]
NOT_RUN = [block for block in BLOCKS if block.reason_not_run]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.fixture(scope="module")
def llm_environment() -> Iterator[dict[str, str]]:
    """One fake LLM server, which stands in for every model that the pages call."""
    from n00dles_testing.llm import LLMServer

    with LLMServer() as server:
        yield dict(server.environment)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks_of(page)], ids=name_of)
def test_a_page_does_what_it_says(page: Path, tmp_path: Path, llm_environment: dict[str, str]) -> None:
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    commands = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "N00DLES"))}
    environment = {**inherited, **llm_environment, "PATH": commands, "PYTHONPATH": str(ROOT), "COLUMNS": "120"}

    done = subprocess.run(
        [sys.executable, pages.__file__, str(page)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS_A_PAGE,
        check=False,
    )

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("block", NOT_RUN, ids=lambda block: block.place)
def test_a_block_that_is_not_run_says_why(block: Block) -> None:
    assert block.reason_not_run
    pytest.skip(f"{block.place} is not run: {block.reason_not_run}")


def test_most_blocks_are_run() -> None:
    assert len(BLOCKS) >= 20
    assert len(NOT_RUN) <= len(BLOCKS) // 4


def linked(page: Path) -> list[str]:
    """Return where the relative links of a page lead to, without anchors."""
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    return [link for link in links if "://" not in link]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    assert [link for link in linked(page) if not (page.parent / link).exists()] == []


def test_every_page_is_reachable_from_the_index() -> None:
    reached, waiting = set[Path](), [ROOT / "docs" / "index.md"]
    while waiting:
        page = waiting.pop()
        if page in reached or not page.is_file():
            continue
        reached.add(page)
        waiting += [(page.parent / link).resolve() for link in linked(page) if link.endswith(".md")]

    assert [name_of(page) for page in PAGES if page.is_relative_to(ROOT / "docs") and page not in reached] == []


# The page runner itself: whatever it lets through, the pages could say.


def run_text(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    page = folder / "page.md"
    page.write_text(text, encoding="utf-8")
    command = [sys.executable, pages.__file__, str(page)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("```python\n1 / 0\n```\n", 'File "page.md", line 2'),
        ("```python\nprint(1)\n```\n<!-- output -->\n```text\n2\n```\n", "the page says\n2\n--- but it was\n1"),
        ("```console\n$ false\n```\n", "exited 1, not 0"),
        ("<!-- exit: 1 -->\n```console\n$ true\n```\n", "exited 0, not 1"),
        ("```console\n$ echo a\nb\n```\n", "but it was\na"),
        ("```console\necho a\n```\n", "starts with '$ '"),
        ("```bash\ntrue\n```\n", "language 'bash'"),
        ("```json\n{,}\n```\n", "JSONDecodeError"),
        ("```yaml\na: [b\n```\n", "ParserError"),
        ("<!-- not run: -->\n```python\n1\n```\n", "needs a reason"),
        ("<!-- file: a.py -->\n```python\nx = 1\n```\n", "never uses"),
        ("```python\nx = 1\n", "never ends"),
    ],
)
def test_a_page_that_says_what_is_not_so_is_caught(text: str, complaint: str, tmp_path: Path) -> None:
    done = run_text(text, tmp_path)

    assert done.returncode != 0
    assert complaint in done.stderr


def test_blocks_share_a_namespace_and_a_folder(tmp_path: Path) -> None:
    text = (
        "<!-- file: more.py -->\n```python\ny = 2\n```\n\n```python\nfrom more import y\n```\n"
        "```python\nprint(y)\n```\n<!-- output -->\n```text\n2\n```\n```console\n$ cat more.py\ny = …\n```\n"
        "<!-- not run: it would fail -->\n```python\n1 / 0\n```\n"
    )

    done = run_text(text, tmp_path)

    assert (done.returncode, done.stdout.strip()) == (0, "5")


def test_an_ellipsis_in_expected_output_stands_for_any_text() -> None:
    assert matches("run …\nfinished\n", "run r-1\n2 nodes  \nfinished")
    assert not matches("run …\nfinished", "run r-1 failed")


def test_a_reason_is_found_above_its_block(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- not run: slow -->\n\n```console\n$ make check\n```\n\nText.\n\n```text\nx\n```\n", encoding="utf-8"
    )

    first, second = blocks_of(page)

    assert (first.reason_not_run, second.reason_not_run) == ("slow", None)
    with pytest.raises(PageError, match="one of"):
        list(pages._parse("p", "```sh\nx\n```\n"))
