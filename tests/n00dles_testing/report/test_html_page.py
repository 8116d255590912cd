"""The page about checked stores: what it says, and that nothing that came from outside becomes part of its markup."""

from __future__ import annotations

import itertools
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from n00dles_testing.report.check_report import parse_check_report
from n00dles_testing.report.html_page import render_page
from tests.n00dles_testing.report.reports import (
    CONTRACT,
    STORY,
    TIMELINE,
    failed,
    moment,
    passed,
    power_loss,
    powerloss,
    report,
)

VOID = {"meta", "wbr"}
PLACES = ("x", "width", "viewbox", "title")
"""Where something is drawn, how wide, and which name it has: that is another for other texts."""


class Tree(HTMLParser):
    """The elements of a page in order, its text, and whether every element is closed in its place."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.comments: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.texts.append(data)

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)

    @property
    def text(self) -> str:
        return "".join(self.texts)

    @property
    def words(self) -> str:
        """The text as it is read: white space folded."""
        return " ".join(self.text.split())

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for each, attributes in self.elements if each == tag]

    @property
    def structure(self) -> list[tuple[str, tuple[tuple[str, str | None], ...]]]:
        """All elements with their attributes, but for those that only show an escape or a place for a line break."""
        digest = re.compile("sha256-[^']*")
        return [
            (
                tag,
                tuple((name, digest.sub("", value or "")) for name, value in attributes.items() if name not in PLACES),
            )
            for tag, attributes in self.elements
            if tag != "wbr" and attributes != {"class": "esc"}
        ]


def page(*forms: dict[str, Any]) -> Tree:
    tree = Tree(render_page([parse_check_report(form) for form in forms], CONTRACT))
    assert tree.open == []
    return tree


HOSTILE = {
    "end of script": "</script><script>alert(1)</script>",
    "image": "<img src=http://example.invalid/x onerror=alert(1)>",
    "end of style and title": "</style></title></head><body onload=alert(1)>",
    "quotes": '" onmouseover="alert(1)" x=\'',
    "comment": "<!-- --> ]]> <![CDATA[ <!DOCTYPE x>",
    "template": "{{ 7 * 7 }}{% raw %}{# no #}",
    "entity": "&lt;b&gt; &#x3c;b&#x3e; &amp;",
    "NUL": "a\x00b",
    "control": "a\x1b[31m\x08\r\nb\x0b\x85",
    "bidi": "\u202egnp.exe\u2066\u200b",
    "surrogate": "\ud800",
    "long": "x" * 1_000_000,
    "many lines": "y\n" * 100_000,
}


def drawn(text: str) -> dict[str, Any]:
    """Return what a power loss is drawn from, with the text in every place that can hold text."""
    timeline = [
        *TIMELINE,
        moment(text, "lost", text),
        moment(text, "kept", text, what="rename", to_path=f"{text} "),
        moment(text, "synced", "", text, what="more", times=9),
        moment(text, text, text, text),
        moment(text, "mark", text, text, what="call"),
    ]
    lists = {name: [text] for name in ("details", "lost", "on_disk")}
    loss = power_loss(timeline, kind=text, message=text, words=text, when=text, left=[[text, text]], **lists)
    return {"model": text, "calls": [text, text], "told": [text], "finding": loss}


def filled(text: str) -> dict[str, Any]:
    """Return a report that has the text in every place that can hold text."""
    story = (
        f"scenario {text}",
        f"save({text}) with {text} → acknowledged",
        f"process 1: load_or_create({text}) → raised {text}",
        f"a note: {text}",
        f"why      {text}",
        f"printed  {text}",
    )
    finding = {"clause": text, "message": text, "story": [*story], "replay": text, "picture": drawn(text)}
    results = [
        passed("S05", title=text, reason=text),
        passed("C02", title=text, verdict="FAIL", reason=text, findings=[finding, finding]),
        passed("X99", title=text, reason=text),
    ]
    words = {"written_by": text, "written_at": text, "python": text, "platform": text}
    return report(
        f"package.stores:{text}",
        results,
        grade="{0}\n{0}".format(text.replace("\n", " ")),
        notes=[text],
        problems=[text],
        claims={"level": 2, "capabilities": [text], "source": text, "level_kept": False},
        capabilities=[{"name": text, "verdict": text, "proof": text, "ok": False}],
        gaps=[{"clause": text, "reason": text, "text": text, "state": text, "ok": True}],
        reader={"name": text, "compared": 3, "fault": text},
        not_implemented=[text],
        **words,
    )


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_no_text_from_outside_becomes_markup(text: str) -> None:
    harmless = page(filled("harmless"), report("b:Other"))

    hostile = page(filled(text), report("b:Other"))

    assert hostile.structure == harmless.structure
    assert hostile.comments == []
    assert {tag for tag, _ in hostile.elements}.isdisjoint(
        {"script", "img", "iframe", "object", "link", "base", "form"}
    )
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069\ud800]", hostile.text)


def test_what_a_reader_would_not_see_is_shown_as_an_escape() -> None:
    tree = page(report(results=[failed(title="\u202eevil\x00")]))

    assert r"\u202eevil\x00" in tree.words


def test_a_page_stays_small_whatever_a_store_says() -> None:
    forms = [parse_check_report(filled(HOSTILE["long"]))]

    assert len(render_page(forms, CONTRACT)) < 200_000


def test_every_finding_of_a_report_is_on_the_page() -> None:
    findings = [
        {
            "clause": "C02",
            "message": f"message {n}",
            "story": [f"scenario title {n}", f"came     what {n}"],
            "replay": f"replay {n}",
        }
        for n in range(5)
    ]

    tree = page(
        report(
            results=[
                passed("S05", verdict="FAIL", findings=findings[:2]),
                passed("C02", verdict="FAIL", findings=findings),
            ]
        )
    )

    for n in range(5):
        for told in (f"message {n}", f"title {n}", f"what {n}", f"replay {n}"):
            assert told in tree.words


def test_the_headline_says_what_a_reader_may_conclude() -> None:
    level = "no fault found by S05\nlevel 2 (crash-safe)"

    assert headline(report(results=[failed("S05"), failed("C02")])) == "Mine: breaks S05, C02"
    assert headline(report(results=[passed()], level=2, grade=level)) == "Mine: level 2 (crash-safe)"
    assert headline(report(results=[passed()])) == "Mine: no fault found in 1 clause; no level"
    assert headline(report(results=[passed(verdict="VACUOUS")], ok=False)) == "Mine: showed nothing in S05"
    assert headline(report(), report("b:Other", [passed()])) == "1 of 2 stores breaks the contract"
    assert headline(report("sqlite:///a/runs.db", [passed()]), report("memory://", [passed()])) == (
        "No fault was found in 2 stores"
    )


def test_claims_that_are_not_kept_are_in_the_headline() -> None:
    form = report(results=[passed()], ok=False, level=1, grade="level 1 (contract): every clause of it passed")

    assert headline(form) == "Mine: is not what it claims to be; level 1 (contract)"
    assert headline(form, report("b:Other", [passed()])) == "1 of 2 stores showed nothing, or is not what is claimed"


def headline(*forms: dict[str, Any]) -> str:
    found = re.search("<h1>(.*?)</h1>", render_page([parse_check_report(form) for form in forms], CONTRACT))
    assert found
    return found[1]


def test_several_reports_of_one_store_are_one_store() -> None:
    target = "a.filestore:open_store"
    first, second = report(target), powerloss(target=target)

    assert headline(first, second) == "filestore: breaks C02, P01, in 2 of 2 reports"
    assert headline(report(target, [passed()]), second) == "filestore: breaks P01, in 1 of 2 reports"
    assert headline(report(target, [passed()]), powerloss({}, target=target, ok=True)) == (
        "filestore: no fault was found in 2 reports"
    )
    assert headline(first, second, report("b:Other", [passed()])) == "1 of 2 stores breaks the contract"
    words = page(first, second, report("b:Other", [passed()])).words
    assert "The 2 stores, in 3 reports" in words
    assert "filestore (check) breaks C02" in words
    assert "filestore (powerloss) breaks P01" in words


def test_a_store_has_the_name_of_its_module_where_the_factory_is_called_as_everywhere() -> None:
    assert headline(report("stores/mine.py:open_store", [passed()])).startswith("mine: ")
    assert headline(report("stores/mine.py:Other", [passed()])).startswith("mine.py:Other: ")
    assert headline(report("package.mine:open_store", [passed()])).startswith("mine: ")


def test_a_clause_that_neither_held_nor_failed_has_its_reason_on_the_card() -> None:
    undecided = [passed("S05", verdict=each, reason="two of 40") for each in ("UNKNOWN", "NOT RUN", "VACUOUS")]

    cards = [page(report(results=[result])).words.partition("Details")[0] for result in undecided]

    told = ("S05 unknown: two of 40", "S05 not run: two of 40", "S05 vacuous: two of 40")
    assert [words in card for words, card in zip(told, cards, strict=True)] == [True, True, True]
    assert "two of 40" not in page(report(results=[passed(reason="two of 40")])).words.partition("Details")[0]


def test_texts_that_have_little_in_common_are_not_marked() -> None:
    story = ("scenario x", "allowed  what the last acknowledged call left", "came     'r': {'a': 1}, order ['a'], by 2")

    text = render_page([parse_check_report(report(results=[failed(story=story)]))], CONTRACT)

    assert "<mark>" not in text


def test_a_name_that_is_a_hash_is_shortened_where_it_is_drawn_and_whole_in_the_text() -> None:
    name = "673691e2fc629357c70feabfa3def71c52dcf7fca902d26e60fa972d79a8295a"
    story = ("scenario x", f"save('r') of {name}.json → acknowledged", f"on disk  {name}.json (3 bytes)")

    words = page(report(results=[failed(story=story)])).words

    assert words.count("673691e2…295a.json") == 2
    assert words.count(name) == 2
    assert f"on disk {name}.json (3 bytes)" in words


def test_a_store_that_reaches_a_level_and_breaks_a_higher_one_has_both_told() -> None:
    form = report(results=[passed(), failed()], level=1, grade="the store breaks C02\nlevel 1 (contract)")

    assert headline(form) == "Mine: breaks C02; level 1 (contract)"


def test_a_known_gap_is_told_apart_from_a_new_fault() -> None:
    gap = {"clause": "C02", "reason": "it has no disk", "text": "x", "state": "known gap", "ok": True}

    tree = page(report(results=[passed(), failed()], ok=True, gaps=[gap]))

    assert "breaks C02, as declared" in tree.words
    assert "✗ known gap" in tree.words
    assert (
        headline(report(results=[failed("S05"), failed()], gaps=[gap])) == "Mine: breaks S05; breaks C02, as declared"
    )
    assert "it has no disk" in tree.words


def test_each_cell_of_the_matrix_says_its_verdict_in_a_word() -> None:
    verdicts = ("PASS", "FAIL", "NOT APPLICABLE", "NOT RUN", "UNKNOWN", "VACUOUS")
    forms = [report(f"a:Store{n}", [passed("S05", verdict=verdict)]) for n, verdict in enumerate(verdicts)]

    page_text = render_page(
        [parse_check_report(form) for form in [*forms, report("a:Last", [passed("C02")])]], CONTRACT
    )

    [row] = re.findall(r'<tr><th scope="row"><a href="#clause-1">.*?</tr>', page_text)
    words = [" ".join(Tree(cell).words.split()) for cell in re.findall("<td>.*?</td>", row)]
    assert words == ["✓ pass", "✗ FAIL", "– n/a", "○ not run", "? unknown", "∅ vacuous", "· not tried"]


def test_the_clauses_are_documented_and_those_not_tried_are_named() -> None:
    tree = page(report())

    assert "What the caller mutates is not stored." in tree.words
    assert "A save is a copy." in tree.words
    assert "Seen in: a/b #1." in tree.words
    assert "not tried here: S10" in tree.words


def test_a_failure_has_its_time_line_and_what_was_allowed_and_came() -> None:
    text = render_page([parse_check_report(report())], CONTRACT)

    tree = Tree(text)
    marks = re.findall(r'<li class="event ([a-z-]+)">', text)
    assert marks == ["done", "gave", "acknowledged", "killed", "gave"]
    assert len(re.findall('class="mark"', text)) == len(marks)
    assert "<mark>&#39;writer&#39;: &#39;On Cats&#39;</mark>" in text
    assert "the save was acknowledged" in tree.words
    assert "n00dles-testing check x:y --clause C02 --seed 0" in tree.words
    for line in STORY:
        assert " ".join(line.split()) in tree.words


def test_seed_time_version_date_and_platform_are_told() -> None:
    words = page(report()).words

    assert "n00dles-testing 0.1.0, Python 3.11.7, Linux, seed 0, 2026-11-29 22:18 UTC" in words
    assert "1 pass, 1 FAIL, in 1.5 s" in words


def test_claims_capabilities_and_the_reader_are_told() -> None:
    words = page(filled("harmless")).words

    assert "level 2 (not kept), harmless; said by harmless" in words
    assert "3 records compared" in words
    assert re.search("Capabilities harmless ?harmless: harmless", words)
    assert re.search("Declared gaps harmless ?harmless: harmless", words)


def test_equal_reports_give_an_equal_page() -> None:
    forms = [report(), report("memory://", [passed()])]

    first, second = (render_page([parse_check_report(form) for form in forms], CONTRACT) for _ in range(2))

    assert first == second


def test_the_page_forbids_itself_everything_but_its_own_style() -> None:
    tree = page(report())

    [policy] = [each["content"] for each in tree.of("meta") if each.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert all(not name.startswith("on") and name != "style" for _, attributes in tree.elements for name in attributes)
    assert all((each["href"] or "").startswith("#") for each in tree.of("a"))


def test_links_lead_to_places_on_the_page_that_are_there_once() -> None:
    tree = page(report(), report(), report("memory://", [passed()]))

    ids = [attributes["id"] for _, attributes in tree.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {(each["href"] or "")[1:] for each in tree.of("a")} <= set(ids)


def test_the_page_can_be_read_without_eyes_and_without_a_mouse() -> None:
    tree = page(report(), report("memory://", [passed()]))

    levels = [int(tag[1]) for tag, _ in tree.elements if re.fullmatch("h[1-6]", tag)]
    assert levels.count(1) == 1
    assert all(later - earlier <= 1 for earlier, later in itertools.pairwise(levels))
    assert all("scope" in each for each in tree.of("th"))
    assert [each["tabindex"] for _, each in tree.elements if each.get("class") == "scroll"] == ["0"]
    assert ("html", {"lang": "en"}) in tree.elements


def test_an_empty_page_is_refused() -> None:
    with pytest.raises(ValueError, match="no report"):
        render_page([], CONTRACT)
