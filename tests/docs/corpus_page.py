"""docs/reference/hostile-values.md: the corpus, value by value, with what each becomes where nobody looks."""

from __future__ import annotations

from n00dles_testing import corpus
from n00dles_testing.corpus import Hostile

_INTRODUCTION = """# Hostile values

`n00dles_testing.corpus` has the values that stores, caches and serializers lose, each with what must become of it. They
are what clause [S03](contract.md#s03) is checked with, and they are yours to use: on a store, an encoder, an executor.

```python
from n00dles import PipelineContext, SerializationError
from n00dles_testing.corpus import hostile_values, same

counted = {"kept": 0, "refused": 0}
for hostile in hostile_values():
    ctx = PipelineContext("run-1", {})
    try:
        ctx.checkpoint("node", hostile.value())
    except SerializationError:
        became = "refused"
    else:
        became = "kept" if same(hostile.value(), ctx.completed["node"]) else "changed"
    assert became == hostile.expected, hostile
    counted[became] += 1

print(counted["kept"] > 50, counted["refused"] > 40)
```
<!-- output -->
```text
True True
```

In pytest each can be a test of its own:

```python
import pytest

from n00dles_testing.corpus import Hostile


@pytest.mark.parametrize("hostile", hostile_values("kept"), ids=str)
def test_my_encoder_keeps_it(hostile: Hostile) -> None:
    import json

    assert same(hostile.value(), json.loads(json.dumps(hostile.value())))
```

| of a `Hostile` | is |
|---|---|
| `title` | its name, which no other has |
| `expected` | `"kept"`: JSON holds it exactly, so it comes back; `"refused"`: JSON cannot hold it exactly |
| `value()` | a fresh value each time |
| `harm` | what it becomes where nobody looks |
| `path` | where in the value an error must point, as in `['scores'][1]`; empty for the value itself |

A store that has no room for a value that is to be kept may refuse it, by an error that names the node.

`hostile_values(expected=None)` gives all, or those that must be kept or refused. `same(wanted, came)` compares value
and type all the way down: `1`, `1.0` and `True` are three, `0.0` and `-0.0` are two."""

_GROUPS = (
    ("KEPT", "kept", corpus.KEPT),
    ("BENT", "refused: `json.dumps` takes it, and turns it into something else", corpus.BENT),
    ("FOREIGN", "refused: JSON has no form for it", corpus.FOREIGN),
    ("BOTTOMLESS", "refused: no parser gets through it", corpus.BOTTOMLESS),
)


_MODELS = """## MODELS: Pydantic models of which a careless dump loses something

Clause [S04](contract.md#s04) is checked with them. Each has a `dump` beside its `value()`: what comes back of one that
is kept, `model_dump(mode="json")`; and of one that is refused what the dump would have to be to hold everything."""


def corpus_page() -> str:
    """The hostile values, one a line."""
    lines = [_INTRODUCTION]
    for name, what, group in _GROUPS:
        lines += ["", f"## {name}: {what}", "", "| value | what it becomes where nobody looks |", "|---|---|"]
        lines += [_row(each) for each in group]
    lines += ["", _MODELS, "", "| model | expected | what it becomes where nobody looks |", "|---|---|---|"]
    lines += [f"| {_cell(each.title)} | {each.expected} | {_cell(each.harm)} |" for each in corpus.MODELS]
    return "\n".join([*lines, ""])


def _row(hostile: Hostile) -> str:
    return f"| {_cell(hostile.title)} | {_cell(hostile.harm)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*").replace("_", "\\_")
