"""The site: `make site` builds it with Sphinx, MyST and Furo, and fails at the first broken link or forgotten page.

The source is the whole repository, so that a link means the same here, on a code host and in an editor. The sidebar
is made from the links of the front page and of the pages that list others (`_SECTIONS`), in their order.
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import version as version_of
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import Any

project = "n00dles-testing"
author = "the authors of n00dles-testing"
version = release = version_of("n00dles-testing")

extensions = ["myst_parser", "sphinx_copybutton"]
root_doc = "docs/index"
include_patterns = ["docs/**.md", "conformance/README.md", "conformance/results/**.md", "CHANGELOG.md"]
nitpicky = True
myst_heading_anchors = 3
myst_enable_extensions = ["html_image"]  # an <img> that a page needs for its width is an image as any other
sys.path.insert(0, str(Path(__file__).parent))
myst_heading_slug_func = "anchors.anchor"  # by its name: Sphinx keeps its settings in a file, and no function in that
copybutton_prompt_text = "$ "
copybutton_line_continuation_character = "\\"

html_theme = "furo"
html_title = "n00dles-testing"
html_static_path = ["site/site.css"]
html_css_files = ["site.css"]
html_additional_pages = {"index": "forward.html"}
templates_path = ["site"]
html_copy_source = False
html_use_index = False
html_show_copyright = False

_SECTIONS = {
    "docs/how-to/pipelines": "docs/how-to",
    "docs/how-to/stores": "docs/how-to",
    "docs/how-to/stand-ins": "docs/how-to",
    "docs/how-to/operations": "docs/how-to",
    "docs/reference/index": "docs/reference",
    "docs/explanation/index": "docs/explanation",
    "conformance/results/index": "conformance/results",
    "conformance/results/field-trial": "conformance/results/field-trial",
}
"""The pages that list others, and the folder of those. What such a page links to there is below it in the sidebar."""

_LINK = re.compile(r"\]\(([^)#:\s]+)\.md(?:#[^)]*)?\)")
_OWN_ANCHOR = re.compile(r'(?m)^<a id="[^"]*"></a>\n\n(?=#)')
_ANY_LINK = re.compile(r"\[([^\]]*)\]\(([^)#:\s]+)\)")


def navigation(name: str, text: str) -> str:
    """Return a page that lists others with a hidden table of contents below each of its headings.

    The front page has the sections, and what lies in no folder of theirs; a section without links has all of its own.
    """
    is_front = name == root_doc
    seen: set[str] = set()
    parts = re.split(r"(?m)^(?=## )", text)
    for number, part in enumerate(parts):
        if is_front and not number:
            continue  # an introduction tells what this is; its links are no navigation
        linked = (normpath(str(PurePosixPath(name).parent / link)) for link in _LINK.findall(part))
        pages = [page for page in dict.fromkeys(linked) if page not in seen and _is_below(name, page)]
        seen.update(pages)
        if pages:
            parts[number] += _contents(pages, part if is_front else "")
    if not seen:
        parts.append("\n```{toctree}\n:glob:\n:maxdepth: 1\n\n*\n```\n")
    return "\n".join(parts)


def _is_below(name: str, page: str) -> bool:
    folder = str(PurePosixPath(page).parent)
    if name == root_doc:
        return _SECTIONS.get(page) == folder or folder not in _SECTIONS.values()
    return page not in _SECTIONS and folder == _SECTIONS[name]


def _contents(pages: list[str], part: str) -> str:
    heading = re.match(r"## (.*)", part)
    caption = [f":caption: {heading[1]}"] if heading else []
    return "\n".join(["", "```{toctree}", ":hidden:", *caption, "", *(f"/{page}" for page in pages), "```", ""])


def without_folders(page: Path, text: str) -> str:
    """Return a page without its links to folders: a code host shows what is in one, and a site does not."""
    return _ANY_LINK.sub(lambda link: link[1] if (page.parent / link[2]).is_dir() else link[0], text)


def without_own_anchors(text: str) -> str:
    """Return a page without the anchors before headings: a code host needs them, and here the heading has the same."""
    return _OWN_ANCHOR.sub("", text)


def _as_on_the_site(app: Any, name: str, source: list[str]) -> None:
    source[0] = without_own_anchors(without_folders(Path(app.srcdir) / name, source[0]))
    if name == root_doc or name in _SECTIONS:
        source[0] = navigation(name, source[0])


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("source-read", _as_on_the_site)
