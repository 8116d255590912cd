"""A power loss as a picture: a lane for each file, time from left to right, and what was left at the end of each lane.

Here it is laid out, in pixels; `picture.html.jinja` draws it. What was lost is told apart by its shape and by a word
under it, and the same is there as a list, for those who do not see it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .call_spans import Span, spans
from .power_loss import PowerLoss, ToldMoment

__all__ = ["Glyph", "Lane", "Picture", "Stretch"]

MOST_LANES = 12
"""The files of more share the last lane: those of which nothing was lost, if that suffices."""
_MOST_MOMENTS = 300
_COLUMN = 50
_MARK = 40
_STRETCH = 104
_BEGIN = 14
_LANE = 54
_CALL = 24
_TOP = 24
_LEFT = 106
_WIDTH = 7
"""Of a character of what is left, about."""
_SHOWN_OF_WHAT_IS_LEFT = 26
_MOST_LINES = 4
_NAME = 26
_WORDS = 500
_UNKNOWN = "not told"

FOLDER = "the folder"
"""The lane of what is done to the watched folder itself."""

_FATES = {
    "synced": ("synced", "synced"),
    "kept": ("kept", "unsynced"),
    "partly": ("partly", "part lost"),
    "lost": ("lost", "LOST"),
    "sync": ("sync", "sync"),
    "failed sync": ("failed", "FAILED"),
    "unfinished sync": ("unfinished", "no end"),
}
"""The class of each fate, and the word under it."""

_SYMBOLS = {
    "create": "+",
    "folder": "+",
    "special": "+",
    "symlink": "+",
    "link": "+",
    "write": "W",
    "truncate": "T",
    "permissions": "P",
    "rename": "R",
    "unlink": "\N{MINUS SIGN}",
    "sync": "S",
    "sync all": "S",
}
_MEANINGS = (
    ("+", "a new name, of a file, folder or link"),
    ("W", "bytes are written"),
    ("T", "another size"),
    ("P", "other permissions"),
    ("R", "renamed, to the lane of the arrow"),
    ("\N{MINUS SIGN}", "a name is removed"),
)


@dataclass(frozen=True, slots=True)
class Glyph:
    """One operation: a sign in the lane of its file, with the class of its fate and a word for that.

    `to_y` is the lane to which a rename leads, None if there is none. `tip` is all of it in words.
    """

    x: int
    y: int
    symbol: str
    css: str
    word: str
    tip: str
    times: int = 1
    to_y: int | None = None


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch that is left out: how much, and what became of it."""

    x: int
    width: int
    lines: tuple[str, ...]
    css: str


@dataclass(frozen=True, slots=True)
class Lane:
    """A file (or several), and what was left of it in a few words; `is_hurt` if something of it was lost."""

    name: str
    y: int
    left: str
    is_hurt: bool

    @property
    def short(self) -> str:
        """The name, as long as there is room for: its beginning and its end are kept."""
        half = _NAME // 2
        return self.name if len(self.name) <= _NAME else f"{self.name[: half - 1]}…{self.name[-half:]}"


@dataclass(frozen=True, slots=True)
class Picture:
    """Everything that is drawn, and the list that says the same: each entry with a word, and a class for that."""

    loss: PowerLoss
    width: int
    height: int
    top: int
    crash: int
    lanes: tuple[Lane, ...]
    glyphs: tuple[Glyph, ...]
    stretches: tuple[Stretch, ...]
    spans: tuple[Span, ...]
    entries: tuple[tuple[str, str, str], ...]
    meanings: tuple[tuple[str, str], ...]
    fates: tuple[str, ...]

    def row(self, span: Span) -> int:
        """Return where a call is drawn, from above."""
        return _TOP + _CALL * span.row

    @property
    def is_kill(self) -> bool:
        """Whether only the process is killed at the end, and the machine stays up."""
        return self.loss.model == "kill"

    @classmethod
    def of(cls, loss: PowerLoss) -> Picture | None:
        """Lay it out; None if nothing had happened before the power failed."""
        moments = loss.finding.timeline[:_MOST_MOMENTS]
        return _Layout(loss, moments).picture() if any(moment.fate != "mark" for moment in moments) else None


