"""The processes behind an exploration: what they refuse, what they put up with, and that none is left behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from n00dles_testing.crash import ExplorationError, explore
from n00dles_testing.crash.fork_server import ForkServer
from n00dles_testing.crash.history import History
from n00dles_testing.crash.ledger import read_ledger
from n00dles_testing.crash.points import Point
from n00dles_testing.crash.processes import end_orphans
from n00dles_testing.crash.scenario import BackendError, PlannedRun, Subject
from n00dles_testing.crash.spawn import Spawn
from n00dles_testing.verdicts import Verdict
from tests.n00dles_testing.crash import pipelines

ROOT = Path(__file__).parents[3]

PIPELINE = """
from n00dles import agent, pipeline

@agent
def shout(text: str) -> str:
    loud = text.upper()
    return loud + "!"

flow = pipeline(shout, name="flow")
"""


def module(folder: Path, text: str) -> str:
    (folder / "flow.py").write_text(text)
    return f"{folder / 'flow.py'}:flow"


def scenario(folder: Path, *plan: str, run_id: str = "run", **options: float) -> PlannedRun:
    location = folder / run_id
    location.mkdir()
    return PlannedRun(
        id=run_id,
        run_id=run_id,
        inputs={"text": "tea"},
        store=f"sqlite:///{location}/run.db",
        location=str(location),
        ledger=str(folder / f"{run_id}.ledger"),
        plan=tuple(Point.parse(text) for text in plan),
        lines={"during:shout": 2},
        **options,  # type: ignore[arg-type]
    )


def children_of(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until_gone(pid: int) -> bool:
    deadline = time.monotonic() + 10
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not is_alive(pid)


@pytest.mark.parametrize("mode", ["fork", "spawn"])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import sys; sys.exit(3)", "it called sys.exit(3)"),
        ("import os; os._exit(7)", "ended with exit code 7"),
        ("1 / 0", "ZeroDivisionError"),
        ("flow = 42", "is of type int, and not a pipeline"),
        (PIPELINE.replace("flow =", "flows ="), "Did you mean flows?"),
    ],
)
def test_a_module_that_cannot_be_used_is_an_error_that_says_why(
    tmp_path: Path, mode: str, text: str, message: str
) -> None:
    with pytest.raises(ExplorationError) as caught:
        explore(module(tmp_path, text), {"text": "tea"}, mode=mode)

    assert message in str(caught.value)


def test_a_module_that_starts_a_thread_cannot_be_forked_but_can_be_spawned(tmp_path: Path) -> None:
    target = module(
        tmp_path,
        "import threading, time\nthreading.Thread(target=time.sleep, args=(600,), daemon=True, name='ticker').start()\n"
        + PIPELINE,
    )

    with pytest.raises(ExplorationError, match=r"starts a thread while it is imported \(ticker\).*mode='spawn'"):
        explore(target, {"text": "tea"}, mode="fork")

    report = explore(target, {"text": "tea"}, mode="spawn", at=["during:shout"])
    assert report.verdict is Verdict.PASS


def test_what_a_module_prints_reads_and_closes_does_not_disturb_the_protocol(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    noise = 'import sys\nprint(\'{"run_id": 1}\')\nprint("noise", file=sys.stderr)\nassert sys.stdin.read() == ""\n'
    target = module(tmp_path, noise + PIPELINE.replace("loud =", "print('called'); loud ="))

    report = explore(target, {"text": "tea"}, mode="fork", at=["after:shout"])

    out, err = capfd.readouterr()
    assert report.verdict is Verdict.PASS
    assert out == ""
    assert '{"run_id": 1}' in err
    assert "called" in err


def test_scenarios_in_two_lanes_overlap_and_are_told_apart(tmp_path: Path) -> None:
    server = ForkServer(Subject(module(tmp_path, PIPELINE)))
    wanted = [scenario(tmp_path, "during:shout", run_id=f"run{number}") for number in range(6)]

    try:
        played = {done.id: ends for done, ends in server.play(wanted, lanes=2)}
    finally:
        server.close()

    assert sorted(played) == [f"run{number}" for number in range(6)]
    assert {tuple(end.signal for end in ends) for ends in played.values()} == {(signal.SIGKILL, None)}
    assert {tuple(end.exit_code for end in ends) for ends in played.values()} == {(None, 0)}
    pids = [end.pid for ends in played.values() for end in ends]
    assert len(set(pids)) == 12


def test_a_module_is_looked_for_in_the_current_folder_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wave.py").write_text(PIPELINE)  # the name of a module of the standard library
    monkeypatch.chdir(tmp_path)

    report = explore("wave:flow", {"text": "tea"}, mode="fork", at=["after:shout"])

    assert report.verdict is Verdict.PASS


def test_a_resumed_life_can_itself_be_killed(tmp_path: Path) -> None:
    server = ForkServer(Subject(module(tmp_path, PIPELINE)))
    chain = scenario(tmp_path, "after:shout", "after-opening-save", "before-save:shout", "run-finished")

    try:
        ((_, ends),) = server.play([chain])
    finally:
        server.close()

    history = History(read_ledger(chain.ledger), ends)
    assert [end.signal for end in ends] == [9, 9, 9, 9, None]
    assert [life.died_as_planned for life in history.lives] == [True, True, True, True, False, False]
    assert [len(life.calls) for life in history.lives] == [1, 0, 1, 1, 0, 0]
    assert history.outcome is not None
    assert history.outcome["output"] == "TEA!"


@pytest.mark.parametrize("kind", [ForkServer, Spawn])
def test_a_life_that_hangs_is_ended_at_its_limit(tmp_path: Path, kind: type[ForkServer] | type[Spawn]) -> None:
    target = module(tmp_path, "import time\n" + PIPELINE.replace("loud =", "time.sleep(600); loud ="))
    backend = kind(Subject(target))

    try:
        ((_, ends),) = backend.play([scenario(tmp_path, time_limit=2.0)])
    finally:
        backend.close()

    (end,) = ends
    assert end.timed_out
    assert not end.was_killed
    assert 2.0 <= end.seconds < 60
    assert wait_until_gone(end.pid)


def test_closing_a_server_ends_it_and_the_child_that_lives(tmp_path: Path) -> None:
    target = module(tmp_path, "import time\n" + PIPELINE.replace("loud =", "time.sleep(600); loud ="))
    server = ForkServer(Subject(target))
    pid = server._process.pid
    server._channel.send(scenario(tmp_path).to_dict())
    deadline = time.monotonic() + 10
    while not children_of(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    (child,) = children_of(pid)

    server.close()

    assert not is_alive(pid)
    assert wait_until_gone(child)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process of its parent's end")
def test_a_server_and_its_child_end_with_the_process_that_started_them(tmp_path: Path) -> None:
    target = module(tmp_path, "import time\n" + PIPELINE.replace("loud =", "time.sleep(600); loud ="))
    script = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from n00dles_testing.crash import explore
explore({target!r}, {{"text": "tea"}}, mode="fork", time_limit=600)
"""
    parent = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 20
    servers: list[int] = []
    children: list[int] = []
    while not children and time.monotonic() < deadline:
        servers = children_of(parent.pid)
        children = [child for server in servers for child in children_of(server)]
        time.sleep(0.02)

    parent.kill()
    parent.wait()

    assert len(servers) == len(children) == 1
    assert wait_until_gone(servers[0])
    assert wait_until_gone(children[0])


