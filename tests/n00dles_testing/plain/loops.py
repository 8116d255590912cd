"""Home-made loops that are right, each built otherwise: they are subjects of the tests, and importable by children."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import sqlite3
from collections.abc import Callable
from concurrent import futures
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

from n00dles_testing import PlainFunctions
from n00dles_testing.plain import each


def research(topic: str) -> list[str]:
    """Find facts."""
    facts = [topic]
    facts.append("a fact")
    return facts


def write(facts: list[str]) -> dict[str, Any]:
    """Write them up."""
    text = " and ".join(facts)
    return {"text": text, "words": len(text.split())}


def publish(article: dict[str, Any]) -> str:
    """Give it an address."""
    words = article["words"]
    return f"/articles/{words}"


NODES: list[Callable[..., Any]] = [research, write, publish]


def load(folder: Path) -> dict[str, Any]:
    """Return what is stored."""
    file = folder / "state.json"
    return json.loads(file.read_text()) if file.exists() else {}


def save(folder: Path, state: dict[str, Any]) -> None:
    """Store it, whole or not at all."""
    written = folder / "state.new"
    written.write_text(json.dumps(state))
    os.replace(written, folder / "state.json")


def stored(folder: Path) -> list[str]:
    """Name what is stored."""
    return list(load(folder))


def by_name(topic: str, folder: Path) -> str:
    state = load(folder)
    if "research" not in state:
        state["research"] = research(topic)
        save(folder, state)
    if "write" not in state:
        state["write"] = write(state["research"])
        save(folder, state)
    if "publish" not in state:
        state["publish"] = publish(state["write"])
        save(folder, state)
    return str(state["publish"])


def from_a_list(topic: str, folder: Path) -> Any:
    """Hold references to the functions, made at import."""
    state, value = load(folder), topic
    for step in NODES:
        if step.__name__ not in state:
            state[step.__name__] = step(value)
            save(folder, state)
        value = state[step.__name__]
    return value


def in_a_database(topic: str, folder: str) -> Any:
    with closing(sqlite3.connect(f"{folder}/state.db")) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS outputs (name TEXT PRIMARY KEY, value TEXT)")
        value: Any = topic
        for step in NODES:
            row = connection.execute("SELECT value FROM outputs WHERE name = ?", [step.__name__]).fetchone()
            if row is None:
                value = step(value)
                connection.execute("INSERT INTO outputs VALUES (?, ?)", [step.__name__, json.dumps(value)])
                connection.commit()
            else:
                value = json.loads(row[0])
        return value


def stored_in_the_database(folder: str) -> list[str]:
    if not Path(folder, "state.db").exists():
        return []
    with closing(sqlite3.connect(f"{folder}/state.db")) as connection:
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'outputs'").fetchone():
            return []
        return [name for (name,) in connection.execute("SELECT name FROM outputs")]


async def facts(topic: str) -> list[str]:
    await asyncio.sleep(0)
    return [topic]


async def images(topic: str) -> dict[str, str]:
    await asyncio.sleep(0)
    return {"cover": topic}


async def layout(facts: list[str], images: dict[str, str]) -> str:
    await asyncio.sleep(0)
    return f"{facts} {images}"


async def side_by_side(topic: str, folder: Path) -> str:
    """Have two functions run at once, each with a file of its own."""

    async def kept(function: Callable[..., Any], *arguments: Any) -> Any:
        file = folder / f"{function.__name__}.pickle"
        if not file.exists():
            output = await function(*arguments)
            written = file.with_suffix(".new")
            written.write_bytes(pickle.dumps(output))
            os.replace(written, file)
        return pickle.loads(file.read_bytes())

    both = await asyncio.gather(kept(facts, topic), kept(images, topic))
    return str(await kept(layout, *both))


def in_threads(topic: str, folder: Path) -> str:
    """Have the same run in threads, on an event loop of each, and start none before."""

    def kept(function: Callable[..., Any], *arguments: Any) -> Any:
        file = folder / f"{function.__name__}.pickle"
        if not file.exists():
            output = asyncio.run(function(*arguments))
            written = file.with_suffix(".new")
            written.write_bytes(pickle.dumps(output))
            os.replace(written, file)
        return pickle.loads(file.read_bytes())

    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda function: kept(function, topic), (facts, images)))
    return str(kept(layout, *both))


def pickled(folder: Path) -> list[str]:
    return [file.stem for file in folder.glob("*.pickle")]


async def handing_over(topic: str, folder: Path) -> Any:
    """Have functions and saves run in whichever thread is free."""
    state, value = load(folder), topic
    for step in NODES:
        if step.__name__ not in state:
            state[step.__name__] = await asyncio.to_thread(step, value)
            await asyncio.to_thread(save, folder, state)
        value = state[step.__name__]
    return value


def as_completed(topic: str, folder: Path) -> str:
    """Save in one thread what others return."""
    state = load(folder)
    with ThreadPoolExecutor(2) as pool:
        jobs = {
            pool.submit(asyncio.run, function(topic)): function.__name__
            for function in (facts, images)
            if function.__name__ not in state
        }
        for job in futures.as_completed(jobs):
            state[jobs[job]] = job.result()
            save(folder, state)
    if "layout" not in state:
        state["layout"] = asyncio.run(layout(state["facts"], state["images"]))
        save(folder, state)
    return str(state["layout"])


def draw(topic: str, folder: Path) -> Path:
    """Leave a file in the folder, and return where it is."""
    picture = folder / f"{topic}.svg"
    picture.write_text("<svg/>")
    return picture


def frame(picture: str, pictures: dict[str, Path]) -> dict[str, str]:
    frames = {picture: "gold", "in": str(pictures["folder"])}
    return frames | {"of": "wood"}


def in_its_folder(topic: str, folder: Path) -> dict[str, str]:
    """Hand the folder on to the functions, in more than one form."""
    state = load(folder)
    if "draw" not in state:
        state["draw"] = str(draw(topic, folder))
        save(folder, state)
    if "frame" not in state:
        state["frame"] = frame(state["draw"], {"folder": folder})
        save(folder, state)
    return dict(state["frame"])


class Flow:
    """A loop in a class: its functions are methods."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.calls = 0

    def gather(self, topic: str) -> list[str]:
        self.calls += 1
        return [topic, "more"]

    async def tell(self, facts: list[str]) -> str:
        self.calls += 1
        return " ".join(facts)

    def run(self, topic: str) -> str:
        state = load(self.folder)
        if "gather" not in state:
            state["gather"] = self.gather(topic)
            save(self.folder, state)
        if "tell" not in state:
            state["tell"] = asyncio.run(self.tell(state["gather"]))
            save(self.folder, state)
        return str(state["tell"])


