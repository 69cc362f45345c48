"""The notification logs of Hive 2.3 and 4 are followed while writers write."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import NotificationEventRequest
from metastore.migration.thrift_source import ThriftSource
from tests.interop import maven
from tests.metastore.migration.following import differences, follow, run
from tests.metastore.migration.random_changes import Writer
from tests.support import builders, reference
from tests.support.reference4 import RELEASES, Hive4Reference
from tests.support.server import MetastoreServer

LISTENER = "org.apache.hive.hcatalog.listener.DbNotificationListener"

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module", params=["2.3", *sorted(RELEASES)])
def uri(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    place = tmp_path_factory.mktemp("hive")
    if request.param == "2.3":
        with reference.notifying(place) as hive:
            yield f"thrift://{hive.host}:{hive.port}"
        return
    release = RELEASES[request.param]
    extensions = f"org.apache.hive.hcatalog:hive-hcatalog-server-extensions:{release.version}"
    chosen = type("Hive4", (Hive4Reference,), {"release": release})
    try:
        jars = maven.class_path([extensions], exclusions=["*:*"])
    except maven.Unavailable as error:
        pytest.skip(str(error)[:300])
    with chosen(place / "hive4", jars=jars, hive_metastore_transactional_event_listeners=LISTENER) as hive:
        yield f"thrift://{hive.host}:{hive.port}"


@pytest.mark.parametrize("seed", range(3))
def test_random_changes_come_over(uri: str, tmp_path: Path, seed: int) -> None:
    host, port = uri.removeprefix("thrift://").split(":")
    databases = [f"f{seed}_a", f"f{seed}_b"]
    options = ("--databases", f"f{seed}_*")
    with (
        ThriftClient(host, int(port)) as hive,
        MetastoreServer(tmp_path / "data", "--workers", "1") as ours,
    ):
        for name in databases:
            hive.create_database(builders.database(name, locationUri=f"file:{tmp_path}/{name}"))
        assert not ThriftSource(uri).says_no_log()
        writer = Writer(hive, databases, tmp_path, seed=seed, told=True)
        writer.write(40)
        run("import", uri, "--uri", ours.uri, *options)
        for _ in range(3):
            writer.write(60)
            found = follow(uri, ours, *options)
            assert (found["problems"], found["compared"]) == ([], [])
            assert differences(uri, ours, *options) == []
        formats = {each.messageFormat for each in hive.get_next_notification(NotificationEventRequest(0, 1_000)).events}
        print(uri, writer.done, formats)
