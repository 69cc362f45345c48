"""Tables that can't be read are named, and the others go on."""

import json
import logging
from collections.abc import Iterator

import pytest
from sqlalchemy import make_url

from lake.capture.postgres import capture as capture_module
from lake.capture.postgres.capture import Capture
from tests.lake.capture.shop import Source
from tests.lake.capture.test_commands import invoke
from tests.support.server import MetastoreServer


@pytest.fixture
def reader(source: Source) -> Iterator[str]:
    """The source's URL for a role that may read what it is granted."""
    source.run("CREATE ROLE reader LOGIN REPLICATION PASSWORD 'reader'")
    source.run("ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO reader")
    yield make_url(source.url).set(username="reader", password="reader").render_as_string(hide_password=False)
    source.drop_slot()
    source.run("DROP OWNED BY reader; DROP ROLE reader")


UNREADABLE = {
    "permission denied for table b": ("REVOKE SELECT ON b FROM reader", "GRANT SELECT ON b TO reader"),
    "query would be affected by row-level security policy": (
        "ALTER TABLE b ENABLE ROW LEVEL SECURITY; CREATE POLICY shown ON b USING (id > 1)",
        "ALTER TABLE b DISABLE ROW LEVEL SECURITY",
    ),
}


@pytest.mark.parametrize("why", UNREADABLE)
def test_a_table_that_may_not_be_read(source: Source, reader: str, why: str, metastore_server: MetastoreServer) -> None:
    uri = ("--into", source.into, "--uri", metastore_server.uri)
    run = ("run", reader, "--publication", "shop", "--slot", source.slot, "--once", "--json", *uri)
    before, after = UNREADABLE[why]
    source.run("CREATE TABLE a (id int PRIMARY KEY); CREATE TABLE b (id int PRIMARY KEY); INSERT INTO a VALUES (1)")
    source.run(f"INSERT INTO b VALUES (1); {before}")
    for number in (2, 3):
        source.run("INSERT INTO a VALUES (%s); INSERT INTO b VALUES (%s)", number, number)
        assert f"not captured, while all others are: public.b: {why}" in " ".join(invoke(*run, code=1).split())
        source.check("a", "id")
        found = invoke("status", *uri, code=1)
        assert why in found
        assert "unreadable" in found
    source.run(after)
    assert json.loads(invoke(*run))["troubles"] == {}
    source.check("b", "id")
    assert "unreadable" not in invoke("status", *uri)


def test_it_is_tried_again_with_each_look(
    source: Source, reader: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(capture_module, "_LAG_SECONDS", 0.0)
    source.run("CREATE TABLE b (id int PRIMARY KEY); INSERT INTO b VALUES (1); REVOKE SELECT ON b FROM reader")
    capture = Capture(source.client, source.options(source=reader))

    def grant(state: object) -> None:
        if capture.result.rows:
            capture.stop()
        source.run("GRANT SELECT ON b TO reader")

    capture.on_commit = grant
    with caplog.at_level(logging.WARNING, "lake.capture"):
        capture.run()
    source.check("b", "id")
    alarms = [json.loads(each.message) for each in caplog.records if each.message.startswith("{")]
    assert {"alarm": "unreadable table", "table": "public.b", "reason": "permission denied for table b"} in alarms


def test_partitions_whose_changes_are_not_in_the_log(source: Source) -> None:
    source.run("CREATE TABLE m (id int PRIMARY KEY) PARTITION BY RANGE (id); CREATE TABLE a (id int PRIMARY KEY)")
    source.run("CREATE UNLOGGED TABLE m1 PARTITION OF m FOR VALUES FROM (0) TO (10); INSERT INTO m VALUES (1)")
    source.run("CREATE PUBLICATION rooted FOR TABLE m, a WITH (publish_via_partition_root = true)")
    source.run("INSERT INTO a VALUES (1)")
    result = source.capture(publication="rooted")
    assert result.troubles.keys() == {"public.m"}
    assert "changes of m1 aren't in the log" in result.troubles["public.m"]
    source.check("a", "id")
    source.run("ALTER TABLE m1 SET LOGGED")
    assert source.capture(publication="rooted").troubles == {}
    source.check("m", "id")
