"""Orphan files: which ones are found and deleted, and which stay."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lake.maintenance.decisions.policy import BadPolicy, policy_of
from lake.maintenance.service import Options, Service
from lake.protocol.hive import InvalidOperationException, MetaException
from lake.protocol.lake import JobRequest, ListJobsRequest
from lake.tables.compaction import plan_compaction, run_compaction
from lake.tables.lake import LakeClient, LakeTable
from lake.tables.publishing import publish
from tests.lake.tables.keyed.histories import COLUMNS, make_table, rows_of
from tests.support import builders
from tests.support.called import output
from tests.support.server import MetastoreServer
from tests.support.target import local_path
from tests.support.waiting import wait_until

DAY = 86_400
GONE = "20200101000000000.commit"
"""The directory of an instant that nobody knows."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetastoreServer]:
    with MetastoreServer(tmp_path_factory.mktemp("orphans") / "data", "--publish-grace-seconds", "3600") as server:
        yield server


@pytest.fixture
def client(server: MetastoreServer) -> Iterator[LakeClient]:
    with LakeClient(server.uri) as client:
        yield client


def keyed(client: LakeClient, **properties: str) -> LakeTable:
    own = {name.replace("__", ".").replace("_", "-"): value for name, value in properties.items()}
    return make_table(client, {"primary-key": "id,part", **own}, COLUMNS)


def upsert(table: LakeTable, value: int) -> None:
    table.upsert(rows_of([{"id": 1, "part": "x", "v": value, "a": None, "b": None}]))


def home(table: LakeTable) -> Path:
    described = table.describe()
    assert described.sd is not None
    return local_path(described.sd.location or "")


