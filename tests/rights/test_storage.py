"""Authorization by the permissions of directories: what may be done over the wire follows from modes and owners."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    DropPartitionsRequest,
    HiveObjectPrivilege,
    MetaException,
    NoSuchObjectException,
    Partition,
    RequestPartsSpec,
)
from tests.rights import world as names
from tests.rights.conftest import as_user
from tests.rights.test_matrix import HIDDEN_FROM, NAMED, Users, compare
from tests.rights.world import HIDDEN, HIDDEN_TABLE, OPEN, OPEN_TABLE, READER, World, fill
from tests.support import builders
from tests.support.expect import refused
from tests.support.server import MetastoreServer, ServerDidNotStart

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give directories to others")

ANN, BOB = "games", "daemon"
"""Users that every Debian knows."""
OPTIONS = ("--authorization", "storage", "--admins", "root", "--trust-unproven-users", "--workers", "1")


def path_of(location: str | None) -> Path:
    assert location is not None
    return Path(location.removeprefix("file:"))


@pytest.fixture(scope="module")
def area() -> Iterator[Path]:
    """A directory that everybody can reach."""
    path = Path(tempfile.mkdtemp(prefix="storage-rights-", dir="/tmp"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="module")
def server(area: Path) -> Iterator[MetastoreServer]:
    options = ("--warehouse-dir", str(area / "warehouse"), *OPTIONS)
    with MetastoreServer(area / "data", *options) as server:
        yield server


@pytest.fixture(scope="module")
def root(server: MetastoreServer) -> Iterator[ThriftClient]:
    with as_user(server, "root") as client:
        yield client


@pytest.fixture(scope="module")
def filled(server: MetastoreServer, root: ThriftClient) -> World:
    world = fill(server, root)
    path_of(root.get_database(HIDDEN).locationUri).chmod(0o700)
    open_ = path_of(root.get_database(OPEN).locationUri)
    open_.chmod(0o755)
    path_of(root.get_table(OPEN, HIDDEN_TABLE).sd.location).chmod(0o700)
    path_of(root.get_table(OPEN, OPEN_TABLE).sd.location).chmod(0o755)
    return world


@pytest.fixture
def shop(root: ThriftClient) -> Iterator[Path]:
    """The directory of the database `shop`, which is ANN's."""
    root.create_database(builders.database("shop"))
    path = path_of(root.get_database("shop").locationUri)
    shutil.chown(path, ANN)
    yield path
    root.drop_database("shop", True, True)


ROLES = ["a reader of another table"]


@pytest.mark.long
@pytest.mark.parametrize("role", ROLES)
def test_what_is_hidden_looks_like_what_is_missing(filled: World, root: ThriftClient, role: str) -> None:
    assert role in HIDDEN_FROM
    users = Users(filled)
    try:
        compare(users, root, role, [(method, "plain") for method in NAMED])
    finally:
        users.close()


def test_lists_have_what_can_be_read(server: MetastoreServer, filled: World) -> None:
    with as_user(server, READER) as reader:
        assert OPEN in reader.get_all_databases()
        assert HIDDEN not in reader.get_all_databases()
        assert reader.get_all_tables(OPEN) == [OPEN_TABLE]
        assert reader.get_all_tables(HIDDEN) == []
        assert reader.get_partition(OPEN, OPEN_TABLE, ["1"]).values == ["1"]
        for change in (
            lambda: reader.drop_partition(OPEN, OPEN_TABLE, ["1"], False),
            lambda: reader.add_partition(builders.partition(OPEN, OPEN_TABLE, "9")),
            lambda: reader.alter_table(OPEN, OPEN_TABLE, reader.get_table(OPEN, OPEN_TABLE)),
            lambda: reader.drop_table(OPEN, OPEN_TABLE, True),
            lambda: reader.create_table(builders.table(OPEN, "mine")),
        ):
            with refused(MetaException, message=f"Permission denied: user [{READER}]"):
                change()
        with refused(NoSuchObjectException, message="table not found"):
            reader.get_table(OPEN, HIDDEN_TABLE)


