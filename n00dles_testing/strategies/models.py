"""Pydantic models made on the fly, and instances of them.

@given(models().flatmap(instances))
def test_a_model_comes_back_as_its_dump(article):
    assert load(save(article)) == article.model_dump(mode="json")
"""

from __future__ import annotations

import types
from datetime import timedelta, timezone
from functools import lru_cache
from typing import Any, cast

from hypothesis import strategies as st
from pydantic import BaseModel

from .json_values import INTEGERS, json_values
from .model_classes import TAG, annotation, build_model, spec_of
from .model_values import HOSTILE_TEXTS
from .types import Choice, DictOf, FieldSpec, ListOf, ModelSpec, OneOf, OptionalOf, Record, TupleOf, TypeSpec

__all__ = ["STYLES", "instances", "lossy_instances", "model_specs", "models", "styled"]

_NAMES = ("title", "total", "due", "status", "part", "notes")
_ALIASES = ("headLine", "sumTotal", "dueAt", "stateOf", "partOf", "noteTexts")
_CHOICES = (Choice(("draft", "done")), Choice(("low", "high"), is_enum=True), Choice(("", "\x00 é"), is_enum=True))

_SIMPLE: st.SearchStrategy[TypeSpec] = st.sampled_from(
    (
        *("str", "int", "float", "bool", "Any", "Decimal", "UUID", "datetime", "date", "time", "timedelta", "None"),
        *_CHOICES,
    )
)


def _fields(types: st.SearchStrategy[TypeSpec]) -> st.SearchStrategy[tuple[FieldSpec, ...]]:
    """Draw fields, named by position so that fewer of them are a prefix of more."""
    drawn = st.lists(st.tuples(types, st.booleans(), st.booleans()), min_size=1, max_size=4)
    return drawn.map(
        lambda each: tuple(
            FieldSpec(_NAMES[i], kind, _ALIASES[i] if aliased else None, has_default)
            for i, (kind, aliased, has_default) in enumerate(each)
        )
    )


def styled(fields: tuple[FieldSpec, ...], style: str) -> ModelSpec:
    """Return a model of these fields in one of `STYLES`."""
    if style == "computed":
        return ModelSpec(fields, is_computed=True)
    if style == "generic":
        return ModelSpec(fields, is_generic=True)
    if style == "dumps aliases":
        return ModelSpec(fields, dumps_aliases=True)
    if style == "allow":
        return ModelSpec(fields, extra="allow")
    if style == "forbid":
        return ModelSpec(fields, extra="forbid")
    if style == "inherits" and len(fields) > 1:
        return ModelSpec(fields[1:], base=ModelSpec(fields[:1]))
    return ModelSpec(fields)


STYLES = st.sampled_from(("plain", "plain", "computed", "generic", "dumps aliases", "allow", "forbid", "inherits"))


def _models_of(types: st.SearchStrategy[TypeSpec]) -> st.SearchStrategy[ModelSpec]:
    return st.builds(styled, _fields(types), STYLES)


_FLAT = _models_of(_SIMPLE)