def as_a_class(topic: str, workdir: Path) -> str:
    return Flow(workdir).run(topic)


def ask(topic: str) -> str:
    """Ask a model, as a program does that has never heard of n00dles."""
    from openai import OpenAI

    with OpenAI(api_key=os.environ.get("OPENAI_API_KEY", "none")) as client:
        reply = client.chat.completions.create(model="gpt-4o-mini", messages=[{"role": "user", "content": topic}])
    return str(reply.choices[0].message.content)


def shout(answer: str) -> str:
    return answer.upper()


def with_a_model(topic: str, folder: Path) -> str:
    state = load(folder)
    if "ask" not in state:
        state["ask"] = ask(topic)
        save(folder, state)
    if "shout" not in state:
        state["shout"] = shout(state["ask"])
        save(folder, state)
    return str(state["shout"])


def chapter(title: str, *, words: int = 3) -> str:
    text = title * words
    return text.upper()


def bind(chapters: list[str]) -> str:
    return " ".join(chapters)


def book(topic: str, folder: Path) -> str:
    """Call one function for each chapter."""
    state = load(folder)
    names = [f"chapter-{title}" for title in (topic, "end")]
    for title, name in zip((topic, "end"), names, strict=True):
        if name not in state:
            state[name] = chapter(title)
            save(folder, state)
    if "bind" not in state:
        state["bind"] = bind([state[name] for name in names])
        save(folder, state)
    return str(state["bind"])


def in_a_log(topic: str, folder: Path) -> Any:
    """Append a line for each output, and read no line that is torn."""
    value: Any = topic
    done = logged(folder)
    with open(folder / "log", "a") as log:
        for step in NODES:
            if step.__name__ not in done:
                done[step.__name__] = step(value)
                log.write(json.dumps([step.__name__, done[step.__name__]]) + "\n")
                log.flush()
            value = done[step.__name__]
    return value


def logged(folder: Path) -> dict[str, Any]:
    file = folder / "log"
    lines = file.read_text().splitlines(keepends=True) if file.exists() else []
    return dict(json.loads(line) for line in lines if line.endswith("\n"))


by_name_subject = PlainFunctions(by_name, NODES, stored=stored)
blind_subject = PlainFunctions(by_name, NODES)


def elsewhere(topic: str, folder: Path) -> str:
    """Keep everything in a place of its own, whatever the folder is. This one is wrong."""
    return by_name(topic, Path(os.environ["ELSEWHERE"]))


def stored_elsewhere(folder: Path) -> list[str]:
    return stored(Path(os.environ["ELSEWHERE"]))


elsewhere_subject = PlainFunctions(elsewhere, NODES)
elsewhere_knowing_subject = PlainFunctions(elsewhere, NODES, stored=stored_elsewhere)
list_subject = PlainFunctions(from_a_list, NODES, stored=stored)
database_subject = PlainFunctions(in_a_database, NODES, stored=stored_in_the_database)
async_subject = PlainFunctions(side_by_side, [facts, images, layout], needs={"images": []}, stored=pickled)
thread_subject = PlainFunctions(in_threads, [facts, images, layout], needs={"images": []}, stored=pickled)
blind_thread_subject = PlainFunctions(in_threads, [facts, images, layout], needs={"images": []})
class_subject = PlainFunctions(as_a_class, [Flow.gather, Flow.tell], stored=stored, folder="workdir")
model_subject = PlainFunctions(with_a_model, [ask, shout], stored=stored)
book_subject = PlainFunctions(book, [*each(chapter, "title", ["x", "end"]), bind], stored=stored)
log_subject = PlainFunctions(in_a_log, NODES, stored=logged)
handing_subject = PlainFunctions(handing_over, NODES, stored=stored)
completed_subject = PlainFunctions(as_completed, [facts, images, layout], needs={"images": []}, stored=stored)
folder_subject = PlainFunctions(in_its_folder, [draw, frame], stored=stored)
