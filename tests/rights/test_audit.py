"""The audit log: each change, who made it, and what was decided."""

import contextlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.errors import UserError
from lake.protocol.hive import Database, MetaException, NoSuchObjectException
from metastore.api import load
from metastore.api.rights.guard import Verdict
from metastore.server.monitoring.audit import STREAM, About, AuditLog, audit_log, beginning
from metastore.services.access.caller import Caller
from metastore.services.access.rights import Decision
from metastore.settings import Settings
from tests.rights.conftest import as_user
from tests.rights.world import OPEN, OPEN_TABLE, READER, World
from tests.support import builders
from tests.support.expect import refused
from tests.support.redis import RedisServer
from tests.support.server import MetastoreServer
from tests.support.waiting import wait_until

load()


def records(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_refused_and_allowed_changes(guarded: MetastoreServer, world: World) -> None:
    path = guarded.data_dir.parent / "audit.log"
    before = len(records(path))
    with as_user(guarded, READER) as reader, as_user(guarded, "root") as root:
        reader.get_table(OPEN, OPEN_TABLE)
        with refused(MetaException, message="DROP"):
            reader.drop_table(OPEN, OPEN_TABLE, True)
        root.alter_table(OPEN, OPEN_TABLE, root.get_table(OPEN, OPEN_TABLE))
    found = [each for each in records(path)[before:] if each["method"] != "set_ugi"]
    assert [(each["method"], each["user"], each["allowed"], each["outcome"]) for each in found] == [
        ("drop_table", READER, False, "MetaException"),
        ("alter_table", "root", True, "ok"),
    ]
    assert found[0]["object"] == f"{OPEN}.{OPEN_TABLE}"
    assert found[0]["mechanism"] == "none"
    assert str(found[0]["peer"]).startswith("127.0.0.1:")
    assert found[0]["reason"] == f"no DROP on {OPEN}.{OPEN_TABLE} for {READER}"
    assert found[1]["reason"] == "administrator"


def caller() -> Caller:
    return Caller("alice", (), "jwt", "proxy", "10.0.0.1:5")


def test_a_file_that_is_moved_away_is_opened_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("metastore.server.monitoring.audit._LOOK_SECONDS", 0)
    log = AuditLog("changes", tmp_path / "audit.log")
    log.record("drop_table", caller(), lambda: About("a.b"), "ok", Verdict(True, "owner"))
    (tmp_path / "audit.log").rename(tmp_path / "audit.log.1")
    log.record("drop_table", caller(), lambda: About("a.c"), "ok", None)
    assert [each["object"] for each in records(tmp_path / "audit.log.1")] == ["a.b"]
    [found] = records(tmp_path / "audit.log")
    assert (found["object"], found["real_user"], found["allowed"]) == ("a.c", "proxy", None)


def test_reads_are_recorded_only_on_request(tmp_path: Path) -> None:
    for calls, expected in (("changes", 0), ("all", 1)):
        log = AuditLog(calls, tmp_path / calls)  # type: ignore[arg-type]
        log.record("get_table", caller(), lambda: About("a.b"), "ok", None)
        assert len(records(tmp_path / calls)) == expected


def test_line_ends_in_names_forge_no_record(tmp_path: Path) -> None:
    log = AuditLog("changes", tmp_path / "audit.log")
    log.record("drop_table", caller(), lambda: About('a\n{"user":"root"}'), "ok", None)
    assert len(records(tmp_path / "audit.log")) == 1


def test_texts_are_bounded(tmp_path: Path) -> None:
    log = AuditLog("changes", tmp_path / "audit.log")
    who = Caller("u" * 5_000, (), "none", None, "10.0.0.1:5")
    log.record("drop_table", who, lambda: About("a.b"), "ok", Verdict(False, "r" * 5_000))
    [found] = records(tmp_path / "audit.log")
    assert (found["user"], found["reason"]) == ("u" * 1_000, "r" * 1_000)


def test_a_kept_reply_is_recorded_with_its_object(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    options = ("--audit", "all", "--audit-log", str(path), "--workers", "1")
    with MetastoreServer(tmp_path / "data", *options) as server, as_user(server, "anybody") as client:
        client.create_database(builders.database("kept"))
        client.create_table(builders.table("kept"))
        for _ in range(3):
            client.get_table("kept", "t")
    found = [json.loads(line) for line in path.read_text().splitlines()]
    kept = [each for each in found if each["method"] == "get_table" and each["outcome"] == "cached"]
    assert kept
    assert {each["object"] for each in kept} == {"kept.t"}


def test_a_kept_reply_is_recorded_with_the_decision(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    options = ("--audit", "all", "--audit-log", str(path), "--workers", "1")
    rights = ("--authorization", "sql-standard", "--trust-unproven-users", "--admins", "root")
    with MetastoreServer(tmp_path / "data", *options, *rights) as server:
        with as_user(server, "root") as root:
            root.create_database(Database(name="kept", ownerName="ann"))
            root.create_table(builders.table("kept", owner="ann"))
        for user in ("ann", "root", "nobody"):
            with as_user(server, user) as client:
                for _ in range(4):
                    with contextlib.suppress(NoSuchObjectException):
                        client.get_table("kept", "t")
    found = [each for each in records(path) if each["method"] == "get_table"]
    kept = {(each["user"], each["allowed"], each["reason"]) for each in found if each["outcome"] == "cached"}
    assert {(user, allowed, str(reason).endswith(" on kept.t")) for user, allowed, reason in kept} == {
        ("ann", True, True),
        ("root", True, False),
    }
    assert {each["allowed"] for each in found if each["user"] == "nobody"} == {False}


def test_records_of_kept_replies_are_written_together_and_in_order(tmp_path: Path) -> None:
    log = AuditLog("all", tmp_path / "audit.log")
    planned: list[Callable[[], None]] = []
    log.gather(lambda _, then: planned.append(then))
    for number in range(3):
        log.record_cached(beginning("get_table", f"a.t{number}"), caller(), Decision(True, "owner"))
    log.record("drop_table", caller(), lambda: About("a.b"), "ok", None)
    assert [each["object"] for each in records(tmp_path / "audit.log")] == ["a.b"]
    assert len(planned) == 1
    planned.pop()()
    found = records(tmp_path / "audit.log")
    assert [(each["object"], each["reason"]) for each in found[1:]] == [(f"a.t{each}", "owner") for each in range(3)]
    assert list(found[0]) == list(found[1])  # the same members, in the same order
    log.record_cached(beginning("get_table", "a.t"), caller(), None)
    assert len(planned) == 1


@pytest.mark.long
def test_records_reach_the_outlet_too(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    with RedisServer(tmp_path / "redis") as redis:
        options = ("--audit-url", redis.url, "--audit-log", str(path), "--workers", "1")
        with MetastoreServer(tmp_path / "data", *options) as server, ThriftClient.from_uri(server.uri) as client:
            client.create_database(builders.database("first"))
            with redis.hanging():
                client.create_database(builders.database("second"))
                client.drop_database("second", True, False)
        with redis.client() as reader:
            found: Any = [json.loads(fields["record"]) for _, fields in reader.xrange(STREAM)]
    assert [(each["method"], each["object"]) for each in found] == [
        ("create_database", "first"),
        ("create_database", "second"),
        ("drop_database", "second"),
    ]
    assert found == records(path)


@pytest.mark.long
def test_records_reach_a_topic_of_kafka(tmp_path: Path) -> None:
    kafka = pytest.importorskip("tests.support.kafka")
    path = tmp_path / "audit.log"
    with kafka.KafkaServer() as broker:
        options = ("--audit-url", f"kafka://{broker.servers}/audit", "--audit-log", str(path), "--workers", "1")
        with MetastoreServer(tmp_path / "data", *options) as server, ThriftClient.from_uri(server.uri) as client:
            client.create_database(builders.database("first"))
            wait_until(lambda: broker.records("audit"), 30, "the first record has come")
            broker.pause()
            client.create_database(builders.database("second"))
            with pytest.raises(MetaException):
                client.create_database(builders.database("x" * 2_000_000))
            client.drop_database("second", True, False)
            broker.go_on()
            wait_until(lambda: len(broker.records("audit")) >= 4, 60, "the others have come")
        found = broker.records("audit")
    assert len({each.partition() for each in found}) == 1
    assert [json.loads(each.value()) for each in found] == records(path)
    assert [each["method"] for each in records(path)] == [*["create_database"] * 3, "drop_database"]


def test_without_a_client_of_kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("eventbus.outlets.kafka_records", "eventbus.outlets.kafka_producer"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(UserError, match=r"pip install 'lake-metastore\[kafka\]'"):
        audit_log(Settings(audit_url="kafka://localhost:9092/audit"))


def test_an_outlet_needs_an_audit() -> None:
    with pytest.raises(ValueError, match="audit_url needs another audit than off"):
        Settings(audit="off", audit_url="redis://localhost/0")
    for wrong in ("ftp://localhost", "kafka://localhost:9092", "kafka://localhost:9092/a topic"):
        with pytest.raises(ValueError, match="expected https"):
            Settings(audit_url=wrong)