def _compound(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[TypeSpec]:
    return st.one_of(
        st.builds(ListOf, inner),
        st.builds(OptionalOf, inner),
        st.builds(DictOf, inner),
        st.builds(TupleOf, st.tuples(inner, inner)),
        st.builds(OneOf, st.tuples(_FLAT, _FLAT)),
    )


_RICH = _models_of(st.one_of(_SIMPLE, _FLAT, _compound(st.one_of(_SIMPLE, _FLAT))))


def model_specs(*, nested: bool = True) -> st.SearchStrategy[ModelSpec]:
    """Draw models as data (see `types`); with `nested` their fields may hold models, lists, unions and the like.

    Among them: optional fields, enums, dates with a zone, decimals, UUIDs, unions with a discriminator, aliases (read
    only, or dumped too), computed fields, defaults, generics, inheritance, extra fields. Shrinks to one field of text.
    """
    return _RICH if nested else _FLAT


def models(*, nested: bool = True) -> st.SearchStrategy[type[BaseModel]]:
    """Draw Pydantic classes. See `model_specs` for what they have, and `instances` for what is in them."""
    return model_specs(nested=nested).map(build_model)


def instances(model: type[BaseModel] | ModelSpec) -> st.SearchStrategy[BaseModel]:
    """Draw instances of a class that `models` has drawn, or of its spec: each is one that `n00dles` can store.

    Texts are hostile, numbers at their limits, fields with a default may be left unset, and in a field that is declared
    as a model there may be a subclass of it, which has no field more (for one that has, see `lossy_instances`).
    """
    return _instances(model if isinstance(model, ModelSpec) else spec_of(model), None)


@st.composite
def lossy_instances(draw: st.DrawFn) -> BaseModel:
    """Draw models that Pydantic would dump with a loss: a subclass in a field that is declared as its base.

    `n00dles` refuses each of them with a `SerializationError` that names the field (clauses S04 and E15), since
    `model_dump` drops what only the subclass has. The field is `part`, or `parts` if it holds a list.

        @given(lossy_instances())
        def test_no_field_is_dropped_without_a_word(model):
            with pytest.raises(SerializationError, match="part"):
                to_stored(model)
    """
    base = draw(_FLAT.filter(lambda spec: not spec.is_generic and spec.extra != "allow"))
    more = FieldSpec("lost", draw(_SIMPLE))
    whole = draw(_instances(ModelSpec((more,), base=base), None))
    declared = build_model(base)
    if draw(st.booleans()):
        return _holder(list[declared], "parts").model_construct(parts=[whole])  # type: ignore[valid-type]
    return _holder(declared, "part").model_construct(part=whole)


def _holder(declared: Any, name: str) -> type[BaseModel]:
    namespace = {"__module__": __name__, "__annotations__": {name: declared}}
    return cast(type[BaseModel], types.new_class("Holder", (BaseModel,), {}, lambda body: body.update(namespace)))


_SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "str": st.one_of(st.text(st.characters(exclude_categories=["Cs"]), max_size=12), st.sampled_from(HOSTILE_TEXTS)),
    "int": st.one_of(st.integers(), st.sampled_from(INTEGERS)),
    "float": st.floats(allow_nan=False, allow_infinity=False),
    "bool": st.booleans(),
    "None": st.none(),
    "Any": json_values(max_depth=3, max_leaves=5),
    "Decimal": st.decimals(allow_nan=False, allow_infinity=False),
    "UUID": st.uuids(),
    "datetime": st.datetimes(
        timezones=st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
    ),
    "date": st.dates(),
    "time": st.times(),
    "timedelta": st.timedeltas(timedelta(days=-(10**6)), timedelta(days=10**6)),
}


def _as_heir(instance: BaseModel) -> BaseModel:
    """Return the same content in a subclass: nothing is lost by it, since it has no field of its own."""
    return _heir(type(instance)).model_validate(dict(instance), by_name=True)


@lru_cache(maxsize=1024)
def _heir(kind: type[BaseModel]) -> type[BaseModel]:
    return cast(type[BaseModel], types.new_class(f"Heir_of_{kind.__name__}", (kind,), {}))


@st.composite
def _instances(draw: st.DrawFn, spec: ModelSpec, tag: str | None) -> BaseModel:
    fields: dict[str, Any] = {} if tag is None else {TAG: tag}
    for each in spec.all_fields:
        if not (each.has_default and draw(st.booleans())):
            fields[each.name] = draw(_values(each.type))
    if spec.extra == "allow" and draw(st.booleans()):
        fields["undeclared"] = draw(_SCALARS["Any"])
    return build_model(spec, tag).model_validate(fields)


def _values(kind: TypeSpec) -> st.SearchStrategy[Any]:  # noqa: PLR0911 - one a kind of type
    if isinstance(kind, str):
        return _SCALARS[kind]
    if isinstance(kind, Choice):
        return st.sampled_from(kind.choices).map(annotation(kind) if kind.is_enum else str)
    if isinstance(kind, ListOf):
        return st.lists(_values(kind.item), max_size=3)
    if isinstance(kind, TupleOf):
        return st.tuples(*map(_values, kind.items))
    if isinstance(kind, DictOf):
        return st.dictionaries(_SCALARS["str"], _values(kind.value), max_size=3)
    if isinstance(kind, OptionalOf):
        return st.none() | _values(kind.inner)
    if isinstance(kind, ModelSpec):
        return st.one_of(_instances(kind, None), _instances(kind, None), _instances(kind, None).map(_as_heir))
    if isinstance(kind, Record):
        return st.fixed_dictionaries({each.name: _values(each.type) for each in kind.record})
    assert isinstance(kind, OneOf)
    return st.one_of([_instances(variant, f"v{index}") for index, variant in enumerate(kind.variants)])
