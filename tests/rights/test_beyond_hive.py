"""Rights that Hive doesn't have: uncommitted partitions, timelines, events, places; and the owner of what is made."""

from pathlib import Path

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    AddPrimaryKeyRequest,
    AlterDatabaseRequest,
    Function,
    FunctionType,
    InvalidOperationException,
    MetaException,
    NotificationEventRequest,
    NotificationEventsCountRequest,
    PrincipalType,
    ResourceUri,
    Role,
    SQLPrimaryKey,
)
from lake.protocol.lake import (
    BeginInstantRequest,
    Column,
    CommitPartitionsRequest,
    CompleteInstantRequest,
    ImportHudiRequest,
    InstantKey,
    JobRequest,
    LeaseRequest,
    ListJobsRequest,
    ListPartitionsRequest,
    ReadEventsRequest,
    ReadGroupEventsRequest,
    RecordDecisionsRequest,
    ReopenPartitionsRequest,
    TableReference,
)
from tests.rights.conftest import as_user
from tests.rights.world import grant, revoke
from tests.support import builders
from tests.support.expect import refused
from tests.support.server import MetastoreServer


def reference(db: str) -> TableReference:
    return TableReference(database=db, table="t")


class TestUncommittedPartitions:
    def test_reading_them_is_a_right(self, user: ThriftClient, root: ThriftClient, db: str) -> None:
        grant(root, f"u_{db}", "SELECT", db, "t")
        assert len(user.get_partitions(db, "t", -1)) == 1
        wanted = ListPartitionsRequest(reference(db), includeUncommitted=True)
        with refused(MetaException, message=f"does not have [READ_UNCOMMITTED] privilege on [{db}.t]"):
            user.get_partitions(db, "t@includeuncommit", -1)
        with refused(MetaException, message="READ_UNCOMMITTED"):
            user.lake_list_partitions(wanted)
        user.setMetaConf("includeUnCommit", "true")
        with refused(MetaException, message="READ_UNCOMMITTED"):
            user.get_partitions(db, "t", -1)
        grant(root, f"u_{db}", "READ_UNCOMMITTED", db, "t")
        assert len(user.get_partitions(db, "t", -1)) == 2
        user.setMetaConf("includeUnCommit", "false")
        assert len(user.get_partitions(db, "t@includeuncommit", -1)) == 2
        assert len(user.lake_list_partitions(wanted).partitions) == 2

    def test_committing_and_reopening(self, user: ThriftClient, root: ThriftClient, db: str) -> None:
        grant(root, f"u_{db}", "INSERT", db, "t")
        commit = CommitPartitionsRequest(reference(db), ["dt=2"])
        with refused(MetaException, message="does not have [COMMIT]"):
            user.lake_commit_partitions(commit)
        with refused(MetaException, message="does not have [COMMIT]"):
            user.lake_reopen_partitions(ReopenPartitionsRequest(reference(db), ["dt=1"]))
        late = root.get_partition(db, "t@includeuncommit", ["2"])
        late.parameters["commit"] = "true"
        with refused(InvalidOperationException, MetaException, message="does not have [COMMIT]"):
            user.alter_partition(db, "t", late.replace(tableName="t"))
        late.parameters["commit"] = "false"
        user.alter_partition(db, "t", late.replace(tableName="t"))
        grant(root, f"u_{db}", "COMMIT", db, "t")
        assert user.lake_commit_partitions(commit).committed == ["dt=2"]


@pytest.mark.parametrize(
    ("action", "enough"),
    [
        ("commit", "INSERT"),
        ("commit", "TIMELINE"),
        ("compaction", "TABLE_SERVICE"),
        ("rollback", "ROLLBACK"),
        ("clean", "CLEAN"),
    ],
)
def test_instants(user: ThriftClient, root: ThriftClient, db: str, action: str, enough: str) -> None:
    grant(root, f"u_{db}", "SELECT", db, "t")
    wanted = BeginInstantRequest(reference(db), action)
    with refused(MetaException, message="does not have"):
        user.lake_begin_instant(wanted)
    for other in ("INSERT", "TIMELINE", "TABLE_SERVICE", "ROLLBACK", "CLEAN"):
        if other == enough:
            grant(root, f"u_{db}", other, db, "t")
            assert user.lake_begin_instant(wanted).action == action
            revoke(root, f"u_{db}", other, db, "t")


