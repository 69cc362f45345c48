"""Names of databases and tables in the stored form: lower-case, split into their parts."""

from typing import NamedTuple


class DatabaseName(NamedTuple):
    catalog: str
    database: str

    def __str__(self) -> str:
        return f"{self.catalog}.{self.database}"


class TableName(NamedTuple):
    catalog: str
    database: str
    table: str

    @property
    def of_database(self) -> DatabaseName:
        return DatabaseName(self.catalog, self.database)

    def __str__(self) -> str:
        return f"{self.database}.{self.table}"
