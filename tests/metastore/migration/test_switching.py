"""`metastore migrate cut-over` and `roll-back`: a database changes its home while writers write through a front."""

import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from thrift.Thrift import TApplicationException

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.errors import UserError
from lake.protocol.hive import (
    AddPrimaryKeyRequest,
    AllocateTableWriteIdsRequest,
    Catalog,
    CommitTxnRequest,
    CreateCatalogRequest,
    GetValidWriteIdsRequest,
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    MetaException,
    NoSuchObjectException,
    OpenTxnRequest,
    PrimaryKeysRequest,
    PrincipalType,
    PrivilegeBag,
    PrivilegeGrantInfo,
    ShowLocksRequest,
    SQLPrimaryKey,
)
from lake.protocol.lake import ImportRequest
from metastore.migration.followed import Home
from metastore.migration.objects import MOVED_TO, MOVING_TO, DatabaseKey, Positions
from metastore.migration.source import SourceFailed
from metastore.migration.switching.cutting_over import entries_since
from metastore.migration.switching.front_file import FrontFile, Site
from metastore.migration.switching.gate import HandGate
from metastore.migration.thrift_source import ThriftSource
from tests.metastore.migration.following import complaint, differences, follow, run
from tests.metastore.migration.killing import answered
from tests.metastore.migration.places import Going, Killable, Place, backends
from tests.metastore.migration.random_changes import Tables
from tests.metastore.migration.refused_changes import function_of
from tests.spark.session import SparkError, SparkSession, require
from tests.support import builders, called
from tests.support.front import FrontServer
from tests.support.server import MetastoreServer


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    directory = tmp_path_factory.mktemp("switching")
    with (
        MetastoreServer(directory / "old", "--workers", "1") as old,
        MetastoreServer(directory / "ours", "--workers", "1") as ours,
        FrontServer(directory / "front", backends(old.uri, ours)) as front,
    ):
        yield Place(old.uri, ours, front, {"old": old, "ours": ours})


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fronts look at their files each second, and nobody else writes."""
    monkeypatch.setattr("metastore.migration.switching.gate.LOOK_SECONDS", 1.0)
    monkeypatch.setattr("metastore.migration.switching.gate.PROBES", 4)
    monkeypatch.setattr("metastore.migration.switching.cutting_over.QUIET_SECONDS", 0.2)
    monkeypatch.setattr("metastore.migration.switching.rolling_back.QUIET_SECONDS", 0.2)
    monkeypatch.setattr("metastore.migration.thrift_source._ASK_AGAIN_SECONDS", 0.0)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1, 8))
def test_over_and_back_while_writers_write(place: Place, tmp_path: Path, seed: int) -> None:
    name = f"sa_{seed}"
    key = DatabaseKey("hive", name)
    with place.client() as client:
        client.create_database(builders.database(name, locationUri=f"file:{tmp_path}/{name}"))
    run("import", place.old, "--uri", place.ours.uri, "--databases", f"{name}*")
    with Going(place, name, tmp_path, seed) as going:
        time.sleep(1)
        over = place.switch("cut-over", name, "--databases", f"{name}*")
        assert (place.home(name), over[0]["late"]) == (Home.HERE, 0)
        assert over[0]["frozen_seconds"] < 30
        before = going.writer.done
        time.sleep(1)
        assert going.writer.done > before
    going.check(ours_client := place.client("ours"))
    ours_client.close()
    file = FrontFile(place.front.file)
    assert "# the Hive" in place.front.file.read_text()
    assert file.leads_to(name, Site("lake", key))
    # A follower leaves it alone.
    found = follow(place.old, place.ours, "--databases", f"{name}*")
    assert found["problems"] == []
    going.check(ours_client := place.client("ours"))
    ours_client.close()
    with Going(place, name, tmp_path, seed + 100, going.writer.kept) as again:
        time.sleep(1)
        place.switch("roll-back", name, "--databases", f"{name}*")
        assert place.home(name) is Home.THERE
        time.sleep(0.5)
    with place.client("old") as old:
        again.check(old)
    assert FrontFile(place.front.file).leads_to(name, Site("old", key))
    follow(place.old, place.ours, "--databases", f"{name}*")
    found = differences(place.old, place.ours, "--databases", f"{name}*")
    assert [each for each in found if each[0] not in ("statistics", "grants")] == []


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20, 32))
def test_nothing_is_lost_if_it_is_killed_at_any_step(place: Place, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    name = f"kill_{seed}"
    with place.client() as client:
        client.create_database(builders.database(name, locationUri=f"file:{tmp_path}/{name}"))
    options = ("--databases", f"{name}*")
    run("import", place.old, "--uri", place.ours.uri, *options)
    kept: Tables = {}
    for turn, (what, home, server) in enumerate(
        (("cut-over", Home.HERE, "ours"), ("roll-back", Home.THERE, "old"), ("cut-over", Home.HERE, "ours"))
    ):
        with Going(place, name, tmp_path, seed * 10 + turn, kept) as going:
            ended = False
            for _ in range(3):
                ended = ended or place.killed(2 + rng.random() * 10, what, name, *options)
            if not ended and place.home(name) is not home:
                place.switch(what, name, *options)
            assert place.home(name) is home, (seed, turn)
            time.sleep(0.5)
        with place.client(server) as client:
            going.check(client)
        kept = going.writer.kept


def test_a_server_that_is_killed_loses_nothing(place: Place, tmp_path: Path) -> None:
    """A sample of `test_killed`: the new one, while a database is cut over."""
    name = "sk"
    with place.client() as client:
        client.create_database(builders.database(name, locationUri=f"file:{tmp_path}/{name}"))
    run("import", place.old, "--uri", place.ours.uri, "--databases", name)
    with Going(place, name, tmp_path, 1) as going:
        once = threading.Timer(1.0, again, [place.servers["ours"]])
        once.start()
        while answered(lambda: place.home(name)) is not Home.HERE:
            place.tried("cut-over", name, "--databases", name)
        once.join()
    with place.client("ours") as client:
        going.check(client)


def again(server: Killable) -> None:
    server.kill()
    server.start()


def test_what_differs_stays(place: Place, tmp_path: Path) -> None:
    """A table here that isn't there, in a database that was here before: it may be of others."""
    for server in ("ours", "old"):
        with place.client(server) as client:
            client.create_database(builders.database("sb", locationUri=f"file:{tmp_path}/sb"))
    with place.client("ours") as client:
        client.create_table(builders.table("sb", "mine", sd=builders.storage(location=f"file:{tmp_path}/sb/mine")))
    before = place.front.file.read_text()
    assert "was not imported here" in place.complaint("cut-over", "sb", "--databases", "sb")
    run("import", place.old, "--uri", place.ours.uri, "--databases", "sb", code=None)
    assert "sb differs, so it stays: tables sb.mine: it isn't there" in place.complaint(
        "cut-over", "sb", "--databases", "sb"
    )
    assert (place.front.file.read_text(), place.home("sb")) == (before, Home.THERE)
    with place.client() as client:
        client.create_table(builders.table("sb", "more", sd=builders.storage(location=f"file:{tmp_path}/sb/more")))
    assert "more" not in tables(place, "ours", "sb")
    assert "nothing is to be rolled back" in place.complaint("roll-back", "sb", "--databases", "sb")
    assert "give either --front" in complaint("cut-over", place.old, "sb", "--uri", place.ours.uri)


