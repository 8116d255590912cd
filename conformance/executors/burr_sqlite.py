"""Burr: an application of actions with its SQLitePersister.

Used as its documentation shows (https://burr.dagworks.io/concepts/state-persistence/): `initialize_from` the persister
with `resume_at_next_action`, and `with_state_persister`. Its actions run one after the other.
"""

# Its packages are installed elsewhere, so all of it is of any type here.
# mypy: disable-error-code="import-not-found,misc,untyped-decorator,no-any-return"

from __future__ import annotations

from pathlib import Path
from typing import Any

from burr.core import Application, ApplicationBuilder, State, action, default, when
from burr.core.persistence import SQLitePersister

from conformance.executors import nodes
from n00dles_testing import PlainFunctions

PACKAGES = ("apache-burr",)


@action(reads=["topic"], writes=["outline"])
def outline(state: State) -> State:
    return state.update(outline=nodes.outline(state["topic"]))


@action(reads=["outline"], writes=["facts"])
def facts(state: State) -> State:
    return state.update(facts=nodes.facts(state["outline"]))


@action(reads=["outline"], writes=["images"])
def images(state: State) -> State:
    return state.update(images=nodes.images(state["outline"]))


@action(reads=["facts", "images"], writes=["article", "kind"])
def article(state: State) -> State:
    text: Any = nodes.article(state["facts"], state["images"])
    return state.update(article=text, kind=text["kind"])


@action(reads=["article"], writes=["online"])
def online(state: State) -> State:
    return state.update(online=nodes.online(state["article"]))


@action(reads=["article"], writes=["printed"])
def printed(state: State) -> State:
    return state.update(printed=nodes.printed(state["article"]))


@action(reads=["online"], writes=["archive"])
def archive(state: State) -> State:
    return state.update(archive=nodes.archive(state["online"]))


def application(persister: SQLitePersister, topic: str) -> Application[Any]:
    """Build the application, where it stands."""
    return (
        ApplicationBuilder()
        .with_actions(outline, facts, images, article, online, printed, archive)
        .with_transitions(
            ("outline", "facts"),
            ("facts", "images"),
            ("images", "article"),
            ("article", "online", when(kind="online")),
            ("article", "printed", default),
            (["online", "printed"], "archive"),
        )
        .with_identifiers(app_id="run")
        .initialize_from(
            persister, resume_at_next_action=True, default_state={"topic": topic}, default_entrypoint="outline"
        )
        .with_state_persister(persister)
        .build()
    )


def run(topic: str, folder: Path) -> str:
    """Run the application to its end, from where it stands."""
    with SQLitePersister.from_values(f"{folder}/burr.sqlite") as persister:
        persister.initialize()
        app = application(persister, topic)
        if app.get_next_action() is None:
            return str(app.state["archive"])  # it is finished
        _, _, state = app.run(halt_after=["archive"])
        return str(state["archive"])


def stored(folder: Path) -> list[str]:
    """Return what the newest state has."""
    file = folder / "burr.sqlite"
    if not file.exists():
        return []
    with SQLitePersister.from_values(str(file)) as persister:
        if not persister.is_initialized() or (found := persister.load(None, "run")) is None:
            return []
    return [name for name in nodes.CHAIN if name in found["state"]]


subject = PlainFunctions(run, nodes.ALL, needs=nodes.CHAIN, routes=nodes.ROUTES, stored=stored, name="Burr")