def test_a_server_that_was_killed_is_an_error_and_not_a_wait(tmp_path: Path) -> None:
    server = ForkServer(Subject(module(tmp_path, PIPELINE)))
    os.kill(server._process.pid, signal.SIGKILL)

    try:
        with pytest.raises(BackendError, match="ended with exit code -9"):
            list(server.play([scenario(tmp_path)]))
    finally:
        server.close()


def test_no_process_is_left_after_an_exploration() -> None:
    before = set(children_of(os.getpid()))

    explore(pipelines.chain, {"topic": "x"}, mode="fork", at=["edit"])

    assert set(children_of(os.getpid())) <= before


def test_forked_lives_do_not_draw_the_same_random_numbers(tmp_path: Path) -> None:
    target = module(
        tmp_path,
        "import random\n" + PIPELINE.replace("loud = text.upper()", "loud = str(random.random())"),
    )

    report = explore(target, {"text": "tea"}, mode="fork", at=["run-started"])

    assert "`shout` returned" in report.unknown


def test_a_body_that_leaves_by_sys_exit_is_a_failure_with_its_name(tmp_path: Path) -> None:
    target = module(tmp_path, "import sys\n" + PIPELINE.replace("loud =", "sys.exit(4); loud ="))

    with pytest.raises(ExplorationError, match=r"fails undisturbed.*SystemExit"):
        explore(target, {"text": "tea"}, mode="fork")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process of its parent's end")
