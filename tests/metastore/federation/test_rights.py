"""The rights of a front's own: decided about its names, before anything reaches a backend."""

import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from thrift.Thrift import TApplicationException, TException

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.generated import hive_metastore_service
from lake.protocol.hive import (
    CreationMetadata,
    ForeignKeysRequest,
    ForeignKeysResponse,
    GetTablesExtRequest,
    InvalidOperationException,
    Materialization,
    MetaException,
    NoSuchObjectException,
    NotificationEventRequest,
    NotificationEventsCountRequest,
    SQLForeignKey,
    UnknownDBException,
)
from lake.protocol.services import METHODS
from metastore import api
from metastore.api.methods import HANDLERS
from metastore.cli.federate import server_settings
from metastore.federation import fields
from metastore.federation.configuration import Configuration, FederationError
from metastore.services.access.cedar_policy import PolicyOfNames
from tests.lake.protocol.wire_values import filled
from tests.metastore.federation.stand_in import HangUp, StandIn
from tests.metastore.federation.test_failures import answers
from tests.support import builders
from tests.support.front import FrontServer
from tests.support.postgres import Postgres
from tests.support.server import MetastoreServer

api.load()

NOTHING = "forbid(principal, action, resource);"
EVERYTHING = "permit(principal, action, resource);"


@contextmanager
def front(
    tmp_path: Path, policy: str, backends: dict[str, str], more: str = "", server: str = ""
) -> Iterator[FrontServer]:
    tmp_path.mkdir(exist_ok=True)
    file = tmp_path / "policy.cedar"
    file.write_text(policy)
    settings = f'[server]\nauthorization = "policy"\npolicy_file = "{file}"\ntrust_unproven_users = true\n'
    settings += f'admins = ["boss"]\n{server}\n{more}'
    with FrontServer(tmp_path / "front", backends, more=settings) as running:
        yield running


@contextmanager
def client_of(server: FrontServer, user: str) -> Iterator[ThriftClient]:
    with ThriftClient(server.host, server.port) as client:
        client.set_ugi(user, [])
        yield client


class Named:
    """Puts a database, its catalog and small ids into all arguments."""

    def database(self, catalog: str | None, database: str, *, has_catalog: bool, inherited: str | None) -> Any:
        return (None if catalog is None else "hive"), "d"

    def catalog(self, catalog: str) -> str:
        return "hive"

    def qualified(self, name: str) -> str:
        return "d.t"

    def identifier(self, number: int) -> int:
        return 7

    def highest(self, number: int) -> int:
        return 7

    def table_id(self, holder: Any, number: int) -> int | None:
        return number

    def transactions(self, text: str) -> str:
        return "7:7::"

    def whole(self, value: Any) -> None:
        pass


def call_all(server: FrontServer, user: str) -> None:
    """Calls every method of Hive's with arguments about a database."""
    for method in hive_metastore_service.METHODS:
        arguments = filled(method.args)
        fields.walk(arguments, Named())
        with client_of(server, user) as client, suppress(TException, OSError):
            client.call(method.name, *[getattr(arguments, each) for each in method.argument_names])


def hang_up(*_: Any) -> Any:
    raise HangUp


@pytest.fixture
def recorder() -> Iterator[StandIn]:
    """A backend that takes down what it is asked, and answers nothing."""
    with StandIn(defaultdict(lambda: hang_up, set_ugi=lambda *_: [])) as server:
        yield server


@pytest.mark.long
def test_nothing_reaches_a_backend_for_who_may_nothing(tmp_path: Path, recorder: StandIn) -> None:
    settings = {"only": f'uris = "{recorder.uri}"\nfailures = 1_000_000\nreply_seconds = 5'}
    with front(tmp_path, NOTHING, settings) as server:
        call_all(server, "ann")
    for name in set(recorder.names()):
        rule = HANDLERS[name].rule
        assert not rule.needs and not rule.changes, name  # the answers of such reads are filtered
    before = len(recorder.names())
    with front(tmp_path / "other", EVERYTHING, settings) as server:
        call_all(server, "ann")
    assert len(set(recorder.names()[before:])) > 100  # else it would say nothing


POLICY = """
permit(principal == User::"ann", action, resource in Database::"hive.eu_sales");
forbid(principal == User::"ann", action == Action::"LOCATION", resource);
permit(principal == User::"bob", action in Action::"reading", resource == Table::"hive.eu_sales.t1");
permit(principal == User::"bob", action == Action::"SEE", resource == Database::"hive.eu_sales");
permit(principal == User::"bob", action == Action::"SUBSCRIBE", resource == Table::"hive.eu_sales.t1");
"""


