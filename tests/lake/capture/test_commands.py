"""`metastore capture` as users run it."""

import json
import signal
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

from lake.capture.definitions import definition
from lake.cli import main
from lake.layers.compiler.graph import graph_of
from lake.layers.definitions.projects import read_project
from lake.protocol.hive import NoSuchObjectException
from tests.lake.capture.shop import Source
from tests.support import command
from tests.support.server import MetastoreServer
from tests.support.waiting import wait_until


def test_run_status_definitions_and_drop(source: Source, metastore_server: MetastoreServer) -> None:
    uri = ("--into", source.into, "--uri", metastore_server.uri)
    source.run("CREATE TABLE t (id int PRIMARY KEY, price numeric(5,2)); INSERT INTO t VALUES (1, 2), (2, 3)")
    made = command.output(
        "capture", source.url, "--publication", "shop", "--slot", source.slot, "--once", "--json", *uri
    )
    assert json.loads(made) == {"batches": 1, "rows": {"public.t": 3}, "troubles": {}}
    found = json.loads(invoke("status", source.url, "--json", *uri))
    assert found["slot"] == source.slot
    assert found["alarm"] is None
    assert found["retention_limit_mb"] == 1024
    assert found["tables"] == [{"table": "public.t", "snapshot": "done", "rows": 2}]
    assert "public.t" in invoke("status", *uri)
    text = invoke("definitions", "--table", "public.t", *uri)
    assert "CREATE STREAMING TABLE `t`;" in text
    assert "`price` decimal(5,2)" in text
    source.run("INSERT INTO t SELECT n, 0 FROM generate_series(10, 99) n")
    assert f"bytes of log for {source.slot}" in invoke("status", source.url, "--alarm-bytes", "1", *uri, code=1)
    assert "give --yes" in invoke("drop", source.url, *uri, code=2)
    assert json.loads(invoke("drop", source.url, "--yes", "--json", *uri))["dropped"]
    assert "--new-snapshot" in invoke("status", source.url, *uri, code=1)


def invoke(*arguments: str, code: int = 0) -> str:
    """What a command of `metastore capture` prints, in this process."""
    result = CliRunner().invoke(main, ["capture", *arguments])
    assert result.exit_code == code, result.output
    return result.output


def _rows(source: Source) -> int:
    try:
        return len(source.ops("t"))
    except NoSuchObjectException:
        return 0  # the raw table isn't there yet


def test_it_ends_by_a_signal_with_all_that_has_come(source: Source, metastore_server: MetastoreServer) -> None:
    source.run("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)")
    arguments = ["capture", "run", source.url, "--publication", "shop", "--slot", source.slot, "--into", source.into]
    process = subprocess.Popen(
        [sys.executable, "-m", "metastore", *arguments, "--uri", metastore_server.uri, "--interval", "0.1"],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        found = "SELECT active FROM pg_replication_slots WHERE slot_name = %s"
        wait_until(lambda: source.run(found, source.slot) == [(True,)], what="the capture reads its slot")
        source.run("INSERT INTO t VALUES (2)")
        wait_until(lambda: process.poll() is not None or _rows(source) >= 2, seconds=90, what="the row is captured")
    finally:
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    source.check("t", "id")


def test_what_is_wrong(source: Source, metastore_server: MetastoreServer) -> None:
    uri = ("--uri", metastore_server.uri)
    run = (source.url, "--publication", "nothing", "--into", f"{source.into}_2", "--once", *uri)
    assert "no publication nothing: CREATE PUBLICATION" in invoke(*run, code=1)
    assert "nothing was captured into raw.none" in invoke("status", "--into", "raw.none", *uri, code=1)
    invoke(source.url, *uri, code=2)
    invoke("run", source.url, "--publication", "p", "--into", "raw", *uri, code=2)


def test_the_example_is_what_its_source_comes_to(source: Source) -> None:
    example = Path(__file__).parents[3] / "examples/captured_shop"
    source.run((example / "shop.sql").read_text())
    source.capture(publication="lake")
    lake = source.client.table(source.into)
    printed = "\n".join(definition(lake, table) for table in ("public.customers", "public.orders"))
    kept = (example / "transformations/ods.sql").read_text()
    assert kept.partition("\n\n")[2] == printed.replace(source.into, "raw.shop")
    assert graph_of(read_project(example)).sources == ["raw.shop"]
