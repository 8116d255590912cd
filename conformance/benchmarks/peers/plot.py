"""The plot: seconds a node against the number of nodes, both logarithmic, as an SVG that is readable in dark and light.

It is drawn by hand, since a plotting library would be a hundred times as much as the rest of this benchmark.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from xml.etree import ElementTree

from .results import Result, Results
from .subjects import OURS, RAW

__all__ = ["plot"]

WIDTH, HEIGHT = 960, 600
_LEFT, _RIGHT, _TOP, _BOTTOM = 76, 640, 64, 530
_LABELS = 668
_LINE = 22
"""Pixels between two labels at least."""
_COLOURS = (
    ("#0550ae", "#79b8ff"),
    ("#bc4c00", "#ffa657"),
    ("#6639ba", "#d2a8ff"),
    ("#1b7c83", "#56d4dd"),
    ("#a40e26", "#ff9ba3"),
    ("#7d4e00", "#e3b341"),
    ("#bf3989", "#ff9bce"),
    ("#4d5561", "#b1bac4"),
)
"""In light and in dark; each has a contrast of 4.5 to its background at least."""
_DASHES = ("", "7 4", "2 3")
_PAPER = ("#ffffff", "#0d1117")
_INK = ("#1f2328", "#e6edf3")
_GRID = ("#d1d9e0", "#30363d")
_OURS = ("#116329", "#56d364")

Point = tuple[float, float]


def plot(results: Results) -> str:
    """Return the picture as a document of its own."""
    drawn = [(each, points) for each in results.subjects if (points := _points(each))]
    svg = ElementTree.Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "viewBox": f"0 0 {WIDTH} {HEIGHT}",
            "role": "img",
            "aria-labelledby": "title desc",
        },
    )
    _text(svg, "title", "Milliseconds a node against the number of nodes", id="title")
    _text(svg, "desc", description(results), id="desc")
    _text(svg, "style", _style())
    _shape(svg, "rect", "paper", width=WIDTH, height=HEIGHT, rx=8)
    _text(svg, "text", "A durable checkpoint, milliseconds a node", x=_LEFT, y=34, cls="heading")
    scale = _Scale(results.lengths, [seconds * 1000 for _, points in drawn for _, seconds in points])
    _axes(svg, scale)
    _lines(svg, scale, drawn)
    return ElementTree.tostring(svg, encoding="unicode") + "\n"


def description(results: Results) -> str:
    """Say in words what the picture shows: the last point of each line, the cheapest first."""
    ends = sorted((points[-1][1], points[-1][0], each.title) for each in results.subjects if (points := _points(each)))
    told = "; ".join(f"{title}: {seconds * 1000:.3g} ms at {nodes:g} nodes" for seconds, nodes, title in ends)
    return f"One line for each subject, both axes logarithmic. The last point of each: {told}."


def _points(result: Result) -> list[Point]:
    return [(nodes, series.median) for nodes, series in sorted(result.runs.items()) if series.median is not None]


class _Scale:
    """Where a number of nodes and a number of milliseconds lie in the picture."""

    def __init__(self, lengths: Sequence[int], costs: Iterable[float]) -> None:
        costs = list(costs) or [1.0]
        self.lengths = lengths
        self._first = math.log10(min(lengths))
        self._decades = max(math.log10(max(lengths)) - self._first, 1e-9)
        self.low, self.high = math.floor(math.log10(min(costs))), math.ceil(math.log10(max(costs)) + 1e-9)

    def x(self, nodes: float) -> float:
        return _LEFT + (math.log10(nodes) - self._first) / self._decades * (_RIGHT - _LEFT)

    def y(self, cost: float) -> float:
        return _BOTTOM - (math.log10(cost) - self.low) / (self.high - self.low) * (_BOTTOM - _TOP)


def _axes(svg: ElementTree.Element, scale: _Scale) -> None:
    for power in range(scale.low, scale.high + 1):
        y = scale.y(10.0**power)
        _shape(svg, "line", "grid", x1=_LEFT, x2=_RIGHT, y1=y, y2=y)
        _text(svg, "text", f"{10.0**power:g} ms", x=_LEFT - 10, y=y + 5, cls="tick end")
    for nodes in scale.lengths:
        x = scale.x(nodes)
        _shape(svg, "line", "grid", x1=x, x2=x, y1=_TOP, y2=_BOTTOM)
        _text(svg, "text", f"{nodes}", x=x, y=_BOTTOM + 22, cls="tick middle")
    _text(svg, "text", "nodes in the pipeline", x=(_LEFT + _RIGHT) / 2, y=_BOTTOM + 48, cls="tick middle")


def _lines(svg: ElementTree.Element, scale: _Scale, drawn: Sequence[tuple[Result, list[Point]]]) -> None:
    places = [[(scale.x(nodes), scale.y(seconds * 1000)) for nodes, seconds in points] for _, points in drawn]
    heights = _apart([points[-1][1] for points in places])
    others = 0
    for (result, _), points, height in zip(drawn, places, heights, strict=True):
        kind = {RAW: "raw", OURS: "ours"}.get(result.name, f"c{others % len(_COLOURS)}")
        dash = "" if kind in ("raw", "ours") else _DASHES[others // len(_COLOURS) % len(_DASHES)]
        others += kind not in ("raw", "ours")
        corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        extra = {"stroke-dasharray": dash} if dash else {}
        group = ElementTree.SubElement(svg, "g", {"class": kind})
        _shape(group, "polyline", "line", points=corners, **extra)
        for x, y in points:
            _shape(group, "circle", "dot", cx=x, cy=y, r=4)
        _shape(group, "line", "leader", x1=points[-1][0] + 6, y1=points[-1][1], x2=_LABELS - 6, y2=height)
        _text(group, "text", result.title, x=_LABELS, y=height + 5, cls="label")


def _apart(heights: Sequence[float]) -> list[float]:
    """Return the heights of the labels: near those of the lines' ends, and far enough from each other to be read."""
    order = sorted(range(len(heights)), key=heights.__getitem__)
    placed = dict[int, float]()
    free = 0.0
    for number in order:
        placed[number] = max(heights[number], free)
        free = placed[number] + _LINE
    room = float(HEIGHT - _LINE)
    for number in reversed(order):
        placed[number] = min(placed[number], room)
        room = placed[number] - _LINE
    return [placed[number] for number in range(len(heights))]


