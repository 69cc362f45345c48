"""The listener at Hives of 3.1 and 4 that are left, which have the jar of Hive 2.3, and what Hudi's sync says."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from bench.hive4_server import Hive4OnPostgres
from bench.postgres import LoopbackPostgres
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.errors import UserError
from metastore.migration.objects import MOVED_TO
from metastore.migration.switching.marks import LISTENER, Marks
from metastore.migration.thrift_source import ThriftSource
from tests.interop.test_hudi_sync import BUNDLE, hudi_session, write
from tests.metastore.migration.following import run
from tests.metastore.migration.refused_changes import check_refusals
from tests.spark.session import SparkError
from tests.support import builders, reference
from tests.support.reference4 import HIVE3, RELEASES, Release
from tests.support.server import MetastoreServer


@pytest.mark.parametrize("release", [HIVE3, *RELEASES.values()], ids=lambda release: release.version)
def test_it_refuses_what_would_change_a_database(release: Release, released_jar: Path, tmp_path: Path) -> None:
    with ExitStack() as stack:
        postgres = LoopbackPostgres(tmp_path / "postgres")
        stack.callback(postgres.close)
        more = {"hive.metastore.pre.event.listeners": LISTENER}
        (tmp_path / "hive").mkdir()
        try:
            hive = Hive4OnPostgres(
                tmp_path / "hive",
                postgres.create("hive"),
                tmp_path / "warehouse",
                release,
                cached=False,
                jars=[released_jar],
                settings=more,
            )
        except UserError as error:
            pytest.skip(str(error)[:300])
        stack.enter_context(hive)
        client = stack.enter_context(ThriftClient(hive.host, hive.port))
        check_refusals(client, "la", tmp_path, functions=True)
        client.create_database(builders.database("lb", locationUri=f"file:{tmp_path}/lb"))
        client.create_table(builders.external_table("lb", sd=builders.storage(location=f"file:{tmp_path}/lb/t")))
        source = f"thrift://{hive.host}:{hive.port}"
        assert Marks(ThriftSource(source), "", print).is_guarded()
        ours = stack.enter_context(MetastoreServer(tmp_path / "ours", "--workers", "1"))
        options = ("--uri", ours.uri, "--databases", "lb")
        run("import", source, *options)
        run("cut-over", source, "lb", *options, "--frozen-by-hand")
        assert client.get_database("lb").parameters == {MOVED_TO: ours.uri}
        run("roll-back", source, "lb", *options, "--frozen-by-hand")
        assert MOVED_TO not in (client.get_database("lb").parameters or {})


def test_hudis_sync_is_told_where_to_go(
    class_path: Callable[..., list[Path]], released_jar: Path, tmp_path: Path
) -> None:
    if (reason := reference.missing()) is not None:
        pytest.skip(reason)
    (jar,) = class_path(BUNDLE, exclusions=("*:*",))
    listener = {"hive_metastore_pre_event_listeners": LISTENER}
    with (
        reference.HiveReference(tmp_path / "hive", jars=[released_jar], **listener) as hive,
        MetastoreServer(tmp_path / "ours", "--workers", "1") as ours,
    ):
        source = f"thrift://{hive.host}:{hive.port}"
        with hudi_session(source, jar, hive.warehouse, tmp_path / "spark") as spark:
            spark.sql(f"CREATE DATABASE lh LOCATION 'file:{tmp_path}/lh'")
            write(spark, "SELECT 1 AS id, 1 AS ts, 'a' AS dt", "lh.orders", tmp_path / "lh/orders")
            options = ("--uri", ours.uri, "--databases", "lh")
            run("import", source, *options)
            run("cut-over", source, "lh", *options, "--frozen-by-hand")
            with pytest.raises(SparkError, match=f"database lh has moved to {ours.uri}: use it there"):
                write(spark, "SELECT 2 AS id, 1 AS ts, 'b' AS dt", "lh.orders", tmp_path / "lh/orders")
