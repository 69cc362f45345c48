"""What a run of a capture did."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass
class Result:
    """What a run did. `rows` by table. `troubles`: why a table couldn't be read at the end of the run, by table."""

    rows: dict[str, int] = field(default_factory=dict)
    batches: int = 0
    troubles: dict[str, str] = field(default_factory=dict)

    def count(self, rows: Mapping[str, int]) -> None:
        """Counts a batch with the rows of each table."""
        for table, number in rows.items():
            self.rows[table] = self.rows.get(table, 0) + number
        self.batches += 1