def _style() -> str:
    rules = [
        "text{font-family:system-ui,sans-serif;font-size:15px;fill:var(--ink)}",
        ".heading{font-size:18px;font-weight:600}.end{text-anchor:end}.middle{text-anchor:middle}",
        ".paper{fill:var(--paper)}.grid{stroke:var(--grid)}",
        ".line{fill:none;stroke:var(--own);stroke-width:2}.dot{fill:var(--own)}.label{fill:var(--own)}",
        ".leader{stroke:var(--own);stroke-width:1;opacity:.5}",
        ".ours .line{stroke-width:4}.ours .label{font-weight:700}.raw .line{stroke-width:4;stroke-dasharray:1 6;"
        "stroke-linecap:round}",
        ".raw{--own:var(--ink)}.ours{--own:var(--ours)}",
        *(f".c{number}{{--own:var(--c{number})}}" for number in range(len(_COLOURS))),
    ]
    light, dark = _values(0), _values(1)
    return f"svg{{{light}}}@media(prefers-color-scheme:dark){{svg{{{dark}}}}}" + "".join(rules)


def _values(mode: int) -> str:
    named = {"paper": _PAPER, "ink": _INK, "grid": _GRID, "ours": _OURS}
    named |= {f"c{number}": colours for number, colours in enumerate(_COLOURS)}
    return "".join(f"--{name}:{colours[mode]};" for name, colours in named.items())


def _shape(parent: ElementTree.Element, tag: str, cls: str, **attributes: float | str) -> None:
    ElementTree.SubElement(parent, tag, {"class": cls, **{name: _said(value) for name, value in attributes.items()}})


def _text(parent: ElementTree.Element, tag: str, text: str, cls: str = "", **attributes: float | str) -> None:
    said = {name: _said(value) for name, value in attributes.items()}
    ElementTree.SubElement(parent, tag, {**({"class": cls} if cls else {}), **said}).text = text


def _said(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.1f}".removesuffix(".0")
