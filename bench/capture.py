"""Capture: rows of ten columns from a Postgres into a raw table, by the log and by a snapshot."""

import json
import logging
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg2
import structlog
from sqlalchemy import make_url

from bench.figures import Figure, Report
from bench.options import Options
from lake.capture.postgres.capture import Capture
from lake.capture.postgres.capture import Options as CaptureOptions
from lake.tables.lake import LakeClient
from metastore.server.embedded_postgres import EmbeddedPostgres
from tests.support.server import MetastoreServer

FULL, QUICK = 400_000, 5_000

TABLE = """
CREATE TABLE orders (id bigint PRIMARY KEY, customer bigint, item text, amount numeric(12,2), price double precision,
  at timestamptz, day date, paid boolean, note text, quantity int);
CREATE PUBLICATION bench FOR TABLE orders
"""
ROWS = """
INSERT INTO orders SELECT n, n %% 1000, 'item ' || n %% 100, n / 8.0, n / 3.0, now(), current_date, n %% 2 = 0,
  md5(n::text), n %% 7 FROM generate_series(%s, %s) n
"""

_CAPTURE = """
import json, resource, sys, time
from lake.capture.postgres.capture import Capture, Options
from lake.tables.lake import LakeClient
uri, options = sys.argv[1], json.loads(sys.argv[2])
with LakeClient(uri) as client:
    begun, used = time.perf_counter(), time.process_time()
    result = Capture(client, Options(**options)).run(once=True)
    print(json.dumps([sum(result.rows.values()), time.perf_counter() - begun, time.process_time() - used]))
"""


def run(options: Options) -> Report:
    """A source and a server, each on a Postgres of its own; the capture is a process with one thread that works."""
    report = Report("capture")
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    rows = QUICK if options.quick else FULL
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        source = EmbeddedPostgres(home / "source", settings={"wal_level": "logical", "max_slot_wal_keep_size": "8GB"})
        stack.callback(source.stop)
        url = make_url(source.start()).set(drivername="postgresql").render_as_string(hide_password=False)
        server = stack.enter_context(MetastoreServer(home / "data", "--log-level", "warning"))
        connection = psycopg2.connect(url)
        stack.callback(connection.close)
        connection.autocommit = True
        section = report.section("Capture", f"{rows:,} rows of ten columns, by wall time and by CPU time")
        given: dict[str, Any] = {"source": url, "publication": "bench", "into": "bench.raw", "slot": "bench"}
        with connection.cursor() as cursor:
            cursor.execute(TABLE)
            with LakeClient(server.uri) as client:
                Capture(client, CaptureOptions(**given)).run(once=True)
            for name in ("inserts, by the log", "updates, by the log", "snapshot"):
                if name.startswith("inserts"):
                    cursor.execute(ROWS, (1, rows))
                elif name.startswith("updates"):
                    cursor.execute("UPDATE orders SET quantity = quantity + 1")
                captured, seconds, used = _captured(server.uri, {**given, "new_snapshot": name == "snapshot"})
                section.figures.append(Figure.of(name, "rows/s", [captured / seconds]))
                section.figures.append(Figure.of(f"{name}, of CPU time", "rows/s", [captured / used]))
    return report


def _captured(uri: str, options: dict[str, object]) -> tuple[int, float, float]:
    """Runs a capture in a process of its own: its rows, its seconds, and its seconds of CPU."""
    command = [sys.executable, "-c", _CAPTURE, uri, json.dumps(options)]
    ended = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    rows, seconds, used = json.loads(ended.stdout)
    return rows, seconds, used
