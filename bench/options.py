"""Options of a benchmark."""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """`rounds` of each measurement (None: as many as the benchmark thinks right), `only` those whose name matches.

    `against` is what our server is compared with: `hive`, `ours` or the directory of another checkout. `redis` says
    whether our server has a Redis for its cache, `rows` how many rows tables have (None: as many as are meant),
    `hive4` which release of Hive 4 it is (None: the newest), `scale` TPC-H's scale factor.
    """

    quick: bool = False
    rounds: int | None = None
    only: str = ""
    against: str = "hive"
    redis: bool = False
    rows: int | None = None
    hive4: str | None = None
    scale: float | None = None

    @property
    def arguments(self) -> str:
        """What was given, for the record; of a directory only that it was one."""
        against = {"hive": "", "ours": " --against ours"}.get(self.against, " --against CHECKOUT")
        only = f" --only '{self.only}'" if self.only else ""
        rounds = f" --rounds {self.rounds}" if self.rounds else ""
        rounds += f" --rows {self.rows}" if self.rows else ""
        rounds += f" --hive4 {self.hive4}" if self.hive4 else ""
        rounds += f" --scale {self.scale:g}" if self.scale else ""
        return f"{' --quick' if self.quick else ''}{rounds}{only}{against}{' --redis' if self.redis else ''}"

    def wants(self, name: str) -> bool:
        """Whether something of this name is to be measured."""
        return re.search(self.only, name) is not None