def tables(place: Place, server: str, database: str) -> list[str]:
    with place.client(server) as client:
        try:
            return list(client.get_all_tables(database))
        except NoSuchObjectException:
            return []


def test_no_entry_of_a_log_is_passed_over(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However much others write meanwhile, and also where a table leaves the database."""
    monkeypatch.setattr("metastore.migration.switching.cutting_over.ENTRIES_AT_ONCE", 3)
    source = ThriftSource(place.old)
    with place.client("old") as client:
        for name in ("sx", "sx_busy"):
            client.create_database(builders.database(name, locationUri=f"file:{tmp_path}/{name}"))
        position = source.last_event()
        assert position
        busy = builders.external_table("sx_busy", "t", keys=("dt",), sd=builders.storage(location=f"file:{tmp_path}/b"))
        client.create_table(busy)
        for value in "12345678":
            client.add_partition(builders.partition("sx_busy", "t", value))
        own = builders.external_table("sx", "t", sd=builders.storage(location=f"file:{tmp_path}/sx/t"))
        client.create_table(own)
        client.alter_table("sx", "t", client.get_table("sx", "t").replace(dbName="sx_busy", tableName="u"))
        client.alter_table("sx_busy", "u", client.get_table("sx_busy", "u").replace(dbName="sx", tableName="v"))
    found = entries_since(source, DatabaseKey("hive", "sx"), position)
    assert found == ["CREATE_TABLE", "ALTER_TABLE", "ALTER_TABLE"]
    assert entries_since(source, DatabaseKey("other", "sx"), position) == []


def test_a_follower_waits_and_goes_on_without_what_lives_here(place: Place, tmp_path: Path) -> None:
    """By hand, and with a grant, which the log doesn't tell."""
    with place.client("old") as client:
        client.create_database(builders.database("sc", locationUri=f"file:{tmp_path}/sc"))
        client.create_table(builders.table("sc", "t", sd=builders.storage(location=f"file:{tmp_path}/sc/t")))
    options = ("--uri", place.ours.uri, "--databases", "sc*")
    run("import", place.old, *options)
    ref = HiveObjectRef(HiveObjectType.TABLE, "sc", "t")
    info = PrivilegeGrantInfo("SELECT", 0, "boss", PrincipalType.USER, False)
    with place.client("old") as client:
        client.grant_privileges(PrivilegeBag([HiveObjectPrivilege(ref, "ann", PrincipalType.USER, info)]))
    line = [sys.executable, "-m", "metastore", "migrate", "follow", place.old, *options, "--json"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            with place.client("old") as client:
                client.create_table(builders.table("sc", "u", sd=builders.storage(location=f"file:{tmp_path}/sc/u")))
                wait_until(lambda: tables(place, "ours", "sc") == ["t", "u"])
                run("cut-over", place.old, "sc", *options, "--frozen-by-hand")
                with place.client("ours") as ours:
                    assert [each.principalName for each in ours.list_privileges(None, None, ref)] == ["ann"]
                    ours.drop_table("sc", "t", False)
                late = builders.table("sc", "late", sd=builders.storage(location=f"file:{tmp_path}/sc/late"))
                client.create_table(late)
                client.create_database(builders.database("sc_2", locationUri=f"file:{tmp_path}/sc_2"))
                client.create_table(builders.table("sc_2", "t", sd=builders.storage(location=f"file:{tmp_path}/2")))
                wait_until(lambda: tables(place, "ours", "sc_2") == ["t"])
                assert process.stdout is not None
                # It says so of `late`, and maybe of what the cut-over has drained, which it reads again.
                assert any(json.loads(each)["elsewhere"] for each in process.stdout if each.startswith("{"))
        finally:
            process.terminate()
            process.communicate()
    assert tables(place, "ours", "sc") == ["u"]
    run("import", place.old, *options, "--replace")
    assert tables(place, "ours", "sc") == ["u"]


@pytest.mark.long
@pytest.mark.spark
def test_spark_is_told_why_it_waits(place: Place, tmp_path: Path) -> None:
    """A session that knows the front alone, while a database moves."""
    require("4")
    with place.client("old") as client:
        client.create_database(builders.database("se", locationUri=f"file:{tmp_path}/se"))
    run("import", place.old, "--uri", place.ours.uri, "--databases", "se")
    with SparkSession("4", place.front.uri, str(tmp_path / "warehouse"), tmp_path / "spark") as spark:
        spark.sql("CREATE TABLE se.t (id INT) USING parquet")
        spark.sql("CREATE TABLE se.h (id INT) STORED AS textfile")
        spark.sql("INSERT INTO se.h VALUES (1)")
        file, site = FrontFile(place.front.file), Site("old", DatabaseKey("hive", "se"))
        file.freeze(site)
        time.sleep(2)
        for statement in ("CREATE TABLE se.u (id INT) USING parquet", "ALTER TABLE se.t SET TBLPROPERTIES ('a' = 'b')"):
            with pytest.raises(SparkError, match=r"is read-only here.*moving to another metastore, try again here"):
                spark.sql(statement)
        assert spark.value("SELECT count(*) FROM se.h") == 1
        file.thaw(site)
        place.switch("cut-over", "se", "--databases", "se")
        spark.sql("INSERT INTO se.h VALUES (2)")
        spark.sql("CREATE TABLE se.u (id INT) USING parquet")
        assert spark.value("SELECT count(*) FROM se.h") == 2
    assert (tables(place, "old", "se"), tables(place, "ours", "se")) == (["h", "t"], ["h", "t", "u"])


def wait_until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_who_may_still_commit_is_waited_for(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("metastore.migration.switching.cutting_over.OPEN_SECONDS", 0.5)
    with place.client("old") as client, place.client("ours") as ours:
        client.create_database(builders.database("sd", locationUri=f"file:{tmp_path}/sd"))
        sd = builders.storage(location=f"file:{tmp_path}/sd/t")
        table = builders.table("sd", "t", sd=sd, parameters=INSERT_ONLY, createTime=1)
        client.lake_import(ImportRequest(tables=[table]))  # a call asks for a client that knows transactions
        assert written(client, "sd") == 1
        options = ("--uri", place.ours.uri, "--databases", "sd")
        run("import", place.old, *options)
        open_transaction = begun(client)
        allocated(client, "sd", open_transaction)
        said = complaint("cut-over", place.old, "sd", *options, "--frozen-by-hand")
        assert "transactions that write sd.t are open there" in said
        assert place.home("sd") is Home.THERE
        client.commit_txn(CommitTxnRequest(open_transaction))
        run("cut-over", place.old, "sd", *options, "--frozen-by-hand")
        [valid] = ours.get_valid_write_ids(GetValidWriteIdsRequest(["sd.t"])).tblValidWriteIds
        assert (valid.writeIdHighWaterMark, valid.invalidWriteIds) == (2, [])
        assert written(ours, "sd") == 3
    said = complaint("roll-back", place.old, "sd", *options, "--frozen-by-hand")
    assert "it was written by transactions here" in said
    assert place.home("sd") is Home.HERE


def test_write_ids_of_a_table_that_was_first_written_after_the_import_come_over(place: Place, tmp_path: Path) -> None:
    with place.client("old") as client, place.client("ours") as ours:
        client.create_database(builders.database("sr", locationUri=f"file:{tmp_path}/sr"))
        sd = builders.storage(location=f"file:{tmp_path}/sr/t")
        table = builders.table("sr", "t", sd=sd, parameters=INSERT_ONLY, createTime=1)
        client.lake_import(ImportRequest(tables=[table]))
        options = ("--uri", place.ours.uri, "--databases", "sr")
        run("import", place.old, *options)
        assert written(client, "sr") == 1
        run("cut-over", place.old, "sr", *options, "--frozen-by-hand")
        [valid] = ours.get_valid_write_ids(GetValidWriteIdsRequest(["sr.t"])).tblValidWriteIds
        assert (valid.writeIdHighWaterMark, valid.invalidWriteIds) == (1, [])
        assert written(ours, "sr") == 2


INSERT_ONLY = {"transactional": "true", "transactional_properties": "insert_only"}


def begun(client: ThriftClient) -> int:
    return int(client.open_txns(OpenTxnRequest(num_txns=1, user="ann", hostname="here")).txn_ids[0])


def allocated(client: ThriftClient, database: str, transaction: int) -> int:
    request = AllocateTableWriteIdsRequest(database, "t", [transaction])
    return int(client.allocate_table_write_ids(request).txnToWriteIds[0].writeId)


def written(client: ThriftClient, database: str) -> int:
    transaction = begun(client)
    number = allocated(client, database, transaction)
    client.commit_txn(CommitTxnRequest(transaction))
    return number


def test_what_lives_here_is_taken_by_no_other_metastore(place: Place, tmp_path: Path) -> None:
    """Also if that one has an empty database of the same name, as most have `default`."""
    other = place.old.replace("127.0.0.1", "localhost")
    with place.client("old") as client:
        client.create_database(builders.database("sf", locationUri=f"file:{tmp_path}/sf"))
    options = ("--uri", place.ours.uri, "--databases", "sf")
    for source in (other, place.old):
        run("import", source, *options)
    with place.client("old") as client:
        own = place.ours.uri  # of a request that came late
        for mark in ({MOVING_TO: "thrift://third:1"}, {MOVED_TO: "thrift://third:1"}, {MOVING_TO: own, MOVED_TO: ""}):
            client.alter_database("sf", client.get_database("sf").replace(parameters=mark))
            if own not in mark.values():
                said = complaint("cut-over", place.old, "sf", *options, "--frozen-by-hand")
                assert "sf goes, or has gone, to another metastore: thrift://third:1" in said
                assert client.get_database("sf").parameters == mark
    run("cut-over", place.old, "sf", *options, "--frozen-by-hand")
    with place.client("ours") as ours:
        ours.create_table(builders.table("sf", "new", sd=builders.storage(location=f"file:{tmp_path}/sf/new")))
    assert "SOURCE and --uri are one metastore" in complaint("import", place.ours.uri, "--uri", place.ours.uri)
    said = complaint("cut-over", other, "sf", *options, "--frozen-by-hand")
    assert f"sf lives here already: it was brought from {place.old} (sf)" in said
    assert tables(place, "ours", "sf") == ["new"]


@pytest.mark.long
def test_a_late_change_of_the_database_itself_is_noticed(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with place.client("old") as client:
        client.create_database(builders.database("sg", locationUri=f"file:{tmp_path}/sg"))
        options = ("--uri", place.ours.uri, "--databases", "sg")
        run("import", place.old, *options)

        def late(gate: HandGate) -> None:
            client.alter_database("sg", client.get_database("sg").replace(description="late"))

        monkeypatch.setattr(HandGate, "switch", late)
        [moved] = run("cut-over", place.old, "sg", *options, "--frozen-by-hand", code=1)
    assert moved["late"] == 1


def test_back_into_another_catalog(place: Place, tmp_path: Path) -> None:
    """The database of the same name in Hive's own catalog stays as it is; a grant may be passed on by now."""
    ref = HiveObjectRef(HiveObjectType.TABLE, "sh", "t", catName="other")

    def granted(passed_on: bool) -> PrivilegeBag:
        info = PrivilegeGrantInfo("SELECT", 0, "boss", PrincipalType.USER, passed_on)
        return PrivilegeBag([HiveObjectPrivilege(ref, "ann", PrincipalType.USER, info)])

    with place.client("old") as old, place.client("ours") as ours:
        old.create_catalog(CreateCatalogRequest(Catalog("other", None, f"file:{tmp_path}/other")))
        for catalog, home in (("hive", "sh"), ("other", "@other#sh")):
            where = f"file:{tmp_path}/{catalog}/sh"
            old.create_database(builders.database("sh", catalogName=catalog, locationUri=where))
            sd = builders.storage(location=f"{where}/t")
            old.create_table(builders.external_table("sh", "t", keys=("dt",), sd=sd, catName=catalog))
            old.add_partitions([builders.partition("sh", "t", each, catName=catalog) for each in "12"])
            assert old.get_partition_names(home, "t", -1) == ["dt=1", "dt=2"]
        old.grant_privileges(granted(False))
        options = ("--uri", place.ours.uri, "--databases", "other.sh")
        run("import", place.old, *options)
        run("cut-over", place.old, "other.sh", *options, "--frozen-by-hand")
        ours.drop_partition("@other#sh", "t", ["2"], False)
        ours.revoke_privileges(granted(False))
        ours.grant_privileges(granted(True))
        run("roll-back", place.old, "other.sh", *options, "--frozen-by-hand")
        assert old.get_partition_names("@other#sh", "t", -1) == ["dt=1"]
        assert old.get_partition_names("sh", "t", -1) == ["dt=1", "dt=2"]
        [grant] = old.list_privileges(None, None, ref)
        assert grant.grantInfo.grantOption is True


class Conflict:
    """Hive's database refuses what a metastore is to change while others write. `done`: though the call was done."""

    def __init__(self, uri: str, monkeypatch: pytest.MonkeyPatch, *, done: bool, always: tuple[str, ...] = ()) -> None:
        self.refused: list[str] = []
        self.is_on = False
        self._uri, self._done, self._always = uri, done, always
        self._call = ThriftSource.call
        monkeypatch.setattr(ThriftSource, "call", lambda source, *words: self._answer(source, *words))

    def _answer(self, source: ThriftSource, name: str, *words: Any) -> Any:
        changes = name.startswith(("create_", "alter_", "drop_", "add_", "update_", "grant_", "lock"))
        if not (self.is_on and changes and source.uri == self._uri):
            return self._call(source, name, *words)
        if name in self.refused and name not in self._always:
            return self._call(source, name, *words)
        self.refused.append(name)
        if self._done:
            self._call(source, name, *words)
        raise MetaException("javax.jdo.JDOException: Exception thrown when executing query : NOTIFICATION_SEQUENCE\nat")


@pytest.mark.parametrize("done", [pytest.param(False, marks=pytest.mark.long), True])
def test_what_hives_database_refuses_once_is_looked_at_again(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, done: bool
) -> None:
    """While a database goes back: each changing call that the old metastore gets once it is frozen here."""
    name = f"sn_{done}".lower()
    options = ("--uri", place.ours.uri, "--databases", name)
    with place.client("old") as old, place.client("ours") as ours:
        old.create_database(builders.database(name, locationUri=f"file:{tmp_path}/{name}"))
        for table in ("gone", "kept"):
            sd = builders.storage(location=f"file:{tmp_path}/{name}/{table}")
            old.create_table(builders.external_table(name, table, keys=("dt",), sd=sd))
            old.add_partitions([builders.partition(name, table, each) for each in "12"])
        run("import", place.old, *options)
        run("cut-over", place.old, name, *options, "--frozen-by-hand")
        conflict = Conflict(place.old, monkeypatch, done=done)

        def last_changes(_: HandGate) -> None:
            conflict.is_on = True
            ours.drop_table(name, "gone", False)
            ours.drop_partition(name, "kept", ["1"], False)
            [partition] = ours.get_partitions(name, "kept", -1)
            ours.alter_partitions(name, "kept", [partition.replace(parameters={"a": "b"})])
            ours.add_partitions([builders.partition(name, "kept", "3")])
            sd = builders.storage(location=f"file:{tmp_path}/{name}/new")
            ours.create_table(builders.external_table(name, "new", keys=("dt",), sd=sd))
            ours.alter_database(name, ours.get_database(name).replace(description="late"))
            ref = HiveObjectRef(HiveObjectType.TABLE, name, "new")
            info = PrivilegeGrantInfo("SELECT", 0, "boss", PrincipalType.USER, False)
            ours.grant_privileges(PrivilegeBag([HiveObjectPrivilege(ref, "ann", PrincipalType.USER, info)]))

        monkeypatch.setattr(HandGate, "freeze", last_changes)
        run("roll-back", place.old, name, *options, "--frozen-by-hand")
        assert {"alter_database", "drop_table", "create_table", "add_partitions", "grant_privileges"} <= {
            *conflict.refused
        }
        assert old.get_all_tables(name) == ["kept", "new"]
        assert old.get_partition_names(name, "kept", -1) == ["dt=2", "dt=3"]
        assert old.get_partition(name, "kept", ["2"]).parameters["a"] == "b"
        assert old.get_database(name).description == "late"
        assert len(old.list_privileges(None, None, HiveObjectRef(HiveObjectType.TABLE, name, "new"))) == 1
    assert place.home(name) is Home.THERE


def test_what_hives_database_refuses_each_time_stays(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also a database that isn't there any more: nothing in it differs then, which doesn't mean that all is there."""
    options = ("--uri", place.ours.uri, "--databases", "so")
    with place.client("old") as old, place.client("ours") as ours:
        old.create_database(builders.database("so", locationUri=f"file:{tmp_path}/so"))
        run("import", place.old, *options)
        run("cut-over", place.old, "so", *options, "--frozen-by-hand")
        ours.create_table(builders.table("so", "t", sd=builders.storage(location=f"file:{tmp_path}/so/t")))
        old.drop_database("so", False, True)
        with monkeypatch.context() as patched:
            conflict = Conflict(place.old, patched, done=False, always=("create_database",))
            conflict.is_on = True
            said = complaint("roll-back", place.old, "so", *options, "--frozen-by-hand")
        assert "so stays here: databases so: create_database: javax.jdo.JDOException" in said
        assert len(conflict.refused) == 3
        assert (place.home("so"), tables(place, "old", "so")) == (Home.HERE, [])
        run("roll-back", place.old, "so", *options, "--frozen-by-hand")
        assert (place.home("so"), old.get_all_tables("so")) == (Home.THERE, ["t"])


def test_keys_of_a_renamed_database_are_its_own(place: Place, tmp_path: Path) -> None:
    """And not of a database there that has its name here."""
    options = ("--uri", place.ours.uri, "--databases", "st_1")
    with place.client("old") as old, place.client("ours") as ours:
        for name in ("st_1", "st_2"):
            old.create_database(builders.database(name, locationUri=f"file:{tmp_path}/{name}"))
            sd = builders.storage(location=f"file:{tmp_path}/{name}/t")
            old.create_table(builders.table(name, "t", sd=sd, parameters={"own": name}))
        run("import", place.old, *options, "--rename", "st_1=st_2")
        run("cut-over", place.old, "st_1", *options, "--frozen-by-hand")
        theirs = old.get_table("st_2", "t")
        key = SQLPrimaryKey("st_2", "t", "id", 1, "pk", False, False, True)
        ours.add_primary_key(AddPrimaryKeyRequest([key]))
        run("roll-back", place.old, "st_1", *options, "--frozen-by-hand")
        [back] = old.get_primary_keys(PrimaryKeysRequest("st_1", "t")).primaryKeys
        assert (back.table_db, back.pk_name) == ("st_1", "pk")
        assert old.get_table("st_2", "t") == theirs
        assert old.get_primary_keys(PrimaryKeysRequest("st_2", "t")).primaryKeys == []


@pytest.mark.parametrize("done", [pytest.param(False, marks=pytest.mark.long), True])
def test_what_hives_database_refuses_once_leaves_no_table_open(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, done: bool
) -> None:
    """While a database is cut over: its mark, the lock of Iceberg's tables, and their pointers."""
    name = f"sp_{done}".lower()
    pointer = f"file:{tmp_path}/{name}/v/metadata/00001.metadata.json"
    options = ("--uri", place.ours.uri, "--databases", name)
    with place.client("old") as old:
        old.create_database(builders.database(name, locationUri=f"file:{tmp_path}/{name}"))
        parameters = {"table_type": "ICEBERG-VIEW", "metadata_location": pointer}
        old.create_table(builders.view(name, "v", parameters=parameters))
        run("import", place.old, *options)
        with monkeypatch.context() as patched:
            conflict = Conflict(place.old, patched, done=done)
            conflict.is_on = True
            [moved] = run("cut-over", place.old, name, *options, "--frozen-by-hand")
        assert conflict.refused == ["alter_database", "lock", "alter_table_with_environment_context"]
        assert moved["late"] == 0
        assert MOVED_TO in old.get_database(name).parameters
        assert "/this-table-has-moved-to-" in old.get_table(name, "v").parameters["metadata_location"]
        with monkeypatch.context() as patched:
            Conflict(place.old, patched, done=done).is_on = True
            run("roll-back", place.old, name, *options, "--frozen-by-hand")
        assert old.get_table(name, "v").parameters["metadata_location"] == pointer
        call = ThriftSource.call

        def lost(source: ThriftSource, asked: str, *words: Any) -> Any:
            """A first answer is lost, and the lock stays."""
            if asked == "lock":
                call(source, asked, *words)
            return call(source, asked, *words)

        monkeypatch.setattr(ThriftSource, "call", lost)
        run("cut-over", place.old, name, *options, "--frozen-by-hand")
        assert old.show_locks(ShowLocksRequest(dbname=name)).locks == []


def test_a_position_that_is_not_told_once_is_asked_for_again(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """By one error Hive says that it has no log, or no transactions, and that its database has failed just now."""
    call, failures = ThriftSource.call, {"get_current_notificationEventId": 2, "get_open_txns_info": 2}

    def failing(source: ThriftSource, name: str, *words: Any) -> Any:
        failures[name] = failures.get(name, 0) - 1
        if failures[name] >= 0:
            raise TApplicationException(TApplicationException.INTERNAL_ERROR, f"Internal error processing {name}")
        return call(source, name, *words)

    source, silent = ThriftSource(place.old), ThriftSource(place.old)
    told = source.positions()
    assert told.transaction is not None and told.notification is not None
    monkeypatch.setattr(ThriftSource, "call", failing)
    new = ThriftSource(place.old)
    assert (new.positions(), source.positions()) == (told, told)
    for name, ask in (("get_current_notificationEventId", source.last_event), ("get_open_txns_info", source.positions)):
        failures[name] = 100
        with pytest.raises(SourceFailed, match=f"doesn't answer {name} any more"):
            ask()
        failures[name] = 0
    failures["get_current_notificationEventId"] = 100
    assert (silent.last_event(), silent.last_event()) == (None, None)
    assert failures["get_current_notificationEventId"] == 96  # it isn't waited for each time


def test_a_table_whose_write_ids_are_not_known_is_a_problem(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with place.client("old") as old:
        old.create_database(builders.database("sq", locationUri=f"file:{tmp_path}/sq"))
        sd = builders.storage(location=f"file:{tmp_path}/sq/t")
        old.lake_import(ImportRequest(tables=[builders.table("sq", "t", sd=sd, parameters=INSERT_ONLY, createTime=1)]))
    told = ThriftSource.positions
    monkeypatch.setattr(
        ThriftSource, "positions", lambda source: Positions() if source.uri == place.old else told(source)
    )
    found = run("import", place.old, "--uri", place.ours.uri, "--databases", "sq", code=1)
    assert [(each["kind"], each["name"]) for each in found["problems"]] == [("write ids", "sq.t")]
    said = complaint("cut-over", place.old, "sq", "--uri", place.ours.uri, "--databases", "sq", "--frozen-by-hand")
    assert "sq differs, so it stays: write ids sq.t: that metastore tells no transactions" in said


def test_a_log_that_is_not_told_any_more_is_no_quiet_one(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ThriftSource, "last_event", lambda _: None)
    source, key = ThriftSource(place.old), DatabaseKey("hive", "default")
    with pytest.raises(SourceFailed, match="the notification log can't be read any more"):
        entries_since(source, key, 1)
    assert entries_since(source, key, 0) == []  # there was none


def test_views_of_iceberg_are_closed_there_as_tables_are(place: Place, tmp_path: Path) -> None:
    pointer = {
        "table_type": "ICEBERG-VIEW",
        "metadata_location": f"file:{tmp_path}/si/v/metadata/00001.gz.metadata.json",
    }
    options = ("--uri", place.ours.uri, "--databases", "si")
    with place.client("old") as old:
        old.create_database(builders.database("si", locationUri=f"file:{tmp_path}/si"))
        old.create_table(builders.view("si", "v", parameters=pointer))
        run("import", place.old, *options)
        run("cut-over", place.old, "si", *options, "--frozen-by-hand")
        moved = old.get_table("si", "v").parameters
        assert moved["lake.moved.metadata_location"] == pointer["metadata_location"]
        assert "/this-table-has-moved-to-" in moved["metadata_location"]
        run("roll-back", place.old, "si", *options, "--frozen-by-hand")
        assert pointer.items() <= old.get_table("si", "v").parameters.items()


def test_an_import_that_begins_while_a_database_moves_leaves_it_alone(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By another selection, which has listed the databases before."""
    options = ("--uri", place.ours.uri, "--databases", "sj")
    with place.client("old") as old, place.client("ours") as ours:
        old.create_database(builders.database("sj", locationUri=f"file:{tmp_path}/sj"))
        old.create_table(builders.table("sj", "t", sd=builders.storage(location=f"file:{tmp_path}/sj/t")))
        run("import", place.old, *options)
        asked = ThriftSource.last_event
        begun: list[bool] = []

        def cut_over_meanwhile(source: ThriftSource) -> int | None:
            if not begun:
                begun.append(True)
                run("cut-over", place.old, "sj", *options, "--frozen-by-hand")
                ours.drop_table("sj", "t", False)
            return asked(source)

        monkeypatch.setattr(ThriftSource, "last_event", cut_over_meanwhile)
        run("import", place.old, "--uri", place.ours.uri, "--databases", "sj*", "--replace")
    assert tables(place, "ours", "sj") == []


@pytest.mark.long
def test_a_roll_back_whose_file_was_changed_meanwhile_closes_the_old_one_again(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with place.client("old") as old:
        old.create_database(builders.database("sk_2", locationUri=f"file:{tmp_path}/sk_2"))
    run("import", place.old, "--uri", place.ours.uri, "--databases", "sk_2")
    place.switch("cut-over", "sk_2", "--databases", "sk_2")

    def edited(*_: object) -> None:
        raise UserError("somebody has changed it")

    with monkeypatch.context() as patched:
        patched.setattr(FrontFile, "lead", edited)
        patched.setattr("metastore.migration.switching.gate.FrontGate.check", lambda _: None)
        assert "somebody has changed it" in place.complaint("roll-back", "sk_2", "--databases", "sk_2")
    with place.client("old") as old, place.client() as front:
        assert MOVED_TO in old.get_database("sk_2").parameters
        front.create_table(builders.table("sk_2", "t", sd=builders.storage(location=f"file:{tmp_path}/sk_2/t")))
    assert (place.home("sk_2"), tables(place, "ours", "sk_2")) == (Home.HERE, ["t"])
    place.switch("roll-back", "sk_2", "--databases", "sk_2")
    assert tables(place, "old", "sk_2") == ["t"]


class Ended(Exception):
    """A command is killed."""


def begun_by_hand(what: str, place: Place, name: str, options: tuple[str, ...], patched: pytest.MonkeyPatch) -> None:
    """A command that is killed when clients are to be sent to the other side."""

    def killed(_: HandGate) -> None:
        raise Ended

    patched.setattr(HandGate, "switch", killed)
    with pytest.raises(Ended):
        run(what, place.old, name, *options, "--frozen-by-hand")


def test_what_was_written_where_clients_were_sent_is_not_overwritten(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command was killed, and the next one can't see that they were sent."""
    options = ("--uri", place.ours.uri, "--databases", "su")

    def add(client: ThriftClient, table: str) -> None:
        client.create_table(builders.table("su", table, sd=builders.storage(location=f"file:{tmp_path}/su/{table}")))

    with place.client("old") as old, place.client("ours") as ours:
        old.create_database(builders.database("su", locationUri=f"file:{tmp_path}/su"))
        run("import", place.old, *options)
        for again in ("cut-over", "roll-back"):
            with monkeypatch.context() as patched:
                begun_by_hand("cut-over", place, "su", options, patched)
            for other in ("cut-over", "roll-back"):
                said = place.complaint(other, "su", "--databases", "su")
                assert "su is being moved by a command with --frozen-by-hand" in said
            add(ours, again.replace("-", "_"))
            run(again, place.old, "su", *options, "--frozen-by-hand")
            assert place.home("su") is (Home.HERE if again == "cut-over" else Home.THERE)
            if again == "cut-over":
                with monkeypatch.context() as patched:
                    begun_by_hand("roll-back", place, "su", options, patched)
                add(old, "sent_back")
                run("roll-back", place.old, "su", *options, "--frozen-by-hand")
                assert place.home("su") is Home.THERE
        assert old.get_all_tables("su") == ["cut_over", "roll_back", "sent_back"]


def test_what_was_made_here_before_a_cut_over_is_not_dropped_in_silence(place: Place, tmp_path: Path) -> None:
    """In a database that came from there. What one command has done is told if it fails at another database."""
    options = ("--uri", place.ours.uri, "--databases", "sv*")

    def table(name: str, *keys: str) -> Any:
        sd = builders.storage(location=f"file:{tmp_path}/{name}")
        return builders.external_table("sv", name, keys=keys, sd=sd)

    with place.client("old") as old, place.client("ours") as ours:
        old.create_database(builders.database("sv", locationUri=f"file:{tmp_path}/sv"))
        for name in ("t", "gone"):
            old.create_table(table(name, "dt"))
        run("import", place.old, *options)
        old.drop_table("sv", "gone", False)
        ours.create_table(table("mine"))
        ours.create_function(function_of("sv"))
        ours.add_partitions([builders.partition("sv", "t", "1")])
        said = complaint("cut-over", place.old, "sv", *options, "--frozen-by-hand")
        assert "dropped here, since it isn't there: partition sv.t dt=1" in said
        assert "sv differs, so it stays: " in said
        assert "functions sv.f: it isn't there" in said and "tables sv.mine: it isn't there" in said
        assert (ours.get_all_tables("sv"), ours.get_functions("sv", "*")) == (["mine", "t"], ["f"])
        ours.drop_table("sv", "mine", False)
        ours.drop_function("sv", "f")
        said = complaint("cut-over", place.old, "sv", "sv_not", *options, "--frozen-by-hand")
        assert "sv lives here: " in said and "there is no database sv_not" in said
        old.create_table(table("late"))
        result = called.run("migrate", "roll-back", place.old, "sv", *options, "--frozen-by-hand")
        assert "sv: dropped there, since it isn't here: table sv.late" in result.stderr
