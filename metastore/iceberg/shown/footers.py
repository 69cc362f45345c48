"""What the footers of data files say, whatever their format is."""

from typing import NamedTuple

from metastore.iceberg.errors import bad_request, unavailable
from metastore.warehouse import Warehouse, WarehouseError

PARQUET, ORC = "PARQUET", "ORC"
"""Formats of files, by the names that Iceberg has for them."""

MAX_FOOTER = 32 << 20
"""Of a footer, in bytes."""

INT32, INT64, BYTE_ARRAY, FIXED = 1, 2, 6, 7
"""Parquet's physical types whose figures are kept."""


class Kind(NamedTuple):
    """How a file has a column. `physical`: Parquet's type. `logical`: what its values are, "" for just that.

    `scale`: of decimals. `utc`: of timestamps, whether they are instants.
    """

    physical: int
    logical: str = ""
    scale: int = 0
    utc: bool = False


class Figures(NamedTuple):
    """Of a column without parts. `lowest`, `highest`: as the file has them, the first bytes of long ones.

    None is what the file doesn't say. `rows`, `nulls`: counts. `id`: the field id.
    """

    name: str
    id: int | None
    kind: Kind
    rows: int
    nulls: int | None
    lowest: bytes | None
    highest: bytes | None


class Footer(NamedTuple):
    """`columns`: names as the file has them. `has_ids`: whether any column, or a part of one, has a field id.

    `parts`: names of all that is in nested columns, each behind its column's name.
    """

    rows: int
    columns: tuple[str, ...]
    has_ids: bool
    figures: tuple[Figures, ...] = ()
    parts: tuple[tuple[str, str], ...] = ()


def read_end(warehouse: Warehouse, location: str, size: int, length: int) -> bytes:
    """The last bytes of a file. As `read_range`."""
    return read_range(warehouse, location, size, size - length, length)


def read_range(warehouse: Warehouse, location: str, size: int, start: int, length: int) -> bytes:
    """Some bytes of a file. Raises RestError: 503 if they can't be read, 400 if the file has another size."""
    try:
        found = warehouse.read_range(location, start, length)
    except WarehouseError as error:
        raise unavailable(f"a footer can't be read: {error}") from None
    if len(found) != length or not length:
        raise bad_request(f"{location} hasn't the {size} bytes that its writer said")
    return found
