"""What was found, as a page of Markdown: a table of clauses and subjects, and the story behind each cell."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .subjects import HERE

__all__ = ["page"]

_INTRODUCTION = """# Executors of others under the explorer

Made by `python -m conformance.executors`. Each subject runs the same small pipeline (`conformance/executors/nodes.py`)
with the checkpoints that its own documentation recommends, in an environment of its own. It is run undisturbed, then
killed by SIGKILL at each point (before, in and after each function, and before each commit or rename of its saves) and
run again in another process. Then two lives in a row are killed, where E18 is told.

A node that was killed in the middle may be called again: every framework says so, and it is no finding. A finding is a
node that was called again though its output was in the store, an output that is lost or another, or a run that cannot
be resumed. Below a finding stands the script that shows it once more, by the framework's own API and nothing of this
project: `conformance/executors/confirmations`. A FAIL without one is not in the
[track record](../../docs/track-record.md), and may be what the framework says of itself: by default LangGraph saves
while the next node runs.

PASS stands for scenarios that could have broken the clause. NOT RUN is what this trial does not try; NOT APPLICABLE is
what could not happen in this pipeline."""


_CLAUSES = "../../docs/reference/executor-clauses.md"
_URL = re.compile(r"https://[^\s)]+")
_NOT_TRIED = ("NOT RUN", "NOT APPLICABLE")


def page(results: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the page. `results` are by the name of the subject: what `tried` found, or `error`, why it could not."""
    parts = [_INTRODUCTION, "\n".join(_table(results)), *(_section(name, found) for name, found in results.items())]
    return "\n\n".join(parts) + "\n"


def _table(results: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    tried = {name: found for name, found in results.items() if "error" not in found}
    titles = {clause["clause"]: clause["title"] for found in tried.values() for clause in found["clauses"]}
    headings = [f"[{_title(found)}](#{_anchor(found['title'])})" for found in tried.values()]
    yield f"| clause | {' | '.join(headings)} |"
    yield f"|---|{'---|' * len(tried)}"
    for clause in sorted(titles):
        cells = [_cell(next(c for c in f["clauses"] if c["clause"] == clause), f["title"]) for f in tried.values()]
        yield f"| [{clause}]({_CLAUSES}#{clause.lower()}) | {' | '.join(cells)} |"
    kills = [f"{found['killed']} of {found['scenarios']}" for found in tried.values()]
    yield f"| killed by SIGKILL | {' | '.join(kills)} |"


def _cell(clause: Mapping[str, Any], title: str) -> str:
    heading = _rest(title) if clause["verdict"] in _NOT_TRIED else f"{title} {clause['clause']}"
    shown = "**FAIL**" if clause["verdict"] == "FAIL" else clause["verdict"]
    return f"[{shown}](#{_anchor(heading)})"


def _rest(title: str) -> str:
    return f"{title}, not tried"


def _anchor(heading: str) -> str:
    """Return the anchor of a heading, as a code host and the site make it."""
    return re.sub(r"[^\w\- ]", "", heading).replace(" ", "-").lower()


def _title(found: Mapping[str, Any]) -> str:
    return " ".join(filter(None, (found["title"], found["version"])))


def _section(name: str, found: Mapping[str, Any]) -> str:
    if "error" in found:
        return f"## {name}\n\nNOT RUN: {found['error']}"
    title = found["title"]
    package = f"{found['package']} {found['version']}, " if found["package"] else ""
    tried = [clause for clause in found["clauses"] if clause["verdict"] not in _NOT_TRIED]
    others = [clause for clause in found["clauses"] if clause["verdict"] in _NOT_TRIED]
    parts = [
        f"## {title}",
        _URL.sub(r"<\g<0>>", found["about"]),
        f"{package}{found['points']} points, {found['scenarios']} scenarios in {found['seconds']} s.",
        "\n".join(f"- {note}" for note in found["notes"]),
        *(_story(title, clause, found["confirmations"]) for clause in tried),
        f"### {_rest(title)}",
        "\n".join(f"- {c['clause']} {c['verdict']} ({c['title']}): {c['reason']}" for c in others),
    ]
    return "\n\n".join(filter(None, parts))


def _story(title: str, clause: Mapping[str, Any], confirmations: list[Mapping[str, Any]]) -> str:
    told = [f"{clause['verdict']}: {clause['title']}", f"{clause['scenarios']} scenarios", clause["reason"]]
    parts = [f"### {title} {clause['clause']}", "; ".join(filter(None, told))]
    for finding in clause["findings"]:
        lines = [finding["message"], *finding["story"]]
        parts.append("\n".join(["```text", *(part for line in lines for part in line.splitlines()), "```"]))
    parts += [_confirmation(each) for each in confirmations if each["clause"] == clause["clause"]]
    return "\n\n".join(parts)


def _confirmation(each: Mapping[str, Any]) -> str:
    about = _about(HERE / "confirmations" / each["script"])
    told = "\n".join(["```text", *each["said"], "```"])
    verdict = "CONFIRMED" if each["confirmed"] else f"NOT CONFIRMED (its first life ended with {each['first_life']})"
    return f"{verdict} by `conformance/executors/confirmations/{each['script']}`: {about}\n\n{told}"


def _about(script: Path) -> str:
    text = script.read_text("utf-8") if script.is_file() else '""""""'
    return text.split('"""')[1].partition("\n")[0].strip()