def test_who_may_what(tmp_path: Path, metastore_server: MetastoreServer, postgres: Postgres) -> None:
    backends = {
        "own": f'uris = "{metastore_server.uri}"\nprefix = "eu_"\nnumber = 1\nfollow = true',
    }
    with postgres.fresh_database(upgraded=True) as url:
        database = f"database_url = {json.dumps(url)}"
        readers = '[federation]\nlog_readers = ["*"]\n'
        with front(tmp_path, POLICY, backends, readers, database) as server:
            with client_of(server, "boss") as boss:
                begin = boss.get_current_notificationEventId().eventId
                for name in ("sales", "other"):
                    boss.create_database(builders.database(f"eu_{name}"))
            try:
                with client_of(server, "ann") as ann, client_of(server, "bob") as bob:
                    _changes(ann)
                    _reads(bob)
                    _events(server, ann, bob, begin)
            finally:
                with client_of(server, "boss") as boss:
                    for name in ("sales", "other"):
                        boss.drop_database(f"eu_{name}", True, True)


def _changes(ann: ThriftClient) -> None:
    for each in range(1, 4):
        ann.create_table(builders.table("eu_sales", f"t{each}", keys=("a",)))
    assert ann.get_table("eu_sales", "t1").owner == "ann"
    with pytest.raises((MetaException, NoSuchObjectException)):
        ann.create_table(builders.table("eu_other", "t"))
    table = ann.get_table("eu_sales", "t1")
    ann.alter_table("eu_sales", "t1", table.replace(parameters={**table.parameters, "x": "y"}))
    for changed in (
        table.replace(dbName="eu_other"),
        table.replace(sd=table.sd.replace(location="file:/elsewhere")),
    ):
        with pytest.raises((MetaException, InvalidOperationException), match=r"privilege|eu_other"):
            ann.alter_table("eu_sales", "t1", changed)
    ann.add_partition(builders.partition("eu_sales", "t1", "1"))
    with pytest.raises(MetaException, match="LOCATION"):
        ann.add_partition(builders.partition("eu_sales", "t1", "2", location="file:/elsewhere"))
    assert ann.get_partition_names("eu_sales", "t1", -1) == ["a=1"]


def _reads(bob: ThriftClient) -> None:
    assert [each.values for each in bob.get_partitions("eu_sales", "t1", -1)] == [["1"]]
    assert "eu_other" not in bob.get_all_databases()
    assert bob.get_all_tables("eu_sales") == ["t1"]
    assert bob.get_table_names_by_filter("eu_sales", 'hive_filter_field_owner__ = "ann"', 1) == ["t1"]
    found = bob.get_tables_ext(GetTablesExtRequest("hive", "eu_sales", "*", 1, limit=1))
    assert [each.tblName for each in found] == ["t1"]
    for call in (
        lambda: bob.get_table("eu_sales", "t2"),
        lambda: bob.get_table("eu_nothing", "t2"),
        lambda: bob.get_partitions("eu_sales", "t2", -1),
    ):
        with pytest.raises(NoSuchObjectException):
            call()
    for refused in (
        lambda: bob.drop_table("eu_sales", "t1", True),
        lambda: bob.add_partition(builders.partition("eu_sales", "t1", "9")),
        lambda: bob.create_database(builders.database("eu_mine")),
        lambda: bob.drop_database("eu_sales", True, True),
    ):
        with pytest.raises((MetaException, NoSuchObjectException)):
            refused()
    assert [each.tableName for each in bob.get_table_objects_by_name("eu_sales", ["t1", "t2"])] == ["t1"]


def _events(server: FrontServer, ann: ThriftClient, bob: ThriftClient, begin: int) -> None:
    def told(client: ThriftClient, **asked: Any) -> list[tuple[str, str | None]]:
        found = client.get_next_notification(NotificationEventRequest(begin, **asked)).events
        return [(each.eventType, each.tableName) for each in found]

    def count(client: ThriftClient) -> int:
        found: int = client.get_notification_events_count(NotificationEventsCountRequest(begin, "eu_sales")).eventsCount
        return found

    with client_of(server, "boss") as boss:
        everything = told(boss)
        assert ("HIDDEN", None) not in everything and len(everything) == count(boss) + 1
    own = [each for each in told(bob) if each != ("HIDDEN", None)]
    assert len(told(bob)) == len(everything)
    assert {table for _, table in own} == {"t1"} and ("ADD_PARTITION", "t1") in own
    assert told(bob, dbName="eu_sales") == own
    assert count(bob) == len(own)
    assert ("CREATE_TABLE", "t2") in told(ann)
    bob.setMetaConf("federation.backend", "own")
    with pytest.raises((MetaException, TApplicationException)):
        told(bob)


