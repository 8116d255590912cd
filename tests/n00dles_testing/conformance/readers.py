"""Out-of-band readers that are wrong, each in its own way."""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

from n00dles_testing.conformance.mutants.correct import JSONFiles
from n00dles_testing.conformance.mutants.out_of_band import read_json_file


def raises(location: str, run_id: str) -> Any:
    raise OSError("the disk is elsewhere")


def exits(location: str, run_id: str) -> Any:
    sys.exit(1)


def hangs(location: str, run_id: str) -> Any:
    threading.Event().wait()


def gives_text(location: str, run_id: str) -> Any:
    return "all is well"


def gives_half(location: str, run_id: str) -> Any:
    return {"inputs": {}, "completed": {}}


async def is_a_coroutine(location: str, run_id: str) -> Any:
    return None


def kills_the_process(location: str, run_id: str) -> Any:
    os._exit(9)


def looks_elsewhere(location: str, run_id: str) -> Any:
    return read_json_file(os.path.join(location, "elsewhere"), run_id)


def takes_one(location: str) -> Any:
    return None


class Brings(JSONFiles):
    """Has its reader with it."""

    reader = staticmethod(read_json_file)


class HasAMethodOfThatName(JSONFiles):
    """Means something else by it."""

    def reader(self, run_id: str) -> Any:
        raise AssertionError("called by the suite")
