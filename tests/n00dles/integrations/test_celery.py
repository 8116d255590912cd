"""Pipelines as Celery tasks: what a worker that is killed leaves behind is delivered again, and goes on."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from n00dles import (
    ConfigurationError,
    InMemoryStateStore,
    RunLockedError,
    SQLiteStateStore,
    StateStoreError,
    agent,
    pipeline,
)
from n00dles.executor import MAX_STALLED_LIVES
from n00dles.integrations.celery import pipeline_task
from n00dles_testing.servers import ValkeyServer, why_not_valkey
from tests.n00dles.processes import PATIENCE, ROOT
from tests.n00dles.worker_processes import FLOW, calls, loaded, until

celery = pytest.importorskip("celery")

TASKS = """
import os
from celery import Celery
from flow import flow
from n00dles.integrations.celery import pipeline_task

app = Celery("shop", broker=os.environ["BROKER"], backend=os.environ["BROKER"])
app.conf.broker_transport_options = {
    "visibility_timeout": float(os.environ["VISIBILITY"]),
    "unacked_restore_interval": 0.5,
    "unacked_restore_throttle": 1,
}
flow_task = pipeline_task(app, flow, store="sqlite:///runs.db", retry_delay=0.1)
"""

QUIET = ("--without-gossip", "--without-mingle", "--without-heartbeat")
"""A worker that is alone has nobody to greet, and is ready earlier."""


@dataclass
class Shop:
    """A folder with an app, what sends to it, and its workers."""

    folder: Path
    url: str
    visibility: float
    app: Any

    def send(self, run_id: str, **options: Any) -> Any:
        return self.app.send_task("n00dles.flow", kwargs={"name": run_id}, task_id=run_id, **options)

    def worker(self) -> subprocess.Popen[bytes]:
        """Start a worker with one pool process, as a process group of its own."""
        paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        with (self.folder / "worker.log").open("a") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "celery", "-A", "tasks", "worker", "-c", "1", "-l", "INFO", *QUIET],
                cwd=self.folder,
                env={
                    **os.environ,
                    "PYTHONPATH": os.pathsep.join(paths),
                    "BROKER": self.url,
                    "VISIBILITY": str(self.visibility),
                },
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )


@contextlib.contextmanager
def opened(folder: Path, url: str, visibility: float) -> Iterator[Shop]:
    (folder / "flow.py").write_text(FLOW)
    (folder / "tasks.py").write_text(TASKS)
    with celery.Celery("sender", broker=url, backend=url, set_as_current=False) as app:
        yield Shop(folder, url, visibility, app)


def end(worker: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(worker.pid, signal.SIGKILL)
    worker.wait()


@pytest.fixture(scope="module")
def server() -> Iterator[ValkeyServer]:
    pytest.importorskip("redis")
    if reason := why_not_valkey():
        pytest.skip(f"NOT RUN: {reason}")
    with ValkeyServer() as server:
        yield server


@pytest.fixture(scope="module")
def shop(server: ValkeyServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """A worker that stays, whatever happens to its pool process."""
    with opened(tmp_path_factory.mktemp("shop"), server.fresh(), visibility=3600) as shop:
        worker = shop.worker()
        yield shop
        end(worker)


def called(shop: Shop, run_id: str) -> list[str]:
    """Return which nodes of a run were called, in order."""
    return [node for name, node in map(str.split, calls(shop.folder)) if name == run_id]


def test_the_run_of_a_lost_pool_process_is_delivered_again_and_goes_on(shop: Shop) -> None:
    (shop.folder / "poison").touch()
    result = shop.send("poison")
    until(lambda: called(shop, "poison").count("third") == 2, "the killed node is called again")
    (shop.folder / "poison").unlink()

    output = result.get(timeout=PATIENCE)

    ctx = asyncio.run(loaded(shop.folder, "poison"))
    assert output == "123"
    assert called(shop, "poison")[:4] == ["first", "second", "third", "third"]
    assert ctx.order == ["first", "second", "third"]
    assert ctx.lives == len(called(shop, "poison")) - 2  # one a call of the third node
    assert "signal 9 (SIGKILL)" in (shop.folder / "worker.log").read_text()


def test_the_run_of_a_lost_worker_is_delivered_to_another_and_goes_on(server: ValkeyServer, tmp_path: Path) -> None:
    with opened(tmp_path, server.fresh(), visibility=0.5) as shop:
        (tmp_path / "hold").touch()
        result = shop.send("r")
        victim = shop.worker()
        try:
            until(lambda: called(shop, "r") == ["first", "second"], "the second node is called")
        finally:
            end(victim)
        (tmp_path / "hold").unlink()
        heir = shop.worker()
        try:
            output = result.get(timeout=PATIENCE)
        finally:
            end(heir)

        assert victim.returncode == -signal.SIGKILL
        assert output == "123"
        assert called(shop, "r") == ["first", "second", "second", "third"]
        assert asyncio.run(loaded(tmp_path, "r")).lives == 2


def test_a_run_that_kills_each_worker_fails_and_is_not_delivered_for_ever(shop: Shop) -> None:
    asyncio.run(used_up(shop.folder))
    (shop.folder / "poison").touch()

    result = shop.app.send_task("n00dles.flow", kwargs={"name": "poison"}, task_id="doomed")
    with pytest.raises(Exception, match=f"{MAX_STALLED_LIVES} lives in a row have ended without a completed node"):
        result.get(timeout=PATIENCE)

    (shop.folder / "poison").unlink()
    ctx = asyncio.run(loaded(shop.folder, "doomed"))
    assert (ctx.status, ctx.order) == ("failed", ["first", "second"])


async def used_up(folder: Path) -> None:
    """Store the run "doomed", with two nodes complete, and one life left."""
    store = SQLiteStateStore(folder / "runs.db")
    ctx = await store.load_or_create("doomed", {"name": "poison"})
    ctx.checkpoint("first", "1")
    ctx.checkpoint("second", "12")
    ctx.lives = ctx.stalled = MAX_STALLED_LIVES - 1
    await store.save("doomed", ctx)
    await store.aclose()


def test_a_run_that_another_holds_is_tried_again_until_it_is_free(shop: Shop) -> None:
    async def held() -> list[str]:
        store = SQLiteStateStore(shop.folder / "runs.db")
        lease = await store.acquire("held", "somebody else", 3600)
        result = shop.send("held")
        await asyncio.to_thread(until, lambda: result.state == "RETRY", "the task is to be tried again")
        before = called(shop, "held")
        await store.release(lease)
        await store.aclose()
        return [*before, result.get(timeout=PATIENCE)]

    assert asyncio.run(held()) == ["123"]
    assert called(shop, "held") == ["first", "second", "third"]


def test_a_finished_run_gives_its_recorded_output_and_calls_nothing(shop: Shop) -> None:
    first = shop.send("done").get(timeout=PATIENCE)
    shop.app.backend.delete(shop.app.backend.get_key_for_task("done"))  # Celery forgets the result; the store does not

    again = shop.send("done").get(timeout=PATIENCE)

    assert (first, again) == ("123", "123")
    assert called(shop, "done") == ["first", "second", "third"]


# What follows runs in this process, as Celery does it where `task_always_eager` is set.


@pytest.fixture
def app() -> Iterator[Any]:
    with celery.Celery("eager", broker="memory://", backend="cache+memory://", set_as_current=False) as app:
        yield app


class Article(BaseModel):
    title: str
    words: int = 3


@agent
def write(topic: str) -> Article:
    return Article(title=topic.title())


class FailingLeases(InMemoryStateStore):
    """A store that answers the first calls with an error."""

    def __init__(self, error: Exception, times: int) -> None:
        super().__init__()
        self.error, self.left = error, times

    async def acquire(self, run_id: str, holder: str, ttl: float) -> Any:
        if self.left:
            self.left -= 1
            raise self.error
        return await super().acquire(run_id, holder, ttl)


def test_the_run_has_the_id_of_the_task_or_the_one_that_is_given(app: Any) -> None:
    store = InMemoryStateStore()
    task = pipeline_task(app, write, store=store)

    task.apply(kwargs={"topic": "noodles"}, task_id="t-1")
    task.apply(kwargs={"topic": "noodles", "run_id": "order-17"}, task_id="t-2")
    task(topic="noodles", run_id="by hand")

    runs = asyncio.run(store.list_runs())
    assert sorted(run.run_id for run in runs) == ["by hand", "order-17", "t-1"]


def test_the_result_is_the_output_as_json_has_it(app: Any) -> None:
    task = pipeline_task(app, write, store=InMemoryStateStore())

    assert task.apply(kwargs={"topic": "noodles"}).get() == {"title": "Noodles", "words": 3}


def test_the_message_is_kept_until_the_run_has_ended(app: Any) -> None:
    task = pipeline_task(app, pipeline(write, name="article"), rate_limit="9/m")

    assert (task.name, task.acks_late, task.reject_on_worker_lost) == ("n00dles.article", True, True)
    assert (task.max_retries, task.rate_limit) == (None, "9/m")
    with pytest.raises(TypeError, match="acks_late"):
        pipeline_task(app, write, acks_late=False)


@pytest.mark.parametrize("error", [StateStoreError("the server is down"), RunLockedError("held")])
def test_a_store_that_does_not_answer_and_a_held_run_are_tried_again(app: Any, error: Exception) -> None:
    task = pipeline_task(app, write, store=FailingLeases(error, 2))
    bounded = pipeline_task(app, write, name="bounded", store=FailingLeases(error, 2), max_retries=1)

    assert task.apply(kwargs={"topic": "noodles"}).get() == {"title": "Noodles", "words": 3}
    with pytest.raises(type(error), match=str(error)):
        bounded.apply(kwargs={"topic": "noodles"}).get()


def test_other_inputs_for_a_stored_run_are_an_error_and_not_tried_again(app: Any) -> None:
    task = pipeline_task(app, write, store=InMemoryStateStore())
    task.apply(kwargs={"topic": "noodles"}, task_id="t")

    failed = task.apply(kwargs={"topic": "dogs"}, task_id="t")

    assert failed.state == "FAILURE"
    assert "is resumed with topic='dogs'" in str(failed.result)


@pytest.mark.parametrize("run_id", [17, "", "\udcff"])
def test_what_is_no_run_id_is_an_error_and_not_tried_again(app: Any, run_id: Any) -> None:
    task = pipeline_task(app, write, store=InMemoryStateStore(), retry_delay=0)

    failed = task.apply(kwargs={"topic": "noodles", "run_id": run_id}, throw=False)

    assert failed.state == "FAILURE"
    assert "run id" in str(failed.result)


def test_inputs_are_given_by_name(app: Any) -> None:
    task = pipeline_task(app, write, store=InMemoryStateStore())

    with pytest.raises(TypeError, match="positional argument"):
        task.delay("noodles")


def test_two_pipelines_of_one_name_are_refused(app: Any) -> None:
    pipeline_task(app, write)
    pipeline_task(app, write)  # the same one may be told twice

    with pytest.raises(ConfigurationError, match=r"two pipelines are to be the Celery task 'n00dles\.write'"):
        pipeline_task(app, pipeline(write.named("other"), name="write"))


def test_nothing_of_celery_is_imported_until_an_app_is_made() -> None:
    code = "import sys, n00dles.integrations.celery; assert not {'celery', 'kombu'} & {*sys.modules}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
