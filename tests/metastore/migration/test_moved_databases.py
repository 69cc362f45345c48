"""The listener at a Hive that is left: it refuses changes of databases that move, and says where to go."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.errors import UserError
from lake.protocol.hive import MetaException
from metastore.migration.followed import Home
from metastore.migration.objects import MOVED_TO, MOVING_TO
from metastore.migration.switching.gate import HandGate
from metastore.migration.switching.marks import LISTENER, Marks
from metastore.migration.thrift_source import ThriftSource
from tests.metastore.migration.following import complaint, run
from tests.metastore.migration.places import Place, backends
from tests.metastore.migration.refused_changes import check_refusals
from tests.spark.session import SparkError, SparkSession, require
from tests.support import builders, reference
from tests.support.front import FrontServer
from tests.support.server import MetastoreServer

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def place(released_jar: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    if (reason := reference.missing()) is not None:
        pytest.skip(reason)
    directory = tmp_path_factory.mktemp("moved")
    with (
        reference.HiveReference(
            directory / "hive", jars=[released_jar], hive_metastore_pre_event_listeners=LISTENER
        ) as hive,
        MetastoreServer(directory / "ours", "--workers", "1") as ours,
    ):
        uri = f"thrift://{hive.host}:{hive.port}"
        with FrontServer(directory / "front", backends(uri, ours)) as front:
            yield Place(uri, ours, front)


@pytest.fixture
def old(place: Place) -> Iterator[ThriftClient]:
    with place.client("old") as client:
        yield client


def test_it_refuses_what_would_change_a_database(old: ThriftClient, tmp_path: Path) -> None:
    check_refusals(old, "la", tmp_path, functions=False)


def test_whether_it_is_installed_is_known(place: Place) -> None:
    for uri, installed in ((place.old, True), (place.ours.uri, False)):
        assert Marks(ThriftSource(uri), "", print).is_guarded() is installed


def marks(client: ThriftClient, name: str) -> dict[str, str]:
    found = client.get_database(name).parameters or {}
    return {key: found[key] for key in (MOVING_TO, MOVED_TO) if key in found}


def made(place: Place, client: ThriftClient, name: str, directory: Path) -> None:
    client.create_database(builders.database(name, locationUri=f"file:{directory}/{name}", parameters={"a": "b"}))
    client.create_table(builders.table(name, sd=builders.storage(location=f"file:{directory}/{name}/t")))
    run("import", place.old, "--uri", place.ours.uri, "--databases", name)


def by_hand(place: Place, what: str, name: str) -> None:
    run(what, place.old, name, "--uri", place.ours.uri, "--databases", name, "--frozen-by-hand")


def attempt(client: ThriftClient, name: str, directory: Path) -> None:
    client.create_table(builders.table(name, "late", sd=builders.storage(location=f"file:{directory}/{name}/late")))


def test_while_it_is_compared_nobody_changes_it_past_the_front(
    place: Place, old: ThriftClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "lb"
    made(place, old, name, tmp_path)
    read = []

    def tried(*_: object) -> None:
        with pytest.raises(MetaException, match=f"database {name} is moving and can't be changed here any more"):
            attempt(old, name, tmp_path)
        read.append(old.get_table(name, "t").tableName)

    with monkeypatch.context() as patched:
        patched.setattr("metastore.migration.switching.cutting_over.CutOver._drain", tried)
        by_hand(place, "cut-over", name)
    assert read == ["t"]
    assert marks(old, name) == {MOVED_TO: place.ours.uri}
    with pytest.raises(MetaException, match=f"database {name} has moved to {place.ours.uri}: use it there"):
        attempt(old, name, tmp_path)
    with place.client("ours") as ours:
        assert ours.get_database(name).parameters == {"a": "b"}
        ours.create_table(builders.table(name, "u", sd=builders.storage(location=f"file:{tmp_path}/{name}/u")))
    by_hand(place, "roll-back", name)
    assert (marks(old, name), old.get_all_tables(name)) == ({}, ["t", "u"])
    attempt(old, name, tmp_path)


def test_a_cut_over_that_fails_lets_all_be_written_again(
    place: Place, old: ThriftClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "lc"
    made(place, old, name, tmp_path)

    def failing(*_: object) -> None:
        assert marks(old, name) == {MOVING_TO: place.ours.uri}
        raise UserError("no more")

    monkeypatch.setattr("metastore.migration.switching.cutting_over.fence_others", failing)
    options = ("--uri", place.ours.uri, "--databases", name, "--frozen-by-hand")
    assert "no more" in complaint("cut-over", place.old, name, *options)
    assert (place.home(name), marks(old, name)) == (Home.THERE, {})
    attempt(old, name, tmp_path)


@pytest.mark.parametrize("then", ["cut-over", "roll-back"])
@pytest.mark.parametrize("step", ["_bring_the_rest", "_close", "switch", "settle"])
def test_one_that_was_killed_leaves_none_closed(
    place: Place, old: ThriftClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, then: str
) -> None:
    name = f"ld_{step.strip('_')[:2]}_{then[:3]}"
    made(place, old, name, tmp_path)

    class Killed(BaseException):
        """Nothing is undone, as after a kill."""

    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr("metastore.migration.switching.cutting_over.CutOver._give_up", lambda *_: None)
        if step == "switch":
            patched.setattr(HandGate, "switch", killed)
        elif step == "settle":  # after all is done there, and before that is kept
            patched.setattr(HandGate, "said", killed)
        else:
            patched.setattr(f"metastore.migration.switching.cutting_over.CutOver.{step}", killed)
        by_hand(place, "cut-over", name)
    if step == "settle":
        assert marks(old, name) == {MOVED_TO: place.ours.uri}
        then = "roll-back"  # it lives here by now
    else:
        assert marks(old, name) == {MOVING_TO: place.ours.uri}
    by_hand(place, then, name)
    if then == "cut-over":
        assert (place.home(name), marks(old, name)) == (Home.HERE, {MOVED_TO: place.ours.uri})
    else:
        assert (place.home(name), marks(old, name)) == (Home.THERE, {})
        attempt(old, name, tmp_path)


def test_a_roll_back_that_fails_closes_it_again(
    place: Place, old: ThriftClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "le"
    made(place, old, name, tmp_path)
    by_hand(place, "cut-over", name)

    def failing(*_: object) -> None:
        raise UserError("no more")

    with monkeypatch.context() as patched:
        patched.setattr("metastore.migration.switching.rolling_back.wait_for_transactions", failing)
        options = ("--uri", place.ours.uri, "--databases", name, "--frozen-by-hand")
        assert "no more" in complaint("roll-back", place.old, name, *options)
    assert (place.home(name), marks(old, name)) == (Home.HERE, {MOVED_TO: place.ours.uri})
    by_hand(place, "roll-back", name)
    assert marks(old, name) == {}


@pytest.mark.spark
@pytest.mark.parametrize("line", ["3.5", "4"])
def test_spark_at_the_old_address_is_told_where_to_go(
    place: Place, old: ThriftClient, tmp_path: Path, line: str
) -> None:
    """Before it writes a file, but for a CREATE TABLE AS SELECT."""
    require(line)
    name = f"lf_{line[0]}"
    with SparkSession(line, place.old, str(tmp_path / "warehouse"), tmp_path / "spark") as spark:
        spark.sql(f"CREATE DATABASE {name} LOCATION 'file:{tmp_path}/{name}'")
        spark.sql(f"CREATE TABLE {name}.h (id INT) STORED AS textfile")
        spark.sql(f"CREATE TABLE {name}.p (id INT) USING parquet")
        spark.sql(f"CREATE TABLE {name}.d (id INT, dt STRING) USING parquet PARTITIONED BY (dt)")
        for table, values in (("h", "(1)"), ("p", "(1)"), ("d", "(1, 'a')")):
            spark.sql(f"INSERT INTO {name}.{table} VALUES {values}")
        run("import", place.old, "--uri", place.ours.uri, "--databases", name)
        place.switch("cut-over", name, "--databases", name)
        files = sorted((tmp_path / name).rglob("*"))
        write = f"spark.range(3).write.{{}}('{name}.{{}}')"
        statements: list[tuple[Callable[[str], object], str]] = [
            (spark.sql, f"INSERT INTO {name}.h VALUES (2)"),
            (spark.sql, f"INSERT INTO {name}.p VALUES (2)"),
            (spark.sql, f"INSERT OVERWRITE {name}.d VALUES (2, 'a')"),
            (spark.sql, f"INSERT INTO {name}.d PARTITION (dt = 'b') VALUES (2)"),
            (spark.sql, f"CREATE TABLE {name}.n (id INT) USING parquet"),
            (spark.sql, f"ALTER TABLE {name}.d ADD PARTITION (dt = 'c')"),
            (spark.sql, f"ALTER TABLE {name}.p SET TBLPROPERTIES ('a' = 'b')"),
            (spark.sql, f"TRUNCATE TABLE {name}.p"),
            (spark.sql, f"DROP TABLE {name}.p"),
            (spark.sql, f"MSCK REPAIR TABLE {name}.d"),
            (spark.sql, f"SELECT count(*) FROM {name}.p"),
            (spark.python, write.format("mode('append').saveAsTable", "p")),
            (spark.python, write.format("insertInto", "h")),
        ]
        moved = re.escape(f"database {name} has moved to {place.front.uri}: use it there")
        for ask, statement in statements:
            with pytest.raises(SparkError, match=moved):
                ask(statement)
        assert sorted((tmp_path / name).rglob("*")) == files
        with pytest.raises(SparkError, match=moved):  # this one writes files first
            spark.sql(f"CREATE TABLE {name}.n USING parquet AS SELECT 1")
        place.switch("roll-back", name, "--databases", name)
        spark.sql(f"INSERT INTO {name}.h VALUES (3)")
        assert spark.column(f"SELECT id FROM {name}.h ORDER BY id") == [1, 3]
    assert marks(old, name) == {}


def test_another_metastore_is_told_where_it_lives(place: Place, old: ThriftClient, tmp_path: Path) -> None:
    name = "lg"
    made(place, old, name, tmp_path)
    by_hand(place, "cut-over", name)
    gone = f"it was cut over to another metastore: {place.ours.uri}"
    unmet = ("--databases", f"{name},slaes", "--rename", "a=b", "--location", "s3://no=s3a://x")
    planned = run("plan", place.old, *unmet, "--location", f"file:{tmp_path}=s3a://y")
    remarks = [(each["kind"], each["name"], each["text"]) for each in planned["remarks"]]
    assert ("databases", name, gone) in remarks
    assert [each[1] for each in remarks if each[2].startswith("no database")] == ["slaes", "a"]
    assert [each[1] for each in remarks if each[2].startswith("no location")] == ["s3://no"]
    with MetastoreServer(tmp_path / "third", "--workers", "1") as third:
        found = run("import", place.old, "--uri", third.uri, "--databases", name, code=1)
        assert [(each["kind"], each["name"], each["text"]) for each in found["problems"]] == [("databases", name, gone)]
        with ThriftClient(third.host, third.port) as client:
            assert name not in client.get_all_databases()
