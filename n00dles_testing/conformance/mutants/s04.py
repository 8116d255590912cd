"""Stores that break S04: a model comes back as its JSON dump, with no field dropped."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, ClassVar

from pydantic import BaseModel

from .correct import JSONFiles

__all__ = ["DropsFieldsOfSubclasses", "PopsItsOwnIds", "SavesModelsAsText"]


class DropsFieldsOfSubclasses(JSONFiles):
    """Dumps every model by itself, as Pydantic does: a subclass in a field declared as its base loses its fields.

    `model_dump` says nothing of it (pydantic/pydantic #7326).
    """

    breaks: ClassVar[str | None] = "S04"

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        """Write the record with the dumps of its models."""
        super().write(run_id, _with_models(record, lambda model: model.model_dump(mode="json")))


class SavesModelsAsText(JSONFiles):
    """Saves a model as the text that Pydantic prints: the next node reads `title='Cats'` where it wants a title."""

    breaks: ClassVar[str | None] = "S04"

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        """Write the record with its models as texts."""
        super().write(run_id, _with_models(record, str))


class PopsItsOwnIds(JSONFiles):
    """Takes `_id` out of whatever it reads, as code for a document database does: a model's own `_id` goes as well."""

    breaks: ClassVar[str | None] = "S04"

    def read(self, run_id: str) -> Any:
        """Return the record without the ids of the database."""
        record = super().read(run_id)
        if record is not None:
            record["completed"] = {node: _without_ids(output) for node, output in record["completed"].items()}
        return record


def _with_models(record: dict[str, Any], dump: Callable[[BaseModel], Any]) -> Any:
    def form_of(value: Any) -> Any:
        if isinstance(value, BaseModel):
            return dump(value)
        raise TypeError(f"a {type(value).__name__} cannot be stored")

    return json.loads(json.dumps(record, default=form_of))


def _without_ids(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_ids(part) for key, part in value.items() if key != "_id"}
    if isinstance(value, list):
        return [_without_ids(part) for part in value]
    return value
