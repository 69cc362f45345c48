"""Executors on real Spark: in the service's process, and by spark-submit."""

import json
import subprocess
import sys

import pytest

from lake.tables.lake import LakeClient
from tests.lake.maintenance.conftest import commits, merge_on_read, values
from tests.support.command import output
from tests.support.server import MetastoreServer

pytestmark = [pytest.mark.spark, pytest.mark.long]


@pytest.mark.parametrize("executor", ["local", "spark-submit"])
def test_a_compaction(metastore_server: MetastoreServer, executor: str) -> None:
    uri = metastore_server.uri
    with LakeClient(uri) as lake:
        table = merge_on_read(lake)
        commits(table, 5)
        command = ("table-services", "run", "--once", "--executor", executor, "--uri", uri)
        done = subprocess.run(
            [sys.executable, "-m", "metastore", *command], capture_output=True, text=True, timeout=500
        )
        assert done.returncode == 0, done.stderr
        [job] = json.loads(output("table-services", "plans", "--table", table.name, "--json", "--logs", "--uri", uri))
        assert (job["action"], job["state"]) == ("compaction", "succeeded"), job["log"]
        assert job["attempts"] == 1
        assert values(table) == dict.fromkeys(range(8), 4)
        assert [each.begun_as for each in table.instants(states=["completed"])].count("compaction") == 1
