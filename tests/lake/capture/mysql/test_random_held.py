"""Random histories of MariaDB's tables, as those of Postgres: it tells all changes of columns by its statements."""

import os
import random
import re
from dataclasses import dataclass
from typing import Any

import pytest

from lake.capture.definitions import definition
from lake.capture.schema_changes.policy import Policy
from tests.lake.capture.mysql.conftest import Source
from tests.lake.capture.schema_changes.test_random_histories import (
    HISTORIES,
    STEPS,
    History,
    capture_by,
    check_applied,
)
from tests.lake.capture.typed_duck import query_in, typed_rows

FORMS = (
    (r" RENAME (\w+) TO ", r" RENAME COLUMN \1 TO "),
    (r" ALTER (\w+) TYPE int USING 5", r" MODIFY \1 longblob"),
    (r" ALTER (\w+) TYPE text USING .*", r" MODIFY \1 text"),
    (r" ALTER (\w+) TYPE ", r" MODIFY \1 "),
    (r"^INSERT INTO (.*) ON CONFLICT DO NOTHING$", r"INSERT IGNORE INTO \1"),
)
"""Statements of Postgres, as MariaDB has them."""


@dataclass
class MariaHistory(History):
    """A table of a MariaDB."""

    def run(self, source: Any, statement: str) -> None:
        for form, ours in FORMS:
            statement = re.sub(form, ours, statement)
        super().run(source, statement)

    def shown(self, source: Any, policy: Policy | None) -> list[list[object]]:
        name = f"{source.name}.{self.name}"
        made = definition(source.client.table(source.into), name, policy=policy, is_printed=False)
        query = query_in(made)
        return [[*each.values()] for each in typed_rows(source.client, source.into, name, query)]


@pytest.mark.long
def test_random_histories(source: Source) -> None:
    seed = int(os.environ.get("SEED", random.SystemRandom().randrange(1 << 32)))
    print(f"seed {seed}, {HISTORIES} histories")
    rng = random.Random(seed)
    histories = [MariaHistory(f"t{number}", rng) for number in range(HISTORIES)]
    for each in histories:
        source.run(f"CREATE TABLE {each.name} (id int PRIMARY KEY, a int, n numeric(6,2), b text)")
        source.run(f"INSERT INTO {each.name} SELECT seq, seq, seq, seq FROM seq_0_to_3")
        each.note(source)
    capture_by(source.capturing, rng)
    for step in range(STEPS):
        for _ in range(4):
            for each in histories:
                if rng.random() < 0.2:
                    for statement in each.alteration().split("; "):
                        each.run(source, statement)
                each.run(source, each.change())
                each.note(source)
        for each in histories:
            each.statements.append("-- captured")
        capture_by(source.capturing, rng)
        for each in histories:
            if step % 4 == 3 or rng.random() < 0.2:
                each.check(source, step, is_told=True)
    check_applied(source, histories, lambda: capture_by(source.capturing, rng))
