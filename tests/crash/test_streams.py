"""A streaming query is killed while it writes: started again, it has each row in the table once."""

import json
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lake.tables.lake import LakeClient
from tests.spark.session import ROOT, ConfiguredSession, SparkError, SparkSession
from tests.support.server import MetastoreServer

pytestmark = pytest.mark.spark

FILES, ROWS = 6, 50

PROGRAMS = {
    "write_stream": """
import sys
sys.path.insert(0, {root!r})
from lake.spark import write_stream
rows = spark.readStream.schema("id BIGINT, dt STRING").option("maxFilesPerTrigger", 1).json({source!r})
write_stream(rows, "s.t", {checkpoint!r}, trigger={{"availableNow": True}}, heartbeat_seconds=0.5).awaitTermination()
result = None
""",
    "toTable": """
rows = spark.readStream.schema("id BIGINT, dt STRING").option("maxFilesPerTrigger", 1).json({source!r})
writer = rows.writeStream.option("checkpointLocation", {checkpoint!r}).trigger(availableNow=True)
writer.toTable("s.t").awaitTermination()
result = None
""",
}

#: After so many seconds without a heartbeat an instant is aborted. The extension sends one every 20 seconds.
PATIENCE = {"write_stream": "3", "toTable": "60"}


@pytest.mark.long
@pytest.mark.parametrize(("by", "kills"), [("write_stream", 1), ("write_stream", 5), ("toTable", 1), ("toTable", 5)])
def test_each_row_is_there_once(by: str, kills: int, released_jar: Path, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    source = tmp_path / "source"
    source.mkdir()
    for number in range(FILES):
        texts = [json.dumps({"id": number * ROWS + id, "dt": f"2026-01-0{id % 3 + 1}"}) for id in range(ROWS)]
        (source / f"{number:03}.json").write_text("\n".join(texts))
    program = PROGRAMS[by].format(root=str(ROOT), source=str(source), checkpoint=str(tmp_path / "checkpoint"))
    with (
        MetastoreServer(tmp_path / "data", "--instant-heartbeat-seconds", PATIENCE[by]) as server,
        LakeClient(server.uri) as client,
    ):
        sessions = iter(range(kills + 1))

        def session() -> SparkSession:
            directory = tmp_path / f"spark{next(sessions)}"
            return ConfiguredSession("4", server.uri, str(tmp_path / "warehouse"), released_jar, directory)

        first = session()
        first.sql("CREATE DATABASE s")
        first.sql(
            "CREATE TABLE s.t (id BIGINT, dt STRING) USING parquet PARTITIONED BY (dt) "
            "TBLPROPERTIES ('timeline.archived-days' = '9')"
        )
        lake = client.table("s.t")
        killed_after = []
        for number in range(kills):
            running = first if number == 0 else session()
            seen = lake.position().position
            kill_when(running, lambda seen=seen: lake.position().position > seen, chance)  # type: ignore[misc]
            with pytest.raises((SparkError, RuntimeError)):
                running.python(program)
            killed_after.append(lake.position().position)
        last = session()
        try:
            last.python(program)
            ids = last.python(
                f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
                "from lake.spark import read\n"
                "result = sorted(row.id for row in read(spark, 's.t').collect())"
            )
        finally:
            last.close()
        assert ids == list(range(FILES * ROWS)), f"killed after positions {killed_after}"
        assert 0 < killed_after[0] < FILES, "the first kill came before all was written"


def kill_when(session: SparkSession, begun: Callable[[], bool], chance: random.Random) -> None:
    """Kills a session's processes, from a thread, a random time after `begun`."""

    def kill() -> None:
        while not begun():
            time.sleep(0.05)
        time.sleep(chance.uniform(0, 2))  # a random moment of the work
        session.kill()

    threading.Thread(target=kill, daemon=True).start()
