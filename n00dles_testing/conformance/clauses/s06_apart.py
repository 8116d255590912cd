"""S06: runs are apart, and no id reaches outside the store."""

from __future__ import annotations

from ..expect import BrokenClause
from ..ids import IdGroup, groups_of_ids, ids_of_lengths, paths
from ..node_names import SEPARATORS, are_apart, groups_of_names, is_of_a_program
from ..node_names import paths as names_that_are_paths
from ..records import Record, show
from ..refusals import save_or_refusal
from ..registry import clause
from ..scenario import Handle, Scenario, describe, message_of, where
from ..subject import StoreSubject
from ..surroundings import Surroundings


@clause("S06", level=1, title="runs are apart, whatever their ids are")
async def runs_are_apart(subject: StoreSubject) -> None:
    """Ids that differ, however little, are different runs, or are refused with a clear error.

    They differ only by case, white space, Unicode form, a wildcard of SQL or of a shell, a prefix, a separator, a
    quote, or in the last character of 1 to 10 000 bytes that cannot be compressed. Of each group all ids are created
    and saved; each must then have its own inputs and outputs, also when one of them is deleted, and when the store is
    opened again. Ids are made from what users type and from what models return, so a path (`../x`, `/tmp/x`, `a/b`
    beside `a_b`) must not lead anywhere: nothing around the location may be made, changed or removed.

    A refusal counts if `load_or_create` raises it, before any node was paid for, and if it stays: a `KeyError`, a
    `TypeError` or the like is no refusal. The report names what is refused.

    Nodes are tried likewise: within a run, names that differ so little, that are paths, or that a store may have for
    its own (`head`, `.lock`, `order`) are different nodes, or are refused by an error that names the node; and a node
    `b:c` of run `a` is not the node `c` of run `a:b`, whatever stands between the two.

    What cannot be seen from outside is a key that is too short for chance: of 24 bits of a hash, two of five thousand
    ids are likely to be one. Nobody knows which ids without the store's own function, and so many would cost too much.

    Seen in: langchain-ai/langgraph #8300 (`john_doe` matches `john-doe`), agentscope-ai/agentscope-java #3217 (`Run`
    and `run` are one record), Q00/ouroboros #397 (`../` escapes the folder), Pyomo/mpi-sppy PR #777 (two cleaned-up
    names land on one file), langchain-ai/langgraph #6239 and aegra/aegra #567 (long ids fail in the index).
    """
    for group in groups_of_ids(subject.fresh_run_id()):
        await _a_group(subject, group)
    for group in groups_of_names():
        async with subject.scenario(f"names of nodes that differ by {group.title}") as s:
            await are_apart(s, group)
    for sign in SEPARATORS:
        await _id_and_name_are_joined(subject, sign)
    if subject.target.takes_location:
        if subject.has_folders:
            await _paths(subject)
            await _names_that_are_paths(subject)
        await _a_group(subject, ids_of_lengths(subject.fresh_run_id(), subject.draw))
        return
    subject.notes.append("ids that are paths, or short, were not tried: the store takes no location")
    long = ids_of_lengths(subject.fresh_run_id(), subject.draw)
    await _a_group(subject, IdGroup(long.title, tuple(id_ for id_ in long.ids if len(id_) > 1)))


async def _a_group(subject: StoreSubject, group: IdGroup) -> None:
    async with subject.scenario(f"ids that differ by {group.title}") as s:
        control = await _with_a_plain_id(s)
        await _are_apart(s, await _create_all(s, group), control)


async def _paths(subject: StoreSubject) -> None:
    async with subject.scenario("ids that are paths") as s:
        await s.open()
        around = Surroundings(s)
        control = await _with_a_plain_id(s)
        group = paths(subject.fresh_run_id(), str(around.root))
        handles = await _create_all(s, group, around)
        try:
            await _are_apart(s, handles, control)
        finally:
            around.expect_untouched(because="a run's id is a name, and leads nowhere")


