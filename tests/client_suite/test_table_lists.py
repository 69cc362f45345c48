"""Finding tables: by pattern, by type, by names, by filter, across databases."""

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import GetTablesRequest, InvalidOperationException, MetaException, TableMeta, UnknownDBException
from tests.support.builders import database, external_table, table, view
from tests.support.expect import common, refused

NAME = "hive_filter_field_tableName__"
TYPE = "hive_filter_field_tableType__"
OWNER = "hive_filter_field_owner__"
ACCESS = "hive_filter_field_last_access__"
PARAMETER = "hive_filter_field_params__"


@pytest.fixture
def tables(client: ThriftClient, db: str) -> str:
    """A database with four tables."""
    client.create_table(table(db, "zeta"))
    client.create_table(table(db, "alpha", owner="ann", parameters={"comment": "hello", "n": "5"}))
    client.create_table(external_table(db, "beta_x", owner="bob", lastAccessTime=20, parameters={"n": "10"}))
    client.create_table(view(db, "v1", owner="ann", lastAccessTime=30))
    return db


class TestPatterns:
    @pytest.mark.parametrize(
        ("pattern", "found"),
        [
            ("*", ["alpha", "beta_x", "v1", "zeta"]),
            (".*", ["alpha", "beta_x", "v1", "zeta"]),
            ("a*", ["alpha"]),
            ("A*", ["alpha"]),
            ("*_*", ["beta_x"]),
            ("alpha|zeta", ["alpha", "zeta"]),
            ("a*|z*|nosuch", ["alpha", "zeta"]),
            ("beta.x", ["beta_x"]),
            ("zeta|", ["zeta"]),
            ("z", []),
            ("_", []),
            ("", []),
        ],
    )
    def test_get_tables(self, client: ThriftClient, tables: str, pattern: str, found: list[str]) -> None:
        assert client.get_tables(tables, pattern) == found

    def test_no_pattern_means_all(self, client: ThriftClient, tables: str) -> None:
        assert client.get_tables(tables) == ["alpha", "beta_x", "v1", "zeta"]

    def test_get_all_tables(self, client: ThriftClient, tables: str) -> None:
        assert client.get_all_tables(tables.upper()) == ["alpha", "beta_x", "v1", "zeta"]

    def test_a_missing_database_has_no_tables(self, client: ThriftClient) -> None:
        assert client.get_tables("no_such", "*") == []
        assert client.get_all_tables("no_such") == []

    def test_the_database_is_no_pattern(self, client: ThriftClient, tables: str) -> None:
        assert client.get_tables(tables + "*", "*") == []


class TestByType:
    @pytest.mark.parametrize(
        ("kind", "found"),
        [("MANAGED_TABLE", ["alpha", "zeta"]), ("EXTERNAL_TABLE", ["beta_x"]), ("VIRTUAL_VIEW", ["v1"])],
    )
    def test_by_type(self, client: ThriftClient, tables: str, kind: str, found: list[str]) -> None:
        assert client.get_tables_by_type(tables, "*", kind) == found

    def test_with_a_pattern(self, client: ThriftClient, tables: str) -> None:
        assert client.get_tables_by_type(tables, "a*", "MANAGED_TABLE") == ["alpha"]

    @pytest.mark.parametrize("kind", ["NOPE", "managed_table", ""])
    def test_an_unknown_type(self, client: ThriftClient, tables: str, kind: str) -> None:
        with refused(MetaException):
            client.get_tables_by_type(tables, "*", kind)


