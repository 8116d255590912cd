"""The page of the comparison, with its plot and the figures behind it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from .plot import description, plot
from .results import Result, Results, Series
from .subjects import OURS

__all__ = ["page", "write"]

_INTRODUCTION = """# A durable checkpoint, beside others

Made by `make bench-peers`. A pipeline of N nodes, one after the other; each returns 1000 characters that must be in the
store before the next starts. Every subject is used as its own documentation shows, in an environment and a process of
its own (`conformance/benchmarks/peers/programs`), at equal durability where that can be had: SQLite with a write-ahead
log and `synchronous=FULL`. In each round every subject has its turn, with the raw limit right before it, on the same
disk; a figure is the median of the ratios of such pairs. Building the pipeline, opening the store and imports are not
in the time. The milliseconds depend on the disk. The ratios do so less."""

_READING = """The raw limit is Python's `sqlite3` with one `INSERT` of the same bytes and a commit for each node.
*Syncs* is how often a node waits for the disk, counted in its system calls: below 1 is not durable when the power goes.
*Kept* says whether the store had the outputs of all nodes at the end of the longest run, which is what a resume needs.
*Resume* is the time from the call that resumes a run of {completed} completed nodes, killed by SIGKILL in the next one,
to its end, in another process, without import and building: the time to make a graph of so many nodes comes on top."""


def write(results: Results, folder: Path) -> None:
    """Write `peers.json`, `peers.md` and `peers.svg` into a folder."""
    results.write(folder / "peers.json")
    (folder / "peers.svg").write_text(plot(results), "utf-8")
    (folder / "peers.md").write_text(page(results), "utf-8")


def page(results: Results) -> str:
    """Return the page."""
    machine = ", ".join(f"{name} {value}" for name, value in results.machine.items() if name != "processors")
    parts = [
        _INTRODUCTION,
        f"{machine}, {results.machine.get('processors', '?')} processors.",
        f"![{description(results)}](peers.svg)",
        "## Times the raw limit",
        "\n".join(_ratios(results)),
        _READING.format(completed=results.resume_nodes),
        *_summary(results),
        "## Milliseconds a node",
        "\n".join(_milliseconds(results)),
        "## The subjects",
        *(_about(each) for each in results.subjects),
    ]
    return "\n\n".join(parts) + "\n"


def _ratios(results: Results) -> Iterator[str]:
    columns = [*(f"N = {nodes}" for nodes in results.lengths), "syncs", "kept", "resume, ms"]
    yield f"| subject | version | {' | '.join(columns)} |"
    yield f"|---|---|{'---|' * len(columns)}"
    for each in _measured(results):
        cells = [_ratio(each, nodes) for nodes in results.lengths]
        cells += ["?" if each.syncs is None else f"{each.syncs:.1f}", _kept(each), _resume(each)]
        yield f"| {_title(each)} | {each.version} | {' | '.join(cells)} |"


def _milliseconds(results: Results) -> Iterator[str]:
    yield f"| subject | {' | '.join(f'N = {nodes}' for nodes in results.lengths)} |"
    yield f"|---|{'---|' * len(results.lengths)}"
    for each in _measured(results):
        series = (each.runs.get(nodes, Series()) for nodes in results.lengths)
        cells = ["–" if found.median is None else f"{found.median * 1000:.3f}" for found in series]
        yield f"| {_title(each)} | {' | '.join(cells)} |"


def _measured(results: Results) -> list[Result]:
    return [each for each in results.subjects if not each.error]


def _title(result: Result) -> str:
    return f"**{result.title}**" if result.name == OURS else result.title


def _ratio(result: Result, nodes: int) -> str:
    series = result.runs.get(nodes, Series())
    return _cell(series.why) if series.ratio is None else f"{series.ratio:.1f}"


def _kept(result: Result) -> str:
    longest = max((nodes for nodes, series in result.runs.items() if series.kept is not None), default=None)
    if longest is None:
        return "–"
    return "all" if result.keeps_all(longest) else f"{result.runs[longest].kept} of {longest}"


def _resume(result: Result) -> str:
    median = result.resumed.median
    if median is None:
        return _cell(result.resumed.why)
    again = (result.resumed.called or 1) - 1
    return f"{median * 1000:.0f}" + (f" ({again} nodes called again)" if again else "")


def _cell(why: str) -> str:
    """Return a reason if it fits into a cell; others are told below the table."""
    return why if why.startswith("not ") else "–"


def _summary(results: Results) -> Iterator[str]:
    """Say of each length which of the others is the fastest that promises the same."""
    compared = {nodes: found for nodes in results.lengths if (found := results.fastest_other(nodes)) is not None}
    lines = [f"- {nodes} nodes: {found.times:.1f} times as fast as {found.title}" for nodes, found in compared.items()]
    if lines:
        yield "Beside the fastest of the others that is durable and keeps all outputs, n00dles is at\n\n" + "\n".join(
            lines
        )


def _about(result: Result) -> str:
    about = result.about.partition(":")[2].strip()
    parts = [f"### {result.title}", about[:1].upper() + about[1:], f"Durability: {result.durability}."]
    if result.error:
        parts.append(f"Not measured: {result.error}.")
    said = [(f"{nodes} nodes", series.why) for nodes, series in result.runs.items()]
    said.append(("resume", result.resumed.why))
    told = [f"- {what}: {why}" for what, why in said if why]
    return "\n\n".join([*parts, *(["\n".join(told)] if told else [])])