def put(file: Path, days: float = 10) -> Path:
    """A file that was written so many days ago."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("rows")
    age(file, days)
    return file


def age(file: Path, days: float = 10) -> None:
    then = time.time() - days * DAY
    os.utime(file, (then, then))


def age_all(table: LakeTable) -> None:
    for each in home(table).rglob("*"):
        if each.is_file():
            age(each)


def found(table: LakeTable, hours: int | None = None) -> set[str]:
    return {each.path for some in table.find_orphans(hours=hours) for each in some}


def test_what_nobody_knows_goes_and_what_somebody_needs_stays(client: LakeClient) -> None:
    table = keyed(client, table_type="merge-on-read", changelog_producer="lookup")
    for value in range(3):
        upsert(table, value)
    planned = plan_compaction(table)
    assert planned.instant is not None
    run_compaction(table, planned.instant.timestamp)
    publish(table)
    upsert(table, 7)
    publish_again = plan_compaction(table)
    assert publish_again.instant is not None
    run_compaction(table, publish_again.instant.timestamp)
    publish(table)  # what Hive saw before is kept for an hour
    base = home(table)
    [written] = {Path(each.path).parts[1] for each in table.snapshot(1)}
    with table.writing("deltacommit") as writing:
        running = put(base / writing.path / "part=x" / "of_a_slow_writer")
        age_all(table)
        assert found(table) == set(), "snapshots, changelogs, Hive's directories and open instants"
        orphans = {
            put(base / ".instants" / GONE / "part=x" / "of_an_aborted_instant"),
            put(base / ".instants" / written / "part=x" / "of_a_task_that_died"),
        }
        kept = {
            put(base / ".instants" / GONE / "fresh", days=2.9),
            put(base / "part=x" / "of_an_engine"),
            put(base / ".instants" / "somebody's" / "own"),
            put(base / "other"),
            running,
        }
        paths = {str(each.relative_to(base)) for each in orphans}
        assert found(table) == paths
        assert len(found(table, hours=48)) == 3
        assert table.remove_orphans(sorted(paths)) == 2
        wait_until(lambda: not any(each.exists() for each in orphans))
        assert all(each.exists() for each in kept)
    for position in range(1, 4):
        assert [row["v"] for row in table.scan(as_of=position).to_arrow().to_pylist()] == [position - 1]
    assert [row["v"] for row in table.changes(1).to_arrow().to_pylist()] == [0, 7]


def test_it_is_looked_again_before_a_file_is_deleted(client: LakeClient) -> None:
    table = keyed(client)
    upsert(table, 1)
    base = home(table)
    file = put(base / ".instants" / GONE / "a")
    other = put(base / ".instants" / GONE / "b")
    paths = sorted(found(table))
    assert len(paths) == 2
    age(file, days=0)  # somebody wrote it again
    live = [each.path for each in table.snapshot()]
    assert table.remove_orphans([*paths, *live]) == 1
    wait_until(lambda: not other.exists())
    assert file.exists()
    assert all((base / each).exists() for each in live)
    assert table.remove_orphans([f".instants/{GONE}/../{GONE}/a", f".instants/{GONE}/missing"]) == 0
    for path in ("part=x/a", f"../t/.instants/{GONE}/a", f".instants/{GONE}", "/etc/passwd", ".instants/x/y"):
        with pytest.raises(InvalidOperationException, match="not in the directory of an instant"):
            table.remove_orphans([path])
    with pytest.raises(InvalidOperationException, match="24 hours old at least"):
        table.remove_orphans(paths, hours=1)
    with pytest.raises(InvalidOperationException, match="24 hours old at least"):
        found(table, hours=23)


def test_links_are_not_followed(client: LakeClient, tmp_path: Path) -> None:
    table = keyed(client)
    upsert(table, 1)
    precious = put(tmp_path / "precious")
    place = home(table) / ".instants" / GONE
    place.mkdir()
    (place / "link").symlink_to(precious)
    (place / "way").symlink_to(tmp_path)
    assert found(table) == set()
    place.rename(home(table) / "moved")
    place.symlink_to(tmp_path)
    assert found(table) == set()
    with pytest.raises(MetaException, match="does not lie within"):
        table.remove_orphans([f".instants/{GONE}/precious"])
    assert precious.exists()


@pytest.mark.parametrize("inside", [True, False], ids=["a table in its directory", "in another table's directory"])
def test_tables_that_share_a_directory_are_refused(client: LakeClient, tmp_path: Path, inside: bool) -> None:
    table = keyed(client)
    upsert(table, 1)
    put(home(table) / ".instants" / GONE / "a")
    if inside:
        place = f"file:{home(table)}/below"
        other = builders.external_table(
            table.reference.database, "other", sd=builders.storage("id:bigint", location=place)
        )
        client.call(lambda opened: opened.create_table(other))
    else:
        outer = home(table).with_name("outer")
        moved = builders.external_table(
            table.reference.database, "outer", sd=builders.storage("id:bigint", location=f"file:{outer}")
        )
        client.call(lambda opened: opened.create_table(moved))
        within = outer / "within"
        within.mkdir()
        (within / "was there").touch()
        described = table.describe()
        assert described.sd is not None
        inner = builders.external_table(
            table.reference.database, "inner", sd=described.sd.replace(location=f"file:{within}")
        )
        client.call(lambda opened: opened.create_table(inner))
        table = client.table(f"{table.reference.database}.inner")
    with pytest.raises(InvalidOperationException, match="shares its directory"):
        found(table)
    with pytest.raises(InvalidOperationException, match="shares its directory"):
        table.remove_orphans([f".instants/{GONE}/a"])


def test_a_table_outside_of_the_warehouse(client: LakeClient, tmp_path: Path) -> None:
    place = tmp_path / "elsewhere"
    put(place / "part=x" / "foreign")
    made = keyed(client)
    described = made.describe()
    assert described.sd is not None
    outside = described.replace(
        tableName="outside",
        tableType="EXTERNAL_TABLE",
        parameters={"EXTERNAL": "TRUE", "primary-key": "id,part"},
        sd=described.sd.replace(location=f"file:{place}"),
    )
    client.call(lambda opened: opened.create_table(outside))
    table = client.table(f"{made.reference.database}.outside")
    upsert(table, 1)
    orphan = put(place / ".instants" / GONE / "a")
    assert table.remove_orphans(sorted(found(table))) == 1
    wait_until(lambda: not orphan.exists())
    assert (place / "part=x" / "foreign").exists()


def test_the_service_removes_them_if_it_is_told_to(client: LakeClient, server: MetastoreServer) -> None:
    table = keyed(client, orphans__enabled="true", orphans__every="30 d")
    other = keyed(client)
    for each in (table, other):
        upsert(each, 1)
        put(home(each) / ".instants" / GONE / "a")
    Service(server.uri, None, Options()).run_once()
    wait_until(lambda: not (home(table) / ".instants" / GONE / "a").exists())
    assert (home(other) / ".instants" / GONE / "a").exists()
    name = table.name
    explained = output("table-services", "explain", name, "--uri", server.uri)
    assert "each 2592000 s" in explained
    upsert(table, 2)
    Service(server.uri, None, Options()).run_once()
    request = ListJobsRequest(table=table.reference, withLogs=True)
    [job] = client.call(lambda opened: opened.lake_list_jobs(request)).jobs
    assert (job.action, job.state) == ("orphans", "succeeded")
    assert "removes 1 orphan files of 4 bytes that are 72 hours old" in (job.log or "")
    client.call(lambda opened: opened.lake_submit_job(other.reference, JobRequest(action="orphans")))
    Service(server.uri, None, Options()).run_once()
    wait_until(lambda: not (home(other) / ".instants" / GONE / "a").exists())


def test_a_policy_below_the_floor() -> None:
    with pytest.raises(BadPolicy, match="24 to"):
        policy_of({"orphans.hours": "12"})
    assert not policy_of({}).orphans.enabled


def test_the_command(client: LakeClient, server: MetastoreServer) -> None:
    table = keyed(client)
    upsert(table, 1)
    orphan = put(home(table) / ".instants" / GONE / "a")
    command = ("timeline", "orphans", table.name, "--uri", server.uri)
    assert f".instants/{GONE}/a" in output(*command, "--dry-run")
    assert orphan.exists()
    said = json.loads(output(*command, "--yes", "--json"))
    assert said == {"files": [f".instants/{GONE}/a"], "bytes": 4, "removed": 1}
    wait_until(lambda: not orphan.exists())
    assert json.loads(output(*command, "--yes", "--json"))["files"] == []
