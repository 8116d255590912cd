"""Requests to a provider that no script answers: what they are, and what a test can do about them."""

from __future__ import annotations

from .known_shapes import SHAPES

__all__ = ["advice", "answered"]

_OTHERS = {
    "/embeddings": "Embeddings",
    "/moderations": "Moderations",
    "/images/generations": "Images",
    "/images/edits": "Images",
    "/audio/speech": "Speech and transcriptions",
    "/audio/transcriptions": "Speech and transcriptions",
    "/messages/count_tokens": "Counts of tokens",
    "/messages/batches": "Batches",
    "/batches": "Batches",
    "/files": "Files",
}


def answered() -> str:
    """Return what is answered, in words."""
    return ", ".join(f"POST …{shape.path}" for shape in SHAPES)


def advice(path: str) -> str:
    """Return what to do about a request for `path`, if it is a known one of a provider; else an empty text."""
    what = next((what for end, what in _OTHERS.items() if path.endswith(end)), "")
    return (
        f"{what} are not mocked: put a function of the test's own in the place of the one that asks for them, with "
        "monkeypatch.setattr"
        if what
        else ""
    )
