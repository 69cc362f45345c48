"""What Prometheus gets about groups and outlets."""

import re
import urllib.request
from pathlib import Path

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.subscriptions import subscribe
from tests.eventbus.changes import make
from tests.eventbus.hooks import Receiver
from tests.support.command import output
from tests.support.server import MetastoreServer
from tests.support.waiting import wait_until


@pytest.mark.long
def test_groups_and_outlets(tmp_path: Path) -> None:
    with Receiver() as receiver:
        receiver.answers = {"t0": 500}
        hook = ("--event-webhooks", f"w={receiver.url}", "--event-attempts", "1")
        server = MetastoreServer(tmp_path / "data", "--workers", "1", "--http-port", "0", *hook)
        with server, ThriftClient(server.host, server.port) as client:
            match = re.search(r"uri=(http://\S+)", server.log.read_text())
            assert match is not None
            http = match[1]

            def metrics() -> dict[str, float]:
                with urllib.request.urlopen(f"{http}/metrics") as answer:
                    lines = answer.read().decode().splitlines()
                found = [line.rpartition(" ") for line in lines if line.startswith("metastore_event_")]
                return {name.removeprefix("metastore_event_"): float(value) for name, _, value in found}

            with subscribe(server.uri, group="g", start="earliest") as events:
                events.poll()
                make(client, "d", 3)
                wait_until(lambda: metrics().get('group_position{group="webhook:w"}') == 3.0)
                wait_until(lambda: metrics().get('group_lag{group="g"}') == 3.0)
                seen = metrics()
            assert seen['dead_letters{group="webhook:w"}'] == 1.0
            assert seen['group_lag{group="webhook:w"}'] == 0.0
            assert 'group_members{group="webhook:w"}' not in seen
            assert (seen['group_lag{group="g"}'], seen['group_members{group="g"}']) == (3.0, 1.0)
            assert seen['group_seen_seconds{group="g"}'] > 1.7e9
            output("events", "groups", "delete", "g", "--uri", server.uri)
            wait_until(lambda: not [name for name in metrics() if 'group="g"' in name])
