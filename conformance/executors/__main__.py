"""Try the executors of others under the explorer, and write what came: `python -m conformance.executors`.

    python -m conformance.executors [--subject NAME …] [--results FOLDER]

Each is installed in a virtual environment of its own below build/executors, which is kept. With --subject only those
are tried, and take the place of their earlier results; the rest of these stays. Ends with 1 if one could not be tried,
or a confirmation did not confirm.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .environments import ROOT, InstallError
from .page import page
from .subjects import Subject, subjects
from .trial import TrialError, tried

RESULTS = ROOT / "conformance" / "results"


def main(arguments: Sequence[str] | None = None, try_one: Callable[[Subject], dict[str, Any]] = tried) -> int:
    """Try them, and write the table; each result as soon as it is there."""
    options = _options(arguments)
    known = {subject.name: subject for subject in subjects()}
    if strange := [name for name in options.subject if name not in known]:
        print(f"there is no subject {strange[0]}; there are: {', '.join(known)}", file=sys.stderr)
        return 2
    results: dict[str, Any] = _read(options.results / "executors.json")
    failed = False
    for name in options.subject or known:
        print(f"{name} …", flush=True)
        try:
            results[name] = try_one(known[name])
        except (InstallError, TrialError) as error:
            results[name] = {"error": str(error)}
        print(f"{name}: {_told(results[name])}", flush=True)
        failed = failed or not _is_well(results[name])
        _write(options.results, {each: results[each] for each in known if each in results})
    return 1 if failed else 0


def _told(found: dict[str, Any]) -> str:
    if "error" in found:
        return f"NOT RUN: {found['error']}"
    verdicts = ", ".join(f"{clause['clause']} {clause['verdict']}" for clause in found["clauses"])
    confirmed = sum(each["confirmed"] for each in found["confirmations"])
    return f"{verdicts}; {confirmed} of {len(found['confirmations'])} confirmations"


def _is_well(found: dict[str, Any]) -> bool:
    return "error" not in found and all(each["confirmed"] for each in found["confirmations"])


def _read(file: Path) -> dict[str, Any]:
    return dict(json.loads(file.read_text("utf-8"))) if file.is_file() else {}


def _write(folder: Path, results: dict[str, Any]) -> None:
    (folder / "executors.json").write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", "utf-8")
    (folder / "executors.md").write_text(page(results), "utf-8")


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m conformance.executors",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--subject", action="append", default=[], metavar="NAME", help="only this one; may be repeated")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FOLDER", help="where the table is written")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
