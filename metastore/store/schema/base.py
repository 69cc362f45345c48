"""The tables of the metastore's database.

What Hive's own schema spreads over a row per attribute is here one row per object: columns for what queries look
for, and a `body`, the rest of the object's Thrift encoding, which goes out as it is. Names compare bytewise
(COLLATE "C"), as Java compares strings.
"""

from sqlalchemy import BigInteger, Column, Identity, MetaData, Text

metadata = MetaData(
    naming_convention={
        "ix": "%(table_name)s_%(column_0_N_name)s_idx",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "fk": "%(table_name)s_%(column_0_N_name)s_fkey",
        "pk": "%(table_name)s_pkey",
    }
)

NAME = Text(collation="C")


def identifier() -> Column[int]:
    return Column("id", BigInteger, Identity(always=True), primary_key=True)
