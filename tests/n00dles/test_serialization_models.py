"""Models: stored as their dump, back as themselves; what a dump would drop, hide or change is refused."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import json
import uuid
from collections.abc import Callable
from typing import Any, Generic, Literal, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    RootModel,
    Secret,
    SecretBytes,
    SecretStr,
    SerializeAsAny,
    computed_field,
    field_serializer,
    model_serializer,
)

from n00dles import SerializationError
from n00dles.serialization import dumps, loads, restore, to_stored
from tests.n00dles.exact import typed

texts = st.text(st.characters(exclude_categories=["Cs"]))


class Level(enum.Enum):
    LOW = 1
    HIGH = 2


class Part(BaseModel):
    name: str
    size: float | None = None


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    tricks: list[str] = []


T = TypeVar("T")


class Box(BaseModel, Generic[T]):
    content: T


class Everything(BaseModel):
    model_config = ConfigDict(extra="allow")

    when: datetime.datetime
    day: datetime.date
    took: datetime.timedelta
    price: decimal.Decimal
    level: Level
    id: uuid.UUID
    title: str = Field(alias="headline")
    part: Part
    parts: dict[str, list[Part]]
    pet: Cat | Dog = Field(discriminator="kind")
    either: int | str | list[int]
    box: Box[int]
    numbers: frozenset[int]
    pair: tuple[int, str]
    by_number: dict[int, str]
    maybe: Part | None = None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def shout(self) -> str:
        return self.title.upper()


def aware(naive: datetime.datetime, minutes: int) -> datetime.datetime:
    return naive.replace(tzinfo=datetime.timezone(datetime.timedelta(minutes=minutes)))


parts = st.builds(Part, name=texts, size=st.none() | st.floats(allow_nan=False, allow_infinity=False))
everything = st.builds(
    Everything,
    when=st.builds(
        aware, st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2200, 1, 1)), st.integers(-720, 720)
    ),
    day=st.dates(),
    took=st.timedeltas(datetime.timedelta(days=-999), datetime.timedelta(days=999)),
    price=st.decimals(allow_nan=False, allow_infinity=False),
    level=st.sampled_from(Level),
    id=st.uuids(),
    headline=texts,
    part=parts,
    parts=st.dictionaries(texts, st.lists(parts, max_size=2), max_size=2),
    pet=st.builds(Cat, lives=st.integers(0, 9)) | st.builds(Dog, tricks=st.lists(texts, max_size=2)),
    either=st.integers(-(2**60), 2**60) | texts | st.lists(st.integers(0, 9), max_size=2),
    box=st.builds(Box[int], content=st.integers()),
    numbers=st.frozensets(st.integers(), max_size=3),
    pair=st.tuples(st.integers(), texts),
    by_number=st.dictionaries(st.integers(), texts, max_size=3),
    maybe=st.none() | parts,
    remark=texts,
)


@given(everything)
def test_a_model_of_many_shapes_becomes_its_dump_and_comes_back_as_itself(model: Everything) -> None:
    text = dumps(to_stored(model))

    stored = loads(text)
    back = restore(stored, Everything)

    assert typed(stored) == typed(json.loads(json.dumps(model.model_dump(mode="json"))))
    assert back.model_dump(exclude={"shout"}) == model.model_dump(exclude={"shout"})
    assert type(back.pet) is type(model.pet)


class Base(BaseModel):
    model_config = ConfigDict(frozen=True)

    a: int = 1


class Child(Base):
    b: int = 2


class InField(BaseModel):
    item: Base = Child()


class InList(BaseModel):
    items: list[Base] = [Child()]


class InDict(BaseModel):
    items: dict[str, tuple[Base, ...]] = {"k": (Base(), Child())}


class InSet(BaseModel):
    items: set[Base] = {Child()}


class InRoot(RootModel[list[Base]]):
    root: list[Base] = [Child()]


class ByAlias(BaseModel):
    model_config = ConfigDict(serialize_by_alias=True)

    item: Base = Field(default=Child(), alias="theItem")


@dataclasses.dataclass
class BasePlain:
    a: int = 1


@dataclasses.dataclass
class ChildPlain(BasePlain):
    b: int = 2


class InDataclass(BaseModel):
    item: BasePlain = ChildPlain()


DROPPING: list[tuple[BaseModel, str]] = [
    (InField(), "output.item"),
    (InList(), "output.items[0]"),
    (InDict(), "output.items['k'][1]"),
    (InSet(), "output.items[0]"),
    (InRoot(), "output[0]"),
    (ByAlias(), "output.item"),
    (InDataclass(), "output.item"),
    (InField.model_construct(item=Child()), "output.item"),
]


@pytest.mark.parametrize(("model", "path"), DROPPING, ids=[type(model).__name__ for model, _ in DROPPING])
def test_a_subclass_whose_fields_a_dump_would_drop_is_refused(model: BaseModel, path: str) -> None:
    with pytest.raises(SerializationError) as caught:
        to_stored(model)

    assert caught.value.path == path
    assert "whose b would be dropped" in caught.value.why


class AsAny(BaseModel):
    item: SerializeAsAny[Base] = Child()


class OrChild(BaseModel):
    item: Child | Base = Child()


class Untyped(BaseModel):
    item: Any = None


@pytest.mark.parametrize("model", [AsAny(), OrChild(), Untyped(item=Child())])
def test_a_subclass_that_a_dump_keeps_is_stored(model: BaseModel) -> None:
    stored = to_stored(model)

    assert stored == {"item": {"a": 1, "b": 2}}


class Holder(BaseModel):
    password: Any = None


class Hashed(BaseModel):
    """Its own serializer shows the asterisks, in another place."""

    secret: SecretStr

    @model_serializer
    def shown(self) -> dict[str, Any]:
        return {"holds": [self.secret]}


@dataclasses.dataclass
class PlainHolder:
    password: SecretStr


SECRETS: list[BaseModel] = [
    Holder(password=SecretStr("s")),
    Holder(password=SecretBytes(b"s")),
    Holder(password=Secret(7)),
    Holder(password=[{"deep": SecretStr("s")}]),
    Holder(password=Holder(password=(SecretStr("s"),))),
    Holder(password=PlainHolder(SecretStr("s"))),
    Hashed(secret=SecretStr("s")),
]


@pytest.mark.parametrize("model", SECRETS, ids=range(len(SECRETS)))
def test_a_secret_is_refused_rather_than_stored_as_asterisks(model: BaseModel) -> None:
    with pytest.raises(SerializationError) as caught:
        to_stored(model)

    assert "asterisks" in caught.value.why
    assert caught.value.path.startswith("output.")


class Revealed(BaseModel):
    password: SecretStr

    @field_serializer("password")
    def plain(self, secret: SecretStr) -> str:
        return secret.get_secret_value()


class Excluded(BaseModel):
    password: SecretStr = Field(default=SecretStr("s"), exclude=True)
    user: str = "u"


@pytest.mark.parametrize(
    ("model", "stored"),
    [(Revealed(password=SecretStr("s")), {"password": "s"}), (Excluded(), {"user": "u"})],
    ids=["revealed", "excluded"],
)
def test_a_secret_is_stored_or_left_out_on_purpose(model: BaseModel, stored: Any) -> None:
    assert to_stored(model) == stored


class Opaque:
    pass


class Broken(BaseModel):
    @computed_field  # type: ignore[prop-decorator]
    @property
    def ratio(self) -> float:
        return 1 / 0


class Keys(BaseModel):
    table: dict[int | str, str]


class Needs(BaseModel):
    value: int


class Swapped(BaseModel):
    a: int = Field(alias="b")
    b: int = Field(alias="a")


def mistyped() -> BaseModel:
    model = Needs(value=1)
    model.value = "text"  # type: ignore[assignment]
    return model


UNDUMPABLE: list[tuple[Callable[[], BaseModel], str, str]] = [
    (Broken, "output", "division by zero"),
    (lambda: Keys(table={1: "a", "1": "b"}), "output.table", "does not tell apart"),
    (lambda: Untyped(item=[float("nan")]), "output.item[0]", "nan"),
    (lambda: Untyped(item=b"\xff"), "output", "utf-8"),
    (lambda: Untyped(item="\ud800"), "output['item']", "lone surrogate"),
    (lambda: Untyped(item=Opaque()), "output", "cannot be dumped"),
    (Needs.model_construct, "output", "never set"),
    (mistyped, "output", "Expected `int`"),
    (lambda: Swapped(a=1, b=2), "output", "alias"),
    (lambda: Part(name="x", size=float("inf")), "output", "inf"),
]


@pytest.mark.parametrize(("make", "path", "why"), UNDUMPABLE, ids=range(len(UNDUMPABLE)))
def test_a_model_that_would_not_come_back_is_refused(make: Callable[[], BaseModel], path: str, why: str) -> None:
    model = make()

    with pytest.raises(SerializationError) as caught:
        to_stored(model)

    assert caught.value.path.startswith(path)
    assert why in caught.value.why


class Trimmed(BaseModel):
    """What its own serializer leaves out is left out on purpose."""

    item: Base = Child()
    note: str | None = Field(default=None, exclude_if=lambda value: value is None)

    @field_serializer("item")
    def short(self, item: Base) -> dict[str, int]:
        return {"a": item.a}


def test_what_a_model_leaves_out_on_purpose_is_left_out() -> None:
    assert to_stored(Trimmed()) == {"item": {"a": 1}}
    assert to_stored(Trimmed(note="kept")) == {"item": {"a": 1}, "note": "kept"}
