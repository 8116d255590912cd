"""S04: Pydantic models come back as the dict that is their JSON dump."""

from __future__ import annotations

from typing import Any

from n00dles.stores.adapt import as_store

from ...corpus import MODELS, HostileModel, same
from ..durability import keeps_nothing
from ..expect import BrokenClause
from ..fresh_process import expect_in_a_fresh_process
from ..raw_runs import load_raw, save_raw, takes_raw_runs
from ..records import show
from ..registry import clause
from ..scenario import Handle, Scenario
from ..subject import StoreSubject

_NODE = "researcher"
_KEPT = tuple(each for each in MODELS if each.expected == "kept")


@clause("S04", level=1, title="a model comes back as its JSON dump, with no field dropped")
async def models_come_back_as_their_dump(subject: StoreSubject) -> None:
    """A Pydantic model comes back as a plain dict equal to its `model_dump(mode="json")`, here and in a fresh process.

    Never as text, never as `None`, never with a field silently dropped. Tried with the models of the public corpus of
    [hostile values](hostile-values.md): aliases, also such as a database has for its own, computed fields,
    discriminated unions, generics, extra fields, private and excluded ones, defaults, a subclass in a field declared as
    its base.

    A context makes the dump in `checkpoint`, and refuses a model whose dump would lose a part; so a store that takes
    contexts has to give back a dict, whatever its keys are. A store that takes a raw run (any object with the four
    fields) is handed the models themselves: it gives back the dump with every field, or the model as it was, or it
    refuses them.

    Seen in: pydantic/pydantic #7326 and pydantic/pydantic #12346 (the fields of a subclass are dropped),
    langchain-ai/langgraph #6718 (a nested Enum comes back as None), pydantic/pydantic-core #851 (secrets stored as
    asterisks).
    """
    for model in _KEPT:
        await _one_model(subject, model)
    await _in_a_fresh_process(subject)
    if await takes_raw_runs(subject):
        await _as_they_are(subject)
    else:
        subject.notes.append("the store takes only contexts, which make the dump")


async def _one_model(subject: StoreSubject, model: HostileModel) -> None:
    async with subject.scenario(f"an output: {model.title}") as s:
        handle = await s.create()
        await _save(s, handle, {_NODE: model})

        await s.expect_acknowledged(handle.run_id, because=f"it is the model's dump; elsewhere it {model.harm}")


async def _in_a_fresh_process(subject: StoreSubject) -> None:
    if subject.findings:
        return
    if await keeps_nothing(subject):
        subject.notes.append("not read in a fresh process: the store keeps nothing beyond its own")
        return
    async with subject.scenario("all models, read in a fresh process") as s:
        handle = await s.create()
        # Plain names, in the order of the alphabet: a fault in those is told once, by S02 and S06.
        await _save(s, handle, {f"model{number:03}": model for number, model in enumerate(_KEPT)})

        await expect_in_a_fresh_process(s, handle.run_id, because="the save was acknowledged; these are the dumps")


async def _as_they_are(subject: StoreSubject) -> None:
    async with subject.scenario("models handed to the store as they are") as s:
        for model in MODELS:
            handle = await s.create()
            s.tell(f"the output is {model.title}")
            if not await save_raw(s, handle, {_NODE: [model.value()]}):
                await s.expect_acknowledged(handle.run_id, because="the save was refused, so the run stays as it was")
                continue
            came = (await load_raw(s, handle)).completed.get(_NODE)
            if not (same([model.dump], came) or same([model.value()], came)):
                raise BrokenClause(
                    f"completed[{_NODE!r}] is {show(came)}, not {show([model.dump])}",
                    (
                        ("allowed", f"{show([model.dump])}, the model itself, or an error"),
                        ("came", show(came)),
                        ("why", f"the store has acknowledged {model.title}, and no field of it may be lost or changed"),
                    ),
                )


async def _save(s: Scenario, handle: Handle, models: dict[str, HostileModel]) -> None:
    """Complete nodes with models, as an executor does, and save them; their dumps are then acknowledged."""
    values: dict[str, Any] = {node: model.value() for node, model in models.items()}
    for node, value in values.items():
        handle.context.checkpoint(node, value)
    saving = as_store(s.raw).save(handle.run_id, handle.context)
    await s.call(f"save({handle.run_id!r}) with {show(values)}", saving, lambda _: "acknowledged")
    dumps = {node: model.dump for node, model in models.items()}
    s.acknowledged[handle.run_id] = s.acknowledged[handle.run_id].after(dumps)