def test_what_an_instant_brings_along(user: ThriftClient, root: ThriftClient, db: str) -> None:
    """An instant that is a commit by name cleans, rolls back and changes columns only with the rights to that."""
    grant(root, f"u_{db}", "INSERT", db, "t")
    begun = user.lake_begin_instant(BeginInstantRequest(reference(db), "commit", state="inflight"))
    plain = CompleteInstantRequest(reference(db), begun.timestamp, "commit")
    for brought, right in (
        ({"cleanedPaths": ["x"]}, "CLEAN"),
        ({"rolledBack": [InstantKey("20260101000000000", "commit")]}, "ROLLBACK"),
        ({"columns": [Column("id", "bigint")]}, "ALTER"),
        ({"schemaProperties": {"a": "b"}}, "ALTER"),
    ):
        with refused(MetaException, message=f"does not have [{right}]"):
            user.lake_complete_instants([plain.replace(**brought)])
    assert len(user.lake_complete_instants([plain])) == 1


class TestEvents:
    def test_those_of_visible_tables(self, user: ThriftClient, root: ThriftClient, db: str) -> None:
        start = root.lake_event_positions(None, None).last
        root.create_table(builders.table(db, "another", owner="somebody"))
        root.alter_table(db, "t", root.get_table(db, "t").replace(retention=7))
        wanted = ReadEventsRequest(start)
        assert [each.table for each in root.lake_read_events(wanted).events] == ["another", "t"]
        found = user.lake_read_events(wanted)
        assert (found.events, found.position) == ([], start + 2)
        grant(root, f"u_{db}", "SUBSCRIBE", db, "t")
        assert [each.table for each in user.lake_read_events(wanted).events] == ["t"]
        grant(root, f"u_{db}", "SUBSCRIBE", db)
        assert [each.table for each in user.lake_read_events(wanted).events] == ["another", "t"]

    def test_hives_log_has_no_gaps(self, user: ThriftClient, root: ThriftClient, db: str) -> None:
        start = root.get_current_notificationEventId().eventId
        root.create_table(builders.table(db, "another", owner="somebody"))
        root.alter_table(db, "t", root.get_table(db, "t").replace(retention=8))
        grant(root, f"u_{db}", "SELECT", db, "t")
        found = user.get_next_notification(NotificationEventRequest(start)).events
        assert [each.eventId for each in found] == [start + 1, start + 2]
        assert [(each.eventType, each.tableName) for each in found] == [("HIDDEN", None), ("ALTER_TABLE", "t")]
        assert user.get_notification_events_count(NotificationEventsCountRequest(start, "*")).eventsCount == 1

    def test_a_table_that_comes_from_a_hidden_database(self, user: ThriftClient, root: ThriftClient, db: str) -> None:
        """The event names both places."""
        root.create_database(builders.database(f"from_{db}", ownerName="somebody"))
        root.create_table(builders.table(f"from_{db}", "moved", owner="somebody"))
        grant(root, f"u_{db}", "SELECT", db)
        start = root.lake_event_positions(None, None).last
        since = root.get_current_notificationEventId().eventId
        value = root.get_table(f"from_{db}", "moved")
        root.alter_table(f"from_{db}", "moved", value.replace(dbName=db))
        assert user.get_table(db, "moved").tableName == "moved"
        assert user.lake_read_events(ReadEventsRequest(start)).events == []
        assert [e.eventType for e in user.get_next_notification(NotificationEventRequest(since)).events] == ["HIDDEN"]

    def test_of_a_dropped_table_whose_name_another_has(self, user: ThriftClient, root: ThriftClient, db: str) -> None:
        """They are decided as those of any dropped table, by the database; so are those by an earlier name."""
        start = root.lake_event_positions(None, None).last
        since = root.get_current_notificationEventId().eventId
        root.alter_table(db, "t", root.get_table(db, "t").replace(retention=9))
        root.add_partition(builders.partition(db, "t", "3"))
        columns = [SQLPrimaryKey(db, "t", "id", 1, f"pk_{db}", False, False, False, "hive")]
        root.add_primary_key(AddPrimaryKeyRequest(columns))
        root.alter_table(db, "t", root.get_table(db, "t").replace(tableName="renamed"))
        root.drop_table(db, "renamed", True)
        root.create_table(builders.table(db, owner=f"u_{db}"))
        root.create_table(builders.table(db, "renamed", owner=f"u_{db}"))
        assert len(root.lake_read_events(ReadEventsRequest(start)).events) == 7
        seen = user.lake_read_events(ReadEventsRequest(start)).events
        assert [(each.type, each.table) for each in seen] == [("CREATE_TABLE", "t"), ("CREATE_TABLE", "renamed")]
        notified = user.get_next_notification(NotificationEventRequest(since)).events
        assert [each.tableName for each in notified if each.eventType != "HIDDEN"] == ["t", "renamed"]
        assert len(notified) == 7
        counted = NotificationEventsCountRequest(since, db)
        assert user.get_notification_events_count(counted).eventsCount == 2
        until = counted.replace(toEventId=notified[5].eventId)
        assert user.get_notification_events_count(until).eventsCount == 1
        grant(root, f"u_{db}", "SUBSCRIBE", db)
        assert len(user.lake_read_events(ReadEventsRequest(start)).events) == 7
        assert user.get_notification_events_count(until).eventsCount == 6

    def test_groups_need_the_right_to_subscribe(self, user: ThriftClient, root: ThriftClient, db: str) -> None:
        wanted = ReadGroupEventsRequest(f"g_{db}", "one", 0, limit=1)
        grant(root, f"u_{db}", "SELECT", db, "t")
        with refused(MetaException, message="does not have [SUBSCRIBE] privilege on [the metastore]"):
            user.lake_read_group_events(wanted)
        grant(root, f"u_{db}", "SUBSCRIBE", db, "t")
        user.lake_read_group_events(wanted)


