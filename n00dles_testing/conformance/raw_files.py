"""Looking for a text in the files of a location, without the store's own code: what a thief of the disk would find."""

from __future__ import annotations

import base64

from .expect import Expectation
from .plain_files import plain_files

__all__ = ["expect_in_no_file", "files_with", "forms_of"]


def files_with(folder: str, token: str) -> list[str]:
    """Return the files below `folder` that hold `token`, in plain or in a usual encoding, relative to it."""
    forms = forms_of(token)
    found = []
    for path in plain_files(folder):
        try:
            content = path.read_bytes()
        except OSError:
            continue  # it may not be read, or has just gone
        if any(form in content for form in forms):
            found.append(str(path.relative_to(folder)))
    return found


def expect_in_no_file(files: Expectation, *, because: str) -> None:
    """Raise `BrokenClause` if there are files that still hold the text of a run that is gone."""
    fault = f"the run is gone, and its text is still in {', '.join(files.came)}" if files.came else None
    files.has_no(fault, allowed="no file with the run's text", because=because)


def forms_of(token: str) -> tuple[bytes, ...]:
    """Return the bytes by which a text can be told: as UTF-8 and UTF-16, in hex, and in base64 wherever it begins."""
    raw = token.encode()
    # Three bytes are four characters; those at the ends depend on what is beside the text.
    shifted = (base64.b64encode(b"\0" * shift + raw)[4:-4] for shift in range(3))
    return raw, token.encode("utf-16-le"), raw.hex().encode(), raw.hex().upper().encode(), *shifted
