"""The documentation as a program: a page's blocks are run in order, in one folder and one Python namespace.

`python pages.py PAGE` runs one page and exits non-zero at the first block that does not do what the page says:

- A `python` block is executed. After `<!-- file: NAME -->` a block is written to that file, which a later one must use.
- A `text` block after `<!-- output -->` is what the Python block above it must have printed.
- In a `console` block each line that starts with `$ ` is run by bash and must exit 0; with N after `<!-- exit: N -->`.
  The lines below a command are its output, unless the block follows `<!-- output varies: REASON -->`.
- A block after `<!-- not run: REASON -->` is left out; the tests report it as skipped.
- In expected output, `…` stands for any text.
- `json`, `toml` and `yaml` blocks must parse; other `text` blocks are only shown; other languages are refused.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tomllib
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LANGUAGES = {"python", "console", "text", "json", "toml", "yaml"}
_STAND_IN = ("OPENAI_", "ANTHROPIC_", "N00DLES_LLM_")
"""The fake LLM server of the tests is for Python blocks. Commands have to do without, as they would for a reader."""

_FENCE = re.compile(r"^( *)```(\S*)\s*$")
_DIRECTIVE = re.compile(r"^\s*<!-- *(file|output varies|output|exit|not run) *:? *(.*?) *-->\s*$")


class PageError(Exception):
    """A page says something that is not so."""


@dataclass(frozen=True)
class Block:
    """One fenced block: its directives are the comments right above it, by keyword."""

    page: str
    line: int
    language: str
    text: str
    directives: dict[str, str]

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def reason_not_run(self) -> str | None:
        return self.directives.get("not run")


def pages() -> list[Path]:
    """Return every page of the documentation."""
    return [ROOT / "README.md", ROOT / "conformance" / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks_of(page: Path) -> list[Block]:
    """Parse the fenced blocks of a page."""
    name = page.relative_to(ROOT).as_posix() if page.is_relative_to(ROOT) else page.name
    return list(_parse(name, page.read_text(encoding="utf-8")))


def _parse(page: str, text: str) -> Iterator[Block]:
    directives: dict[str, str] = {}
    opened: tuple[int, str, str] | None = None
    body: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        fence = _FENCE.match(line)
        if opened is not None:
            start, indent, language = opened
            if fence and not fence[2]:
                yield Block(page, start, language, "\n".join(body) + "\n", directives)
                opened, body, directives = None, [], {}
            else:
                body.append(line.removeprefix(indent))
        elif fence:
            if fence[2] not in LANGUAGES:
                raise PageError(f"{page}:{number}: a block of language {fence[2]!r}; use one of {sorted(LANGUAGES)}")
            opened = number, fence[1], fence[2]
        elif directive := _DIRECTIVE.match(line):
            if directive[1] in ("not run", "output varies") and not directive[2]:
                raise PageError(f"{page}:{number}: {directive[1]!r} needs a reason")
            directives[directive[1]] = directive[2]
        elif line.strip():
            directives = {}
    if opened is not None:
        raise PageError(f"{page}:{opened[0]}: a block that never ends")


def matches(expected: str, actual: str) -> bool:
    """Compare output line by line, trailing space aside; `…` stands for any text."""
    pattern = ".*".join(re.escape(part) for part in _trimmed(expected).split("…"))
    return re.fullmatch(pattern, _trimmed(actual), re.DOTALL) is not None


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


def run_page(page: Path) -> int:
    """Run a page in the current folder and return how many blocks were run."""
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    run = 0
    printed = ""
    unused_files: dict[str, str] = {}
    for block in blocks_of(page):
        if block.reason_not_run is not None:
            continue
        for name in [name for name in unused_files if name in block.text or Path(name).stem in block.text]:
            del unused_files[name]
        run += 1
        if block.language == "console":
            _run_console(block)
        elif "file" in block.directives:
            target = Path(block.directives["file"])
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.text, encoding="utf-8")
            unused_files[target.name] = block.place
        elif block.language == "python":
            printed = _run_python(block, module)
        elif block.language == "text" and "output" in block.directives:
            _expect(block, block.text, printed)
        elif block.language == "json":
            json.loads(block.text)
        elif block.language == "toml":
            tomllib.loads(block.text)
        elif block.language == "yaml":
            parse_yaml(block)
        else:
            run -= 1
    if unused_files:
        raise PageError(f"files that the page writes and never uses: {unused_files}")
    return run


def parse_yaml(block: Block) -> list[Any]:
    """Return the documents of a block."""
    import yaml  # only a few pages have it, and each page is a process of its own

    return list(yaml.safe_load_all(block.text))


def _run_python(block: Block, module: types.ModuleType) -> str:
    # Empty lines in front, so that a traceback names the line of the page.
    code = compile("\n" * block.line + block.text, block.page, "exec")
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(code, vars(module))
    return output.getvalue()


def _run_console(block: Block) -> None:
    commands = re.split(r"(?m)^\$ ", block.text)
    if len(commands) == 1 or commands[0].strip():
        raise PageError(f"{block.place}: a console block starts with '$ ' and a command")
    wanted = int(block.directives.get("exit", "0"))
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_STAND_IN)}
    for part in commands[1:]:
        command, expected = _split_command(part)
        done = subprocess.run(
            ["bash", "-c", command],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        output = done.stdout.decode(errors="replace")
        # A shell reports a death by signal N as 128 + N; if it has replaced itself with the command, we get -N.
        code = done.returncode if done.returncode >= 0 else 128 - done.returncode
        if code != wanted:
            raise PageError(f"{block.place}: $ {command}\nexited {code}, not {wanted}:\n{output}")
        if expected.strip() and "output varies" not in block.directives:
            _expect(block, expected, output)


def _split_command(part: str) -> tuple[str, str]:
    """Split a command from its output. It goes on after a backslash, and as long as a double quote is open."""
    lines = part.splitlines()
    end = 1
    while end < len(lines) and (lines[end - 1].endswith("\\") or "\n".join(lines[:end]).count('"') % 2):
        end += 1
    return "\n".join(lines[:end]), "\n".join(lines[end:])


def _expect(block: Block, expected: str, actual: str) -> None:
    if not matches(expected, actual):
        raise PageError(f"{block.place}: the page says\n{_trimmed(expected)}\n--- but it was\n{_trimmed(actual)}")


if __name__ == "__main__":
    sys.path[0] = ""
    print(run_page(Path(sys.argv[1])))
