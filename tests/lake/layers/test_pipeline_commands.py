"""The commands that need no Spark: status, graph, and what is refused before Spark starts."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from lake.cli import main
from tests.lake.layers.projects import write_project
from tests.lake.layers.shop import Shop
from tests.support.server import MetastoreServer


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["pipeline", *arguments], catch_exceptions=False)


def test_status_and_graph(shop: Shop, metastore_server: MetastoreServer, tmp_path: Path) -> None:
    directory = str(shop.project())
    shop.order((1, 1, 5, "d1"))
    shop.runner().refresh()
    shop.know((1, "<Oslo>"))
    found = call("status", directory, "--uri", metastore_server.uri, "--json")
    assert found.exit_code == 0, found.output
    details, revenue, _ = json.loads(found.output)
    assert details["layer"] == f"{shop.database}.details"
    assert (details["behind"], details["refresh"], details["how"], details["trouble"]) == (1, 1, "full", None)
    assert details["sources"][f"{shop.database}.customers"]["behind"] == 1
    assert revenue["behind"] == 0
    table = call("status", directory, "--uri", metastore_server.uri)
    assert f"{shop.database}.details" in table.output
    page = tmp_path / "graph.html"
    drawn = call("graph", directory, "--uri", metastore_server.uri, "--html", str(page))
    assert drawn.exit_code == 0, drawn.output
    text = page.read_text().removeprefix("<!doctype html>\n")
    names = {each.text for each in ET.fromstring(text).iter("title")}
    assert {f"{shop.database}.{name}" for name in ("orders", "customers", "details", "revenue", "best")} <= names
    assert "1 behind" in text


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["run", "nowhere"], 2, "does not exist"),
        (["run", ".", "--once", "--every", "60s"], 2, "give either --once or --every"),
        (["run", ".", "--every", "soon"], 2, "expected a duration such as"),
        (["run", ".", "--full-refresh", "x"], 2, "the project has no table x"),
        (["dry-run", ".", "--uri", "thrift://127.0.0.1:1"], 1, "no metastore answers"),
        (["status", ".", "--uri", "thrift://127.0.0.1:1"], 1, "no metastore answers"),
        (["graph", "."], 2, "Missing option '--html'"),
        (["rollback", ".", "--table", "a"], 2, "give --table and --instant, or --to"),
        (["rollback", ".", "--to", "noon"], 2, "'noon' is neither a moment's number nor a time"),
        (["replay", ".", "--table", "x", "--since", "7"], 2, "the project has no table x"),
        (["apply", ".", "--from", "2026-01-01", "--whole", "a"], 2, "give either --whole or --from"),
        (["diff", ".", "--by", "day"], 2, "--by is about --from"),
        (["plan", ".", "a"], 2, "TABLE is about --from"),
        (["apply", ".", "--share", "0.5"], 2, "--share and --step-bytes are of --beside"),
    ],
    ids=[
        "nowhere",
        "once and every",
        "a duration",
        "a table",
        "no server",
        "no server for the status",
        "no page",
        "no instant",
        "no moment",
        "a table to replay",
        "all and a part",
        "a column alone",
        "a table alone",
        "a share alone",
    ],
)
def test_what_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: int, message: str
) -> None:
    write_project(tmp_path, {"a.sql": "CREATE MATERIALIZED VIEW a AS SELECT 1 AS x"})
    monkeypatch.chdir(tmp_path)
    found = call(*arguments)
    assert found.exit_code == code
    assert message in found.output


def test_a_bad_definition_has_its_file_and_line(tmp_path: Path) -> None:
    write_project(tmp_path, {"a.sql": "\nCREATE MATERIALIZED VIEW a AS SELECT DATE 'today' AS x"})
    found = call("dry-run", str(tmp_path))
    assert found.exit_code == 2
    assert "transformations/a.sql:2: 'today' as a time has another value" in found.output
