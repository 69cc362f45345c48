"""A captured table in a project of layers, on Spark."""

from collections.abc import Sequence
from pathlib import Path

from lake.capture.definitions import definition
from lake.tables.lake import LakeClient
from tests.lake.layers.projects import write_project
from tests.spark.session import ROOT, SparkSession

REFRESH = """
import sys
sys.path.insert(0, {root!r})
from pathlib import Path
from lake.layers.compiler.graph import graph_of
from lake.cli.captured_tables import definitions_of
from lake.layers.definitions.projects import read_project, with_captured
from lake.layers.runner.runner import Runner
from lake.layers.runner.spark_engine import SparkEngine
from lake.spark import read
from lake.spark.session_client import lake_table
def shown(value):
    return repr(bytes(value) if isinstance(value, bytearray) else value)
from lake.tables.lake import LakeClient
directory = Path({project!r})
with LakeClient({uri!r}) as client:
    graph = graph_of(with_captured(read_project(directory), definitions_of(client, directory)))
runner = Runner(graph, lambda name: lake_table(spark, name, None), lambda: SparkEngine(spark, {{}}), choose=False)
{pause}
done = runner.refresh({full!r})
rows = read(spark, {table!r}).drop("_row_key").orderBy("id").collect()
result = [[each.how for each in done.layers], [[shown(value) for value in row] for row in rows]]
"""

FAIL = """
def fail(stage):
    if stage == {stage!r}:
        raise RuntimeError("killed at " + stage)
runner.pause = fail
"""


class TypedTable:
    """A project of the definitions of one captured table."""

    def __init__(
        self,
        directory: Path,
        client: LakeClient,
        into: str,
        table: str,
        *,
        quarantines: bool = False,
        sql: str | None = None,
        uri: str = "",
    ) -> None:
        """`into`: the raw table. `table`: of the source, with its schema. `quarantines`: as of `definition`. `sql`: the
        project's definitions, by default those that are printed; if they have captured tables, `uri` is theirs."""
        database = into.partition(".")[0]
        made = sql or definition(client.table(into), table, quarantines=quarantines)
        project = write_project(directory, {"ods.sql": made}, name=database, database=database)
        self._given = {
            "root": str(ROOT),
            "project": str(project),
            "uri": uri,
            "table": f"{database}.{table.rpartition('.')[2]}",
        }

    def refresh(
        self, spark: SparkSession, full: Sequence[str] = (), *, fails_at: str | None = None
    ) -> tuple[list[str], list[list[str]]]:
        """Brings the table up to date. Returns how its layers were computed, and its rows by `id`, as Python writes
        their values. `full`: layers that are computed as a whole. `fails_at`: a stage at which the refresh ends."""
        pause = "" if fails_at is None else FAIL.format(stage=fails_at)
        how, rows = spark.python(REFRESH.format(**self._given, full=[*full], pause=pause))
        return how, rows
