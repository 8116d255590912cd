"""A throw-away PostgreSQL server, with schemas of it as stores."""

from __future__ import annotations

from typing import Any

from n00dles_testing.servers import PostgresServer


class Postgres:
    """A server that runs; each schema of it is a store."""

    def __init__(self) -> None:
        self.server = PostgresServer().start()

    def url(self, schema: str = "n00dles", **options: object) -> str:
        more = "".join(f"&{name}={value}" for name, value in options.items())
        return f"{self.server.url}?schema={schema}{more}"

    def execute(self, sql: str) -> list[tuple[Any, ...]]:
        import psycopg

        with psycopg.connect(self.server.url, autocommit=True) as connection:
            cursor = connection.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []
