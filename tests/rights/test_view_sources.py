"""The tables that a materialized view is built from are objects of their own, and don't depend on hidden views."""

import itertools
from collections.abc import Callable, Iterator

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import CreateTableRequest, CreationMetadata, MetaException, SourceTable, Table
from tests.rights.conftest import as_user
from tests.rights.world import grant
from tests.support import builders
from tests.support.server import MetastoreServer

NUMBERS = itertools.count(1)


@pytest.fixture
def number(root: ThriftClient) -> int:
    """Database `vaultN` of a user `carlN` with a hidden table `t`, and `mineN` of a user `bobN` with a table `t`."""
    number = next(NUMBERS)
    for name, owner in (("vault", "carl"), ("mine", "bob")):
        root.create_database(builders.database(f"{name}{number}", ownerName=f"{owner}{number}"))
        root.create_table(builders.table(f"{name}{number}", owner=f"{owner}{number}"))
    return number


@pytest.fixture
def bob(guarded: MetastoreServer, number: int) -> Iterator[ThriftClient]:
    with as_user(guarded, f"bob{number}") as client:
        yield client


@pytest.fixture
def carl(guarded: MetastoreServer, number: int) -> Iterator[ThriftClient]:
    with as_user(guarded, f"carl{number}") as client:
        yield client


def built_from(database: str, source: str, form: str = "name") -> CreationMetadata:
    where, _, name = source.partition(".")
    if form == "name":
        return CreationMetadata("hive", database, "mv", {source})
    kept = SourceTable(Table(dbName=where, tableName=name), 0, 0, 0)
    return CreationMetadata("other" if form == "catalog" else "hive", database, "mv", set(), sourceTables=[kept])


def view(database: str, metadata: CreationMetadata) -> Table:
    return builders.table(database, "mv", tableType="MATERIALIZED_VIEW", creationMetadata=metadata)


def answer(call: Callable[[], object]) -> str:
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {getattr(error, 'message', error)}"
    return "done"


FORMS = ("name", "struct", "catalog")


@pytest.mark.parametrize("form", FORMS)
def test_a_hidden_source_is_a_missing_one(
    bob: ThriftClient, carl: ThriftClient, root: ThriftClient, number: int, form: str
) -> None:
    mine = f"mine{number}"
    bob.create_table(builders.table(mine, "mv", tableType="MATERIALIZED_VIEW"))
    old = bob.get_table(mine, "mv")

    def ways(source: str) -> list[Callable[[], object]]:
        metadata = built_from(mine, source, form)
        new = view(mine, metadata).replace(tableName="other")
        return [
            lambda: bob.create_table(new),
            lambda: bob.create_table_with_environment_context(new, None),
            lambda: bob.create_table_with_constraints(new, [], [], [], [], [], []),
            lambda: bob.create_table_req(CreateTableRequest(new)),
            lambda: bob.update_creation_metadata("hive", mine, "mv", metadata),
            lambda: bob.alter_table(mine, "mv", old.replace(creationMetadata=metadata)),
        ]

    hidden, missing = f"vault{number}.t", f"vault{number}.u"
    seen = [answer(call) for call in ways(hidden)]
    assert seen == [answer(call).replace(missing, hidden) for call in ways(missing)]
    assert all(f"{hidden} table not found" in each for each in seen), seen
    assert bob.get_all_tables(mine) == ["mv", "t"]
    assert bob.get_table(mine, "mv").creationMetadata is None
    carl.drop_table(f"vault{number}", "t", True)


def test_who_may_read_the_source_builds_a_view(bob: ThriftClient, root: ThriftClient, number: int) -> None:
    mine, vault = f"mine{number}", f"vault{number}"
    grant(root, f"bob{number}", "SELECT", vault, "t")
    bob.create_table(view(mine, built_from(mine, f"{vault}.t")))
    bob.update_creation_metadata("hive", mine, "mv", built_from(mine, f"{mine}.t"))
    assert bob.get_table(mine, "mv").creationMetadata.tablesUsed == {f"{mine}.t"}


def test_seeing_the_source_is_not_enough(bob: ThriftClient, root: ThriftClient, number: int) -> None:
    mine, vault = f"mine{number}", f"vault{number}"
    grant(root, f"bob{number}", "INSERT", vault, "t")
    assert "does not have [SELECT] privilege" in answer(
        lambda: bob.create_table(view(mine, built_from(mine, f"{vault}.t")))
    )


def test_an_alteration_needs_nothing_for_sources_that_were_there(
    bob: ThriftClient, root: ThriftClient, number: int
) -> None:
    mine = f"mine{number}"
    root.create_table(view(mine, built_from(mine, f"vault{number}.t")).replace(owner=f"bob{number}"))
    found = bob.get_table(mine, "mv")
    bob.alter_table(mine, "mv", found.replace(parameters={**found.parameters, "p": "v"}))
    assert bob.get_table(mine, "mv").parameters["p"] == "v"


@pytest.mark.parametrize("what", ["table", "database"])
def test_a_hidden_view_keeps_nobody_from_dropping(
    bob: ThriftClient, carl: ThriftClient, root: ThriftClient, number: int, what: str
) -> None:
    mine, vault = f"mine{number}", f"vault{number}"
    grant(root, f"bob{number}", "SELECT", vault, "t")
    bob.create_table(view(mine, built_from(mine, f"{vault}.t")))
    drop = {
        "table": lambda client: client.drop_table(vault, "t", True),
        "database": lambda client: client.drop_database(vault, True, True),
    }[what]
    with pytest.raises(MetaException, match=f"used in the following materialized views .{mine}.mv"):
        drop(root)  # sees the view
    drop(carl)
    assert bob.get_table(mine, "mv").creationMetadata.tablesUsed == {f"{vault}.t"}


def test_a_view_that_is_seen_does(bob: ThriftClient, carl: ThriftClient, root: ThriftClient, number: int) -> None:
    mine, vault = f"mine{number}", f"vault{number}"
    root.create_table(view(mine, built_from(mine, f"{vault}.t")))
    grant(root, f"carl{number}", "SELECT", mine, "mv")
    with pytest.raises(MetaException, match="used in the following materialized views"):
        carl.drop_table(vault, "t", True)
    assert carl.get_all_tables(vault) == ["t"]
