"""The names that n00dles gives, and what importing it costs."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

import pytest

import n00dles
from n00dles import errors
from tests.n00dles.processes import python

DESIGNED = [
    *("agent", "pipeline", "parallel", "branch", "run", "arun", "resume", "aresume", "configure"),
    *(
        "RetryPolicy",
        "RunResult",
        "AgentTrace",
        "PipelineContext",
        "StateStore",
        "InMemoryStateStore",
        "SQLiteStateStore",
        "PostgresStateStore",
        "RedisStateStore",
    ),
    *(
        "PipelineFailure",
        "AgentOutputError",
        "BranchError",
        "SerializationError",
        "StateStoreError",
        "StaleContextError",
    ),
    *("CorruptCheckpointError", "RunLockedError", "RunNotFoundError", "PipelineChangedError", "InputsChangedError"),
    *("Provider", "LLMResponse"),
]


def test_every_public_name_exists_and_every_designed_one_is_public() -> None:
    missing = [name for name in n00dles.__all__ if not hasattr(n00dles, name)]

    assert missing == []
    assert set(DESIGNED) <= set(n00dles.__all__)
    assert len(set(n00dles.__all__)) == len(n00dles.__all__)


def test_all_errors_are_in_one_hierarchy_and_a_store_error_is_no_failure_of_a_node() -> None:
    classes = [getattr(errors, name) for name in errors.__all__]

    assert all(issubclass(each, errors.N00dlesError) for each in classes)
    assert not issubclass(errors.StateStoreError, errors.PipelineFailure)
    for each in (
        errors.StaleContextError,
        errors.CorruptCheckpointError,
        errors.RunLockedError,
        errors.RunNotFoundError,
        errors.PipelineChangedError,
        errors.InputsChangedError,
        errors.StoreVersionError,
        errors.ReadOnlyStoreError,
    ):
        assert issubclass(each, errors.StateStoreError)


@pytest.mark.parametrize("name", sorted(set(n00dles.__all__) - {"Observer"}))
def test_every_public_name_says_what_it_is_for(name: str) -> None:
    value = getattr(n00dles, name)

    assert value.__doc__.strip()


def test_the_package_is_typed() -> None:
    assert resources.files(n00dles).joinpath("py.typed").is_file()


def test_an_import_brings_in_nothing_that_a_run_may_not_need(tmp_path: Path) -> None:
    loaded = json.loads(python("import json, sys, n00dles; print(json.dumps(sorted(sys.modules)))", cwd=tmp_path))

    heavy = {"openai", "anthropic", "pytest", "hypothesis", "httpx", "httpx2", "rich", "click", "jinja2", "respx"}
    heavy |= {"psycopg", "psycopg_binary", "redis", "opentelemetry"}
    assert heavy.isdisjoint({name.partition(".")[0] for name in loaded})
    assert not any(name.startswith("n00dles_testing") for name in loaded)


def test_the_drivers_of_shared_stores_are_needed_by_whoever_opens_one_and_named_then(tmp_path: Path) -> None:
    code = """
import asyncio, json, sys
sys.modules.update(psycopg=None, redis=None)
from n00dles import *
from n00dles.stores import open_store
said = []
for url in ("postgresql://host/database", "redis://host"):
    try:
        asyncio.run(open_store(url).load("r"))
    except ConfigurationError as error:
        said.append(str(error))
print(json.dumps(said))
"""

    postgres, redis = json.loads(python(code, cwd=tmp_path))

    assert "needs psycopg 3: pip install 'n00dles-testing[postgres]'" in postgres
    assert "needs the package redis; install it with: pip install 'n00dles-testing[redis]'" in redis
