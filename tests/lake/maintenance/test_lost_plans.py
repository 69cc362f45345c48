"""The plan of a service that was killed is run again soon, whatever the server's time for other instants is."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from lake.tables.lake import LakeClient, LakeTable
from tests.lake.maintenance.conftest import commits, merge_on_read
from tests.lake.maintenance.stalled_service import STALLED
from tests.support.server import MetastoreServer
from tests.support.waiting import wait_until

WITHIN = 120
"""Seconds after which no state of a killed service may be left, as the documentation says."""


def killed_while_it_runs_a_plan(server: MetastoreServer, table: LakeTable, *arguments: str) -> str:
    """Starts a service, and kills it while its plan is inflight. Returns the plan's timestamp."""
    commits(table, 6)
    command = [sys.executable, "-m", "tests.lake.maintenance.stalled_service", server.uri, "during", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert any(line.strip() == STALLED for line in process.stdout)
            [plan] = table.instants(states=["inflight"])
        finally:
            process.kill()
    return plan.timestamp


def requested(table: LakeTable) -> list[str]:
    return [each.timestamp for each in table.instants(states=["requested"])]


@pytest.mark.long
def test_the_loss_of_a_job_frees_its_plan(tmp_path: Path) -> None:
    """No housekeeping comes along here, and nobody begins another instant."""
    options = ("--instant-heartbeat-seconds", "2", "--housekeeping-seconds", "3600")
    with MetastoreServer(tmp_path / "data", *options) as server, LakeClient(server.uri) as lake:
        table = merge_on_read(lake)
        plan = killed_while_it_runs_a_plan(server, table)
        wait_until(lambda: requested(table) == [plan], 30, "the plan is requested again")


@pytest.mark.long
def test_with_default_settings(tmp_path: Path) -> None:
    with MetastoreServer(tmp_path / "data") as server, LakeClient(server.uri) as lake:
        table = merge_on_read(lake)
        plan = killed_while_it_runs_a_plan(server, table, "60")
        begun = time.monotonic()
        wait_until(lambda: requested(table) == [plan], WITHIN, "the plan is requested again")
        assert time.monotonic() - begun > 30, "it isn't taken from one that may be alive"
