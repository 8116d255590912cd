"""From types as data to real types: Pydantic classes, enums and annotations, the same in every process.

Article = build_model(ModelSpec((FieldSpec("title", "str"), FieldSpec("price", "Decimal"))))
Article(title="x", price="1.10").model_dump(mode="json")
"""

from __future__ import annotations

import hashlib
import types
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from typing import Annotated, Any, Generic, Literal, Optional, TypeVar, Union, cast
from uuid import UUID
from weakref import WeakKeyDictionary, WeakValueDictionary

from pydantic import BaseModel, ConfigDict, Field, computed_field

from .codec_base import dump
from .types import Choice, DictOf, FieldSpec, ListOf, ModelSpec, OneOf, OptionalOf, Record, TupleOf, TypeSpec

__all__ = ["TAG", "Computed", "annotation", "build_model", "spec_of"]

TAG = "kind"
"""The field by which the models of a union are told apart."""

_SCALARS: dict[str, Any] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
    "None": None,
    "Any": Any,
    "Decimal": Decimal,
    "UUID": UUID,
    "datetime": datetime,
    "date": date,
    "time": time,
    "timedelta": timedelta,
}

_T = TypeVar("_T")
_specs: WeakKeyDictionary[type[BaseModel], ModelSpec] = WeakKeyDictionary()

# A class that anything still refers to is not made a second time, even if the caches below have dropped it: two classes
# of one spec would refuse each other's instances.
_alive: WeakValueDictionary[tuple[ModelSpec | Choice, str | None], type] = WeakValueDictionary()


class Computed(BaseModel):
    """The base of models with a computed field: it is in the dump, and no field takes it back."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def field_count(self) -> int:
        """How many fields the model has."""
        return len(type(self).model_fields)


@lru_cache(maxsize=4096)
def annotation(spec: TypeSpec) -> Any:  # noqa: PLR0911 - one a kind of type
    """Return what stands behind the colon for `spec`: a class, or something of `typing`."""
    if isinstance(spec, str):
        return _SCALARS[spec]
    if isinstance(spec, Choice):
        return _class_of(spec, None) if spec.is_enum else Literal[spec.choices]
    if isinstance(spec, ModelSpec):
        return build_model(spec)
    if isinstance(spec, OneOf):
        variants = [build_model(variant, f"v{index}") for index, variant in enumerate(spec.variants)]
        return Annotated[Union[tuple(variants)], Field(discriminator=TAG)]  # noqa: UP007 - made of a list
    if isinstance(spec, Record):
        return dict[str, Any]
    if isinstance(spec, ListOf):
        return list[annotation(spec.item)]  # type: ignore[misc]
    if isinstance(spec, TupleOf):
        return tuple[tuple(map(annotation, spec.items))]  # type: ignore[misc]
    if isinstance(spec, DictOf):
        return dict[str, annotation(spec.value)]  # type: ignore[misc]
    assert isinstance(spec, OptionalOf)
    return Optional[annotation(spec.inner)]  # noqa: UP045 - an Annotated has no `|`


def build_model(spec: ModelSpec, tag: str | None = None) -> type[BaseModel]:
    """Return the class that `spec` describes; `tag` is its mark in a union. Its name follows from what it is."""
    built: type[BaseModel] = _class_of(spec, tag)
    return built


def spec_of(model: type[BaseModel]) -> ModelSpec:
    """Return what a class of `build_model` was made of. Raises `KeyError` for any other."""
    return _specs[model]


@lru_cache(maxsize=4096)
def _class_of(spec: ModelSpec | Choice, tag: str | None) -> Any:
    found = _alive.get((spec, tag))
    if found is None:
        found = _alive[spec, tag] = _enum(spec) if isinstance(spec, Choice) else _model(spec, tag)
    return found


def _model(spec: ModelSpec, tag: str | None) -> type[BaseModel]:
    name = f"Model_{hashlib.sha256(dump(spec) + (tag or '').encode()).hexdigest()[:8]}"
    fields = {each.name: each for each in spec.fields}
    hints = {name: annotation(each.type) for name, each in fields.items()}
    parameter: Any = None
    bases: list[Any] = [build_model(spec.base) if spec.base else Computed if spec.is_computed else BaseModel]
    if spec.is_generic:
        first = spec.fields[0].name
        parameter, hints[first] = hints[first], _T
        bases.append(cast(Any, Generic)[_T])
    namespace: dict[str, Any] = {key: _field(each) for key, each in fields.items()}
    if tag is not None:
        hints[TAG] = Literal[tag]
        namespace[TAG] = tag
    namespace |= {
        "__module__": __name__,
        "__annotations__": hints,
        "model_config": ConfigDict(
            extra=spec.extra, serialize_by_alias=spec.dumps_aliases, validate_by_alias=True, validate_by_name=True
        ),
    }
    cls = cast(Any, types.new_class(name, tuple(bases), {}, lambda body: body.update(namespace)))
    if spec.is_generic:
        cls = cls[parameter]
    _specs[cls] = spec
    return cast(type[BaseModel], cls)


def _field(spec: FieldSpec) -> Any:
    from .model_values import value_from

    if spec.has_default:
        return Field(default=value_from(spec.type, f"default of {spec.name}"), alias=spec.alias)
    return Field(alias=spec.alias)


def _enum(spec: Choice) -> type[Enum]:
    # A functional Enum: its members are named by position, since a value may be no identifier.
    members = [(f"V{index}", value) for index, value in enumerate(spec.choices)]
    name = f"Enum_{hashlib.sha256(dump(spec)).hexdigest()[:8]}"
    return cast(type[Enum], Enum(name, members, module=__name__, type=str))
