"""The field trial: `python -m conformance.field_trial [--subject NAME] [--level N] [--confirm] [--fresh] [--again]`.

Each subject, a published store behind an adapter in `conformance/backends`, is installed into an environment of its own
under `build/field-trial`, meets all clauses of the suite, and what was found there is shown once more by a script that
uses only the subject's own interface. The results are written to `conformance/results/field-trial`, the table to
`conformance/results/field-trial.md`, and in short to `README.md`; `--pages` writes these anew, and tries nothing. A
level that is through is not checked again, and an interrupted trial goes on where it was: `--again` checks it anew,
`--fresh` also installs the newest versions.

Ends with 1 if a confirmation did not show its finding, or if a subject could not be tried that should have been.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from n00dles_testing.conformance.contract import LEVELS, level_title
from n00dles_testing.exits import INTERRUPTED

from .checking import CheckError, check, kept
from .confirming import Confirmation, confirmed
from .environments import Environment, InstallError, prepared
from .matrix import FOLDER, in_readme
from .page import TABLE, pages
from .results import failed_before, read_all, trimmed, word, write
from .server_modules import server_with_modules
from .subjects import ROOT, Subject, subjects

RESULTS = ROOT / "conformance" / "results"
README = ROOT / "README.md"
WORK = ROOT / "build" / "field-trial"

Trial = Callable[[Subject, argparse.Namespace], dict[str, Any]]


def main(arguments: Sequence[str] | None = None, try_one: Trial | None = None) -> int:
    """Try the subjects one after the other, write what was found, and the table of all."""
    options = _options(arguments)
    chosen = [each for each in subjects() if not options.subjects or each.name in options.subjects]
    unknown = set(options.subjects) - {each.name for each in chosen}
    if unknown:
        print(f"no subject is called {', '.join(sorted(unknown))}; there are {_names()}", file=sys.stderr)
        return 2
    folder = options.results / FOLDER
    ok = True
    try:
        for number, subject in enumerate([] if options.pages else chosen, 1):
            _tell(f"[{number}/{len(chosen)}] {subject.name}: {subject.title}")
            content = (try_one or _tried)(subject, options)
            write(folder, content)
            ok &= _told(content) or bool(subject.not_run)
    except KeyboardInterrupt:
        print("interrupted; the next trial goes on here", file=sys.stderr)
        return INTERRUPTED
    told = read_all(folder)
    pages(options.results, told)
    _tell(f"written to {options.results / TABLE}")
    if options.results == RESULTS:
        README.write_text(in_readme(README.read_text("utf-8"), told), "utf-8")
        _tell(f"and, in short, to {README}")
    return 0 if ok else 1


def _tried(subject: Subject, options: argparse.Namespace) -> dict[str, Any]:
    """Install, check and confirm; a subject that cannot be tried is told with the reason."""
    if subject.not_run:
        return failed_before(subject, subject.not_run)
    try:
        began = time.monotonic()
        environment = prepared(subject, options.work, fresh=options.fresh)
        _tell(f"  installed: {', '.join(f'{name} {of}' for name, of in environment.versions.items())}")
        found = kept(subject, environment, options.work, seed=options.seed)
        with server_with_modules(subject, environment):
            for level in [each for each in options.levels if options.again or not found.has(each)]:
                _tell(f"  checking {level_title(level)}; this takes minutes")
                check(subject, environment, options.work, found, level=level)
                _tell(f"  checked ({time.monotonic() - began:.0f} s)")
            shown = _shown(subject, environment)
    except (InstallError, CheckError) as error:
        return failed_before(subject, str(error))
    return trimmed(subject, found, environment.versions, shown)


def _shown(subject: Subject, environment: Environment) -> list[Confirmation]:
    shown = []
    for each in confirmed(subject, environment):
        _tell(f"  {each}")
        shown.append(each)
    return shown


def _told(content: dict[str, Any]) -> bool:
    """Say what came of a subject, and return whether that is as it should be."""
    if not content["results"]:
        _tell(f"  NOT RUN: {content['not_run']}")
        return False
    words: dict[str, list[str]] = {}
    for result in content["results"]:
        words.setdefault(word(result, content).replace("*", ""), []).append(result["clause"])
    _tell(*(f"  {said}: {', '.join(clauses)}" for said, clauses in sorted(words.items()) if said not in ("pass", "–")))
    return all(each["confirmed"] for each in content["confirmations"])


def _tell(*lines: str) -> None:
    for line in lines:
        print(line, flush=True)


def _names() -> str:
    return ", ".join(each.name for each in subjects())


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m conformance.field_trial",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--subject", dest="subjects", action="append", default=[], metavar="NAME", help="only this one; may be repeated"
    )
    parser.add_argument(
        "--level",
        dest="levels",
        action="append",
        type=int,
        choices=list(LEVELS),
        metavar="N",
        help="only the clauses of this level; may be repeated",
    )
    parser.add_argument("--confirm", action="store_true", help="check nothing, and run only the scripts")
    parser.add_argument("--pages", action="store_true", help="try nothing, and write the pages anew")
    parser.add_argument("--again", action="store_true", help="check what has been checked already, too")
    parser.add_argument("--fresh", action="store_true", help="install the newest versions")
    parser.add_argument("--seed", type=int, default=0, help="of the values that are drawn; 0 by default")
    parser.add_argument("--work", type=Path, default=WORK, metavar="FOLDER", help="environments and whole reports")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FOLDER", help="where the results are written")
    options = parser.parse_args(arguments)
    options.levels = [] if options.confirm else options.levels or list(LEVELS)
    return options


if __name__ == "__main__":
    sys.exit(main())
