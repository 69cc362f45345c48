"""`metastore migrate follow`: what changes in the old metastore comes over, whatever happens meanwhile."""

import itertools
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.errors import TAKEN_OVER, UserError
from lake.protocol.hive import (
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    LongColumnStatsData,
    MetaException,
    NotificationEvent,
    PartitionsStatsRequest,
)
from lake.protocol.lake import ImportRequest
from metastore.migration.followed import all_of
from metastore.migration.following import Follower, Halted, Standing
from metastore.migration.imports import known
from metastore.migration.source import TakenOver
from metastore.migration.switching.cutting_over import holding
from metastore.migration.thrift_source import ThriftSource
from tests.metastore.migration.following import complaint, differences, follow, run
from tests.metastore.migration.random_changes import Writer
from tests.support import builders
from tests.support.reference import HiveReference
from tests.support.server import MetastoreServer

NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetastoreServer]:
    """A metastore with Hive's calls and Hive's log."""
    with MetastoreServer(tmp_path_factory.mktemp("old") / "data", "--workers", "1") as server:
        yield server


@pytest.fixture
def there(old: MetastoreServer) -> Iterator[ThriftClient]:
    with ThriftClient(old.host, old.port) as client:
        yield client


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetastoreServer]:
    with MetastoreServer(tmp_path_factory.mktemp("new") / "data", "--workers", "1") as server:
        yield server


@pytest.fixture
def here(ours: MetastoreServer) -> Iterator[ThriftClient]:
    with ThriftClient(ours.host, ours.port) as client:
        yield client


def made(client: ThriftClient, name: str, place: Path) -> None:
    client.create_database(builders.database(name, locationUri=f"file:{place}/{name}"))


def table(database: str, name: str, place: Path, *keys: str) -> Any:
    sd = builders.storage(location=f"file:{place}/{database}/{name}")
    return builders.table(database, name, sd=sd, keys=keys, parameters={"n": "0"})


def test_random_changes_come_over(
    old: MetastoreServer, there: ThriftClient, ours: MetastoreServer, tmp_path: Path
) -> None:
    databases = ["fa_1", "fa_2"]
    for name in databases:
        made(there, name, tmp_path)
    writer = Writer(there, databases, tmp_path, seed=1, told=True)
    writer.write(30)
    names = ("--databases", "fa_*", "--rename", "fa_2=other", "--location", f"file:{tmp_path}=s3a://lake")
    run("import", old.uri, "--uri", ours.uri, *names)
    for _ in range(2):
        writer.write(40)
        found = follow(old.uri, ours, "--databases", "fa_*")
        assert (found["current"], found["problems"], found["compared"]) == (True, [], [])
        assert differences(old.uri, ours, *names) == []
    assert found["position"] == there.get_current_notificationEventId().eventId
    again = follow(old.uri, ours, "--databases", "fa_*")
    assert again["position"] == found["position"]


def test_what_is_made_again_is_another(
    old: MetastoreServer, there: ThriftClient, ours: MetastoreServer, here: ThriftClient, tmp_path: Path
) -> None:
    made(there, "fb", tmp_path)
    there.create_table(table("fb", "t", tmp_path, "dt"))
    there.create_table(table("fb", "u", tmp_path, "dt"))
    for name in ("t", "u"):
        there.add_partitions([builders.partition("fb", name, value) for value in ("1", "2")])
        number = ColumnStatisticsData(longStats=LongColumnStatsData(lowValue=0, highValue=9, numNulls=0, numDVs=1))
        of = ColumnStatisticsDesc(isTblLevel=False, dbName="fb", tableName=name, partName="dt=1")
        own = ColumnStatistics(of, [ColumnStatisticsObj("id", "bigint", number)], engine="hive")
        there.update_partition_column_statistics(own)
    options = ("--databases", "fb")
    run("import", old.uri, "--uri", ours.uri, *options)
    kept, remade = (here.get_table("fb", name).id for name in ("u", "t"))
    there.drop_table("fb", "t", False)
    there.create_table(table("fb", "t", tmp_path, "dt"))
    there.add_partitions([builders.partition("fb", "t", "1")])
    there.drop_partition("fb", "u", ["1"], False)
    there.add_partitions([builders.partition("fb", "u", "1")])
    follow(old.uri, ours, *options)
    assert here.get_table("fb", "u").id == kept
    assert here.get_table("fb", "t").id != remade
    assert here.get_partition_names("fb", "t", -1) == ["dt=1"]
    for name in ("t", "u"):
        found = here.get_partitions_statistics_req(PartitionsStatsRequest("fb", name, ["id"], ["dt=1"], engine="hive"))
        assert not found.partStats
    assert differences(old.uri, ours, *options) == []


