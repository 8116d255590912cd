"""The page in a real Chromium: on a phone and on a desk, in light and dark, without network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from n00dles_testing.report.check_report import parse_check_report
from n00dles_testing.report.html_page import render_page
from tests.n00dles_testing.report.browser import Browser, find_chromium
from tests.n00dles_testing.report.reports import CONTRACT, failed, moment, passed, power_loss, powerloss, report
from tests.n00dles_testing.report.test_html_page import HOSTILE, filled

FATES = ("synced", "kept", "partly", "lost", "sync", "failed sync", "unfinished sync")
ALL_FATES = [moment("an operation", fate, path, times=n) for n, fate in enumerate(FATES, 1) for path in ("a", "b")]
OPEN_ALL = "document.querySelectorAll('details').forEach(each => each.open = true)"
WIDTHS = "[document.documentElement.scrollWidth, window.innerWidth]"

# The lowest contrast (WCAG 2) of any text with what is behind it, and that text.
LOWEST_CONTRAST = """
(() => {
  const part = value => (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  const numbers = colour => colour.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  const behind = element => {
    for (; element; element = element.parentElement) {
      const colour = numbers(getComputedStyle(element).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  let lowest = [99, ''];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !element.getClientRects().length) continue;
    const [a, b] = [light(numbers(getComputedStyle(element).color)), light(behind(element))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < lowest[0]) lowest = [ratio, walker.currentNode.data];
  }
  return lowest;
})()
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = find_chromium()
    if program is None:
        pytest.skip("no Chromium was found on PATH; N00DLES_CHROMIUM names one")
    with Browser(program, tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    verdicts = ("NOT APPLICABLE", "NOT RUN", "UNKNOWN", "VACUOUS")
    crowd = tuple(f"process {n}: save('a-long-run-id-{n}') with {{}} → acknowledged" for n in range(9))
    forms = [
        report(),
        report("a.b:Crowd", [failed(story=crowd)]),
        *(report(f"a.b:AStoreWithALongName{n}", [passed("S05", verdict=each)]) for n, each in enumerate(verdicts)),
        *(filled(text) for text in HOSTILE.values()),
        powerloss(target="a.b:LosesPower"),
        powerloss({"ext4": [power_loss(ALL_FATES * 9)]}, target="a.b:LosesMore"),
    ]
    path = tmp_path_factory.mktemp("page") / "page.html"
    path.write_text(render_page([parse_check_report(form) for form in forms], CONTRACT))
    return path


@pytest.mark.parametrize("width", [320, 360, 768, 1280])
def test_only_the_matrix_scrolls_sideways(width: int, browser: Browser, page: Path) -> None:
    browser.show(page, width=width)
    browser.value(OPEN_ALL)

    needed, there = browser.value(WIDTHS)
    assert needed <= there
    assert browser.value("(box => box.scrollWidth > box.clientWidth)(document.querySelector('.scroll'))")


@pytest.mark.parametrize("width", [320, 500])
def test_the_table_says_what_each_clause_is_on_a_phone_too(width: int, browser: Browser, page: Path) -> None:
    browser.show(page, width=width)

    assert browser.value("document.querySelector('tbody th .title').getBoundingClientRect().width > 60")
    assert browser.value("document.querySelector('tbody tr:not(.group) > :first-child').offsetWidth") < width / 2


@pytest.mark.parametrize("width", [390, 1280])
def test_a_wide_picture_scrolls_in_its_own_box_and_begins_with_its_end(
    width: int, browser: Browser, page: Path
) -> None:
    browser.show(page, width=width)
    browser.value("window.box = [...document.querySelectorAll('.lanes-box')].pop()")

    assert browser.value("box.scrollWidth > box.clientWidth")
    in_box = "(box, part) => part.left >= box.left - 1 && part.right <= box.right + 1"
    seen = f"(({in_box})(box.getBoundingClientRect(), box.querySelector('WHAT').getBoundingClientRect()))"
    assert browser.value(seen.replace("WHAT", ".crash"))
    assert browser.value(seen.replace("WHAT", ".files"))
    browser.value("box.scrollLeft = -99999")
    assert not browser.value(seen.replace("WHAT", ".crash"))
    assert browser.value(seen.replace("WHAT", ".files"))


def test_what_is_lost_is_told_apart_by_its_shape(browser: Browser, page: Path) -> None:
    browser.show(page)

    shapes = browser.value(
        "['synced', 'kept', 'lost'].map(fate => [...document.querySelectorAll(`.ops .op.${fate}`)].slice(0, 1).map("
        "each => [getComputedStyle(each.querySelector('rect')).strokeDasharray !== 'none',"
        "!!each.querySelector('.strike')])[0])"
    )

    assert shapes == [[False, False], [True, False], [True, True]]


def test_nothing_is_loaded_and_nothing_is_complained_about(browser: Browser, page: Path) -> None:
    shown = browser.show(page)
    browser.value(OPEN_ALL)

    assert shown.requests == [page.as_uri()]
    assert shown.messages == []
    assert browser.value("document.scripts.length") == 0


def test_the_policy_keeps_out_what_would_be_added(browser: Browser, page: Path, tmp_path: Path) -> None:
    spoilt = tmp_path / "spoilt.html"
    added = "<script>document.title = 'ran'</script><style>h1 { color: red }</style><img src='data:image/gif,x'>"
    spoilt.write_text(page.read_text().replace("<main>", f"<main>{added}"))

    shown = browser.show(spoilt)

    assert browser.value("document.title") != "ran"
    assert browser.value("getComputedStyle(document.querySelector('h1')).color") != "rgb(255, 0, 0)"
    assert len(shown.messages) == 3


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_text_stands_out_from_what_is_behind_it(dark: bool, browser: Browser, page: Path) -> None:
    browser.show(page, dark=dark)
    browser.value(OPEN_ALL)

    ratio, text = browser.value(LOWEST_CONTRAST)

    assert ratio >= 4.5, text
    paper = browser.value("getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(20, 23, 26)" if dark else "rgb(255, 255, 255)")


def test_one_click_selects_the_whole_replay_line(browser: Browser, page: Path) -> None:
    browser.show(page)

    line = browser.value("document.querySelector('.copy').scrollIntoView(), document.querySelector('.copy').innerText")
    box = browser.value(
        "(box => [box.left + 20, box.top + 10])(document.querySelector('.copy').getBoundingClientRect())"
    )
    for kind in ("mousePressed", "mouseReleased"):
        browser.ask("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)

    assert browser.value("getSelection().toString()").strip() == line


def test_printing_shows_what_is_folded(browser: Browser, page: Path) -> None:
    folded = "getComputedStyle(document.querySelector('.text'), '::details-content').contentVisibility"
    browser.show(page)
    on_screen = browser.value(folded)

    browser.ask("Emulation.setEmulatedMedia", media="print")
    printed = browser.value(folded)
    browser.ask("Emulation.setEmulatedMedia", media="")

    assert (on_screen, printed) == ("hidden", "visible")
