"""A table that lies over another's directory: no path that it names deletes what is the other's."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from lake.protocol.hive import InvalidObjectException, InvalidOperationException, MetaException
from lake.protocol.lake import InstantConflict, InstantKey, TableReference
from metastore.services.wiring import Metastore
from tests.metastore.services.timeline.lake import LakeTable, file
from tests.support import builders
from tests.support.target import local_path

FILE = "dt=1/part-0"
"""The other's file, below its table."""


@pytest.fixture
def other(metastore: Metastore, db: str) -> Path:
    """The directory of a table in a database of its own, with a partition in its usual place and one elsewhere."""
    home = f"{db}_other"
    metastore.databases.create(builders.database(home))
    metastore.tables.create(builders.table(home, "t", keys=("dt",)), {})
    location = metastore.tables.get(home, "t").sd.location or ""  # type: ignore[union-attr]
    place = local_path(location)
    elsewhere = builders.partition(home, "t", "2", location=f"{location}_elsewhere")
    metastore.partitions.add(home, "t", [builders.partition(home, "t", "1"), elsewhere], {})
    for each in (place / FILE, place.with_name("t_elsewhere") / "part-0"):
        each.write_text("the other's rows")
    return place


def same(other: Path, _: Path) -> tuple[Path, str]:
    return other, FILE


def above(other: Path, _: Path) -> tuple[Path, str]:
    return other.parent, f"{other.name}/{FILE}"


def below(other: Path, _: Path) -> tuple[Path, str]:
    return other / "dt=1", "part-0"


def at_a_partition(other: Path, _: Path) -> tuple[Path, str]:
    return other.with_name("t_elsewhere"), "part-0"


def above_a_partition(other: Path, _: Path) -> tuple[Path, str]:
    return other.parent, "t_elsewhere/part-0"


def by_a_link(other: Path, tmp: Path) -> tuple[Path, str]:
    (tmp / "link").symlink_to(other)
    return tmp / "link", FILE


def by_a_link_above(other: Path, tmp: Path) -> tuple[Path, str]:
    (tmp / "link").symlink_to(other.parent)
    return tmp / "link" / other.name, FILE


PLACES = [same, above, below, at_a_partition, above_a_partition, by_a_link, by_a_link_above]
Place = Callable[[Path, Path], tuple[Path, str]]


@pytest.fixture(params=PLACES, ids=[each.__name__ for each in PLACES])
def over(
    request: pytest.FixtureRequest, metastore: Metastore, db: str, other: Path, tmp_path: Path
) -> tuple[LakeTable, str]:
    """A table whose directory is the other's, or lies around or in it, and the path of the other's file from there."""
    directory, path = request.param(other, tmp_path)
    kinds = {"tableType": "EXTERNAL_TABLE", "parameters": {"EXTERNAL": "TRUE"}}
    sd = builders.storage("id:bigint", location=f"file:{directory}")
    return LakeTable(metastore, db, "evil", sd=sd, **kinds), path  # type: ignore[arg-type]


def cleaned(table: LakeTable, path: str) -> None:
    instant = table.begin()
    table.complete(instant, file("dt=1", "g", instant.timestamp, path=path))
    table.complete(table.begin("replacecommit"), replacedPartitions=["dt=1"])
    table.clean([path])


def rejected(table: LakeTable, path: str) -> None:
    """The files of a completion that lost a conflict are deleted with its instant."""
    table.commit("g", partition="dt=1")
    winner, loser = table.begin("replacecommit"), table.begin("replacecommit")
    table.complete(winner, replacedPartitions=["dt=1"])
    with pytest.raises(InstantConflict):
        table.complete(loser, file("dt=1", "new", loser.timestamp, path=path), replacedPartitions=["dt=1"])
    table.metastore.timeline.delete(table.reference, loser.timestamp, "replacecommit")


def rolled_back(table: LakeTable, path: str) -> None:
    instant = table.begin()
    table.complete(instant, file("dt=1", "g", instant.timestamp, path=path))
    table.complete(table.begin("rollback"), rolledBack=[InstantKey(instant.timestamp, "commit")])
    table.clean([path])


def truncated(table: LakeTable, path: str) -> None:
    table.commit("g", partition="dt=1")
    instant = table.begin("replacecommit")
    table.complete(instant, file("dt=1", "g", instant.timestamp, path=path), replacedPartitions=["dt=1"])
    with suppress(MetaException):  # refused where the other lies in the partition
        table.metastore.tables.truncate(table.db, table.name, None)
    table.metastore.partitions.drop(table.db, table.name, values=["1"], delete_data=True)


