"""What a process has printed, for a person: the store's words, and not a traceback of the suite's own."""

from __future__ import annotations

import re

from .own_code import is_ours, is_the_librarys

__all__ = ["end_of"]

_TRACEBACK = re.compile(r"^Traceback \(most recent call last\):\n(?:[ \t]+.*\n)+.*\n?", re.MULTILINE)
# Of faulthandler, which is asked where a process hangs; that is told elsewhere.
_DUMP = re.compile(
    r"^(?:Current thread|Thread) 0x[0-9a-f]+.*\(most recent call first\):\n(?:[ \t]+.*(?:\n|\Z))+\n?", re.MULTILINE
)
_CRASH = "Fatal Python error"
_FILE = re.compile(r'^ +File "([^"]+)", line \d+', re.MULTILINE)
_LINKS = re.compile(
    r"\n*^(During handling of the above exception, another exception occurred|"
    r"The above exception was the direct cause of the following exception):\n*",
    re.MULTILINE,
)


def end_of(printed: str, most: int) -> str:
    """Return the last `most` characters of what was printed, from the beginning of a line if that can be.

    Left out are a traceback that does not lead through any code but the suite's and Python's, and where the threads of
    a process were when the suite asked it, unless it has crashed.
    """
    text = _TRACEBACK.sub(lambda found: "" if _is_ours(found[0]) else found[0], printed)
    if _CRASH not in text:
        text = _DUMP.sub("", text)
    if "Traceback" not in text:
        text = _LINKS.sub("", text)
    text = text.strip()
    if len(text) <= most:
        return text
    text = text[-most:]
    _, newline, rest = text.partition("\n")
    return rest if newline and rest.strip() else text


def _is_ours(traceback: str) -> bool:
    files = _FILE.findall(traceback)
    return any(is_ours(file) for file in files) and all(is_ours(file) or is_the_librarys(file) for file in files)
