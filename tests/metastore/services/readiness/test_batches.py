"""Batches of streaming writers: begun, staged, reported; each accepted once, and what is refused changes nothing."""

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from lake.protocol.formats.commit_mode import COMMIT_MODE
from lake.protocol.hive import InvalidOperationException, MetaException, NoSuchObjectException
from lake.protocol.lake import BeginBatchResponse, LateRows, ReportBatchRequest, StagedFile, TableReference
from metastore.services.commit_flag.policy import LATE_ROWS
from metastore.services.wiring import Metastore
from metastore.store import Unstorable
from metastore.warehouse import WarehouseError
from tests.metastore.services.readiness.lake import HOUR, HOURLY, StreamTable, at, hour
from tests.support import builders
from tests.support.target import local_path

START = at("2026-01-01 00:00")


def untouched(table: StreamTable, act: Callable[[], object], error: type[Exception], match: str) -> None:
    """A call fails, and leaves no trace."""
    before = (table.watermark(), table.states(), table.all_files(), table.version, table.on_the_way())
    with pytest.raises(error, match=match):
        act()
    assert (table.watermark(), table.states(), table.all_files(), table.version, table.on_the_way()) == before


def test_begin_says_where_to_stage(table: StreamTable) -> None:
    begun = table.begin(7)
    assert begun.accepted is False
    assert begun.attempt is not None
    assert local_path(begun.stagingLocation or "") == table.directory / ".staging/w/7" / begun.attempt
    assert begun.watermark is None
    again = table.begin(7)
    assert again.attempt != begun.attempt


def test_files_join_their_partitions(table: StreamTable) -> None:
    table.add(hour(0), hour(1))
    begun = table.begin(0)
    files = {"a.parquet": hour(0), f"{hour(1)}/b.parquet": hour(1), "deep/er/c.parquet": hour(1)}
    table.stage(begun, *files)
    answer = table.report(0, begun, files, s=START)
    assert (answer.accepted, answer.repeated, answer.alreadyReady, answer.watermark) == (True, False, [], START)
    assert set(table.all_files()) == {f"{hour(0)}/a.parquet", f"{hour(1)}/b.parquet", f"{hour(1)}/c.parquet"}
    assert table.on_the_way() == 0
    begun = table.begin(0)
    assert (begun.accepted, begun.stagingLocation, begun.attempt, begun.watermark) == (True, None, None, START)


def test_nothing_is_seen_before_the_report(table: StreamTable) -> None:
    table.add(hour(0))
    begun = table.begin(0)
    table.stage(begun, "a", f"{hour(0)}/b")
    assert table.all_files() == {}


@pytest.mark.parametrize("again", [5, 4, 0])
def test_lower_or_equal_numbers_are_repeats(table: StreamTable, again: int) -> None:
    table.write(5, hour(0), s=START, late=LateRows(1, 1, 1))
    before = (table.watermark(), table.states(), table.all_files(), table.version)
    assert table.begin(again).accepted is True
    answer = table.report(again, s=START + 9 * HOUR, late=LateRows(1, 1, 1), partitions=["dt=x/hr=y"])
    assert (answer.accepted, answer.repeated, answer.committed, answer.watermark) == (True, True, [], START)
    assert (table.watermark(), table.states(), table.all_files(), table.version) == before


def test_numbers_may_leave_some_out(table: StreamTable) -> None:
    table.write(5, hour(0))
    assert table.begin(5_000_000_000).accepted is False
    assert table.write(2**63 - 1, hour(0)).repeated is False
    assert table.begin(2**63 - 1).accepted is True


def test_writers_count_for_themselves(table: StreamTable) -> None:
    for writer in ("w", "W", "_w", "0", "a-b_c", "x" * 128):
        table.add(hour(0))
        begun = table.begin(3, writer)
        table.stage(begun, f"part-{writer}")
        assert table.report(3, begun, {f"part-{writer}": hour(0)}, writer=writer).repeated is False
    assert len(table.files(hour(0))) == 6


def test_tables_count_for_themselves(metastore: Metastore, db: str) -> None:
    for name in ("one", "two"):
        assert StreamTable(metastore, db, name).write(3, hour(0)).repeated is False


def test_of_two_attempts_only_one_s_files_arrive(table: StreamTable) -> None:
    """A query that was thought to be dead reports after all, before or after the one that was started for it."""
    table.add(hour(0))
    for batch, winner in ((0, 0), (1, 1)):
        attempts = [table.begin(batch), table.begin(batch)]
        for attempt in attempts:
            table.stage(attempt, f"part-{batch}")
        first, second = attempts[winner], attempts[1 - winner]
        assert table.report(batch, first, {f"part-{batch}": hour(0)}).repeated is False
        assert table.report(batch, second, {f"part-{batch}": hour(0)}).repeated is True
        assert table.all_files()[f"{hour(0)}/part-{batch}"].startswith(first.attempt or "?")


