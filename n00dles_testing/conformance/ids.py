"""Run ids that stores take for one another: groups in which each id is another run."""

from __future__ import annotations

from dataclasses import dataclass

from .draw import Draw

__all__ = ["LENGTHS", "IdGroup", "groups_of_ids", "ids_of_lengths", "paths"]

LENGTHS = (1, 64, 200, 255, 256, 1_000, 2_800, 10_000)
"""In bytes. Some databases cut an id at 255 characters, and some cannot index one of 2 700 bytes."""


@dataclass(frozen=True, slots=True)
class IdGroup:
    """Ids that differ in one way only."""

    title: str
    ids: tuple[str, ...]


def groups_of_ids(base: str) -> tuple[IdGroup, ...]:
    """Return the groups; each id begins, contains or ends with `base`, the id of no run that a store knows."""
    return (
        _group("case", base, "{}-run", "{}-Run", "{}-RUN", "{}-strasse", "{}-straße", "{}-STRASSE"),
        _group("white space", base, "{}", "{} ", " {}", "{}\t", "{}\n", "{}  ", "{}\u00a0", "{} a", "{}  a"),
        _group(
            "Unicode form", base, "{}-caf\u00e9", "{}-cafe\u0301", "{}-cafe", "{}-file", "{}-\ufb01le", "{}-\uff46ile"
        ),
        _group("characters that nobody sees", base, "{}", "{}\u200b", "{}\u00ad", "\ufeff{}"),
        _group(
            "SQL and shell wildcards", base, "{}%", "{}_", "{}a", "{}?", "{}*", "{}[a]", "{}ab", "{}a%", "%{}", "_{}"
        ),
        _group("a prefix", base, "{}", "{}1", "{}10", "{}-1", "{}.1", "{}:1", "{}/1", "1{}"),
        _group(
            "a separator",
            base,
            *(f"{{}}a{sign}b" for sign in ("/", "_", "-", ":", "|", ".", " ", "\\", ",", "%2F", "%2f", "")),
        ),
        _group("quotes", base, "{}'", "{}''", '{}"', '{}""', "{}'--", "{}\\'", "{}`"),
        _group("what follows a NUL", base, "{}\x00a", "{}\x00b", "{}"),
    )


def paths(base: str, outside: str) -> IdGroup:
    """Return ids that are paths, none of which leads further than two folders up. `outside` is an absolute path."""
    forms = ("{}", "../{}", "../../{}", "x/../../{}", "x/../{}", "./{}", "{}/", "{}/.", "..\\{}", "{}/../{}-b")
    ids = (*(form.format(base, base) for form in forms), f"{outside}/{base}", f"file://{outside}/{base}")
    return IdGroup("being a path", ids)


def ids_of_lengths(base: str, draw: Draw) -> IdGroup:
    """Return two ids of each length, which differ in their last character only, and cannot be compressed."""
    ids = []
    for length in LENGTHS:
        start = (base + "".join(draw.token() for _ in range(length // 8 + 1)))[: length - 1]
        if len(start) > len(base) or length == 1:
            ids += [f"{start}a", f"{start}b"]
    return IdGroup("length, or in the last character", tuple(ids))


def _group(title: str, base: str, *forms: str) -> IdGroup:
    return IdGroup(title, tuple(form.format(base) for form in forms))
