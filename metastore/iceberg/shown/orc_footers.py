"""What the footers of ORC files say, by Arrow's reader."""

import io
from collections.abc import Iterator
from typing import Any

from metastore.iceberg.errors import RestError, bad_request
from metastore.iceberg.shown.footers import MAX_FOOTER, Footer, read_range
from metastore.warehouse import Warehouse

_ID = b"iceberg.id"


def orc_footer(warehouse: Warehouse, location: str, size: int) -> Footer:
    """The footer of an ORC file. Raises as `Footers.of`, RestError (400) where Arrow isn't installed."""
    try:
        import pyarrow
        from pyarrow import orc
    except ImportError:
        raise bad_request(
            "this server can't read ORC files: install it with the extra `orc`, or leave out the property"
            " iceberg.expose of tables of ORC files"
        ) from None
    ranges = _Ranges(warehouse, location, size)
    try:
        file = orc.ORCFile(pyarrow.PythonFile(ranges, mode="r"))
        fields = [*file.schema]
        parts = {(each.name, name) for each in fields for name in _parts(each.type)}
        names = tuple(each.name for each in fields)
        return Footer(int(file.nrows), names, any(map(_has_id, fields)), parts=tuple(sorted(parts)))
    except (RestError, pyarrow.ArrowException, OSError, ValueError):
        if ranges.error is not None:  # which Arrow hides
            raise ranges.error from None
        raise bad_request(f"{location} is no ORC file that can be read") from None


def _parts(type: Any) -> Iterator[str]:
    """The names of all that is in a nested type."""
    for place in range(type.num_fields):
        yield type.field(place).name
        yield from _parts(type.field(place).type)


def _has_id(field: Any) -> bool:
    """Whether a column, or a part of it, has a field id."""
    parts = [field.type.field(place) for place in range(field.type.num_fields)]
    return _ID in (field.metadata or {}) or any(map(_has_id, parts))


class _Ranges(io.RawIOBase):
    """A file of a warehouse, of which ranges are read."""

    def __init__(self, warehouse: Warehouse, location: str, size: int) -> None:
        super().__init__()
        self._warehouse, self._location, self._size = warehouse, location, size
        self._at = 0
        self._most = MAX_FOOTER
        self.error: RestError | None = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def read(self, size: int = -1) -> bytes:
        length = self._size - self._at if size < 0 else min(size, self._size - self._at)
        if length <= 0:
            return b""
        self._most -= length
        try:
            if self._most < 0:
                raise bad_request(f"{self._location} has no footer that can be read: it is too large")
            found = read_range(self._warehouse, self._location, self._size, self._at, length)
        except RestError as error:
            self.error = error
            raise
        self._at += length
        return found
