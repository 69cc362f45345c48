"""`metastore table-services`, as users run it."""

import json
import signal
import subprocess
import sys
import urllib.request
from typing import Any

import psutil
import pytest

from lake.tables.lake import LakeClient, LakeTable
from tests.lake.maintenance.conftest import commits, merge_on_read, values
from tests.support.command import complaint, output, run
from tests.support.server import MetastoreServer

CONTRACT = {"table", "action", "state", "instant", "reason", "attempts", "started", "finished", "gain", "cost"}


def shown(server: MetastoreServer, command: str, *arguments: str) -> Any:
    return json.loads(output("table-services", command, *arguments, "--json", "--uri", server.uri))


def plans(server: MetastoreServer, table: LakeTable, *arguments: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = shown(server, "plans", "--table", table.name, *arguments)
    return found


@pytest.mark.long
def test_a_table_from_its_first_look_to_its_end(server: MetastoreServer, lake: LakeClient) -> None:
    table = merge_on_read(lake)
    commits(table, 5)
    due = shown(server, "explain", table.name, "--history", "5")
    assert [(each["service"], each["action"]) for each in due["decisions"]] == [
        ("compaction", "compaction"),
        ("clean", None),
    ]
    assert due["history"] == []
    assert plans(server, table) == [], "nothing is done by looking"
    assert "5 delta commits" in output("table-services", "explain", table.name, "--uri", server.uri)

    submitted = shown(server, "submit", table.name, "compaction")
    assert submitted["state"] == "pending"
    assert shown(server, "cancel", str(submitted["id"]))["state"] == "cancelled"
    assert "has ended: it is cancelled" in complaint(
        "table-services", "cancel", str(submitted["id"]), "--uri", server.uri
    )
    assert shown(server, "pause", table.name, "--reason", "a test") == {"table": table.name, "paused": "a test"}
    assert shown(server, "explain", table.name)["paused"] == "a test"
    assert "resume them first" in complaint("table-services", "submit", table.name, "clean", "--uri", server.uri)
    assert shown(server, "resume", table.name)["paused"] is None

    progress = output("table-services", "run", "--once", "--executor", "arrow", "--uri", server.uri)
    assert f"{table.name}: compaction" in progress
    [done] = plans(server, table, "--state", "succeeded", "--logs")
    assert done.keys() >= CONTRACT
    assert (done["table"], done["action"], done["attempts"]) == (table.name, "compaction", 1)
    assert done["instant"] in done["log"]
    assert done["cost"] > 0
    assert [each["action"] for each in shown(server, "explain", table.name, "--history", "9")["history"]].count(
        "compaction"
    ) == 1
    assert values(table) == dict.fromkeys(range(8), 4)
    listed = output("table-services", "plans", "--table", table.name, "--uri", server.uri)
    assert [line.split()[2:4] for line in listed.splitlines()[1:]] == [
        ["compaction", "cancelled"],
        ["compaction", "succeeded"],
    ]


def test_it_serves_until_sigterm(server: MetastoreServer) -> None:
    command = [sys.executable, "-m", "lake.cli", "table-services", "run", "--executor", "arrow"]
    command += ["--uri", server.uri, "--http-port", "0", "--log-format", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().split()[-1]
            assert process.stdout.readline() == f"table services ready {server.uri}\n"
            assert psutil.Process(process.pid).nice() == psutil.Process().nice() + 5
            with urllib.request.urlopen(f"{address}/ready", timeout=30) as answer:
                assert json.load(answer) == {"status": "ok"}
            with urllib.request.urlopen(f"{address}/metrics", timeout=30) as answer:
                assert b"table_services_running_jobs 0.0" in answer.read()
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
        finally:
            process.kill()


@pytest.mark.long
def test_what_is_asked_wrongly(server: MetastoreServer) -> None:
    for arguments, said in (
        (("run", "--quota", "shop"), "not of the form"),
        (("run", "--quota", "shop=many"), "no number"),
        (("run", "--default", "x"), "not of the form"),
        (("run", "--spark-option", "x"), "is for --executor spark-submit"),
        (("run", "--executor", "yarn"), "needs --yarn-url"),
        (("run", "--yarn-url", "http://manager:8088"), "needs --yarn-url, and no other one does"),
        (("run", "--executor", "kubernetes"), "needs --pod-template"),
        (("plans", "--logs"), "--logs is for --json"),
        (("pause", "a.b", "--reason", " "), "--reason says something"),
        (("submit", "a.b", "sweep"), "'sweep'"),
        (("explain", "nothing"), "DATABASE.TABLE"),
    ):
        done = run("table-services", *arguments, "--uri", server.uri)
        assert (done.returncode, said in done.stderr) == (2, True), (arguments, done.stderr)
    for arguments, said in (
        (("run", "--executor", "arrow", "--default", "clean.files=0", "--once"), "clean.files is '0'"),
        (("explain", "no.such"), "table not found"),
        (("cancel", "999999"), "there is no job 999999"),
    ):
        assert said in complaint("table-services", *arguments, "--uri", server.uri)
    assert "no metastore answers" in complaint(
        "table-services", "run", "--executor", "arrow", "--uri", "thrift://127.0.0.1:1"
    )
