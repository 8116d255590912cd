"""conformance/README.md: the contract of a state store as it is published, from the registry of its clauses."""

from __future__ import annotations

import re
from collections.abc import Iterator

from n00dles_testing.conformance import implemented
from n00dles_testing.conformance.contract import LEVELS
from n00dles_testing.conformance.sentences import SENTENCES
from tests.docs.contract_page import documented

__all__ = ["conformance_page"]

_LINK = re.compile(r"\]\(([\w-]+\.md)")
"""A link to a page beside that of the contract, for which the clauses are documented."""

_INTRODUCTION = """# The contract of a state store

What whoever saves a run may rely on, clause by clause, and a suite that shows whether a store keeps it: any store, also
one that this project has never seen, without a base class and without an import of ours. An id never changes its
meaning. This page is written from the clauses themselves.

## Run it on your store

A store has three methods, sync or async: `load_or_create(run_id, inputs)`, `save(run_id, ctx)`, `delete(run_id)`
([write a store](../docs/how-to/write-a-store.md)). A *factory* opens it on a location, a fresh and empty folder. Then
there are three equal ways:

```console
$ n00dles-testing check docs/examples/my_store.py:open_store --clause S05
…
$ python -m pytest -q --n00dles-store=docs/examples/my_store.py:open_store -k S05
…
1 passed, … deselected in …
```

<!-- file: test_my_store.py -->
```python
from docs.examples.my_store import JSONFileStore
from n00dles_testing import StateStoreConformance


class TestMyStore(StateStoreConformance):
    def open_store(self, location):
        return JSONFileStore(location)
```

```console
$ python -m pytest -q test_my_store.py -k S05
…
1 passed, … deselected in …
```

Without `--clause` and `-k` every clause is tried. More: [the command](../docs/how-to/check-a-store.md),
[pytest](../docs/reference/pytest.md). The stores of this project are checked in [test_backends.py](test_backends.py).

## How verdicts are given

A clause is PASS if it was tried and held each time, and FAIL if it did not once; the failure tells the calls, what was
allowed, what came, and the line that shows it again. What was not shown is never a pass: a kill that did not happen or
a race that did not overlap is VACUOUS, which fails; NOT APPLICABLE is proven by a probe; NOT RUN has a reason
([all six](../docs/reference/verdicts.md)). Whatever a store does to its process, each clause ends with a verdict within
a stated time.

Each clause has *mutants*, broken stores that it must catch and that no unrelated clause may; correct stores of several
kinds must pass. Only S18 has none: it tells a figure, and fails no store. The
[contract](../docs/reference/contract.md) names the mutants, [results](results/index.md) has the tables.

## Levels

A level is reached when every clause of it has passed, and the levels below it are reached. At level 1 a clause may be
proven not to apply. A clause that was not asked for, not run, or has no check yet, is no pass: no level is given for a
part.

A level is no proof. What levels 1 and 2 do not show: that two ids never meet under one key, if the key is a short hash;
that memory does not grow (descriptors and threads are counted); that a cache in one open store sees what another one
has saved, which is for level 4; and what lies beyond the sizes that are tried. Of a run, the clauses ask for inputs,
outputs and completion order; of a store that loses the rest at a restart (attempts, lives, status) the report says so.
"""


def conformance_page() -> str:
    """The levels, and every clause of them with its documentation."""
    documents = {clause.id: clause.documentation for clause in implemented()}
    lines = [
        _INTRODUCTION.rstrip("\n"),
        "",
        "| level | name | clauses | checked by this release |",
        "|---|---|---|---|",
    ]
    for level, (name, ids) in LEVELS.items():
        checked = [id_ for id_ in ids if id_ in documents]
        count = "all" if len(checked) == len(ids) else f"{len(checked)} of {len(ids)}" if checked else "none"
        lines.append(f"| {level} | {name} | {ids[0]} to {ids[-1]} | {count} |")
    for level, (name, ids) in LEVELS.items():
        lines += ["", f"## Level {level}: {name}", *_clauses(ids, documents)]
    return "\n".join([*lines, ""]).replace("\n\n\n#", "\n\n#")


def _clauses(ids: tuple[str, ...], documents: dict[str, str]) -> Iterator[str]:
    for id_ in ids:
        yield from ("", f"### {id_}", "", f"**{SENTENCES[id_]}**", "")
        for line in documented(id_, documents.get(id_)):
            yield _LINK.sub(r"](../docs/reference/\1", line).replace("](../how-to/", "](../docs/how-to/")
