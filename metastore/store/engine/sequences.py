"""The sequences that give rows their ids."""

from sqlalchemy import ARRAY, Connection, Text, bindparam, text

from metastore.store import schema

_FAR = 1_000_000_000

# The fraction keeps sequences of 32 bits from their end, however often they are advanced.
_ADVANCE = text(
    "SELECT setval(format('%I.%I', schemaname, sequencename)::regclass,"
    " coalesce(last_value, 0) + least(:far, (max_value - coalesce(last_value, 0)) / 1000))"
    " FROM pg_sequences WHERE schemaname = current_schema() AND sequencename = ANY(:names)"
).bindparams(bindparam("names", type_=ARRAY(Text)), far=_FAR)


def advance_all(tx: Connection) -> None:
    """Advances the sequences of all tables, so that no id is given again that a lost part of the database had given."""
    names = [
        f"{table.name}_{column.name}_seq"
        for table in schema.metadata.tables.values()
        for column in table.columns
        if column.identity is not None
    ]
    tx.execute(_ADVANCE, {"names": names})
