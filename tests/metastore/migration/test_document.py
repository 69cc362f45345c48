"""docs/migration.md leads through the way over and back, while a writer and Spark's jobs go on through the front."""

import re
import shlex
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from lake.protocol.hive import NoSuchObjectException
from metastore.cli.migrate import migrate
from metastore.migration.thrift_source import ThriftSource
from tests.metastore.migration.killing import Repeated
from tests.metastore.migration.places import Going, Place
from tests.spark.session import SparkError, SparkSession, require
from tests.support import builders, reference
from tests.support.front import FrontServer
from tests.support.server import MetastoreServer

pytestmark = [pytest.mark.long, pytest.mark.spark]

HOMES = {"plan": "old", "import": "old", "verify": "old", "follow": "old", "cut-over": "ours", "roll-back": "old"}
"""Where `sales` lives after each command."""


class Jobs:
    """A Spark job for one day after the other: it writes the day again if it was refused, and then counts all days."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self.days = self.refused = 0
        spark.sql("CREATE TABLE sales.days (id INT, day INT) USING parquet PARTITIONED BY (day)")

    def next(self) -> None:
        day = self.days
        self._insist(f"INSERT OVERWRITE sales.days PARTITION (day = {day}) SELECT {day}")
        self._insist(f"CREATE TABLE IF NOT EXISTS sales.of_day_{day} (id INT) USING parquet")
        self.days += 1
        found = self._spark.sql("SELECT day, count(*) FROM sales.days GROUP BY day ORDER BY day")
        assert found == [[each, 1] for each in range(self.days)]

    def _insist(self, statement: str) -> None:
        deadline = time.monotonic() + 120
        while True:
            try:
                self._spark.sql(statement)
            except SparkError as error:
                if "is read-only here" not in str(error) or time.monotonic() > deadline:
                    raise
                self.refused += 1
                time.sleep(0.5)
            else:
                return


@pytest.fixture(params=["lake", "hive"])
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of the metastore that is left: a Hive without a log, or one of ours."""
    require("4")
    if request.param == "hive" and (reason := reference.missing()) is not None:
        pytest.skip(reason)
    kind: Callable[..., MetastoreServer | reference.HiveReference] = (
        (lambda: MetastoreServer(tmp_path / "old", "--workers", "1"))
        if request.param == "lake"
        else (lambda: reference.HiveReference(tmp_path / "old"))
    )
    with kind() as server:
        yield f"thrift://{server.host}:{server.port}"


def test_it_leads_through_it(old: str, tmp_path: Path) -> None:
    """Its commands word by word, with the addresses of this test."""
    text = Path("docs/migration.md").read_text()
    [toml] = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    [lines] = re.findall(r"```console\n(\$ metastore migrate plan.*?)```", text, re.DOTALL)
    with MetastoreServer(tmp_path / "ours", "--workers", "1") as ours:
        here = {"thrift://old:9083": old, "thrift://new:9083": ours.uri}
        with FrontServer(tmp_path / "front", {}, more=replaced(toml, here)) as front:
            here |= {"thrift://front:9083": front.uri, "federation.toml": str(front.file)}
            played(Place(old, ours, front), [replaced(each, here) for each in lines.splitlines()], tmp_path)


def played(place: Place, lines: list[str], directory: Path) -> None:
    may_differ = {"import", "verify"}
    if not ThriftSource(place.old).last_event():  # a follower compares, too
        may_differ.add("follow")
    with place.client() as client:
        client.create_database(builders.database("sales", locationUri=f"file:{directory}/sales"))
    with SparkSession("4", place.front.uri, str(directory / "warehouse"), directory / "spark") as spark:
        jobs = Jobs(spark)
        commands = []
        with Going(place, "sales", directory, 1) as going, Repeated(jobs.next):
            for line in lines:
                what, *words = shlex.split(line.removeprefix("$ metastore migrate "))
                commands.append(what)
                result = CliRunner().invoke(migrate, [what, *words])
                # What changes while it is read differs.
                assert result.exit_code == 0 or what in may_differ, (line, result.output)
                assert ("frozen for" in result.output) == (what in ("cut-over", "roll-back"))
                wait_for(jobs, jobs.days + 2)
                newest = f"of_day_{jobs.days - 1}"
                homes = [server for server in ("old", "ours") if newest in tables(place, server)]
                assert homes == [HOMES[what]], (line, newest)
        assert commands == list(HOMES)
        print(f"{jobs.days} days, {jobs.refused} refused; {going.writer.done} other changes")
        with place.client("old") as client:
            going.check(client)
            days = {int(each.removeprefix("day=")) for each in client.get_partition_names("sales", "days", -1)}
            assert days - {jobs.days} == set(range(jobs.days))


def replaced(text: str, some: dict[str, str]) -> str:
    for name, other in some.items():
        text = text.replace(name, other)
    return text


def wait_for(jobs: Jobs, days: int) -> None:
    deadline = time.monotonic() + 120
    while jobs.days < days:
        assert time.monotonic() < deadline, "the jobs stand still"
        time.sleep(0.2)


def tables(place: Place, server: str) -> list[str]:
    with place.client(server) as client:
        try:
            return list(client.get_all_tables("sales"))
        except NoSuchObjectException:
            return []
