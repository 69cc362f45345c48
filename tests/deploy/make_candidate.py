"""Makes tests/deploy/candidate: an installation of this version, for later versions to be upgraded to from it.

    python -m tests.deploy.make_candidate

`state.tar.xz` has a backup of the database and all files. `recorded.json` says what this version answered: what it
found there, and what came of it when it went on writing. `public_names.txt` has the names that docs/stability.md
promises.
"""

import contextlib
import fcntl
import json
import shutil
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lake
from lake.spark.jar import EXTENSION_CLASS, extension_jar
from tests.deploy.candidate_lake import Installation
from tests.deploy.public_names import public_names
from tests.spark.session import SparkSession
from tests.support.dump import dump
from tests.support.postgres import Postgres
from tests.support.server import MetastoreServer

PLACE = Path("/tmp/lake-metastore-candidate")
"""Where an installation lies. Its database has absolute paths, so it is the same place wherever tests run."""

KEPT = Path(__file__).with_name("candidate")
STATE = KEPT / "state.tar.xz"
RECORDED = KEPT / "recorded.json"
PUBLIC = KEPT / "public_names.txt"
BACKUP = "database.dump"
KEEPING = ("--event-retention-days", "36500", "--event-group-days", "36500", "--archived-instant-days", "36500")


@contextlib.contextmanager
def empty_place() -> Iterator[Path]:
    """The place, empty. One process has it at a time; others wait."""
    with PLACE.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(PLACE, ignore_errors=True)
        PLACE.mkdir()
        try:
            yield PLACE
        finally:
            shutil.rmtree(PLACE)


def server_on(url: str, environment: dict[str, str] | None = None) -> MetastoreServer:
    """A server of the installation whose database has this URL. It removes nothing, however old that is."""
    places = ("--database-url", url, "--warehouse-dir", str(PLACE / "warehouse"), "--workers", "1")
    return MetastoreServer(PLACE / "data", *places, *KEEPING, environment=environment)


def used(server: MetastoreServer, scratch: Path, *uses: Callable[[Installation], Any]) -> list[Any]:
    """Starts a server and Spark, and returns what some uses of the installation return."""
    # With the extension, but without its catalog: Spark reads what Hive's readers do.
    settings = {"spark_jars": str(extension_jar()), "spark_sql_extensions": EXTENSION_CLASS}
    with server, SparkSession("4", server.uri, str(PLACE / "warehouse"), scratch, **settings) as spark:
        installation = Installation(server.uri, PLACE, spark)
        with contextlib.closing(installation):
            return [use(installation) for use in uses]


def main() -> None:
    MetastoreServer.is_copy = False  # a copy would have what this module imports before the server does
    with empty_place() as place:
        scratch = place.with_suffix(".scratch")
        shutil.rmtree(scratch, ignore_errors=True)
        postgres = Postgres(scratch / "postgres")
        with contextlib.closing(postgres), postgres.fresh_database() as url:
            server = server_on(url)
            _, found = used(server, scratch / "filled", Installation.fill, Installation.found)
            dump(url, place / BACKUP)
            with tarfile.open(STATE, "w:xz") as archive:
                for name in (BACKUP, "warehouse", "landing", "layers"):
                    archive.add(place / name, name)
            [gone_on] = used(server, scratch / "gone_on", Installation.go_on)
        shutil.rmtree(scratch)
    recorded = {"version": lake.__version__, "found": found, "gone_on": gone_on}
    PUBLIC.write_text("".join(f"{name}\n" for name in sorted(public_names())))
    RECORDED.write_text(json.dumps(recorded, ensure_ascii=False, sort_keys=True) + "\n")
    print(f"{STATE} has {STATE.stat().st_size / 1e3:.0f} kB, made by {lake.__version__}")


if __name__ == "__main__":
    main()
