"""Specs as text: exact, the same everywhere, and strict when they are read."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from n00dles import InMemoryStateStore, run
from n00dles.errors import ConfigurationError, InputsError
from n00dles_testing.crash.typed import canonical, encode
from n00dles_testing.strategies import (
    ALWAYS,
    ATTEMPTS_VARIABLE,
    BranchSpec,
    Choice,
    FanOutSpec,
    FieldSpec,
    InputSpec,
    ListOf,
    ModelSpec,
    NestedSpec,
    NodeSpec,
    OneOf,
    OptionalOf,
    ParameterSpec,
    PipelineSpec,
    RouteSpec,
    SpecError,
    TupleOf,
    build,
    describe,
    from_json,
    from_token,
    predict,
    target_of,
    to_json,
    to_token,
)
from n00dles_testing.strategies.check import check
from n00dles_testing.targets import load_target
from n00dles_testing.targets import target_of as address_of

ROOT = Path(__file__).parents[3]
TITLE = FieldSpec("title", "str")
PLAIN = PipelineSpec((NodeSpec("a", "str"),))

# One of everything.
WHOLE = PipelineSpec(
    (
        NodeSpec(
            "a",
            ModelSpec(
                (
                    FieldSpec("category", Choice(("x", "y"), is_enum=True)),
                    FieldSpec("due", OptionalOf("datetime"), alias="dueAt", has_default=True),
                    FieldSpec("part", OneOf((ModelSpec((TITLE,)), ModelSpec((FieldSpec("total", "Decimal"),))))),
                    FieldSpec("pair", TupleOf(("UUID", "timedelta"))),
                ),
                base=ModelSpec((TITLE,)),
                dumps_aliases=True,
            ),
            (ParameterSpec("x", "input", "Any"),),
            is_annotated=True,
            fails=1,
            retry=2,
        ),
        BranchSpec(
            (RouteSpec(("x",), NestedSpec((NodeSpec("b", "int"), NodeSpec("c", ListOf("str"))), name="part")),),
            NodeSpec("d", "Any", is_sync=True, payload='[-0.0, 10000000000000000000000, "\\u0000"]'),
        ),
        FanOutSpec((NodeSpec("e", "str", is_model=True), NodeSpec("f", "None", pauses=2)), max_concurrency=1),
        NodeSpec("g", "str", (ParameterSpec("c", "maybe", default="null"), ParameterSpec("e", "step"))),
    ),
    (InputSpec("x", '{"a":[1,1.0,true,null,-0.0]}'),),
    retry=2,
)


def test_a_spec_survives_its_text_and_its_token() -> None:
    assert from_json(to_json(WHOLE)) == WHOLE
    assert from_token(to_token(WHOLE)) == WHOLE
    assert hash(from_token(to_token(WHOLE))) == hash(WHOLE)


def test_a_token_is_one_word_for_any_shell() -> None:
    token = to_token(WHOLE)

    assert token.replace("_", "").replace("-", "").isalnum()
    assert token.isascii()
    assert len(to_token(PLAIN)) < 80


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "Invalid JSON"),
        ("{", "Invalid JSON"),
        ("[]", "should be an object"),
        ("{}", "steps: Field required"),
        ('{"steps":[]}', "has no step"),
        ('{"steps":[{"name":"a"}]}', "steps.0: Unable to extract tag"),
        ('{"steps":[{"name":"a","output":"str","eval":"1"}]}', "eval: Unexpected keyword argument"),
        ('{"steps":[{"name":"a","output":"os.system"}]}', "output"),
        ('{"steps":[{"name":"a","output":{"exec":"1"}}]}', "output: Unable to extract tag"),
        ('{"steps":[{"name":"a","output":"str","fails":"1"}]}', "fails: Input should be a valid integer"),
        ('{"steps":[{"name":"a","output":"str","fails":true}]}', "fails: Input should be a valid integer"),
        ('{"steps":[{"name":"a b","output":"str"}]}', "cannot be a name"),
        ('{"steps":[{"name":"a","output":"str"},{"name":"a","output":"str"}]}', "'a' is used twice"),
        ('{"steps":[{"name":"a","output":"Decimal"}]}', "JSON does not have"),
        ('{"steps":[{"name":"a","output":"str","payload":"NaN"}]}', "payload of node 'a' is no JSON"),
        ('{"steps":[{"name":"a","output":"str"}],"inputs":[{"name":"x","value":"1"}]}', "'x' is read by no node"),
        ('{"steps":[{"name":"a","output":"str"}],"inputs":[{"name":"store","value":"1"}]}', "takes for itself"),
        ('{"steps":[{"name":"a","output":"str","retry":0}]}', "has 0 attempts"),
        ('{"steps":[{"members":[{"name":"a","output":"str"}]}]}', "fewer than two members"),
        ('{"steps":[{"steps":[{"name":"a","output":"str"}]}]}', "would melt"),
        ("[" * 5000, "recursion"),
        ('{"retry":' + "9" * 5000 + "}", "no spec"),
    ],
)
def test_a_damaged_spec_is_refused_with_place_and_reason(text: str, reason: str) -> None:
    with pytest.raises(SpecError) as error:
        from_json(text)

    assert reason in str(error.value)


def nested(levels: int) -> PipelineSpec:
    step: Any = NodeSpec("a", "str")
    for level in range(levels):
        step = NestedSpec((step,), name=f"n{level}")
    return PipelineSpec((step,))


READS_INPUT_AND_NODE = (ParameterSpec("x", "input", "str"), ParameterSpec("a", "step"))
# Node c is never called: node a always answers "x". `run` looks at what it declares nevertheless.
ROUTED = PipelineSpec(
    (
        NodeSpec("a", Choice(("x", "y")), (ParameterSpec("x", "input"),)),
        BranchSpec(
            (
                RouteSpec(("x",), NodeSpec("b", "str")),
                RouteSpec(
                    ("y",), NodeSpec("c", "str", (ParameterSpec("x", "input", "str"), ParameterSpec("a", "step")))
                ),
            )
        ),
    ),
    (InputSpec("x", '"text"'),),
)


def test_an_input_fits_what_each_route_declares_for_it_whether_it_is_taken_or_not() -> None:
    check(ROUTED)

    assert predict(ROUTED).finishes
    with pytest.raises(InputsError):
        run(build(ROUTED), store=InMemoryStateStore(), x=None)


def read(source: Any, name: str = "x", default: str | None = None) -> PipelineSpec:
    return PipelineSpec((NodeSpec("a", "str"), NodeSpec("b", "str", (ParameterSpec(name, source, default=default),))))


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        (nested(50), "levels deep"),
        (PipelineSpec(tuple(NodeSpec(f"n{i}", "str") for i in range(300))), "the limit is 200"),
        (read("input"), "is said to come from 'input', and comes from 'previous'"),
        (PipelineSpec((NodeSpec("a", "str", (ParameterSpec("x", "input"),)),)), "and comes from None"),
        (PipelineSpec((BranchSpec((RouteSpec(("x",), NodeSpec("a", "str")),)),)), "no step before it"),
        (
            PipelineSpec((NodeSpec("a", "str"), BranchSpec((RouteSpec(("x",), NodeSpec("b", "str")),)))),
            "has no default",
        ),
        (PipelineSpec((NodeSpec("a", ModelSpec((FieldSpec("model_dump", "str"),))),)), "cannot be the name of one"),
        (PipelineSpec((NodeSpec("a", ModelSpec((TITLE, TITLE))),)), "two fields"),
        (PipelineSpec((NodeSpec("a", "str", fails=1, failure="mistyped"),)), "declares no type"),
        (PipelineSpec((NodeSpec("a", "str", fallback=NodeSpec("b", "int")),)), "would not answer as node 'a' does"),
        (PipelineSpec((NodeSpec("a", "str", fails=-2),)), "no number of times"),
        (
            replace(ROUTED, inputs=(InputSpec("x", "null"),)),
            "the input 'x' is null, which does not fit what node 'c' declares for it",
        ),
    ],
)
def test_what_could_not_run_is_no_spec(spec: PipelineSpec, reason: str) -> None:
    with pytest.raises(SpecError) as error:
        check(spec)

    assert reason in str(error.value)


@pytest.mark.parametrize("damage", ["", "x", "n1", "n1!!!!", "cut", "tail", "flip", "bomb"])
def test_a_damaged_token_is_refused(damage: str) -> None:
    token = to_token(WHOLE)
    damaged = {
        "cut": token[:-9],
        "tail": token + "AAAA",
        "flip": token[:40] + ("A" if token[40] != "A" else "B") + token[41:],
        "bomb": bomb(),
    }.get(damage, damage)

    with pytest.raises(SpecError):
        from_token(damaged)


def bomb() -> str:
    return "n1" + base64.urlsafe_b64encode(zlib.compress(b" " * 50_000_000, 9)).decode().rstrip("=")


def test_the_error_is_one_that_the_command_line_shows() -> None:
    assert issubclass(SpecError, ConfigurationError)


ELSEWHERE = """
import json, sys
from n00dles import InMemoryStateStore, run
from n00dles_testing.crash.typed import canonical, encode
from n00dles_testing.strategies import from_token, predict
from n00dles_testing.targets import load_target