async def _names_that_are_paths(subject: StoreSubject) -> None:
    async with subject.scenario("names of nodes that are paths") as s:
        await s.open()
        around = Surroundings(s)
        try:
            await are_apart(s, names_that_are_paths(str(around.root)))
        finally:
            around.expect_untouched(because="a node's name is a name, and leads nowhere")


async def _id_and_name_are_joined(subject: StoreSubject, sign: str) -> None:
    """What one key holds of both must tell where the id ends."""
    async with subject.scenario(f"run `a` with node `b{show(sign)[1:-1]}c`, beside run `a{show(sign)[1:-1]}b`") as s:
        base, odd = subject.fresh_run_id(), f"b{sign}c"
        first, second = await s.create({"topic": "cats"}, base), await s.creates_or_refuses({}, f"{base}{sign}b")
        if isinstance(second, Exception):
            return
        if await save_or_refusal(s, first, {odd: "of the first run"}) is not None:
            return
        await s.save(second, {"c": "of the second run"})

        await s.expect_acknowledged(base, because="the other run's node has another name, and another run")
        await s.expect_acknowledged(second.run_id, because="the other run's node has another name, and another run")
        await s.delete(base)
        await s.expect_acknowledged(second.run_id, because="only the other run was deleted")


async def _create_all(s: Scenario, group: IdGroup, around: Surroundings | None = None) -> list[Handle]:
    """Create a run of each id that the store takes, and save it."""
    handles: list[Handle] = []
    refused: dict[str, Exception] = {}
    for number, run_id in enumerate(group.ids):
        inputs = {"number": f"run {number}"}
        came = await s.creates_or_refuses(inputs, run_id)
        if around is not None:
            around.expect_untouched(because=f"the run {show(run_id)} was created in the store")
        if isinstance(came, Exception):
            _is_a_clear_refusal(run_id, came)
            refused[run_id] = came
            continue
        s.expect(came.record).equals(
            Record.new(inputs), because=f"{show(run_id)} is no run yet; {len(handles)} runs of other ids are"
        )
        handles.append(came)
    for number, handle in enumerate(handles):
        await s.save(handle, {"researcher": f"facts {number}"})
    await _stay_refused(s, group, refused)
    return handles


async def _stay_refused(s: Scenario, group: IdGroup, refused: dict[str, Exception]) -> None:
    for run_id in refused:
        again = await s.creates_or_refuses({"number": "again"}, run_id)
        s.expect(isinstance(again, Exception)).equals(
            True, what=f"whether {show(run_id)} is refused again", because="it was refused before, so it is no run"
        )
    if refused:
        kinds = ", ".join(sorted({type(error).__name__ for error in refused.values()}))
        s.subject.notes.append(f"refuses {len(refused)} of {len(group.ids)} ids that differ by {group.title} ({kinds})")


def _is_a_clear_refusal(run_id: str, error: Exception) -> None:
    if is_of_a_program(error) or not message_of(error):
        details = (*where(error), ("allowed", "a run of its own, or an error that says what is wrong with the id"))
        why = (("came", describe(error)), ("why", "who gets this error does not learn that it was the run's id"))
        raise BrokenClause(f"the id {show(run_id)} raised {describe(error)}", (*details, *why))


async def _are_apart(s: Scenario, handles: list[Handle], before: str) -> None:
    """Every run is its own; also when the first one is gone, and after a reopening that keeps runs with plain ids."""
    for handle in handles:
        await s.expect_acknowledged(handle.run_id, because=f"it is one of {len(handles)} runs, each with its own id")
    if not handles:
        return
    first, *others = [handle.run_id for handle in handles]
    await s.delete(first)
    for run_id in others:
        await s.expect_acknowledged(run_id, because=f"only {show(first)} was deleted")
    behind = await _with_a_plain_id(s)
    if not others or not await s.keeps_after_reopening(before, behind):
        return
    for run_id in others:
        await s.expect_acknowledged(
            run_id, because=f"the store was opened again, and kept runs with plain ids such as {show(before)}"
        )


async def _with_a_plain_id(s: Scenario) -> str:
    """Create and save a run whose id looks like no other; return its id."""
    handle = await s.create({"number": "plain"})
    await s.save(handle, {"researcher": "plain facts"})
    return handle.run_id
