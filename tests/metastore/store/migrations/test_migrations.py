"""The schema that migrations make, and who may run them when."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import NullPool, create_engine, text

from eventbus.log.schema import metadata as of_events
from metastore.store import migrations
from metastore.store.registry import properties
from metastore.store.schema import metadata


def test_a_new_database_has_no_revision(postgres_url: str) -> None:
    assert migrations.current(postgres_url) is None


def test_migrations_make_what_the_code_expects(postgres_url: str) -> None:
    migrations.upgrade(postgres_url)
    assert migrations.current(postgres_url) == migrations.head()
    with create_engine(postgres_url, poolclass=NullPool).connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_server_default": True})
        assert compare_metadata(context, [metadata, of_events]) == []


def test_many_servers_may_start_at_once(postgres_url: str) -> None:
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: migrations.upgrade(postgres_url), range(4)))
    assert migrations.current(postgres_url) == migrations.head()


def make_newer(url: str, compatible_from: str) -> None:
    """As if a server had upgraded it that knows a revision 9999."""
    migrations.upgrade(url)
    with create_engine(url, poolclass=NullPool).begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
        properties.put(connection, "schema.compatible_from", compatible_from)


@pytest.mark.parametrize("use", [migrations.upgrade, migrations.check])
def test_a_newer_schema_is_left_alone(postgres_url: str, use: Callable[[str], None]) -> None:
    make_newer(postgres_url, "9998")
    with pytest.raises(migrations.SchemaTooNew, match="at revision 9999, for servers that know 9998"):
        use(postgres_url)
    assert migrations.schema(postgres_url) == ("9999", "9998")


@pytest.mark.parametrize("use", [migrations.upgrade, migrations.check])
def test_a_newer_schema_that_suits_this_server(postgres_url: str, use: Callable[[str], None]) -> None:
    make_newer(postgres_url, migrations.head())
    use(postgres_url)
    assert migrations.schema(postgres_url) == ("9999", migrations.head())


def test_no_schema_suits_nobody(postgres_url: str) -> None:
    with pytest.raises(migrations.SchemaTooOld, match=r"missing.*run: metastore db upgrade"):
        migrations.check(postgres_url)