class Holed(ThriftSource):
    """A metastore whose log isn't whole. `change`: what becomes of its entries."""

    change: Callable[[list[NotificationEvent]], list[NotificationEvent]]
    last: Callable[[int], int] = staticmethod(lambda number: number)

    def events(self, after: int, limit: int) -> list[NotificationEvent]:
        return self.change(super().events(after, limit))

    def last_event(self) -> int | None:
        return self.last(super().last_event() or 0)


def follower(old: ThriftSource, ours: MetastoreServer, databases: str, said: list[Standing] | None = None) -> Follower:
    here = ThriftSource(ours.uri)
    [followed] = [each for each in all_of(here, old.uri) if each.databases == databases]
    return Follower(
        old,
        here,
        followed,
        threads=2,
        patience=0.1,
        compare_every=1000,
        say=(said if said is not None else []).append,
        warn=lambda line: None,
    )


def test_where_the_log_has_holes_all_is_compared(
    old: MetastoreServer,
    there: ThriftClient,
    ours: MetastoreServer,
    here: ThriftClient,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("metastore.migration.following.SURE_SECONDS", 0.1)
    made(there, "fc", tmp_path)
    made(here, "fc_own", tmp_path)
    here.create_table(table("fc_own", "mine", tmp_path))
    made(there, "fc_own", tmp_path)
    options = ("--databases", "fc*")
    for name in ("a", "b"):
        there.create_table(table("fc", name, tmp_path, "dt"))
    run("import", old.uri, "--uri", ours.uri, *options, code=None)
    source = Holed(old.uri)
    source.change = lambda events: [each for each in events if each.tableName != "a"]
    number = there.get_current_notificationEventId().eventId
    there.add_partitions([builders.partition("fc", "b", "1")])
    there.drop_table("fc", "a", False)
    there.create_table(table("fc", "c", tmp_path))
    found = follower(source, ours, "fc*").run(until_current=True)
    assert found.compared == [f"entries {number + 2} to {number + 2} are missing in the log"]
    assert here.get_all_tables("fc") == ["b", "c"]
    # What was here before the import isn't dropped by a comparison.
    assert [(each.kind, each.name) for each in found.problems] == [("tables", "fc_own.mine")]
    assert here.get_all_tables("fc_own") == ["mine"]
    source.last = lambda number: number - 1
    assert "went back" in follower(source, ours, "fc*").run(until_current=True).compared[0]
    source.last = lambda number: number
    there.create_table(table("fc", "d", tmp_path))
    follower(source, ours, "fc*").run(until_current=True)
    source.change = lambda events: [each.replace(message="another") for each in events]
    assert "was replaced" in follower(source, ours, "fc*").run(until_current=True).compared[0]
    assert here.get_all_tables("fc") == ["b", "c", "d"]


def test_what_a_new_log_does_not_have_is_compared(
    old: MetastoreServer, there: ThriftClient, ours: MetastoreServer, here: ThriftClient, tmp_path: Path
) -> None:
    """A log that was turned on after the import says nothing of what was changed before."""
    made(there, "fl", tmp_path)
    source = Holed(old.uri)
    source.last = lambda number: 0
    run("import", old.uri, "--uri", ours.uri, "--databases", "fl")
    follower(source, ours, "fl").run(until_current=True)
    there.create_table(table("fl", "before", tmp_path))
    begin = there.get_current_notificationEventId().eventId
    there.create_table(table("fl", "after", tmp_path))
    source.last = lambda number: number - begin
    source.change = lambda events: [
        each.replace(eventId=each.eventId - begin) for each in source_events(source) if each.eventId > begin
    ]
    found = follower(source, ours, "fl").run(until_current=True)
    assert (found.compared, here.get_all_tables("fl")) == (["there was no log before"], ["after", "before"])


@pytest.mark.long
def test_an_import_that_begins_again_knows_no_log_if_the_first_one_did_not(
    old: MetastoreServer, there: ThriftClient, ours: MetastoreServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the first one has read may have been changed before the log was kept."""
    made(there, "fm", tmp_path)
    options = ("--uri", ours.uri, "--databases", "fm")

    def killed(*_: object) -> None:
        raise UserError("no more")

    with monkeypatch.context() as patched:
        patched.setattr(ThriftSource, "last_event", lambda _: None)
        patched.setattr("metastore.migration.importing.Importer.run", killed)
        assert "no more" in complaint("import", old.uri, *options)
    run("import", old.uri, *options)
    [kept] = [each for each in all_of(ThriftSource(ours.uri), old.uri) if each.databases == "fm"]
    assert (kept.state.imported, kept.position) == (True, 0)


def test_views_come_and_go(
    old: MetastoreServer, there: ThriftClient, ours: MetastoreServer, here: ThriftClient, tmp_path: Path
) -> None:
    made(there, "fo", tmp_path)
    there.create_table(builders.view("fo", "v"))
    run("import", old.uri, "--uri", ours.uri, "--databases", "fo")
    assert here.get_all_tables("fo") == ["v"]
    there.drop_table("fo", "v", False)
    there.create_table(builders.view("fo", "w"))
    assert follow(old.uri, ours, "--databases", "fo")["problems"] == []
    assert here.get_all_tables("fo") == ["w"]


def test_a_table_of_others_is_not_replaced_by_one_of_its_name(
    old: MetastoreServer, there: ThriftClient, ours: MetastoreServer, here: ThriftClient, tmp_path: Path
) -> None:
    """It was here, with its database, before that was made there, too."""
    made(there, "fn_1", tmp_path)
    run("import", old.uri, "--uri", ours.uri, "--databases", "fn_*")
    made(here, "fn_2", tmp_path)
    here.lake_import(ImportRequest(tables=[table("fn_2", "t", tmp_path, "dt").replace(createTime=5)]))
    here.add_partitions([builders.partition("fn_2", "t", "1")])
    own = here.get_table("fn_2", "t").id
    made(there, "fn_2", tmp_path)
    for name in ("t", "u"):
        there.create_table(table("fn_2", name, tmp_path, "dt"))
    there.add_partitions([builders.partition("fn_2", "t", "2")])
    found = follow(old.uri, ours, "--databases", "fn_*", code=1)
    [problem] = found["problems"]
    assert problem["name"] == "fn_2.t" and "another table has this name here" in problem["text"]
    assert here.get_table("fn_2", "t").id == own
    assert here.get_partition_names("fn_2", "t", -1) == ["dt=1"]
    assert here.get_all_tables("fn_2") == ["t", "u"]
    here.drop_table("fn_2", "t", False)
    follow(old.uri, ours, "--databases", "fn_*")
    assert here.get_partition_names("fn_2", "t", -1) == ["dt=2"]


def test_a_table_of_others_is_not_dropped_with_one_of_its_name(
    old: MetastoreServer, there: ThriftClient, ours: MetastoreServer, here: ThriftClient, tmp_path: Path
) -> None:
    """There it is dropped, or gets another name, or is made again. Those that came from there go."""
    for client in (here, there):
        made(client, "fq", tmp_path)
    names = ("dropped", "renamed", "remade")
    here.lake_import(ImportRequest(tables=[table("fq", each, tmp_path).replace(createTime=5) for each in names]))
    for name in (*names, *(f"own_{each}" for each in names)):
        there.create_table(table("fq", name, tmp_path))
    run("import", old.uri, "--uri", ours.uri, "--databases", "fq", code=1)
    for begin in ("", "own_"):
        there.drop_table("fq", f"{begin}dropped", False)
        new = there.get_table("fq", f"{begin}renamed").replace(tableName=f"{begin}new")
        there.alter_table("fq", f"{begin}renamed", new)
        there.drop_table("fq", f"{begin}remade", False)
        there.create_table(table("fq", f"{begin}remade", tmp_path))
    found = follow(old.uri, ours, "--databases", "fq", code=1)
    assert sorted(each["name"] for each in found["problems"]) == [f"fq.{each}" for each in sorted(names)]
    assert here.get_all_tables("fq") == ["dropped", "new", "own_new", "own_remade", "remade", "renamed"]
    assert [here.get_table("fq", each).createTime for each in names] == [5, 5, 5]


def test_a_metastore_that_was_set_back_is_compared(
    old: MetastoreServer, there: ThriftClient, ours: MetastoreServer, here: ThriftClient, tmp_path: Path
) -> None:
    """To a copy of its database, from which it has come to the same numbers by other changes."""
    made(there, "fr", tmp_path)
    run("import", old.uri, "--uri", ours.uri, "--databases", "fr")
    source = Holed(old.uri)
    source.change = lambda events: events
    for turn in ("after an import", "after a comparison"):
        [followed] = [each for each in all_of(ThriftSource(ours.uri), old.uri) if each.databases == "fr"]
        position = followed.position
        source.change = lambda events, position=position, turn=turn: [
            each.replace(message=f"{each.message} {turn}") if each.eventId == position else each for each in events
        ]
        there.create_table(table("fr", f"t{position}", tmp_path))
        [compared] = follower(source, ours, "fr").run(until_current=True).compared
        assert f"entry {position:,} is another one than it was" in compared


def test_a_new_database_does_not_get_into_one_that_has_its_name_here(
    old: MetastoreServer, there: ThriftClient, ours: MetastoreServer, here: ThriftClient, tmp_path: Path
) -> None:
    """Whose own name is another one there."""
    made(there, "ft_1", tmp_path)
    options = ("--uri", ours.uri, "--databases", "ft_*")
    run("import", old.uri, *options, "--rename", "ft_1=ft_2")
    own = here.get_database("ft_2")
    made(there, "ft_2", tmp_path)
    said = complaint("import", old.uri, "--uri", ours.uri, "--databases", "ft_2")
    assert "ft_1 and ft_2 would both become ft_2" in said
    there.create_table(table("ft_2", "t", tmp_path))
    there.create_table(table("ft_1", "u", tmp_path))
    found = follow(old.uri, ours, "--databases", "ft_*", code=1)
    [problem] = found["problems"]
    assert (problem["name"], found["current"]) == ("ft_2", True)
    assert "ft_1 has its name here, by --rename" in problem["text"]
    assert (here.get_all_tables("ft_2"), here.get_database("ft_2")) == (["u"], own)
    assert "ft_1 has its name here" in complaint("cut-over", old.uri, "ft_2", *options, "--frozen-by-hand")
    there.drop_database("ft_2", False, True)
    assert follow(old.uri, ours, "--databases", "ft_*")["problems"] == []
    assert here.get_all_tables("ft_2") == ["u"]


def test_late_entries_with_a_number_twice_are_dealt_with(
    old: MetastoreServer, there: ThriftClient, ours: MetastoreServer, here: ThriftClient, tmp_path: Path
) -> None:
    """As two servers of Hive 2.3 write them."""
    made(there, "fd", tmp_path)
    there.create_table(table("fd", "a", tmp_path))
    run("import", old.uri, "--uri", ours.uri, "--databases", "fd")
    for name in ("b", "c"):
        there.create_table(table("fd", name, tmp_path))
    source = Holed(old.uri)
    seen: list[NotificationEvent] = source_events(source)
    late, last = seen[-2], seen[-1]
    source.last = lambda number: number - 1
    source.change = lambda events: [
        last.replace(eventId=late.eventId) if each == last else each for each in events if each != late
    ]
    one = follower(source, ours, "fd")
    assert one.run(until_current=True).problems == []
    assert here.get_all_tables("fd") == ["a", "c"]
    source.change = lambda events: [last.replace(eventId=late.eventId) if each == last else each for each in events]
    one._looked_late = 0.0
    one.step()
    assert here.get_all_tables("fd") == ["a", "b", "c"]


def source_events(source: ThriftSource) -> list[NotificationEvent]:
    return ThriftSource.events(source, 0, 10_000)


def test_one_follows_at_a_time(
    old: MetastoreServer, there: ThriftClient, ours: MetastoreServer, here: ThriftClient, tmp_path: Path
) -> None:
    made(there, "fe", tmp_path)
    run("import", old.uri, "--uri", ours.uri, "--databases", "fe")
    source = ThriftSource(old.uri)
    first, second = (follower(source, ours, "fe") for _ in range(2))
    first.run(until_current=True)
    second.run(until_current=True)
    there.create_table(table("fe", "t", tmp_path))
    with pytest.raises(TakenOver):
        first.step()
    assert here.get_all_tables("fe") == []
    for number in range(4):
        there.create_table(table("fe", f"t{number}", tmp_path))
        second.step()
    assert here.get_all_tables("fe") == ["t", "t0", "t1", "t2", "t3"]
    assert max(len(each._clients) for each in (source, second._here)) < 6  # those of threads that ended are closed
    with ThriftClient(ours.host, ours.port) as client:
        client.lake_take_followed("thrift://else", "*", None)
        here.lake_take_followed("thrift://else", "*", None)
        for change in (
            lambda: client.drop_table("fe", "t", False),
            lambda: client.create_database(builders.database("late")),
        ):
            with pytest.raises(MetaException, match=TAKEN_OVER):
                change()
    with ThriftClient(ours.host, ours.port) as client:
        assert "t" in client.get_all_tables("fe")


def test_nobody_takes_it_from_a_command(
    old: MetastoreServer, there: ThriftClient, ours: MetastoreServer, tmp_path: Path
) -> None:
    """A cut-over would be refused in the middle, and leave a database frozen."""
    made(there, "fh", tmp_path)
    options = ("--uri", ours.uri, "--databases", "fh")
    run("import", old.uri, *options)
    here = ThriftSource(ours.uri)
    [command] = [each for each in all_of(here, old.uri) if each.databases == "fh"]
    with holding(here, command, "the cut-over of fh"):
        for what, more in (("follow", ()), ("follow", ("--after", "1")), ("import", ())):
            said = complaint(what, old.uri, *options, *more)
            assert "the cut-over of fh was not ended: when it isn't under way any more, do it again, then" in said
        command.keep()
    assert follow(old.uri, ours, "--databases", "fh")["current"]


def test_a_follower_says_what_it_waits_for(
    old: MetastoreServer, there: ThriftClient, ours: MetastoreServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Maybe of a command that was killed: nothing is followed until it is given again."""
    monkeypatch.setattr("metastore.migration.following.POLL_SECONDS", 0.1)
    monkeypatch.setattr("metastore.migration.following._SAY_SECONDS", 0.0)
    made(there, "fs", tmp_path)
    run("import", old.uri, "--uri", ours.uri, "--databases", "fs")
    one = follower(ThriftSource(old.uri), ours, "fs")
    one.run(until_current=True)
    said: list[str] = []
    one._warn = said.append
    [command] = [each for each in all_of(ThriftSource(ours.uri), old.uri) if each.databases == "fs"]
    with holding(ThriftSource(ours.uri), command, "the cut-over of fs"):
        thread = threading.Thread(target=one._take_again)
        thread.start()
        deadline = time.monotonic() + 20
        while not said and time.monotonic() < deadline:
            time.sleep(0.05)
    thread.join()
    assert said == ["waits: the cut-over of fs has not come to its end. If it isn't under way, do it again"]


def test_it_halts_and_says_why(
    old: MetastoreServer, there: ThriftClient, ours: MetastoreServer, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match="no import of thrift://gone:1 with these databases has ended here"):
        known(ThriftSource(ours.uri), "thrift://gone:1", None, None)
    made(there, "ff", tmp_path)
    run("import", old.uri, "--uri", ours.uri, "--databases", "ff")
    source = Holed(old.uri)
    source.change = lambda events: [each.replace(eventType="HIDDEN") for each in events]
    there.create_table(table("ff", "t", tmp_path))
    with pytest.raises(Halted, match="hides entries from this user"):
        follower(source, ours, "ff").run(until_current=True)

    def broken(number: int) -> int:
        raise MetaException("the old one is full")

    source.last = broken
    with pytest.raises(Halted, match=r"halted at .*: the old one is full"):
        follower(source, ours, "ff").run(until_current=True)


@pytest.mark.long
def test_without_a_log_all_is_compared(
    hive_reference: HiveReference, ours: MetastoreServer, here: ThriftClient, tmp_path: Path
) -> None:
    source = f"thrift://{hive_reference.host}:{hive_reference.port}"
    with ThriftClient(hive_reference.host, hive_reference.port) as hive:
        made(hive, "fg", tmp_path)
        writer = Writer(hive, ["fg"], tmp_path, seed=3)
        writer.write(10)
        run("import", source, "--uri", ours.uri, "--databases", "fg*")
        writer.write(12)
        assert ThriftSource(source).says_no_log()
        found = follow(source, ours, "--databases", "fg*")
        assert "keeps no notification log" in found["compared"][0]
        assert differences(source, ours, "--databases", "fg*") == []
        hive.drop_database("fg", False, True)
        follow(source, ours, "--databases", "fg*")
        assert "fg" not in here.get_all_databases()


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 12))])
def test_nothing_is_lost_if_it_is_killed_while_writers_write(
    old: MetastoreServer, there: ThriftClient, ours: MetastoreServer, here: ThriftClient, tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    name = f"fk_{seed}_{next(NUMBERS)}"  # another one if it is run again
    made(there, name, tmp_path)
    writer = Writer(there, [name], tmp_path, seed=seed, told=True)
    options = ("--databases", f"{name}*")
    ended = threading.Event()

    def go_on() -> None:
        while not ended.is_set():
            writer.step()

    thread = threading.Thread(target=go_on)
    thread.start()
    clean = {key: value for key, value in os.environ.items() if not key.startswith("METASTORE_")}
    try:
        for what in ("import", "follow") * (1 if seed == 0 else 3):
            line = [sys.executable, "-m", "metastore", "migrate", what, old.uri, "--uri", ours.uri, *options]
            process = subprocess.Popen(line, env=clean, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(1.2 + rng.random() * 2)
            process.send_signal(signal.SIGKILL)
            process.wait()
            if what == "import":
                run("import", old.uri, "--uri", ours.uri, *options, code=None)
    finally:
        ended.set()
        thread.join()
    while not writer.kept:
        writer.step()
    found = follow(old.uri, ours, *options)
    assert found["problems"] == []
    assert differences(old.uri, ours, *options) == []
    writer.check(here)
    assert writer.done > 50
