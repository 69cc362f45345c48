"""Texts leave as Postgres encodes them, so that must be UTF-8, whatever others have set."""

from collections.abc import Callable

import pytest
from sqlalchemy import NullPool, create_engine, func, make_url, select, text

from metastore.store import Database, migrations
from metastore.store.engine import binary_rows
from tests.support.postgres import Postgres

SNAKE = "ä\U0001f40d"


def check_encoding(url: str) -> None:
    """What tells lengths, and what sends texts, must be of one mind."""
    database = Database(url)
    with database.read() as tx:
        [row] = binary_rows.fetch(tx, select(func.textsend(SNAKE), func.int4send(func.octet_length(SNAKE))))
    database.close()
    assert binary_rows.values(row) == [SNAKE.encode(), len(SNAKE.encode()).to_bytes(4)]


def test_settings_of_a_database_for_its_clients_are_overruled(postgres_url: str) -> None:
    with create_engine(postgres_url, poolclass=NullPool).begin() as connection:
        connection.execute(text(f"ALTER DATABASE {make_url(postgres_url).database} SET client_encoding = 'LATIN1'"))
    check_encoding(postgres_url)


def test_settings_of_the_environment_are_overruled(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    check_encoding(postgres_url)


@pytest.mark.parametrize("use", [migrations.upgrade, migrations.check])
def test_a_database_that_is_not_in_utf8_is_refused(postgres: Postgres, use: Callable[[str], None]) -> None:
    admin = create_engine(postgres.url("postgres"), isolation_level="AUTOCOMMIT", poolclass=NullPool)
    with admin.connect() as connection:
        connection.execute(text("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0"))
        with pytest.raises(migrations.WrongEncoding, match=r"in LATIN1.*ENCODING 'UTF8'"):
            use(postgres.url("latin"))
        connection.execute(text("DROP DATABASE latin"))
