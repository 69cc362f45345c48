"""`--location`: what can't be told apart is refused, and each place goes back to where it was."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.errors import UsageError
from metastore.migration.mapping import Renaming
from tests.metastore.migration.following import complaint, run
from tests.metastore.migration.test_what_is_of_others import made, table
from tests.support import builders, called
from tests.support.server import MetastoreServer


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetastoreServer]:
    with MetastoreServer(tmp_path_factory.mktemp("old") / "data", "--workers", "1") as server:
        yield server


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetastoreServer]:
    with MetastoreServer(tmp_path_factory.mktemp("new") / "data", "--workers", "1") as server:
        yield server


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        (
            ("file:/a=s3a://x", "file:/a/b=s3a://y"),
            "file:/a/b (file:/a/b=s3a://y) lies within file:/a (file:/a=s3a://x",
        ),
        (("file:/a/b/=s3a://y", "file:/a/=s3a://x"), "give OLD places of which none lies within another"),
        (("file:/a=s3a://x", "file:/a=s3a://y"), "give OLD places"),
        (("file:/a=s3a://x/c", "file:/b=s3a://x"), "give NEW places of which none lies within another"),
    ],
)
def test_places_within_one_another_are_refused(pairs: tuple[str, ...], said: str) -> None:
    with pytest.raises(UsageError) as raised:
        Renaming.parse((), pairs)
    assert said in str(raised.value)


def test_others_are_not() -> None:
    assert Renaming.parse((), ("s3://b=s3a://b", "s3://b2=s3a://b2", "s3n://b=s3a://b")).merged == ["s3a://b"]


def test_they_are_refused_before_anything_is_read() -> None:
    pairs = ("--location", "file:/a=file:/x", "--location", "file:/b=file:/x/y")
    for what, more in (("import", ("--uri", "thrift://127.0.0.1:1")), ("plan", ())):
        assert "lies within file:/x" in complaint(what, "thrift://127.0.0.1:1", *more, *pairs)


@pytest.mark.long
def test_several_that_become_one_are_said_before(old: MetastoreServer, ours: MetastoreServer, tmp_path: Path) -> None:
    with ThriftClient(old.host, old.port) as there:
        made(there, "lb", tmp_path)
    pairs = ("--location", "s3://lb=s3a://lb", "--location", "s3n://lb=s3a://lb")
    options = ("--databases", "lb", "--uri", ours.uri)
    found = called.run("migrate", "import", old.uri, *options, *pairs)
    assert "several places become s3a://lb, so roll-back will be refused" in found.stderr
    run("cut-over", old.uri, "lb", *options, "--frozen-by-hand")
    said = complaint("roll-back", old.uri, "lb", *options, "--frozen-by-hand")
    assert "two --location have become one place" in said and "frozen" not in said


@pytest.mark.long
def test_a_place_within_a_new_one_stays(old: MetastoreServer, ours: MetastoreServer, tmp_path: Path) -> None:
    """It didn't come from an old one, so it doesn't go back to one."""
    (tmp_path / "old").mkdir()
    pairs = ("--location", f"file:{tmp_path}/old=file:{tmp_path}/new")
    options = ("--databases", "lc", "--uri", ours.uri)
    with ThriftClient(old.host, old.port) as there, ThriftClient(ours.host, ours.port) as here:
        made(there, "lc", tmp_path / "old")
        there.create_table(table("lc", "moved", tmp_path / "old"))
        for name in ("t", "p"):
            value = table("lc", name, tmp_path / "new")
            value.partitionKeys = builders.columns("dt:string") if name == "p" else []
            value.sd.serdeInfo.parameters = {"path": value.sd.location}
            there.create_table(value)
        there.add_partitions([builders.partition("lc", "p", "1")])
        run("import", old.uri, *options, *pairs)
        run("cut-over", old.uri, "lc", *options, "--frozen-by-hand")
        for name in ("moved", "t", "p"):
            value = here.get_table("lc", name)
            assert value.sd.location == f"file:{tmp_path}/new/lc/{name}"
            here.alter_table("lc", name, value.replace(parameters={**(value.parameters or {}), "a": "b"}))
        one = here.get_partition("lc", "p", ["1"])
        here.alter_partition("lc", "p", one.replace(parameters={**(one.parameters or {}), "a": "b"}))
        here.add_partitions([builders.partition("lc", "p", "2")])
        run("roll-back", old.uri, "lc", *options, "--frozen-by-hand")
        assert there.get_table("lc", "moved").sd.location == f"file:{tmp_path}/old/lc/moved"
        for name in ("t", "p"):
            found = there.get_table("lc", name)
            assert (found.sd.location, found.parameters["a"]) == (f"file:{tmp_path}/new/lc/{name}", "b")
            assert found.sd.serdeInfo.parameters["path"] == found.sd.location
        assert [there.get_partition("lc", "p", [each]).sd.location for each in "12"] == [
            f"file:{tmp_path}/new/lc/p/dt={each}" for each in "12"
        ]