def test_zombie_of_an_older_batch(table: StreamTable) -> None:
    table.add(hour(0))
    zombie = table.begin(0)
    table.stage(zombie, "late")
    table.write(0, hour(0))
    table.write(1, hour(0))
    assert table.report(0, zombie, {"late": hour(0)}, s=START + 9 * HOUR).repeated is True
    assert table.watermark().watermark is None
    assert "late" not in table.files(hour(0))


def test_wrong_attempt(table: StreamTable) -> None:
    table.add(hour(0))
    begun, other = table.begin(0), table.begin(0)
    table.stage(begun, "a")
    untouched(table, lambda: table.report(0, other, {"a": hour(0)}, s=START), InvalidOperationException, "is not there")
    for attempt in (None, "", "0", "A" * 16, "../" + (begun.attempt or ""), f"{begun.attempt}/.."):
        begun_so = begun.replace(attempt=attempt)
        untouched(
            table,
            lambda so=begun_so: table.report(0, so, {"a": hour(0)}, s=START),
            InvalidOperationException,
            "that the begin of the batch returned",
        )
    assert table.report(0, begun, {"a": hour(0)}).accepted is True


@pytest.mark.parametrize("writer", ["", "a/b", "..", "a b", "-w", "x" * 129, "ü", "w\n", "w\0", ".w"])
def test_odd_writers(table: StreamTable, writer: str) -> None:
    untouched(table, lambda: table.begin(0, writer), InvalidOperationException, "no valid name of a writer")
    untouched(
        table, lambda: table.report(0, writer=writer, s=1), InvalidOperationException, "no valid name of a writer"
    )


def test_negative_batch(table: StreamTable) -> None:
    untouched(table, lambda: table.begin(-1), InvalidOperationException, "no valid number of a batch")
    untouched(table, lambda: table.report(-1, s=START), InvalidOperationException, "no valid number of a batch")


@pytest.mark.parametrize(
    "path",
    [
        *("", "/", "a/", "/etc/passwd", "../../../x", "a/../../x", "./a", "a/./b", "a//b", "..", ".", ".hidden"),
        *("_hidden", ".staging/a", "x/.hidden/a", "a\0b", "a\nb", "a b", "ü.parquet", "a\\b/c", "*/a", "a?", "x" * 256),
        *("dt=[a]/x", "-a", "%2e%2e%2fa"),
    ],
)
def test_paths_that_are_none_of_a_staged_file(table: StreamTable, path: str) -> None:
    table.add(hour(0))
    begun = table.begin(0)
    table.stage(begun, "a")
    untouched(
        table,
        lambda: table.report(0, begun, {"a": hour(0), path: hour(0)}, s=START),
        InvalidOperationException,
        "is no valid path of a staged file",
    )


def test_links_are_not_followed(table: StreamTable) -> None:
    """The server may read and move what the writer may not."""
    secret = table.directory.parent / "secret"
    secret.mkdir()
    (secret / "file").write_text("secret")
    table.add(hour(0))
    begun = table.begin(0)
    staging = local_path(begun.stagingLocation or "")
    staging.mkdir(parents=True)
    (staging / "directory").symlink_to(secret)
    (staging / "link").symlink_to(secret / "file")
    for path in ("directory/file", "link"):
        untouched(table, lambda p=path: table.report(0, begun, {p: hour(0)}), InvalidOperationException, "is not there")
    # Nor a link instead of the staging directory.
    other = table.begin(0)
    local_path(other.stagingLocation or "").symlink_to(secret)
    untouched(table, lambda: table.report(0, other, {"file": hour(0)}), WarehouseError, "does not lie within")
    assert (secret / "file").read_text() == "secret"


def test_directory_is_no_file(table: StreamTable) -> None:
    table.add(hour(0))
    begun = table.begin(0)
    table.stage(begun, "dir/a")
    untouched(table, lambda: table.report(0, begun, {"dir": hour(0)}), InvalidOperationException, "is not there")


def test_missing_file(table: StreamTable) -> None:
    table.add(hour(0))
    begun = table.begin(0)
    table.stage(begun, "a")
    files = {"a": hour(0), "b": hour(0)}
    untouched(table, lambda: table.report(0, begun, files, s=START), InvalidOperationException, "/b is not there")
    table.stage(begun, "b")
    assert table.report(0, begun, files).accepted is True


def test_file_that_is_reported_twice(table: StreamTable) -> None:
    table.add(hour(0), hour(1))
    begun = table.begin(0)
    table.stage(begun, "a")
    request = ReportBatchRequest(table=table.reference, writer="w", batch=0, attempt=begun.attempt)
    for second in (hour(0), hour(1)):
        request.files = [StagedFile("a", hour(0)), StagedFile("a", second)]
        untouched(
            table, lambda: table.metastore.batches.report(request), InvalidOperationException, "'a' is reported twice"
        )


