"""Types as data: what a generated node returns, or a field of a generated model holds, in a form that JSON can carry.

    ListOf("int")                                                  list[int]
    OptionalOf(Choice(("draft", "done")))                          Literal["draft", "done"] | None
    ModelSpec((FieldSpec("title", "str"), FieldSpec("due", "datetime", has_default=True)))

`model_classes.annotation` makes the real type of it, the same one in every process; `model_values.value_from` a value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import ConfigDict, Discriminator, Tag

__all__ = [
    "Choice",
    "DictOf",
    "FieldSpec",
    "ListOf",
    "ModelSpec",
    "OneOf",
    "OptionalOf",
    "Record",
    "ScalarName",
    "TupleOf",
    "TypeSpec",
]

STRICT = ConfigDict(extra="forbid", strict=True)

ScalarName = Literal[
    "str", "int", "float", "bool", "None", "Any", "Decimal", "UUID", "datetime", "date", "time", "timedelta"
]
"""`Any` stands for JSON of any shape; a `datetime` has a zone."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few texts: a `Literal`, or with `is_enum` a text `Enum` made for it."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    choices: tuple[str, ...]
    is_enum: bool = False


@dataclass(frozen=True, slots=True)
class ListOf:
    """`list[item]`."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    item: TypeSpec


@dataclass(frozen=True, slots=True)
class TupleOf:
    """`tuple[items[0], items[1], …]`; in a model only, since JSON has no tuples."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    items: tuple[TypeSpec, ...]


@dataclass(frozen=True, slots=True)
class DictOf:
    """`dict[str, value]`."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    value: TypeSpec


@dataclass(frozen=True, slots=True)
class OptionalOf:
    """`inner | None`."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    inner: TypeSpec


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """A field of a model or a record. With `has_default` some values leave it out."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    name: str
    type: TypeSpec
    alias: str | None = None
    has_default: bool = False


@dataclass(frozen=True, slots=True)
class Record:
    """A plain dict with these keys, declared as `dict[str, Any]`; a fan-out's output is one."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    record: tuple[FieldSpec, ...]


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A Pydantic model.

    `is_generic` makes the type of the first field a parameter of the class, `is_computed` adds a computed field,
    `base` has the model inherit the fields of another. Aliases are read beside names; `dumps_aliases` writes them too.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    fields: tuple[FieldSpec, ...]
    base: ModelSpec | None = None
    is_computed: bool = False
    is_generic: bool = False
    dumps_aliases: bool = False
    extra: Literal["ignore", "allow", "forbid"] = "ignore"

    @property
    def all_fields(self) -> tuple[FieldSpec, ...]:
        """The inherited fields and its own."""
        return (self.base.all_fields if self.base else ()) + self.fields


@dataclass(frozen=True, slots=True)
class OneOf:
    """A union of models, told apart by the field `kind`, which each of them gets."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    variants: tuple[ModelSpec, ...]


_BY_KEY = {
    "choices": "Choice",
    "item": "ListOf",
    "items": "TupleOf",
    "value": "DictOf",
    "inner": "OptionalOf",
    "record": "Record",
    "fields": "ModelSpec",
    "variants": "OneOf",
}


def _kind(spec: Any) -> str | None:
    if isinstance(spec, str):
        return "scalar"
    if isinstance(spec, dict):
        return next((kind for key, kind in _BY_KEY.items() if key in spec), None)
    return type(spec).__name__


TypeSpec: TypeAlias = Annotated[
    Annotated[ScalarName, Tag("scalar")]
    | Annotated[Choice, Tag("Choice")]
    | Annotated[ListOf, Tag("ListOf")]
    | Annotated[TupleOf, Tag("TupleOf")]
    | Annotated[DictOf, Tag("DictOf")]
    | Annotated[OptionalOf, Tag("OptionalOf")]
    | Annotated[Record, Tag("Record")]
    | Annotated[ModelSpec, Tag("ModelSpec")]
    | Annotated[OneOf, Tag("OneOf")],
    Discriminator(_kind),
]
"""Any of the types above. In JSON each is told by the key that only it has."""