class _Layout:
    def __init__(self, loss: PowerLoss, moments: Sequence[ToldMoment]) -> None:
        self._loss = loss
        self._moments = moments
        self._shown, self._others = _lanes(moments)
        self._places, self._crash = _places(moments)
        self._hurt = _hurt(moments)
        self._spans = spans(loss, moments, self._places, _STRETCH // 2 - 4, self._crash)
        self._first = _TOP + _CALL * max((span.row + 1 for span in self._spans), default=1)

    def picture(self) -> Picture:
        glyphs = tuple(self._glyphs())
        lanes = tuple(self._lane(name, number) for number, name in enumerate(self._names))
        used = {glyph.symbol for glyph in glyphs}
        return Picture(
            loss=self._loss,
            width=self._crash
            + max(_LEFT, *(_WIDTH * min(len(lane.left), _SHOWN_OF_WHAT_IS_LEFT) + 24 for lane in lanes)),
            height=self._first + _LANE * len(lanes) + 4,
            top=self._first,
            crash=self._crash,
            lanes=lanes,
            glyphs=glyphs,
            stretches=tuple(self._stretches()),
            spans=self._spans,
            entries=tuple(self._entries()),
            meanings=tuple(meaning for meaning in _MEANINGS if meaning[0] in used),
            fates=tuple(fate for fate, (css, _) in _FATES.items() if any(each.css == css for each in glyphs)),
        )

    @property
    def _names(self) -> list[str]:
        return [*self._shown, *([""] if self._others else [])]

    def _y(self, path: str) -> int:
        number = self._shown.index(path or FOLDER) if (path or FOLDER) in self._shown else len(self._shown)
        return self._first + _LANE * number + _LANE // 2

    def _glyphs(self) -> Iterable[Glyph]:
        for moment, x in zip(self._moments, self._places, strict=True):
            if moment.what not in _SYMBOLS or moment.fate not in _FATES:
                continue
            css, word = _FATES[moment.fate]
            y = self._y(moment.path)
            to_y = self._y(moment.to_path) if moment.what == "rename" else y
            tip = f"{moment.words}: {word.lower()}"
            yield Glyph(x, y, _SYMBOLS[moment.what], css, word, tip, moment.times, None if to_y == y else to_y)

    def _stretches(self) -> Iterable[Stretch]:
        for moment, x in zip(self._moments, self._places, strict=True):
            if moment.what == "more":
                bad = moment.fate in ("lost", "partly", "failed sync")
                told = _told(moment).partition("operations")[2].strip(" ,()")
                lines = (f"and {moment.times} more", *told.split(", ")[:_MOST_LINES])
                yield Stretch(x - _STRETCH // 2 + 4, _STRETCH - 8, lines, "lost" if bad else "")

    def _lane(self, name: str, number: int) -> Lane:
        y = self._first + _LANE * number + _LANE // 2
        of_lane = self._others if name == "" else {name}
        shown = f"{len(self._others)} other files" if name == "" else name
        return Lane(shown, y, self._left(name), bool(self._hurt & of_lane))

    def _left(self, name: str) -> str:
        left = dict(self._loss.finding.left)
        if name == "":
            count = len(self._others & left.keys())
            return f"{count} of them {'is' if count == 1 else 'are'} there"
        if name == FOLDER:
            names = len(self._loss.finding.on_disk)
            return f"{names} name{'' if names == 1 else 's'} in it"
        is_clipped = len(self._loss.finding.on_disk) > len(left)
        return left.get(name, _UNKNOWN if is_clipped else "not there")

    def _entries(self) -> Iterable[tuple[str, str, str]]:
        ends = {token: (title, end) for token, title, end in self._loss.ends()}
        for moment in self._moments:
            if moment.what == "call":
                title = ends.get(moment.during or "", ("", ""))[0]
                yield f"call {moment.during} begins: {title}", "", "mark"
            elif moment.what == "return":
                yield f"call {moment.during} returns", "", "mark"
            elif moment.fate == "mark":
                yield moment.words[:_WORDS], "", "mark"
            elif moment.what == "more":
                yield _told(moment)[:_WORDS], "", "more"
            else:
                css, word = _FATES.get(moment.fate, ("kept", moment.fate))
                yield moment.words[:_WORDS], "" if css == "sync" else word.lower(), css


def _told(moment: ToldMoment) -> str:
    """Return the words of a stretch, with the words for fates that the picture has."""
    return moment.words.replace(" kept", " unsynced").replace(" partly", " part lost")


def _places(moments: Sequence[ToldMoment]) -> tuple[list[int], int]:
    """Return the middle of the column of each moment, and where the power fails."""
    at, places = _BEGIN, []
    for moment in moments:
        width = _STRETCH if moment.what == "more" else _MARK if moment.fate == "mark" else _COLUMN
        places.append(at + width // 2)
        at += width
    return places, at + 12


def _lanes(moments: Sequence[ToldMoment]) -> tuple[list[str], set[str]]:
    """Return the files with a lane of their own, in the order in which they come, and those which share one.

    The folder itself comes last.
    """
    order: dict[str, int] = {}
    for moment in moments:
        if moment.what not in _SYMBOLS:
            continue
        for path in (moment.path or FOLDER, moment.to_path):
            if path:
                weight = {"lost": 2, "partly": 2, "failed sync": 2, "kept": 1}.get(moment.fate, 0)
                order[path] = max(order.get(path, 0), weight)
    if not order:
        order[FOLDER] = 0
    others: set[str] = set()
    if len(order) > MOST_LANES:
        ranked = sorted(order, key=lambda path: -order[path])
        others = set(ranked[MOST_LANES - 1 :])
    shown = [path for path in order if path not in others]
    shown.sort(key=lambda path: path == FOLDER)
    return shown, others


def _hurt(moments: Sequence[ToldMoment]) -> set[str]:
    """Return the files of which something was lost, by the names that they have in the end."""
    hurt: set[str] = set()
    for moment in moments:
        if moment.fate in ("lost", "partly"):
            hurt |= {moment.path or FOLDER, moment.to_path} - {""}
        elif moment.what == "rename" and moment.path in hurt:
            hurt ^= {moment.path}
            hurt.add(moment.to_path)
        elif moment.what in ("create", "unlink"):
            hurt.discard(moment.path)
    return hurt
