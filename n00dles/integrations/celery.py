"""A pipeline as a Celery task (extra `celery`): Celery delivers, n00dles resumes.

A message is acknowledged when its run has ended, so that of a worker that is lost is delivered again. The task then
finds the run that the lost worker had begun, and goes on from its last checkpoint: whoever gets the message calls no
completed node again.

Celery is not imported here: whoever has a Celery app has it already.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from weakref import WeakKeyDictionary

from pydantic_core import to_jsonable_python

from ..api import as_pipeline, run
from ..errors import (
    ConfigurationError,
    CorruptCheckpointError,
    InputsChangedError,
    PipelineChangedError,
    StateStoreError,
    StoreVersionError,
)
from ..events import Observer
from ..pipeline import Step
from ..stores.base import check_run_id

__all__ = ["pipeline_task"]

_FINAL = (CorruptCheckpointError, InputsChangedError, PipelineChangedError, StoreVersionError)
"""What is so however often it is tried; every other error of a store means that another has the run, or it is down."""

_named: WeakKeyDictionary[Any, dict[str, Step]] = WeakKeyDictionary()


def pipeline_task(
    app: Any,
    target: Step,
    /,
    *,
    store: Any = None,
    name: str | None = None,
    observers: Iterable[Observer] = (),
    retry_delay: float = 10.0,
    **options: Any,
) -> Any:
    """Return a task of `app`, a `celery.Celery`, that runs a pipeline (or a single step) in whichever worker gets it.

    The inputs are given by name: `task.delay(topic="noodles")`. The id of the run is that of the Celery task, which
    stays the same when a message is delivered again or the task is retried; `run_id="order-17"` chooses another, so
    that an order that is sent twice is one run. The task's result is the output of the run, as JSON has it. A finished
    run calls nothing, and its recorded output is the result.

    `acks_late` and `reject_on_worker_lost` are set. Where another worker holds the run, or the store does not answer,
    the task is retried after `retry_delay` seconds, for as long as it takes (`max_retries=` bounds that). A node that
    fails is a `PipelineFailure` and ends the task; sent again with the same id, the run goes on behind what is
    completed. A run that kills each worker fails after its lives.

    `store` is best a URL, which each process opens for itself; without one, it is what the worker has configured.
    `name` is that of the task, `n00dles.` and the pipeline's by default; `options` are those of `app.task`. Raises
    `ConfigurationError` if the app has this name for another pipeline.
    """
    whole = as_pipeline(target)
    name = f"n00dles.{whole.name}" if name is None else name
    _check_name(app, name, target)
    listeners = tuple(observers)

    def run_pipeline(task: Any, *, run_id: str | None = None, **inputs: Any) -> Any:
        identity = task.request.id if run_id is None else run_id
        check_run_id(identity)  # here, since the error of a store that will not have it looks like one that passes
        try:
            result = run(whole, run_id=identity, store=store, observers=listeners, **inputs)
        except _FINAL:
            raise
        except StateStoreError as error:
            raise task.retry(exc=error, countdown=retry_delay) from error
        return to_jsonable_python(result.output, by_alias=False)

    run_pipeline.__doc__ = f"Run the pipeline {whole.name!r}, or carry it on."
    return app.task(
        run_pipeline,
        name=name,
        bind=True,
        acks_late=True,
        reject_on_worker_lost=True,
        **{"max_retries": None, **options},
    )


def _check_name(app: Any, name: str, target: Step) -> None:
    """Raise `ConfigurationError` for a second pipeline of one name: Celery would run the first for both, silently."""
    if _named.setdefault(app, {}).setdefault(name, target) is not target:
        raise ConfigurationError(
            f"two pipelines are to be the Celery task {name!r}: give one of them another name, as in "
            "pipeline_task(app, …, name='…')."
        )