def test_who_may_write_the_directory_may_drop_the_table(server: MetastoreServer, shop: Path) -> None:
    with as_user(server, ANN) as ann, as_user(server, BOB) as bob:
        ann.create_table(builders.table("shop", keys=("dt",)))
        ann.add_partition(builders.partition("shop", "t", "1"))
        assert [each.owner() for each in (shop / "t", shop / "t" / "dt=1")] == [ANN, ANN]
        assert bob.get_all_tables("shop") == ["t"]
        with refused(MetaException, message="does not have [DROP] privilege on [shop.t]"):
            bob.drop_table("shop", "t", True)
        for each in (shop / "t", shop / "t" / "dt=1"):
            each.chmod(0o777)  # at once
        bob.drop_partition("shop", "t", ["1"], True)
        with refused(MetaException, message="does not have [DROP] privilege"):
            bob.drop_table("shop", "t", True)  # that deletes a name in a directory which is ANN's
        shop.chmod(0o777)
        bob.create_table(builders.table("shop", "of_bob"))
        shop.chmod(0o1777)
        with refused(MetaException, message="does not have [DROP] privilege"):
            bob.drop_table("shop", "t", True)
        bob.drop_table("shop", "of_bob", True)
        (shop / "t").chmod(0o700)
        assert bob.get_all_tables("shop") == []
        ann.drop_table("shop", "t", True)
        assert not (shop / "t").exists()


def test_groups_of_the_login_count(server: MetastoreServer, shop: Path) -> None:
    shutil.chown(shop, group="users")
    shop.chmod(0o770)
    with as_user(server, BOB) as alone, as_user(server, BOB, "users") as member:
        assert "shop" not in alone.get_all_databases()
        member.create_table(builders.table("shop"))
        assert member.get_all_tables("shop") == ["t"]


def test_views_are_decided_by_their_database(server: MetastoreServer, shop: Path) -> None:
    with as_user(server, ANN) as ann, as_user(server, BOB) as bob:
        ann.create_table(builders.view("shop"))
        assert bob.get_table("shop", "v").tableName == "v"
        with refused(MetaException, message="privilege on [shop.v]"):
            bob.alter_table("shop", "v", bob.get_table("shop", "v"))


def test_places_are_decided_by_their_own_permissions(server: MetastoreServer, shop: Path, area: Path) -> None:
    own, other = area / "of_ann", area / "of_root"
    own.mkdir()
    shutil.chown(own, ANN)
    other.mkdir()
    with as_user(server, ANN) as ann:
        ann.create_table(builders.external_table("shop", "here", sd=builders.storage(location=f"file:{own}/here")))
        for place in (f"file:{other}/there", "s3a://bucket/there"):
            with refused(MetaException, message="does not have [LOCATION] privilege on [shop]"):
                ann.create_table(builders.external_table("shop", "there", sd=builders.storage(location=place)))
        here = ann.get_table("shop", "here")
        moved = here.replace(sd=here.sd.replace(location=f"file:{other}"))
        with refused(MetaException, message="does not have [LOCATION] privilege on [shop.here]"):
            ann.alter_table("shop", "here", moved)


def test_databases(server: MetastoreServer, root: ThriftClient, area: Path, filled: World) -> None:
    warehouse = area / "warehouse"
    with as_user(server, ANN) as ann:
        with refused(MetaException, message="does not have [CREATE] privilege on [the metastore]"):
            ann.create_database(builders.database("anns"))
        warehouse.chmod(0o1777)
        try:
            ann.create_database(builders.database("anns"))
            assert (warehouse / "anns.db").owner() == ANN
            ann.drop_database("anns", True, False)
            with refused(MetaException, message="does not have [DROP] privilege"):
                ann.drop_database(OPEN, True, True)
        finally:
            warehouse.chmod(0o755)


def test_nothing_is_granted_here(server: MetastoreServer, shop: Path) -> None:
    with as_user(server, ANN) as ann:
        ann.create_table(builders.table("shop"))
        given: HiveObjectPrivilege = names._privilege(BOB, "SELECT", "shop", "t", 1, False)  # type: ignore[arg-type]
        with refused(MetaException, message="Permission denied"):
            ann.grant_privileges(names.PrivilegeBag([given]))


