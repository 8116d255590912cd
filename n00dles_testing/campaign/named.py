"""An executor and what it is called: by which name another process finds it, if by any."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from n00dles.errors import ConfigurationError

from ..crash.life import Executor, ReferenceExecutor
from ..targets import load_target, target_of
from .report import CampaignError

__all__ = ["NamedExecutor", "load_executor"]


@dataclass(frozen=True, slots=True)
class NamedExecutor:
    """An executor. `target` is what another process imports, None for the one of n00dles and for one without a name.

    One without a name is not `importable`: nothing may be said of it that only another process could see.
    """

    executor: Executor
    title: str
    target: str | None = None
    importable: bool = True

    @property
    def not_elsewhere(self) -> str:
        """Why it cannot be lived in processes of their own; empty if it can."""
        if not self.importable:
            return "another one cannot import it"
        main = getattr(sys.modules.get("__main__"), "__file__", None)
        if main is not None and self.target is not None and self.target.rpartition(":")[0] == main:
            return "another one would run this script again"
        return ""

    @property
    def no_replay(self) -> str:
        """Why there is no token to replay, and what to do; empty if there is one."""
        if self.importable:
            return ""
        module = sys.modules.get(type(self.executor).__module__)
        file = Path(getattr(module, "__file__", None) or "module.py").name
        return (
            "no module has this executor at its top level, so that `replay` could not find it: write "
            f"`executor = {type(self.executor).__name__}(…)` there, and prove('{file}:executor')"
        )


def load_executor(executor: Executor | str | None) -> NamedExecutor:
    """Return an executor and what it is called. Raises `CampaignError` if it is none."""
    if executor is None or type(executor) is ReferenceExecutor:
        return NamedExecutor(ReferenceExecutor(), "the executor of n00dles")
    if isinstance(executor, str):
        try:
            return NamedExecutor(_checked(load_target(executor, "executor"), executor), executor, executor)
        except ConfigurationError as error:
            raise CampaignError(str(error)) from error
    checked = _checked(executor, repr(executor))
    target = target_of(executor)
    if target is not None:
        return NamedExecutor(checked, target, target)
    kind = type(executor)
    return NamedExecutor(checked, f"an object of {kind.__module__}.{kind.__qualname__}", importable=False)


def _checked(found: Any, name: str) -> Executor:
    if isinstance(found, type):
        raise CampaignError(f"{name} is a class; name an object of it: executor = {found.__name__}()")
    if not callable(getattr(found, "run", None)) or not callable(getattr(found, "resume", None)):
        raise CampaignError(f"{name} is no executor: it needs the methods run and resume, see prove-an-executor.md.")
    subject: Executor = found
    return subject
