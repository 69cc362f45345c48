"""How many rows a chunk of a table has: as many as fit into memory well."""

from collections.abc import Sequence

CHUNK_CHARACTERS = 16 << 20
"""What a chunk should have, as texts."""

MAX_CHUNK_ROWS, MIN_CHUNK_ROWS = 20_000, 100


class ChunkLimits:
    """The limit of each table's next chunk, in rows."""

    def __init__(self, first: int) -> None:
        """`first`: rows of the first chunk of each table."""
        self._first = first
        self._limits: dict[str, int] = {}

    def of(self, table: str) -> int:
        """The limit of the next chunk."""
        return self._limits.setdefault(table, self._first)

    def learn(self, table: str, rows: Sequence[Sequence[str | bytes | None]]) -> None:
        """Sets the limit by the size of the rows that the latest one gave."""
        limit = self.of(table)
        size = sum(len(value) for row in rows for value in row if value is not None)
        if size:
            fitting = limit * CHUNK_CHARACTERS // size if len(rows) == limit else limit
            self._limits[table] = max(MIN_CHUNK_ROWS, min(MAX_CHUNK_ROWS, 2 * limit, fitting))