def test_policies_that_look_at_more_than_names(tmp_path: Path, recorder: StandIn) -> None:
    more = "forbid(principal, action, resource) when { resource.parameters has secret };\n" + EVERYTHING
    file = tmp_path / "policy.cedar"
    file.write_text(more)
    with pytest.raises(Exception, match="the policies look at parameters, of which a front knows nothing"):
        PolicyOfNames(file)
    settings = {"only": f'uris = "{recorder.uri}"\nfailures = 1_000_000'}
    with front(tmp_path, EVERYTHING, settings) as server, client_of(server, "ann") as ann:
        _ask(lambda: ann.get_table("d", "t"))
        assert "get_table" in recorder.names()
        file.write_text(more)
        for _ in range(50):
            before = len(recorder.names())
            _ask(lambda: ann.get_table("d", "t"))
            if len(recorder.names()) == before:
                return
    raise AssertionError("the changed policies were not in force")


def _ask(call: Callable[[], Any]) -> None:
    with suppress(TException):
        call()
    time.sleep(0.1)


def test_what_a_front_can_decide_by() -> None:
    for kind in ("sql-standard", "storage"):
        values = {"server": {"authorization": kind}, "backends": {"a": {"uris": "thrift://a.example:9083"}}}
        with pytest.raises(FederationError, match="a front keeps neither grants nor directories"):
            server_settings(Configuration.model_validate(values), {})


def test_all_methods_have_rules() -> None:
    assert {name for name in METHODS if name not in HANDLERS} == set()


OPEN = """
permit(principal == User::"ann", action, resource in Database::"hive.open");
forbid(principal == User::"ann", action == Action::"LOCATION", resource);
"""


def test_what_names_more_than_it_needs(tmp_path: Path) -> None:
    """Hive answers these without a table, or with a view that it doesn't look at: what counts is decided."""
    keys = [
        SQLForeignKey(pk, "t", "id", fk, "t", "id", 1, 0, 0, "f", "p", True, False, False)
        for pk, fk in (("open", "open"), ("open", "secret"), ("secret", "open"))
    ]
    answered = answers(
        "open",
        "secret",
        get_foreign_keys=lambda asked: ForeignKeysResponse(keys),
        get_materialization_invalidation_info=lambda view, transactions: Materialization(True),
    )
    with StandIn(answered) as backend:
        more = 'allowed_locations = ["hdfs://nn/wh"]'
        with (
            front(tmp_path, OPEN, {"only": f'uris = "{backend.uri}"'}, server=more) as server,
            client_of(server, "ann") as ann,
        ):
            found = ann.get_foreign_keys(ForeignKeysRequest("open", None, None, None)).foreignKeys
            assert [(each.pktable_db, each.fktable_db) for each in found] == [("open", "open")]
            view = CreationMetadata(catName="hive", dbName="open", tblName="v", tablesUsed={"open.t"})
            assert ann.get_materialization_invalidation_info(view, "").sourceTablesUpdateDeleteModified
            with pytest.raises((UnknownDBException, NoSuchObjectException)):
                ann.get_materialization_invalidation_info(view.replace(tablesUsed={"secret.t"}), "")
            ann.create_table(builders.table("open", "t", sd=builders.storage(location="hdfs://nn/wh/t")))
            for place in ("/wh/t", "/anywhere", "file:/wh/t"):
                with pytest.raises(MetaException, match="LOCATION"):
                    ann.create_table(builders.table("open", "t", sd=builders.storage(location=place)))
    assert backend.names().count("create_table") == 1


def test_allowed_locations_have_a_scheme() -> None:
    for root in ("/wh", "database:d=/wh"):
        values = {"server": {"allowed_locations": [root]}, "backends": {"a": {"uris": "thrift://a.example:9083"}}}
        with pytest.raises(FederationError, match="/wh has no scheme"):
            server_settings(Configuration.model_validate(values), {})
