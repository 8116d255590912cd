"""A password that is not percent-encoded is told as that, and no part of it is shown."""

from __future__ import annotations

import pytest

from n00dles import ConfigurationError
from n00dles.stores import open_store
from n00dles.stores.raw_passwords import check_password_is_encoded

RAW = ["SEC@RET", "SEC/RET", "SEC?RET", "12/RET", "12?RET", "SEC/R@ET", "RET@"]


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "redis", "rediss"])
@pytest.mark.parametrize("password", RAW)
def test_a_password_that_is_not_encoded_is_refused_and_not_shown(scheme: str, password: str) -> None:
    with pytest.raises(ConfigurationError, match="percent-encode") as refused:
        open_store(f"{scheme}://app:{password}@127.0.0.1:1/0?timeout=1")

    assert "SEC" not in str(refused.value)
    assert "RET" not in str(refused.value)


@pytest.mark.parametrize(
    "url", ["redis://app:SEC#RET@127.0.0.1:1/0", "redis://app:12#RET@h/0", "unix://:SE/CRET@/tmp/x"]
)
def test_so_is_one_of_redis_that_a_fragment_or_the_path_of_a_socket_would_cut(url: str) -> None:
    with pytest.raises(ConfigurationError, match="percent-encode") as refused:
        open_store(url)

    assert "RET" not in str(refused.value)


@pytest.mark.parametrize("target", ["sqlite://app:SECRET@host/db", "memory://app:SECRET@host/db"])
def test_a_url_with_another_scheme_than_it_was_meant_for_is_not_quoted(target: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        open_store(target)

    assert "SECRET" not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://app:p%40ss%2F@db.internal:5432/app?schema=n00dles",
        "postgresql://app:p#ss@db.internal/app",
        "postgresql://app@h1:5432,h2:5433,h3/app?target_session_attrs=read-write",
        "postgresql://h1:5432,h2/app?user=me@corp",
        "postgresql:///app?host=/tmp/a@b",
        "postgresql://app@[::1]:5432/app",
        "redis://:secret@[::1]:6379/0",
        "redis://[::1]:6379/0?username=me@corp",
        "redis://host?username=me@corp",
        "redis://app:se:cret@host/0",
        "unix:///tmp/a@b.sock?db=0",
        "unix://:secret@/tmp/a.sock",
    ],
)
def test_an_at_sign_where_one_may_be_is_accepted(url: str) -> None:
    check_password_is_encoded(url, "…")
