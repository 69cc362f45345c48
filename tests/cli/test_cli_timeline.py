"""`metastore timeline` and `metastore snapshot`, as users run them, and their calls over the wire."""

import json
from pathlib import Path

import pytest

from lake.client.lake_types import Completion
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.lake import (
    BeginInstantRequest,
    CompleteInstantRequest,
    InstantConflict,
    SnapshotGone,
    SnapshotRequest,
    TableReference,
)
from lake.tables.lake import LakeClient
from tests.metastore.services.timeline.lake import DAY, file
from tests.support import builders
from tests.support.called import complaint, output, run
from tests.support.server import MetastoreServer


@pytest.fixture(scope="module")
def lake_table(metastore_server: MetastoreServer) -> tuple[str, str]:
    """The server's URI, and a table with two commits, one that was refused, and a clean."""
    named = TableReference(database="cli_timeline", table="t")
    with ThriftClient.from_uri(metastore_server.uri) as client:
        client.create_database(builders.database(named.database or ""))
        client.create_table(builders.table(named.database or "", keys=("dt",)))
        for number in range(3):
            begin = BeginInstantRequest(named, "commit", str(number + 1), "inflight", readPosition=min(number, 1))
            client.lake_begin_instant(begin)
            added = [file(DAY(1), "g", str(number + 1))]
            request = CompleteInstantRequest(named, str(number + 1), "commit", added=added)
            if number < 2:
                assert client.lake_complete_instants([request])[0].instant.position == number + 1
                continue
            with pytest.raises(InstantConflict) as caught:
                client.lake_complete_instants([request])
            assert [each.timestamp for each in caught.value.winners or ()] == ["2"]
        client.lake_begin_instant(BeginInstantRequest(named, "clean", "4", "inflight"))
        cleaned = [file(DAY(1), "g", "1").path or ""]
        client.lake_complete_instants([CompleteInstantRequest(named, "4", "clean", cleanedPaths=cleaned)])
        with pytest.raises(SnapshotGone) as gone:
            client.lake_get_snapshot(SnapshotRequest(named, asOf="1"))
        assert gone.value.oldestReadable == 2
    return metastore_server.uri, "cli_timeline.t"


def test_the_timeline_is_drawn(lake_table: tuple[str, str]) -> None:
    uri, table = lake_table
    shown = output("timeline", "show", table, "--uri", uri)
    lines = shown.splitlines()
    assert lines[0].split()[:4] == ["timestamp", "action", "state", "position"]
    assert [line.split()[:3] for line in lines[1:] if line[:1].isdigit()] == [
        ["1", "commit", "completed"],
        ["2", "commit", "completed"],
        ["3", "commit", "inflight"],
        ["4", "clean", "completed"],
    ]
    assert "refused:" in shown and "█" in shown
    told_as_json = json.loads(output("timeline", "show", table, "--limit", "1", "--json", "--uri", uri))
    assert (told_as_json["position"], told_as_json["oldest_readable"]) == (3, 2)
    assert [each["action"] for each in told_as_json["instants"]] == ["clean"]


def test_a_loser_that_is_gone_is_shown(metastore_server: MetastoreServer) -> None:
    with LakeClient(metastore_server.uri) as client:
        table = client.table("cli_losers.t")
        client.call(lambda opened: opened.create_database(builders.database("cli_losers")))
        client.call(lambda opened: opened.create_table(builders.table("cli_losers", keys=("dt",))))
        with pytest.raises(InstantConflict), table.writing() as loser, table.writing() as winner:
            for each in (winner, loser):
                each.complete(Completion(replaced_partitions=[DAY(1)]))
    asked = ("timeline", "show", table.name, "--uri", metastore_server.uri)
    rows = [line.split() for line in output(*asked).splitlines()[1:]]
    assert sorted(row[2] for row in rows if row[0].isdigit()) == ["completed", "refused"]
    assert winner.instant.timestamp in str(rows) and "refused:" in str(rows)
    (rejected,) = json.loads(output(*asked, "--json"))["rejected_commits"]
    assert rejected["timestamp"] == loser.instant.timestamp and winner.instant.timestamp in rejected["reason"]


def test_the_snapshot_is_listed(lake_table: tuple[str, str]) -> None:
    uri, table = lake_table
    shown = output("snapshot", "show", table, "--uri", uri)
    assert shown.splitlines()[1].split() == [DAY(1), "g", "2", "1", "0", "100", "10"]
    listed = json.loads(output("snapshot", "show", table, "--filter", "dt = '2026-01-01'", "--json", "--uri", uri))
    assert [each["removed_at"] for each in listed] == [None]
    assert [each["path"] for each in listed] == [file(DAY(1), "g", "2").path]
    assert "oldest that can be read is position 2" in complaint("snapshot", "show", table, "--as-of", "1", "--uri", uri)
    assert "not found" in complaint("timeline", "show", "cli_timeline.nothing", "--uri", uri)


@pytest.mark.long
def test_both_are_written_as_pages(lake_table: tuple[str, str], tmp_path: Path) -> None:
    uri, table = lake_table
    page = tmp_path / "t.html"
    printed = output("timeline", "show", table, "--html", str(page), "--uri", uri)
    assert printed == f"the page is {page.as_uri()}\n"
    drawn = page.read_text(encoding="utf-8")
    assert drawn.count('class="bar"') == 4 and drawn.count('class="cross"') == 1
    assert "refused: " in drawn and "<p>4 instants, " in drawn
    output("timeline", "show", table, "--limit", "1", "--html", str(page), "--uri", uri)
    assert "The latest 1 instant, " in page.read_text(encoding="utf-8")
    output("snapshot", "show", table, "--all", "--html", str(page), "--uri", uri)
    listed = page.read_text(encoding="utf-8")
    assert "position 3" in listed and str(file(DAY(1), "g", "2").path) in listed
    said = complaint("snapshot", "show", table, "--html", str(tmp_path / "none" / "t.html"), "--uri", uri)
    assert f"can't write the page to {tmp_path / 'none' / 't.html'}: No such file or directory" in said


@pytest.mark.parametrize("command", ["timeline", "snapshot"])
def test_a_page_and_json_can_not_be_had_at_once(command: str, tmp_path: Path) -> None:
    page = tmp_path / "t.html"
    done = run(command, "show", "d.t", "--json", "--html", str(page), "--uri", "thrift://127.0.0.1:1")
    assert (done.returncode, done.stdout, page.exists()) == (2, "", False)
    assert "either --html or --json" in done.stderr
