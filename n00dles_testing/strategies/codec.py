"""Specs as text, and back: JSON for a file, a token for one line of a terminal.

    spec == from_json(to_json(spec)) == from_token(to_token(spec))

Reading is strict, and executes nothing: a text that is no spec, or one of a pipeline that could not be built, raises
`SpecError` with the place and the reason.
"""

from __future__ import annotations

import base64
import binascii
import zlib

from pydantic import ValidationError

from .check import check
from .codec_base import adapter_of, dump
from .spec import PipelineSpec
from .spec_error import SpecError

__all__ = ["from_json", "from_token", "target_of", "to_json", "to_token"]

_MAX_BYTES = 1_000_000
_MARK = "n1"
_TARGET_MODULE = "n00dles_testing.strategies.replayed"


def to_json(spec: PipelineSpec) -> str:
    """Return `spec` as compact JSON: equal specs give equal texts."""
    return dump(spec).decode()


def from_json(text: str) -> PipelineSpec:
    """Read what `to_json` wrote. Raises `SpecError`."""
    if len(text) > _MAX_BYTES:
        raise SpecError(f"a spec of {len(text)} characters is no spec of ours; the limit is {_MAX_BYTES}.")
    try:
        spec: PipelineSpec = adapter_of(PipelineSpec).validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "the whole of it"
        raise SpecError(
            f"this is no spec of a pipeline: {place}: {first['msg']}. Copy it whole, or have it generated again."
        ) from None
    except ValueError as error:  # an integer of too many digits, a lone surrogate
        raise SpecError(f"this is no spec of a pipeline: {error}.") from None
    check(spec)
    return spec


def to_token(spec: PipelineSpec) -> str:
    """Return `spec` as one word of letters, digits, `_` and `-`, which needs no quotes in a shell."""
    packed = zlib.compress(dump(spec), 9)
    return _MARK + base64.urlsafe_b64encode(packed).decode().rstrip("=")


def from_token(token: str, remark: str = "") -> PipelineSpec:
    """Read what `to_token` wrote; `remark` is for a person, and ignored. Raises `SpecError`."""
    if not token.startswith(_MARK):
        raise SpecError(f"{_clip(token)} is no token of a pipeline; one begins with {_MARK!r}.")
    body = token[len(_MARK) :]
    try:
        packed = base64.b64decode(body + "=" * (-len(body) % 4), altchars=b"-_", validate=True)
        unpacker = zlib.decompressobj()
        # Bounded, since a few bytes could unpack to more than there is memory.
        text = unpacker.decompress(packed, _MAX_BYTES)
        if not unpacker.eof or unpacker.unused_data:
            raise SpecError(f"{_clip(token)} is cut short, or has something behind it; copy it whole.")
        return from_json(text.decode())
    except (binascii.Error, zlib.error, UnicodeError) as error:
        raise SpecError(
            f"{_clip(token)} is a damaged token ({error}); copy it whole, from a terminal as wide."
        ) from None


def target_of(spec: PipelineSpec) -> str:
    """Return `module:name` under which any process of any machine finds the pipeline of `spec`.

    It is what `explore`, `--mode fork` and `n00dles-testing explore` take as their target.
    """
    return f"{_TARGET_MODULE}:{to_token(spec)}"


def _clip(text: str) -> str:
    return repr(text if len(text) <= 24 else text[:24] + "…")  # noqa: PLR2004 - enough to recognise it