class TestPlaces:
    def test_of_a_new_table(self, user: ThriftClient, root: ThriftClient, db: str, tmp_path: Path) -> None:
        grant(root, f"u_{db}", "CREATE", db)
        home = root.get_database(db).locationUri
        user.create_table(builders.external_table(db, "usual", sd=builders.storage(location=f"{home}/usual")))
        for place in (str(tmp_path), f"{home}/t", f"{home}/usual/../t"):
            with refused(MetaException, message=f"does not have [LOCATION] privilege on [{db}]"):
                user.create_table(builders.external_table(db, "x", sd=builders.storage(location=place)))
        grant(root, f"u_{db}", "LOCATION", db)
        user.create_table(builders.external_table(db, "x", sd=builders.storage(location=str(tmp_path / "x"))))
        with refused(MetaException, message="must not carry a user's name or password"):
            user.create_table(builders.external_table(db, "y", sd=builders.storage(location="s3a://key:pass@bucket/y")))

    def test_of_what_changes(self, user: ThriftClient, root: ThriftClient, db: str, tmp_path: Path) -> None:
        grant(root, f"u_{db}", "ALTER", db)
        table, partition = root.get_table(db, "t"), root.get_partition(db, "t", ["1"])
        user.alter_table(db, "t", table.replace(retention=9))
        moved = partition.replace(sd=partition.sd.replace(location=str(tmp_path / "p")))
        archived = {"is_archived": "true", "original_location": str(tmp_path / "p")}
        changes = [
            lambda: user.add_partition(builders.partition(db, "t", "7", parameters=archived)),
            lambda: user.alter_partition(db, "t", partition.replace(parameters=archived)),
            lambda: user.alter_table(db, "t", table.replace(sd=table.sd.replace(location=str(tmp_path / "t")))),
            lambda: user.alter_partition(db, "t", moved),
            lambda: user.add_partition(builders.partition(db, "t", "3", location=str(tmp_path / "3"))),
            lambda: user.alter_database_req(
                AlterDatabaseRequest(db, root.get_database(db).replace(locationUri=str(tmp_path / "d")))
            ),
        ]
        grant(root, f"u_{db}", "INSERT", db)
        for change in changes:
            with refused(MetaException, InvalidOperationException, message="does not have [LOCATION]"):
                change()

    def test_of_the_code_of_functions(self, user: ThriftClient, root: ThriftClient, db: str) -> None:
        grant(root, f"u_{db}", "CREATE", db)
        jar = Function("f", db, "a.B", None, None, 0, FunctionType.JAVA, [ResourceUri(1, "file:/tmp/evil.jar")])
        with refused(MetaException, message="does not have [LOCATION]"):
            user.create_function(jar)
        user.create_function(jar.replace(resourceUris=[]))

    def test_allowed_roots(self, guarded: MetastoreServer, root: ThriftClient) -> None:
        base = guarded.data_dir.parent
        root.create_role(Role("rooters"))
        for name in ("rooted", "unrooted"):
            root.create_database(builders.database(name))
            grant(root, "rooter", "CREATE", name)
        with as_user(guarded, "rooter") as user:

            def create(database: str, place: str) -> None:
                storage = builders.storage(location=f"{base}/{place}")
                name = place.replace("/", "_").replace(".", "")
                user.create_table(builders.external_table(database, name, sd=storage))

            create("rooted", "all/a")
            create("rooted", "one/a")
            create("unrooted", "all/b")
            outside = (("unrooted", "one/b"), ("rooted", "etl/a"), ("rooted", "allthesame"), ("rooted", "all/../etl/b"))
            for database, place in outside:
                with refused(MetaException, message="does not have [LOCATION]"):
                    create(database, place)
            root.grant_role("rooters", "rooter", PrincipalType.USER, "root", PrincipalType.USER, False)
            create("rooted", "etl/a")


