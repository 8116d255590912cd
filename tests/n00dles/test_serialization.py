"""What may be stored, what is refused, and that what was stored comes back as the same value of the same types."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import json
import uuid
from collections import OrderedDict, namedtuple
from collections.abc import Callable
from typing import Annotated, Any, Generic, Literal, TypeVar

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
    ValidationError,
    computed_field,
    field_serializer,
    model_serializer,
)

from n00dles import SerializationError
from n00dles.errors import ConfigurationError
from n00dles.serialization import MAX_DEPTH, dumps, loads, restore, to_stored

texts = st.text(st.characters(exclude_categories=["Cs"]))
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([2**53 - 1, 2**53 + 1, 2**63, -(2**63) - 1, 10**40])
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([-0.0, 1e308, 5e-324])
    | texts
    | st.sampled_from(["\x00", "\ufeffBOM", "𝄞", "é", "e\u0301", "\u2028", "", " "])
)
json_values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4), max_leaves=20
)


def typed(value: Any) -> Any:
    """Return a form in which 1, 1.0 and True differ, and 0.0 and -0.0 too."""
    if isinstance(value, dict):
        return {key: typed(part) for key, part in value.items()}
    if isinstance(value, list):
        return [typed(part) for part in value]
    return type(value).__name__, repr(value)


@given(json_values)
def test_every_json_value_comes_back_with_its_types(value: Any) -> None:
    text = dumps(to_stored(value))

    back = loads(text)

    assert typed(back) == typed(value)


@given(json_values)
def test_a_stored_form_shares_nothing_with_the_value(value: Any) -> None:
    original = {"part": value, "list": [value]}
    before = dumps(original)

    stored = to_stored(original)
    assert isinstance(stored, dict)
    stored["part"] = "changed"
    listed = stored["list"]
    assert isinstance(listed, list)
    listed.append("more")
    if isinstance(listed[0], dict):
        listed[0]["new"] = 1

    assert dumps(original) == before


class Colour(enum.Enum):
    RED = "red"


class Text(str):
    __slots__ = ()


Point = namedtuple("Point", "x y")


@dataclasses.dataclass
class Plain:
    x: int = 1


class Opaque:
    pass


REFUSED: list[tuple[Any, str]] = [
    ((1, 2), "list"),
    ({1}, "sorted list"),
    (frozenset(), "sorted list"),
    (b"x", "base64"),
    (bytearray(b"x"), "base64"),
    (float("nan"), "None or text"),
    (float("inf"), "None or text"),
    (float("-inf"), "None or text"),
    ({1: "a"}, "text keys"),
    ({None: "a"}, "text keys"),
    ({True: "a"}, "text keys"),
    ({Text("a"): 1}, "text keys"),
    ("\ud800", "lone surrogate"),
    ({"\udfff": 1}, "lone surrogate"),
    (10**5000, "store text"),
    (datetime.datetime(2026, 11, 29, tzinfo=datetime.UTC), "isoformat"),
    (datetime.date(2026, 11, 29), "isoformat"),
    (decimal.Decimal("1.10"), "Pydantic model"),
    (uuid.UUID(int=1), "Pydantic model"),
    (Colour.RED, "value.value"),
    (enum.IntEnum("Level", "LOW").LOW, "value.value"),  # type: ignore[attr-defined]
    (Text("x"), "JSON types"),
    (OrderedDict(a=1), "dict(value)"),
    (Point(1, 2), "list"),
    (Plain(), "asdict"),
    (SecretStr("s"), "JSON types"),
    (ValueError("no"), "raise it"),
    (Opaque(), "JSON types"),
    (Opaque, "JSON types"),
    (iter([1]), "JSON types"),
    (1j, "JSON types"),
]


@pytest.mark.parametrize(("value", "advice"), REFUSED, ids=[type(value).__name__ for value, _ in REFUSED])
def test_what_json_cannot_hold_exactly_is_refused_with_advice(value: Any, advice: str) -> None:
    with pytest.raises(SerializationError) as caught:
        to_stored(value)

    assert advice in str(caught.value)
    assert "output" in caught.value.path


@given(
    st.lists(st.integers(0, 3) | st.sampled_from(["a", "é", "it's"]), max_size=6),
    st.sampled_from([(1,), {2}, b"x", float("nan"), Opaque()]),
)
def test_a_refusal_names_the_place_in_the_notation_of_python(steps: list[int | str], bad: Any) -> None:
    value, path = bad, ""
    for step in steps:
        value = {step: value, "other": 1} if isinstance(step, str) else [*[0] * step, value]
        path = f"[{step!r}]{path}"

    with pytest.raises(SerializationError) as caught:
        to_stored(value, "inputs['topic']")

    assert caught.value.path == "inputs['topic']" + path


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def test_nesting_is_taken_to_a_stated_depth_and_refused_beyond() -> None:
    deepest = nested(MAX_DEPTH)

    back = loads(dumps(to_stored(deepest)))
    with pytest.raises(SerializationError, match=f"more than {MAX_DEPTH} levels"):
        to_stored(nested(MAX_DEPTH + 1))

    assert back == deepest


def test_a_value_that_contains_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)

    with pytest.raises(SerializationError) as caught:
        to_stored(value)

    assert "contains itself" in caught.value.why


@pytest.mark.parametrize("text", ["NaN", '{"a": Infinity}', "[-Infinity]", "", "{", "[1,]", "\ufeff1"])
def test_what_is_no_strict_json_is_not_decoded(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        loads(text)


# Models.


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


# Back into a declared type.


def test_a_stored_form_is_validated_into_its_declared_type() -> None:
    stored = to_stored(Part(name="x", size=1.0))

    back = restore(stored, list[Part | None] | Part)

    assert back == Part(name="x", size=1.0)


@pytest.mark.parametrize("declared", [Any, dict, object], ids=str)
def test_a_restored_value_is_fresh_each_time(declared: Any) -> None:
    stored = to_stored({"list": [1]})

    restore(stored, declared)["list"].append(2)

    assert restore(stored, declared) == {"list": [1]}


def test_field_names_and_aliases_are_both_read() -> None:
    class Aliased(BaseModel):
        topic_name: str = Field(alias="topicName")

    by_name, by_alias = restore({"topic_name": "x"}, Aliased), restore({"topicName": "x"}, Aliased)

    assert by_name == by_alias == Aliased(topicName="x")


def test_what_does_not_fit_its_declared_type_is_an_error() -> None:
    with pytest.raises(ValidationError):
        restore("text", int)

    assert restore("12", str) == "12"


def test_the_order_of_a_union_is_kept_though_python_calls_both_orders_equal() -> None:
    class Draft(BaseModel):
        title: str

    class Final(BaseModel):
        title: str

    first: Any = Draft | Final
    other: Any = Final | Draft

    values = [restore({"title": "x"}, declared) for declared in (first, other)]

    assert first == other
    assert values == [Draft(title="x"), Final(title="x")]


def test_an_annotation_that_cannot_be_hashed_is_checked_too() -> None:
    declared: Any = Annotated[int, {"un": "hashable"}, Field(gt=1)]

    assert restore(2, declared) == 2
    with pytest.raises(ValidationError):
        restore(1, declared)


def test_an_annotation_without_a_schema_says_what_to_do() -> None:
    with pytest.raises(ConfigurationError, match="Annotate with JSON types or a Pydantic model"):
        restore({"x": 1}, Opaque)