def test_two_files_of_one_name(table: StreamTable) -> None:
    table.add(hour(0), hour(1))
    begun = table.begin(0)
    table.stage(begun, "x/a", "y/a")
    untouched(
        table,
        lambda: table.report(0, begun, {"x/a": hour(0), "y/a": hour(0)}),
        InvalidOperationException,
        f"two files of the batch with the name a join {hour(0)}",
    )
    assert table.report(0, begun, {"x/a": hour(0), "y/a": hour(1)}).accepted is True


def test_name_that_another_batch_used(table: StreamTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is ever written over, be it there already or still on its way."""
    table.add(hour(0))
    for batch, arrives in ((0, True), (1, False)):
        name = f"part-{batch}"
        begun = table.begin(batch)
        table.stage(begun, name)
        with monkeypatch.context() as patch:
            if not arrives:
                patch.setattr("metastore.services.files.staged_files.Publisher.carry_out", lambda *_: None)
            table.report(batch, begun, {name: hour(0)})
        other = table.metastore.batches.begin(table.reference, "other", batch) if arrives else begun.replace()
        if not arrives:
            with monkeypatch.context() as patch:
                patch.setattr("metastore.services.files.staged_files.Publisher.carry_out", lambda *_: None)
                other = table.begin(batch, "other")
        table.stage(other, name)
        untouched(
            table,
            lambda o=other, n=name, b=batch: table.report(b, o, {n: hour(0)}, writer="other"),
            InvalidOperationException,
            "give every file a name of its own",
        )


@pytest.mark.parametrize(
    "values",
    [
        ("2026-01-01", "a b"),
        ("2026-01-01", "Zürich 東京"),
        ("2026-01-01", "a/b:c%d=e*?#\\[x]^{}'\""),
        ("2026-01-01", ""),
        ("x" * 200, "."),
        ("..", "&;<>|`$()!~@,"),
    ],
)
def test_directories_below_staging_are_named_like_partitions(
    metastore: Metastore, db: str, values: tuple[str, str]
) -> None:
    """Values escaped, as Spark and Hive write them."""
    table = StreamTable(metastore, db, properties={COMMIT_MODE: "manual"})
    metastore.partitions.add(db, "t", [builders.partition(db, "t", *values)], {})
    (name,) = table.states()
    begun = table.begin(0)
    path = f"{name}/part-0"
    table.stage(begun, path)
    assert table.report(0, begun, {path: name}).accepted is True
    assert list(table.all_files()) == [path]


def test_unknown_partition(table: StreamTable) -> None:
    table.add(hour(0))
    begun = table.begin(0)
    table.stage(begun, "a", "b")
    files = {"a": hour(0), "b": hour(1)}
    untouched(table, lambda: table.report(0, begun, files, s=START), NoSuchObjectException, "has no partition")
    untouched(table, lambda: table.report(0, partitions=[hour(1)], s=START), NoSuchObjectException, "has no partition")
    table.change(partition_late__rows="reopen")
    untouched(table, lambda: table.report(0, reopen=[hour(1)], s=START), NoSuchObjectException, "has no partition")


@pytest.mark.parametrize("name", ["dt=2026-01-01", "hr=00", "x=1/y=2", "nonsense", "dt=2026-01-01/hr=00/country=de"])
def test_names_of_no_partition(table: StreamTable, name: str) -> None:
    table.add(hour(0))
    begun = table.begin(0)
    table.stage(begun, "a")
    untouched(table, lambda: table.report(0, begun, {"a": name}, s=START), NoSuchObjectException, "missing|names no")
    untouched(table, lambda: table.report(0, partitions=[name], s=START), NoSuchObjectException, "missing|names no")
    with pytest.raises(NoSuchObjectException):
        table.route(name)


@pytest.mark.parametrize("name", ["", None])
def test_no_name(table: StreamTable, name: str | None) -> None:
    begun = table.begin(0)
    table.stage(begun, "a")
    request = ReportBatchRequest(
        table=table.reference, writer="w", batch=0, attempt=begun.attempt, files=[StagedFile("a", name)]
    )
    untouched(table, lambda: table.metastore.batches.report(request), MetaException, "name is invalid")


def test_no_such_table(metastore: Metastore, db: str) -> None:
    nothing = TableReference(database=db, table="nothing")
    with pytest.raises(NoSuchObjectException):
        metastore.batches.begin(nothing, "w", 0)
    with pytest.raises(NoSuchObjectException):
        metastore.batches.route(nothing, [hour(0)])
    with pytest.raises(NoSuchObjectException):
        metastore.batches.report(ReportBatchRequest(table=nothing, writer="w", batch=0))


def test_tables_that_take_no_batches(metastore: Metastore, db: str) -> None:
    metastore.tables.create(builders.table(db, "flat"), {})
    metastore.tables.create(builders.view(db, "v", keys=("dt",)), {})
    metastore.tables.create(builders.table(db, "plain", keys=("dt",)), {})
    for name, why in (("flat", "has no partitions"), ("v", "is a view"), ("plain", "ready as soon as they are added")):
        table = TableReference(database=db, table=name)
        for call in (
            lambda t=table: metastore.batches.begin(t, "w", 0),
            lambda t=table: metastore.batches.route(t, ["dt=1"]),
            lambda t=table: metastore.batches.report(ReportBatchRequest(table=t, writer="w", batch=0)),
        ):
            with pytest.raises(InvalidOperationException, match=why):
                call()


def test_counts_that_no_number_holds(table: StreamTable) -> None:
    table.report(0, late=LateRows(2**63 - 1, 0, 0))
    untouched(table, lambda: table.report(1, s=START, late=LateRows(1, 0, 0)), Unstorable, "out of range")


def test_thousands_of_files(table: StreamTable) -> None:
    names = [hour(number) for number in range(20)]
    table.add(*names)
    begun = table.begin(0)
    files = {f"part-{number}.parquet": names[number % 20] for number in range(5_000)}
    table.stage(begun, *files)
    assert table.report(0, begun, files).accepted is True
    assert len(table.all_files()) == 5_000


def test_without_files(table: StreamTable) -> None:
    assert table.report(0, s=START).accepted is True
    assert table.begin(0).accepted is True


def test_partitions_in_places_of_their_own(table: StreamTable) -> None:
    """At the table's own location, in another one's directory, and on another device."""
    places = [table.directory, table.directory.parent / "elsewhere"]
    if os.access("/dev/shm", os.W_OK):
        places.append(local_path(f"file:/dev/shm/readiness-{os.getpid()}-{table.db}"))
    for number, place in enumerate(places):
        partition = table.partition(hour(number))
        assert partition.sd is not None
        partition.sd.location = f"file:{place}"
        table.metastore.partitions.add(table.db, table.name, [partition], {})
        table.write(number, hour(number))
        assert (place / f"w-{number}-0.parquet").is_file()
    for place in places[2:]:
        assert [path.name for path in place.iterdir()] == ["w-2-0.parquet"]
        (place / "w-2-0.parquet").unlink()
        place.rmdir()


def test_partition_on_another_storage(table: StreamTable) -> None:
    """A batch for it could never be finished."""
    table.add(hour(0), hour(1))
    with table.metastore.database.write() as tx:
        tx.exec_driver_sql(
            "UPDATE partitions SET path = NULL, location = 's3a://bucket/x' WHERE name = %s"
            " AND table_id IN (SELECT t.id FROM tables t JOIN databases d ON d.id = database_id WHERE d.name = %s)",
            (hour(1), table.db),
        )
    begun = table.begin(0)
    table.stage(begun, "a", "b")
    files = {"a": hour(0), "b": hour(1)}
    untouched(
        table, lambda: table.report(0, begun, files), InvalidOperationException, "has the location s3a://bucket/x"
    )


def test_policy_is_none_of_the_batch_s_business(metastore: Metastore, db: str) -> None:
    """Files for an open partition are taken whatever becomes of late rows."""
    for policy in ("next", "reopen", "drop"):
        table = StreamTable(metastore, db, policy, properties=HOURLY | {LATE_ROWS: policy})
        assert table.write(0, hour(0)).accepted is True


def test_attempts_that_race(pair: tuple[Metastore, Metastore], db: str) -> None:
    """Through two servers at once: one is accepted, the others are repeats of it."""
    table = StreamTable(pair[0], db)
    table.add(hour(0))
    with ThreadPoolExecutor(4) as pool:
        for batch in range(15):
            attempts = [table.begin(batch) for _ in range(4)]
            for attempt in attempts:
                table.stage(attempt, f"part-{batch}")
            start = threading.Barrier(4)

            def report(number: int, attempt: BeginBatchResponse, batch: int, start: threading.Barrier) -> bool | None:
                start.wait()
                return table.through(pair[number % 2]).report(batch, attempt, {f"part-{batch}": hour(0)}).repeated

            repeated = list(pool.map(report, range(4), attempts, [batch] * 4, [start] * 4))
            assert sorted(repeated, key=bool) == [False, True, True, True]
            winner = attempts[repeated.index(False)].attempt
            assert table.all_files()[f"{hour(0)}/part-{batch}"].startswith(winner or "?")
    assert len(table.all_files()) == 15
