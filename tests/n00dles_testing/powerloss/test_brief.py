"""Long names and texts in a story: the ends of them."""

from __future__ import annotations

import pytest

from n00dles_testing.powerloss.brief import brief

DIGEST = "4e65d3fbe8ad6535681b021b30785b12b6c0e3f8878859a4148b3f58b8835db0"


PURRS = "purr, " * 20
SHOWN = "purr, purr, purr, purr, purr,…"
PATH = "cannot open '/var/lib/my-store/of/runs/and/more/of/them/run.json'"


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (f"the rename of `{DIGEST}.tmp`", "the rename of `4e65d3fb…5db0.tmp`"),
        ("save('run-1') with {'a1': {'text': 'cats purr'}}", "save('run-1') with {'a1': {'text': 'cats purr'}}"),
        (f"{{'b1': {{'text': '{PURRS}purr'}}}}", f"{{'b1': {{'text': '{SHOWN}'}}}}"),
        (f"{{'text': '{PURRS}… (12312 characters)", f"{{'text': '{SHOWN} (12312 characters)"),
        (PATH, PATH),
    ],
)
def test_names_that_are_numbers_and_long_texts_are_cut_and_paths_are_not(line: str, shown: str) -> None:
    assert brief(line) == shown
