"""E09, E16: executors that do not ask whose run it is, or who else is at work on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest.mock import patch

from n00dles import PipelineContext
from n00dles.errors import StaleContextError
from tests.n00dles_testing.crash.mutants.base import Around, Executor, Life


class DoesNotCompare(Executor):
    """Resumes whatever is stored under the id, with whatever pipeline and inputs it is given."""

    breaks = "E09"

    def changes(self, life: Life) -> AbstractContextManager[Any]:
        return comparing_nothing()


class KnowsNoOther(Executor):
    """Takes no lease, and saves over what another worker has saved meanwhile."""

    breaks = "E16"

    def around(self, store: Any) -> Any:
        class Unfenced(Around):
            async def save(self, run_id: str, ctx: PipelineContext) -> None:
                try:
                    await self.inner.save(run_id, ctx)
                except StaleContextError:
                    stored = await self.inner.load(run_id)
                    ctx.revision, ctx.incarnation = stored.revision, stored.incarnation
                    await self.inner.save(run_id, ctx)

        return Unfenced(store)


@contextmanager
def comparing_nothing() -> Iterator[None]:
    """Have no resume compare what is stored with what it is given."""
    with (
        patch("n00dles.api.check_inputs_unchanged", lambda context, given: None),
        patch("n00dles.api.check_pipeline_unchanged", lambda context, whole: None),
    ):
        yield
