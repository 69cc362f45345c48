"""Names of tables, as people write them."""

from lake.protocol.lake import TableReference


def reference(table: str | TableReference) -> TableReference:
    """`database.table` or `catalog.database.table` as the server takes it. Raises ValueError for another form."""
    if isinstance(table, TableReference):
        return table
    parts = table.split(".")
    if len(parts) not in (2, 3) or not all(parts):
        raise ValueError(f"{table!r} is not of the form database.table")
    return TableReference(catalog=parts[0] if len(parts) == 3 else None, database=parts[-2], table=parts[-1])