class TestOwnersAndStatistics:
    def test_who_writes_may_say_how_much_it_was(self, user: ThriftClient, root: ThriftClient, db: str) -> None:
        """Engines alter the table after an insert, by its statistics alone."""
        grant(root, f"u_{db}", "INSERT", db, "t")
        table = user.get_table(db, "t")
        table.parameters |= {"numRows": "7", "transient_lastDdlTime": "1", "spark.sql.statistics.totalSize": "9"}
        user.alter_table(db, "t", table)
        assert root.get_table(db, "t").parameters["numRows"] == "7"
        table.parameters["comment"] = "mine"
        with refused(MetaException, message="does not have [ALTER]"):
            user.alter_table(db, "t", table)

    def test_a_table_is_not_given_away_by_who_may_alter_it(
        self, user: ThriftClient, root: ThriftClient, db: str
    ) -> None:
        grant(root, f"u_{db}", "ALTER", db, "t")
        with refused(InvalidOperationException, MetaException, message="does not have [ALL]"):
            user.alter_table(db, "t", user.get_table(db, "t").replace(owner=f"u_{db}"))

    def test_a_rename_needs_the_right_to_create(self, user: ThriftClient, root: ThriftClient, db: str) -> None:
        grant(root, f"u_{db}", "ALTER", db, "t")
        with refused(InvalidOperationException, MetaException, message=f"does not have [CREATE] privilege on [{db}]"):
            user.alter_table(db, "t", user.get_table(db, "t").replace(tableName="other"))


def test_jobs_of_a_table_need_the_right_to_that_table(root: ThriftClient, user: ThriftClient, db: str) -> None:
    of_table = ListJobsRequest(table=TableReference(database=db, table="t"))
    grant(root, f"u_{db}", "SELECT", db, "t")
    with refused(MetaException, InvalidOperationException, message="TABLE_SERVICE"):
        user.lake_list_jobs(of_table)
    grant(root, f"u_{db}", "TABLE_SERVICE", db, "t")
    assert user.lake_list_jobs(of_table).jobs == []
    with refused(MetaException, InvalidOperationException, message="TABLE_SERVICE"):
        user.lake_list_jobs(ListJobsRequest())


def test_jobs_that_delete_files_need_the_right_to_clean(root: ThriftClient, user: ThriftClient, db: str) -> None:
    """The service that runs them has it, so whoever enqueues them must have it, too."""
    grant(root, f"u_{db}", "TABLE_SERVICE", db, "t")
    for action in ("clean", "orphans"):
        jobs = RecordDecisionsRequest(reference(db), 0, [], [JobRequest("compaction"), JobRequest(action)])
        with refused(MetaException, InvalidOperationException, message="does not have [CLEAN]"):
            user.lake_submit_job(reference(db), JobRequest(action))
        with refused(MetaException, InvalidOperationException, message="does not have [CLEAN]"):
            user.lake_record_decisions(jobs)
    assert root.lake_list_jobs(ListJobsRequest(reference(db))).jobs == []
    assert user.lake_submit_job(reference(db), JobRequest("compaction")).state == "pending"
    grant(root, f"u_{db}", "CLEAN", db, "t")
    assert user.lake_submit_job(reference(db), JobRequest("clean")).state == "pending"
    assert len(user.lake_record_decisions(jobs)) == 3


def test_leases_belong_to_their_users(root: ThriftClient, user: ThriftClient, db: str) -> None:
    """What another user reads is not taken away, nor changed, by callers that may only read."""
    root.lake_begin_instant(BeginInstantRequest(reference(db), "commit"))
    grant(root, f"u_{db}", "SELECT", db, "t")
    of_another = LeaseRequest(reference(db), "theirs", seconds=600)
    root.lake_lease_snapshot(of_another)
    with refused(MetaException, InvalidOperationException, message="does not have [CLEAN]"):
        user.lake_lease_snapshot(of_another.replace(seconds=1))
    with refused(MetaException, InvalidOperationException, message="does not have [CLEAN]"):
        user.lake_release_lease(reference(db), "theirs")
    for seconds in (600, 1):
        user.lake_lease_snapshot(LeaseRequest(reference(db), "mine", seconds=seconds))
    user.lake_release_lease(reference(db), "mine")
    user.lake_release_lease(reference(db), "none")
    assert [each.id for each in user.lake_list_leases(reference(db))] == ["theirs"]
    grant(root, f"u_{db}", "CLEAN", db, "t")
    user.lake_lease_snapshot(of_another)
    user.lake_release_lease(reference(db), "theirs")
    assert user.lake_list_leases(reference(db)) == []


def test_a_table_that_an_import_adds_belongs_to_the_importer(root: ThriftClient, user: ThriftClient, db: str) -> None:
    for privilege in ("CREATE", "LOCATION"):
        grant(root, f"u_{db}", privilege, db)
    place = f"{root.get_database(db).locationUri}/imported"
    user.lake_import_hudi(ImportHudiRequest(TableReference(database=db, table="imported"), place, {}, []))
    assert user.get_table(db, "imported").owner == f"u_{db}"