place = sys.argv[1]
spec = from_token(place.partition(":")[2])
made = load_target(place, "pipeline")
result = run(made, store=InMemoryStateStore(), **spec.input_values())
print(json.dumps({"output": canonical(encode(result.output)), "signature": made.signature(),
                  "predicted": canonical(encode(predict(spec).output))}))
"""


def test_a_token_gives_the_same_pipeline_in_a_fresh_interpreter(tmp_path: Path) -> None:
    here = run(build(WHOLE), store=InMemoryStateStore(), **WHOLE.input_values())
    environment = {**os.environ, "PYTHONHASHSEED": "77", ATTEMPTS_VARIABLE: str(tmp_path / "attempts")}

    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE, target_of(WHOLE)],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment,
        timeout=60,
    )

    assert done.returncode == 0, done.stderr
    there = json.loads(done.stdout)
    assert there["output"] == there["predicted"] == canonical(encode(here.output))
    assert there["signature"] == build(WHOLE).signature()


def test_a_pipeline_of_a_token_can_be_named_again() -> None:
    made = load_target(target_of(PLAIN), "pipeline")

    assert address_of(made) == target_of(PLAIN)
    assert load_target(target_of(PLAIN), "pipeline") is made


def test_a_damaged_target_is_a_configuration_error() -> None:
    with pytest.raises(ConfigurationError, match="copy it whole"):
        load_target(target_of(WHOLE)[:-6], "pipeline")
    with pytest.raises(ConfigurationError, match="has no 'other'"):
        load_target("n00dles_testing.strategies.replayed:other", "pipeline")


def test_a_spec_is_described_in_short_python_like_text() -> None:
    assert describe(WHOLE) == (
        "pipeline(a >> branch(x=pipeline(b >> c, name='part'), default=d) "
        ">> parallel(e, f, max_concurrency=1) >> g, retry=2)"
    )
    assert describe(PipelineSpec((NodeSpec("a", "str", fails=ALWAYS, retry=3),)), nodes=True) == (
        "pipeline(a)\n  async def a() -> ? (str): always fails, retry=3"
    )


def test_every_node_and_input_has_a_line() -> None:
    lines = describe(WHOLE, nodes=True).splitlines()

    assert [line.strip().split("(")[0] for line in lines[1:-1]] == [
        *("async def a", "async def b", "async def c", "def d", "model e", "async def f", "async def g"),
    ]
    assert lines[-1] == '  input x = {"a":[1,1.0,true,null,-0.0]}'
    assert "fails 1, retry=2" in lines[1]
    assert predict(WHOLE).finishes