class TestTableMeta:
    def meta(self, client: ThriftClient, *arguments: object) -> list[TableMeta]:
        found = client.get_table_meta(*arguments)
        return sorted(
            (TableMeta(m.dbName, m.tableName, m.tableType, m.comments) for m in found),
            key=lambda m: (m.dbName, m.tableName),
        )

    def test_describes_tables_briefly(self, client: ThriftClient, tables: str) -> None:
        assert self.meta(client, tables, "*", []) == [
            TableMeta(tables, "alpha", "MANAGED_TABLE", "hello"),
            TableMeta(tables, "beta_x", "EXTERNAL_TABLE"),
            TableMeta(tables, "v1", "VIRTUAL_VIEW"),
            TableMeta(tables, "zeta", "MANAGED_TABLE"),
        ]

    def test_across_databases(self, client: ThriftClient, tables: str) -> None:
        other = tables + "_2"
        client.create_database(database(other))
        client.create_table(table(other, "alpha"))
        found = self.meta(client, f"{tables}*", "ALPHA", None)
        client.drop_database(other, True, True)
        assert [(m.dbName, m.tableName) for m in found] == [(tables, "alpha"), (other, "alpha")]

    def test_by_types(self, client: ThriftClient, tables: str) -> None:
        found = self.meta(client, tables, "*", ["VIRTUAL_VIEW", "EXTERNAL_TABLE", "NOSUCH"])
        assert [m.tableName for m in found] == ["beta_x", "v1"]

    def test_nothing_matches_an_empty_pattern(self, client: ThriftClient, tables: str) -> None:
        assert client.get_table_meta(tables, "", []) == []


class TestByNames:
    def test_the_tables_that_exist_each_once(self, client: ThriftClient, tables: str) -> None:
        found = client.get_table_objects_by_name(tables, ["zeta", "alpha", "no_such", "ALPHA", "alpha"])
        assert sorted(t.tableName for t in found) == ["alpha", "zeta"]
        assert all(common(t) == common(client.get_table(tables, t.tableName)) for t in found)

    def test_no_names(self, client: ThriftClient, tables: str) -> None:
        assert client.get_table_objects_by_name(tables, []) == []

    def test_missing_database(self, client: ThriftClient) -> None:
        with refused(UnknownDBException, message="Could not find database no_such"):
            client.get_table_objects_by_name("no_such", ["t"])

    def test_as_a_request(self, client: ThriftClient, tables: str) -> None:
        found = client.get_table_objects_by_name_req(GetTablesRequest(dbName=tables, tblNames=["alpha", "no_such"]))
        assert [t.tableName for t in found.tables] == ["alpha"]

    def test_a_request_with_a_missing_database(self, client: ThriftClient) -> None:
        with refused(UnknownDBException, message="Could not find database no_such"):
            client.get_table_objects_by_name_req(GetTablesRequest(dbName="no_such", tblNames=["t"]))

    def test_a_request_without_database_name(self, client: ThriftClient) -> None:
        with refused(UnknownDBException, message="DB name is null or empty"):
            client.get_table_objects_by_name_req(GetTablesRequest(dbName="", tblNames=["t"]))


