"""Iceberg's tables of a database that lives elsewhere by now can't be committed at the metastore that was left."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.hive import HiveCatalog

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import EnvironmentContext, MetaException, Table
from metastore.migration.followed import Home
from metastore.migration.importing import MOVED_FROM
from metastore.migration.objects import MOVED_TO
from metastore.migration.switching.gate import HandGate
from tests.metastore.migration.following import complaint, follow, run
from tests.metastore.migration.places import Place, backends
from tests.support import builders, reference
from tests.support.front import FrontServer
from tests.support.server import MetastoreServer


@pytest.fixture(scope="module", params=["lake", pytest.param("hive", marks=pytest.mark.long)])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    directory = tmp_path_factory.mktemp("pointers")
    old: MetastoreServer | reference.HiveReference
    if request.param == "hive" and (reason := reference.missing()) is not None:
        pytest.skip(reason)
    old = (
        MetastoreServer(directory / "old", "--workers", "1")
        if request.param == "lake"
        else reference.HiveReference(directory / "old")
    )
    with old, MetastoreServer(directory / "ours", "--workers", "1") as ours:
        uri = f"thrift://{old.host}:{old.port}"
        with FrontServer(directory / "front", backends(uri, ours)) as front:
            yield Place(uri, ours, front)


ROWS = pa.table({"id": pa.array([1, 2], pa.int64())})


def ids(table: object) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())  # type: ignore[attr-defined]


def written(place: Path) -> list[Path]:
    """The metadata that commits have written."""
    return sorted(place.glob("t/metadata/*.metadata.json"))


def made(place: Place, name: str, directory: Path) -> HiveCatalog:
    """A database with a table of Iceberg's with two rows, and another table; the catalog of the old metastore."""
    with place.client("old") as client:
        client.create_database(builders.database(name, locationUri=f"file:{directory}/{name}"))
        client.create_table(builders.table(name, "plain", sd=builders.storage(location=f"file:{directory}/{name}/p")))
    catalog = HiveCatalog("old", uri=place.old)
    catalog.create_table((name, "t"), ROWS.schema, location=f"file:{directory}/{name}/t").append(ROWS)
    return catalog


def by_hand(place: Place, what: str, name: str) -> None:
    run(what, place.old, name, "--uri", place.ours.uri, "--databases", name, "--frozen-by-hand")


def test_nobody_commits_where_it_was(place: Place, tmp_path: Path) -> None:
    name = "pa"
    old = made(place, name, tmp_path)
    before = old.load_table((name, "t"))
    run("import", place.old, "--uri", place.ours.uri, "--databases", name)
    by_hand(place, "cut-over", name)
    moved = f"this-table-has-moved-to-{place.ours.host}-{place.ours.port}.metadata.json"
    files = written(tmp_path / name)
    # Under the lock: who has read the table before, and who reads it now.
    with pytest.raises(FileNotFoundError, match=moved):
        before.append(ROWS)
    with pytest.raises(FileNotFoundError, match=moved):
        old.load_table((name, "t"))
    with place.client("old") as client:
        found = client.get_table(name, "t")
        assert found.parameters[MOVED_FROM] == before.metadata_location
        # Without the lock: what is expected is no longer there.
        with pytest.raises(MetaException):
            committed(client, found, before.metadata_location)
        assert client.get_table(name, "t") == found
        assert MOVED_FROM not in client.get_table(name, "plain").parameters
        # For a listener there; nobody takes it for a change.
        assert client.get_database(name).parameters == {MOVED_TO: place.ours.uri}
    with place.client("ours") as client:
        assert MOVED_TO not in (client.get_database(name).parameters or {})
    assert written(tmp_path / name) == files
    here = HiveCatalog("here", uri=place.ours.uri)
    here.load_table((name, "t")).append(ROWS)
    # No follower and no import takes that for a change.
    follow(place.old, place.ours, "--databases", name)
    assert ids(here.load_table((name, "t"))) == [1, 1, 2, 2]
    by_hand(place, "roll-back", name)
    after = old.load_table((name, "t"))
    assert ids(after) == [1, 1, 2, 2]
    after.append(ROWS)
    with place.client("old") as client:
        assert MOVED_FROM not in client.get_table(name, "t").parameters
        assert MOVED_TO not in (client.get_database(name).parameters or {})
    follow(place.old, place.ours, "--databases", name)
    assert ids(here.load_table((name, "t"))) == [1, 1, 1, 2, 2, 2]


def committed(client: ThriftClient, table: Table, expected: str) -> None:
    """A commit that takes no lock, as HiveCatalog sends it."""
    context = {"expected_parameter_key": "metadata_location", "expected_parameter_value": expected}
    new = table.replace(parameters={**(table.parameters or {}), "metadata_location": f"{expected}.new"})
    client.alter_table_with_environment_context(table.dbName, table.tableName, new, EnvironmentContext(context))


@pytest.mark.parametrize("then", ["cut-over", "roll-back"])
def test_a_cut_over_that_fails_opens_them_again(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, then: str
) -> None:
    name = f"pb_{then[:3]}"
    old = made(place, name, tmp_path)
    run("import", place.old, "--uri", place.ours.uri, "--databases", name)

    class Killed(Exception):
        """Nothing is undone, as after a kill."""

    def killed(_: HandGate) -> None:
        raise Killed

    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(HandGate, "switch", killed)
        by_hand(place, "cut-over", name)
    assert place.home(name) is Home.SWITCHING
    with pytest.raises(FileNotFoundError, match="this-table-has-moved-to"):
        old.load_table((name, "t"))
    by_hand(place, then, name)
    if then == "cut-over":
        assert place.home(name) is Home.HERE
        assert ids(HiveCatalog("here", uri=place.ours.uri).load_table((name, "t"))) == [1, 2]
    else:
        assert place.home(name) is Home.THERE
        old.load_table((name, "t")).append(ROWS)


def test_who_commits_past_the_front_is_noticed(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After all was compared, and before clients are sent here."""
    name = "pc"
    old = made(place, name, tmp_path)
    run("import", place.old, "--uri", place.ours.uri, "--databases", name)
    asked: list[Callable[[], object]] = [lambda: old.load_table((name, "t")).append(ROWS)]
    monkeypatch.setattr("metastore.migration.switching.cutting_over.fence_others", lambda *_: asked.pop()())
    assert f"{name}.t was committed there past the front" in complaint(
        "cut-over", place.old, name, "--uri", place.ours.uri, "--databases", name, "--frozen-by-hand"
    )
    assert place.home(name) is Home.THERE
    assert ids(old.load_table((name, "t"))) == [1, 1, 2, 2]
    monkeypatch.undo()
    by_hand(place, "cut-over", name)
    assert ids(HiveCatalog("here", uri=place.ours.uri).load_table((name, "t"))) == [1, 1, 2, 2]
