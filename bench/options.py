"""What a user asks of a benchmark."""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """`rounds` of each measurement (None: as many as the benchmark thinks right), `only` those whose name matches.

    `against` is what our server is compared with: `hive`, `ours` or the directory of another checkout.
    """

    quick: bool = False
    rounds: int | None = None
    only: str = ""
    against: str = "hive"

    def wants(self, name: str) -> bool:
        """Whether something of this name is to be measured."""
        return re.search(self.only, name) is not None