@pytest.mark.parametrize("way", [cleaned, rejected, rolled_back, truncated])
def test_files(over: tuple[LakeTable, str], way: Callable[[LakeTable, str], None]) -> None:
    table, path = over
    before = sorted(each for each in table.directory.rglob("*") if each.is_file())
    assert table.directory / path in before
    with capture_logs() as lines:
        way(table, path)
        table.delete_files()
    assert [each for each in before if not each.exists()] == []
    assert (table.directory / path).read_text() == "the other's rows"
    if way is not truncated:
        reasons = {(each["event"], each.get("reason")) for each in lines}
        assert ("files are kept", "another table or partition lies there") in reasons
    assert table.metastore.pending_work.counts()[:2] == (0, 0)


@pytest.mark.parametrize("at_once", [False, True], ids=["by the leader's task", "by the next of its name"])
def test_directories_of_instants(over: tuple[LakeTable, str], at_once: bool) -> None:
    """The other may have an instant of the same name."""
    table, _ = over
    staged = table.directory / ".instants/20200101000000000.commit/staged"
    staged.parent.mkdir(parents=True)
    staged.write_text("the other's rows")
    place = table.directory.resolve()
    is_others = place.name in ("t", "t_elsewhere") or place.parent.name == "t"
    instant = table.begin(timestamp="20200101000000000")
    table.metastore.timeline.delete(table.reference, instant.timestamp, "commit")
    if at_once:
        table.begin(timestamp="20200101000000000")
    table.delete_files()
    assert staged.exists() is is_others


def test_its_own_files_beside_those_of_a_table_below(metastore: Metastore, db: str, other: Path) -> None:
    """A table below takes what is in its directory alone: the rest is cleaned."""
    sd = builders.storage("id:bigint", location=f"file:{other.parent}/mine")
    table = LakeTable(metastore, db, "mine", sd=sd)
    inner = builders.external_table(db, "inner", sd=builders.storage("id:bigint", location=f"file:{table.directory}/x"))
    metastore.tables.create(inner, {})
    own, foreign = table.directory / "dt=1/own", table.directory / "x/foreign"
    for each in (own, foreign):
        each.parent.mkdir(parents=True, exist_ok=True)
        each.write_text("rows")
    instant = table.begin()
    added = [file("dt=1", name, instant.timestamp, path=path) for name, path in (("a", "dt=1/own"), ("b", "x/foreign"))]
    table.complete(instant, *added)
    table.complete(table.begin("replacecommit"), replacedPartitions=["dt=1"])
    table.clean(["dt=1/own", "x/foreign"])
    table.delete_files()
    assert (own.exists(), foreign.exists()) == (False, True)


def test_a_table_that_the_server_made_in_another_s_directory_is_cleaned(
    metastore: Metastore, db: str, other: Path
) -> None:
    table = LakeTable(metastore, db, "inner", sd=builders.storage("id:bigint", location=f"file:{other}/inner"))
    (table.directory / "dt=1").mkdir()
    (table.directory / FILE).write_text("its own rows")
    cleaned(table, FILE)
    table.delete_files()
    assert not (table.directory / FILE).exists()


@pytest.mark.parametrize("location", ["t/dt=1", "t", "t_elsewhere"])
def test_success_files(metastore: Metastore, db: str, other: Path, location: str) -> None:
    """A partition that is reopened leaves the success file of another's partition alone."""
    place = other.parent / location
    (place / "_SUCCESS").touch()
    policies = {"sink.partition-commit.policy.kind": "success-file"}
    metastore.tables.create(builders.table(db, "evil", keys=("dt",), parameters=policies), {})
    metastore.partitions.add(db, "evil", [builders.partition(db, "evil", "1", location=f"file:{place}")], {})
    metastore.partition_states.reopen(TableReference(database=db, table="evil"), ["dt=1"], None)
    assert (place / "_SUCCESS").exists()


@pytest.mark.parametrize("name", ["20200101000000000.commit", "x", "20200101000000000.commit/attempt-1"])
def test_no_location_in_an_instant_s_directory(metastore: Metastore, db: str, other: Path, name: str) -> None:
    """With such a location a drop would delete the directory around it."""
    place = f"file:{other.parent}/none/.instants/{name}"
    with pytest.raises(InvalidObjectException, match="the directory of an instant"):
        metastore.tables.create(builders.table(db, "evil", sd=builders.storage("id:bigint", location=place)), {})
    metastore.tables.create(builders.table(db, "evil"), {})
    found = metastore.tables.get(db, "evil")
    assert found.sd is not None
    with pytest.raises(InvalidOperationException, match="the directory of an instant"):
        metastore.tables.alter(db, "evil", found.replace(sd=found.sd.replace(location=place)), {})