def test_partitions_can_be_added_below_the_table(server: MetastoreServer, shop: Path) -> None:
    with as_user(server, ANN) as ann:
        ann.create_table(builders.table("shop", keys=("dt",)))
        added: Partition = builders.partition("shop", "t", "1", sd=builders.storage(location=f"file:{shop}/t/x"))
        ann.add_partition(added)
        outside = builders.partition("shop", "t", "2", sd=builders.storage(location="file:/etc/cron.d/x"))
        with refused(MetaException, message="does not have [LOCATION] privilege"):
            ann.add_partition(outside)


def test_a_partitions_own_directory_counts(server: MetastoreServer, shop: Path) -> None:
    """Both may write in the table's directory, and one of its partitions is closed to one of them."""
    with as_user(server, ANN) as ann, as_user(server, BOB) as bob:
        ann.create_table(builders.table("shop", keys=("dt",)))
        (shop / "t").chmod(0o777)
        for day in "12345":
            ann.add_partition(builders.partition("shop", "t", day))
        closed = shop / "t" / "dt=1"
        closed.chmod(0o755)
        changed = bob.get_partition("shop", "t", ["1"]).replace(parameters={"k": "v"})
        with refused(MetaException, message="privilege on [shop.t]"):
            bob.alter_partition("shop", "t", changed)
        with refused(MetaException, message="privilege on [shop.t]"):
            bob.alter_partitions("shop", "t", [changed])
        with refused(MetaException, message="privilege on [shop.t]"):
            bob.rename_partition("shop", "t", ["1"], changed.replace(values=["9"]))
        with refused(MetaException, message="does not have [DELETE] privilege on [shop.t]"):
            bob.drop_partition("shop", "t", ["1"], True)
        (shop / "t" / "dt=2").chmod(0o777)
        bob.alter_partition("shop", "t", bob.get_partition("shop", "t", ["2"]).replace(parameters={"k": "v"}))
        bob.drop_partition("shop", "t", ["2"], True)
        ann.alter_partition("shop", "t", changed)
        ann.drop_partition("shop", "t", ["1"], True)
        assert not closed.exists()


def test_what_is_in_a_sticky_directory_is_its_owners(server: MetastoreServer, shop: Path) -> None:
    with as_user(server, ANN) as ann, as_user(server, BOB) as bob:
        ann.create_table(builders.table("shop", keys=("dt",)))
        (shop / "t").chmod(0o1777)
        ann.add_partition(builders.partition("shop", "t", "1"))
        (shop / "t" / "dt=1").chmod(0o777)
        bob.add_partition(builders.partition("shop", "t", "2"))
        by_expression = DropPartitionsRequest(
            dbName="shop", tblName="t", parts=RequestPartsSpec(names=["dt=1"]), deleteData=True
        )
        for drop in (
            lambda: bob.drop_partition("shop", "t", ["1"], True),
            lambda: bob.drop_partition_by_name("shop", "t", "dt=1", True),
            lambda: bob.drop_partitions_req(by_expression),
            lambda: bob.truncate_table("shop", "t", ["dt=1"]),
        ):
            with refused(MetaException, message="does not have [DELETE] privilege on [shop.t]"):
                drop()
        bob.drop_partition("shop", "t", ["2"], True)
        ann.drop_partitions_req(by_expression)


def test_a_directory_that_is_there_already_is_not_taken(server: MetastoreServer, shop: Path) -> None:
    with as_user(server, ANN) as ann, as_user(server, BOB) as bob:
        ann.create_table(builders.table("shop", keys=("dt",)))
        (shop / "t").chmod(0o777)
        (shop / "t" / "x").mkdir()
        taken = builders.partition("shop", "t", "1", sd=builders.storage(location=f"file:{shop}/t/x"))
        with refused(MetaException, message="does not have [INSERT] privilege on [shop.t]"):
            bob.add_partition(taken)
        shutil.chown(shop / "t" / "x", BOB)
        bob.add_partition(taken)


def test_a_warehouse_that_cannot_be_looked_at(area: Path) -> None:
    with pytest.raises(ServerDidNotStart, match="permissions of s3a: locations can't be looked at"):
        MetastoreServer(area / "remote", "--warehouse-dir", "s3a://bucket/warehouse", *OPTIONS).start()