def test_a_process_whose_parent_ended_before_the_kernel_was_asked_ends_itself() -> None:
    from n00dles_testing.parent import die_with_parent

    codes = []
    for parent in (os.getpid(), os.getpid() + 1):
        child = os.fork()
        if child == 0:
            die_with_parent(parent)
            os._exit(7)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    assert codes == [7, 1]


LEAVES_A_PROGRAM = """
import pathlib, subprocess
from n00dles import agent, pipeline

@agent
def shout(text: str) -> str:
    program = subprocess.Popen(["sleep", "60"])
    pathlib.Path(text, str(program.pid)).touch()
    return "done"

flow = pipeline(shout, name="flow")
"""


@pytest.mark.parametrize("mode", ["fork", "spawn"])
def test_a_program_that_a_body_has_started_ends_with_its_life(mode: str, tmp_path: Path) -> None:
    started = tmp_path / "started"
    started.mkdir()

    report = explore(module(tmp_path, LEAVES_A_PROGRAM), {"text": str(started)}, mode=mode, at=["after:shout"])

    assert report.verdict is Verdict.PASS
    programs = [int(path.name) for path in started.iterdir()]
    assert len(programs) >= 4
    assert [pid for pid in programs if is_running(pid)] == []


HAS_A_HELPER = """
import subprocess, sys
from n00dles import agent, pipeline

helper = subprocess.Popen(["sleep", "60"])

@agent
def shout(text: str) -> str:
    with open(f"/proc/{helper.pid}/status") as status:
        assert "(zombie)" not in status.read()
    return "done"

flow = pipeline(shout, name="flow")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process adopt what others leave behind")
def test_a_program_that_a_module_starts_while_it_is_imported_serves_all_lives(tmp_path: Path) -> None:
    report = explore(module(tmp_path, HAS_A_HELPER), {"text": "x"}, mode="fork", at=["after:shout"])

    assert report.verdict is Verdict.PASS


@pytest.mark.skipif(
    sys.platform != "linux" or os.getuid() != 0, reason="only root can have a child that belongs to somebody else"
)
def test_what_a_life_leaves_to_another_user_is_let_be() -> None:
    def try_it() -> None:
        others = os.fork()
        if not others:
            signal.pause()
        try:
            os.setresuid(65534, 65534, 0)
            end_orphans(())
        finally:
            os.setresuid(0, 0, 0)
            os.kill(others, signal.SIGKILL)

    child = os.fork()
    if not child:
        with suppress(BaseException):
            try_it()
            os._exit(0)
        os._exit(1)

    assert os.waitpid(child, 0)[1] == 0


def is_running(pid: int) -> bool:
    """Return whether a process goes on; one that is dead and was not asked for yet does not."""
    done = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return done.stdout.strip() not in ("", "Z", "Z+", "Zs")


def test_sigterm_ends_an_exploration_and_leaves_no_folder_behind(tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    target = module(tmp_path, PIPELINE.replace("loud =", "__import__('time').sleep(0.5); loud ="))
    words = ["-m", "n00dles_testing", "explore", target, "--input", "text=x", "--llm", "off"]
    environment = {**os.environ, "TMPDIR": str(tmp_path / "tmp"), "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen([sys.executable, *words], env=environment, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 20
    while not list((tmp_path / "tmp").glob("n00dles-crash-*")) and time.monotonic() < deadline:
        time.sleep(0.05)

    process.terminate()

    assert process.wait(20) == 143
    assert list((tmp_path / "tmp").iterdir()) == []


ENDLESS_IMPORT = "def wait():\n    while True:\n        pass\n\nwait()\n"


@pytest.mark.parametrize("mode", ["fork", "spawn"])
def test_an_import_without_an_end_is_ended_and_the_line_where_it_hangs_is_named(mode: str, tmp_path: Path) -> None:
    target = module(tmp_path, ENDLESS_IMPORT + PIPELINE)

    with pytest.raises(ExplorationError) as caught:
        explore(target, {"text": "x"}, mode=mode, time_limit=0.5)

    message = str(caught.value)
    assert f"the import of {target} was not done after 2 s" in message
    assert re.search(r"flow\.py, line [23], in wait", message)
    assert "\n" not in message