class TestByFilter:
    def names(self, client: ThriftClient, db: str, text: str, limit: int = -1) -> list[str]:
        return sorted(client.get_table_names_by_filter(db, text, limit))

    @pytest.mark.parametrize(
        ("text", "found"),
        [
            (f'{OWNER} = "ann"', ["alpha", "v1"]),
            (f"{OWNER} = 'ann'", ["alpha", "v1"]),
            (f'"ann" = {OWNER}', ["alpha", "v1"]),
            (f'{OWNER} = "ANN"', []),
            (f'{OWNER} != "ann"', ["beta_x"]),
            (f'{OWNER} <> "ann"', ["beta_x"]),
            (f'{OWNER} like "a.*"', ["alpha", "v1"]),
            (f'{OWNER} like "a%"', []),
            (f'{OWNER} between "a" and "b"', ["alpha", "v1"]),
            (f"{ACCESS} = 20", ["beta_x"]),
            (f"{ACCESS} > 10", ["beta_x", "v1"]),
            (f"{ACCESS} < 25", ["alpha", "beta_x", "zeta"]),
            (f"{ACCESS} <> 0", ["beta_x", "v1"]),
            (f"{ACCESS} between 10 and 25", ["beta_x"]),
            (f'{PARAMETER}comment = "hello"', ["alpha"]),
            (f'{PARAMETER}n = "5"', ["alpha"]),
            (f"{PARAMETER}n = 5", ["alpha"]),
            (f'{PARAMETER}n <> "5"', ["beta_x"]),
            (f'{PARAMETER}comment like "h.*"', ["alpha"]),
            (f'{PARAMETER}EXTERNAL = "TRUE"', ["beta_x"]),
            (f'{PARAMETER}external = "TRUE"', []),
            (f'{PARAMETER}nosuch = "x"', []),
            (f'{ACCESS} >= 20 and {OWNER} = "ann"', ["v1"]),
            (f'{ACCESS} = 20 OR {OWNER} = "ann"', ["alpha", "beta_x", "v1"]),
            (f'(({OWNER} = "ann") AND ({ACCESS} < 10))', ["alpha"]),
            (f'{OWNER} = "ann" or {OWNER} = "bob" and {ACCESS} = 99', ["alpha", "v1"]),
            ("", ["alpha", "beta_x", "v1", "zeta"]),
        ],
    )
    def test_finds(self, client: ThriftClient, tables: str, text: str, found: list[str]) -> None:
        assert self.names(client, tables, text) == found

    @pytest.mark.hive4
    @pytest.mark.parametrize(
        ("text", "found"),
        [
            (f'{NAME} like "(?i)A.*"', ["alpha"]),
            (f'{NAME} like "(?i).*"', ["alpha", "beta_x", "v1", "zeta"]),
            (f'{NAME} like "A.*"', []),
            (f'{NAME} like ".eta.*"', ["beta_x", "zeta"]),
            (f'{NAME} like "beta_"', []),
            (f'{NAME} = "alpha" or {NAME} > "v"', ["alpha", "v1", "zeta"]),
            (f'{TYPE} = "VIRTUAL_VIEW"', ["v1"]),
            (f'{TYPE} = "EXTERNAL_TABLE" and {NAME} like "b.*"', ["beta_x"]),
        ],
    )
    def test_finds_by_name_and_type(self, client: ThriftClient, tables: str, text: str, found: list[str]) -> None:
        assert self.names(client, tables, text) == found

    @pytest.mark.parametrize("pattern", ["(", "a[", "a\\b", "*"])
    def test_what_is_no_regular_expression_is_a_pattern_too(
        self, client: ThriftClient, tables: str, pattern: str
    ) -> None:
        assert self.names(client, tables, f'{OWNER} like "{pattern}"') == []

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (f'{PARAMETER}n > "1"', "are supported operators for HIVE_FILTER_FIELD_PARAMS"),
            (f'{ACCESS} like "2.*"', "Like is not supported for HIVE_FILTER_FIELD_LAST_ACCESS"),
            ('owner = "ann"', "Invalid key name in filter"),
            (f'{OWNER}bogus = "x"', "Invalid key name in filter"),
            (OWNER, "Error parsing"),
            ("   ", "Error parsing"),
        ],
    )
    def test_refuses(self, client: ThriftClient, tables: str, text: str, message: str) -> None:
        with refused(MetaException, message=message):
            client.get_table_names_by_filter(tables, text, -1)

    def test_a_limit(self, client: ThriftClient, tables: str) -> None:
        assert len(self.names(client, tables, f"{ACCESS} >= 0", 2)) == 2
        assert self.names(client, tables, f"{ACCESS} >= 0", 0) == []

    def test_no_filter(self, client: ThriftClient, tables: str) -> None:
        with refused(InvalidOperationException):
            client.get_table_names_by_filter(tables, None, -1)

    def test_a_missing_database_has_no_tables(self, client: ThriftClient) -> None:
        assert self.names(client, "no_such", f'{OWNER} = "ann"') == []

    def test_no_database_name(self, client: ThriftClient) -> None:
        with refused(UnknownDBException, message="DB name is null or empty"):
            client.get_table_names_by_filter("", f'{OWNER} = "ann"', -1)
