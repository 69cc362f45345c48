"""`metastore partitions` and `metastore watermark`, as users run them."""

import json
import re
from itertools import count

import pytest

from lake.cli.lake import PAGE
from lake.cli.moments import compared, in_words, iso, shown
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.lake import LateRows, TableReference
from tests.support import builders, streams
from tests.support.called import complaint, output, run
from tests.support.server import MetastoreServer

HOUR = 3_600_000
# 2024-01-31 00:00 UTC
MIDNIGHT = 1_706_659_200_000
TIME = r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d"

_numbers = count(1)


@pytest.fixture
def uri(metastore_server: MetastoreServer) -> str:
    return metastore_server.uri


def make_table(uri: str, hours: int = 0, **parameters: str) -> str:
    """A table of hourly partitions, its name with the database's; so many of its first hours are there."""
    with ThriftClient.from_uri(uri) as client:
        db = f"cli_readiness_{next(_numbers)}"
        client.create_database(builders.database(db))
        parameters = {
            "partition.commit.mode": "event-time",
            "partition.time-extractor.timestamp-pattern": "$dt $hr:00:00",
            "sink.partition-commit.delay": "1 h",
        } | {name.replace("__", "."): value for name, value in parameters.items()}
        client.create_table(builders.table(db, "orders", keys=("dt", "hr"), parameters=parameters))
        client.add_partitions([builders.partition(db, "orders", "2024-01-31", f"{hour:02d}") for hour in range(hours)])
    return f"{db}.orders"


def report(uri: str, table: str, batch: int, *, late: LateRows | None = None, **event_times: int) -> None:
    db, name = table.split(".")
    table_reference = TableReference(database=db, table=name)
    with ThriftClient.from_uri(uri) as client:
        streams.report(client, table_reference, event_times, chain="primary", late=late)


def ready(uri: str, table: str) -> dict[str, bool]:
    listed = json.loads(output("partitions", "list", table, "--json", "--uri", uri))
    return {partition["values"][1]: partition["ready"] for partition in listed}


class TestList:
    def test_as_a_table(self, uri: str) -> None:
        table = make_table(uri, hours=2)
        output("partitions", "commit", table, "dt=2024-01-31/hr=00", "--by", "me", "--uri", uri)
        result = run("partitions", "list", table, METASTORE_URI=uri)
        assert (result.returncode, result.stderr) == (0, "2 partitions, 1 uncommitted\n")
        header, first, second = result.stdout.splitlines()
        assert header.split() == ["partition", "state", "starts", "(UTC)", "since", "(UTC)", "committed", "by"]
        assert re.fullmatch(rf"dt=2024-01-31/hr=00  ready +2024-01-31 00:00:00  {TIME}  me", first)
        assert re.fullmatch(rf"dt=2024-01-31/hr=01  uncommitted  2024-01-31 01:00:00  {TIME}  -", second)

    def test_as_json(self, uri: str) -> None:
        table = make_table(uri, hours=1)
        [partition] = json.loads(output("partitions", "list", table, "--json", "--uri", uri))
        assert re.match(r"20\d\d-\d\d-\d\dT.*\+00:00$", partition.pop("opened"))
        assert re.match(r"20\d\d-\d\d-\d\dT.*\+00:00$", partition.pop("created"))
        assert partition.pop("location").endswith("/orders/dt=2024-01-31/hr=00")
        assert partition == {
            "name": "dt=2024-01-31/hr=00",
            "values": ["2024-01-31", "00"],
            "ready": False,
            "starts": "2024-01-31T00:00:00.000+00:00",
            "committed": None,
            "committed_by": None,
            "waits_for_publish": False,
        }

    def test_of_a_table_without_partitions(self, uri: str) -> None:
        result = run("partitions", "list", make_table(uri), "--uri", uri)
        assert (result.returncode, result.stdout, result.stderr) == (0, "", "0 partitions, 0 uncommitted\n")

    def test_those_that_a_filter_selects(self, uri: str) -> None:
        table = make_table(uri, hours=4)
        output("partitions", "commit", table, "--filter", "hr = '02'", "--uri", uri)
        listed = output("partitions", "list", table, "--filter", "hr >= '01'", "--uncommitted", "--uri", uri)
        assert re.findall(r"hr=(\d\d)", listed) == ["01", "03"]

    def test_a_page(self, uri: str) -> None:
        table = make_table(uri, hours=4)
        result = run("partitions", "list", table, "--limit", "2", "--uri", uri)
        assert re.findall(r"hr=(\d\d)", result.stdout) == ["00", "01"]
        assert result.stderr == "the first 2 partitions, 2 uncommitted; --after dt=2024-01-31/hr=01 has the rest\n"
        result = run("partitions", "list", table, "--limit", "2", "--after", "dt=2024-01-31/hr=01", "--uri", uri)
        assert re.findall(r"hr=(\d\d)", result.stdout) == ["02", "03"]
        assert result.stderr == "2 partitions, 2 uncommitted\n"

    def test_more_than_a_call_brings(self, uri: str) -> None:
        table = make_table(uri)
        days = [f"{number:06d}" for number in range(PAGE + 5)]
        with ThriftClient.from_uri(uri) as client:
            client.add_partitions([builders.partition(*table.split("."), day, "00") for day in days])
        listed = json.loads(output("partitions", "list", table, "--json", "--uri", uri))
        assert [partition["values"][0] for partition in listed] == days
        assert {partition["starts"] for partition in listed} == {None}, "these values say no time"


class TestCommit:
    def test_by_name(self, uri: str) -> None:
        table = make_table(uri, hours=3)
        result = run("partitions", "commit", table, "dt=2024-01-31/hr=01", "--uri", uri)
        assert [line.split(maxsplit=1) for line in result.stdout.splitlines()] == [
            ["partition", "result"],
            ["dt=2024-01-31/hr=01", "committed"],
        ]
        assert (result.returncode, result.stderr) == (0, "committed 1 partition\n")
        assert ready(uri, table) == {"00": False, "01": True, "02": False}

    def test_what_was_ready_already(self, uri: str) -> None:
        table = make_table(uri, hours=2)
        output("partitions", "commit", table, "dt=2024-01-31/hr=00", "--uri", uri)
        shown = output("partitions", "commit", table, "--filter", "dt = '2024-01-31'", "--uri", uri)
        assert [line.split(maxsplit=1)[1] for line in shown.splitlines()] == [
            "result",
            "was ready already",
            "committed",
        ]
        again = output("partitions", "commit", table, "dt=2024-01-31/hr=00", "--json", "--uri", uri)
        assert json.loads(again) == {"committed": [], "already_ready": ["dt=2024-01-31/hr=00"]}

    def test_all(self, uri: str) -> None:
        table = make_table(uri, hours=3)
        committed = json.loads(output("partitions", "commit", table, "--all", "--json", "--uri", uri))
        assert committed == {"committed": [f"dt=2024-01-31/hr=0{hour}" for hour in range(3)], "already_ready": []}
        result = run("partitions", "commit", table, "--all", "--uri", uri)
        assert (result.returncode, result.stdout, result.stderr) == (0, "", "committed 0 partitions\n")

    def test_who_did_it(self, uri: str) -> None:
        table = make_table(uri, hours=1)
        output("partitions", "commit", table, "--all", "--uri", uri, LOGNAME="jane")
        [partition] = json.loads(output("partitions", "list", table, "--json", "--uri", uri))
        assert partition["committed_by"] == "jane"

    def test_one_that_is_not_there_spoils_all(self, uri: str) -> None:
        table = make_table(uri, hours=1)
        names = ("dt=2024-01-31/hr=00", "dt=2024-01-31/hr=05")
        line = complaint("partitions", "commit", table, *names, "--uri", uri)
        assert line == f"Error: {table} has no partition dt=2024-01-31/hr=05"
        assert ready(uri, table) == {"00": False}


class TestReopen:
    def test_by_filter(self, uri: str) -> None:
        table = make_table(uri, hours=3)
        output("partitions", "commit", table, "--all", "--uri", uri)
        result = run("partitions", "reopen", table, "--filter", "hr < '02'", "--uri", uri)
        assert result.stdout.count("reopened") == 2
        assert (result.returncode, result.stderr) == (0, "reopened 2 partitions\n")
        assert ready(uri, table) == {"00": False, "01": False, "02": True}

    def test_all(self, uri: str) -> None:
        table = make_table(uri, hours=3)
        output("partitions", "commit", table, "dt=2024-01-31/hr=01", "--uri", uri)
        reopened = json.loads(output("partitions", "reopen", table, "--all", "--yes", "--json", "--uri", uri))
        assert reopened == {"reopened": ["dt=2024-01-31/hr=01"], "already_uncommitted": []}

    def test_what_is_uncommitted_already(self, uri: str) -> None:
        table = make_table(uri, hours=1)
        assert "was uncommitted already" in output("partitions", "reopen", table, "dt=2024-01-31/hr=00", "--uri", uri)


class TestWatermark:
    def test_before_any_report(self, uri: str) -> None:
        table = make_table(uri, hours=2)
        rows = dict(line.split("  ", 1) for line in output("watermark", "show", table, "--uri", uri).splitlines())
        assert {name: value.strip() for name, value in rows.items()} == {
            "table": table,
            "commit mode": "event-time",
            "watermark": "no writer has reported yet",
            "delay": "1 h",
            "interval": "1 h",
            "uncommitted": "2, the first is dt=2024-01-31/hr=00",
            "late policy": "next",
            "late rows": "0 rerouted, 0 reopened, 0 dropped",
        }

    def test_with_sources(self, uri: str) -> None:
        table = make_table(uri, hours=3)
        late = LateRows(1200, 0, 3)
        report(uri, table, 1, late=late, clicks=MIDNIGHT + 2 * HOUR, **{"eu-orders": MIDNIGHT + HOUR + 1})
        shown = output("watermark", "show", table, "--uri", uri)
        assert re.search(r"^watermark +2024-01-31 01:00:00 UTC, \d+ d( \d+ h)? behind now$", shown, re.MULTILINE)
        assert re.search(r"^late rows +1,200 rerouted, 0 reopened, 3 dropped$", shown, re.MULTILINE)
        assert re.search(r"^uncommitted +2, the first is dt=2024-01-31/hr=01$", shown, re.MULTILINE)
        header, first, second = shown.splitlines()[-3:]
        assert header.split() == ["chain", "source", "watermark", "(UTC)", "last", "report", "(UTC)", "state"]
        assert re.fullmatch(rf"primary  clicks +2024-01-31 02:00:00  \d+ d.* behind now +{TIME}  live", first)
        assert re.fullmatch(rf"primary  eu-orders  2024-01-31 01:00:00  \d+ d.* behind now +{TIME}  live", second)

    def test_as_json(self, uri: str) -> None:
        table = make_table(uri, hours=1)
        report(uri, table, 1, clicks=MIDNIGHT)
        found = json.loads(output("watermark", "show", table, "--json", "--uri", uri))
        [source] = found.pop("sources")
        assert found.pop("behind_ms") > 0
        assert found == {
            "table": table,
            "commit_mode": "event-time",
            "watermark": "2024-01-31T00:00:00.000+00:00",
            "delay_ms": HOUR,
            "interval_ms": HOUR,
            "uncommitted": 1,
            "oldest_uncommitted": "dt=2024-01-31/hr=00",
            "late_policy": "next",
            "late_rows": {"rerouted": 0, "reopened": 0, "dropped": 0},
        }
        assert (source["chain"], source["source"], source["idle"]) == ("primary", "clicks", False)
        assert source["watermark"] == "2024-01-31T00:00:00.000+00:00"

    def test_partitions_that_turn_ready_before_they_end(self, uri: str) -> None:
        table = make_table(uri, **{"sink.partition-commit.delay": "10 min"})
        result = run("watermark", "show", table, "--uri", uri)
        assert result.returncode == 0
        assert result.stderr.startswith("note: sink.partition-commit.delay is shorter than the interval")

    def test_of_a_table_without_readiness(self, uri: str) -> None:
        table = make_table(uri, **{"partition.commit.mode": "none"})
        assert json.loads(output("watermark", "show", table, "--json", "--uri", uri))["commit_mode"] == "none"


COMMANDS = [("partitions", "list"), ("partitions", "commit"), ("partitions", "reopen"), ("watermark", "show")]


class TestMistakes:
    @pytest.mark.parametrize("command", COMMANDS)
    @pytest.mark.parametrize("table", ["cli_readiness_missing.t", "default.missing"])
    def test_a_table_that_is_not_there(self, uri: str, command: tuple[str, str], table: str) -> None:
        options = ("--filter", "dt = '1'") if command[1] in ("commit", "reopen") else ()
        assert complaint(*command, table, *options, "--uri", uri) == f"Error: {table} table not found"

    @pytest.mark.parametrize("command", COMMANDS)
    @pytest.mark.parametrize("table", ["orders", "shop.", ".orders", "a.b.c.d", ""])
    def test_what_names_no_table(self, command: tuple[str, str], table: str) -> None:
        result = run(*command, table)
        assert (result.returncode, result.stdout) == (2, "")
        assert f"{table!r} is not of the form DATABASE.TABLE" in result.stderr

    @pytest.mark.parametrize("command", COMMANDS)
    def test_a_server_that_is_not_there(self, command: tuple[str, str]) -> None:
        options = ("--all",) if command[1] in ("commit", "reopen") else ()
        line = complaint(*command, "shop.orders", *options, "--uri", "thrift://127.0.0.1:1")
        assert line == "Error: no metastore answers at thrift://127.0.0.1:1: Connection refused"

    @pytest.mark.parametrize("command", ["commit", "reopen"])
    @pytest.mark.parametrize(
        "options", [(), ("dt=1", "--all"), ("dt=1", "--filter", "dt='1'"), ("--all", "--filter", "")]
    )
    def test_partitions_must_be_said_in_one_way(self, command: str, options: tuple[str, ...]) -> None:
        result = run("partitions", command, "shop.orders", *options)
        assert (result.returncode, result.stdout) == (2, "")
        assert "say which partitions: give names, or --filter, or --all" in result.stderr

    def test_a_filter_that_is_none(self, uri: str) -> None:
        line = complaint("partitions", "list", make_table(uri), "--filter", "dt ==== '1'", "--uri", uri)
        assert line.startswith("Error: ") and "filter" in line

    def test_a_name_that_is_none(self, uri: str) -> None:
        line = complaint("partitions", "commit", make_table(uri), "07", "--uri", uri)
        assert line == "Error: incomplete partition name - missing dt"

    def test_a_decorated_table_is_read_only(self, uri: str) -> None:
        table = make_table(uri, hours=1)
        assert len(ready(uri, f"{table}@includeuncommit")) == 1
        line = complaint("partitions", "commit", f"{table}@includeuncommit", "--all", "--uri", uri)
        assert "read-only" in line
        assert ready(uri, table) == {"00": False}

    def test_a_catalog_that_is_not_there(self, uri: str) -> None:
        table = make_table(uri, hours=1)
        assert len(ready(uri, f"hive.{table}")) == 1
        assert complaint("partitions", "list", f"nowhere.{table}", "--uri", uri) == f"Error: {table} table not found"


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [
        (0, "0"),
        (7, "7 ms"),
        (1500, "1 s"),
        (61_000, "1 min 1 s"),
        (720_000, "12 min"),
        (HOUR + 5, "1 h"),
        (2 * HOUR + 300_000, "2 h 5 min"),
        (25 * HOUR, "1 d 1 h"),
        (24 * HOUR + 60_000, "1 d"),
    ],
)
def test_lengths_of_time_in_words(milliseconds: int, words: str) -> None:
    assert in_words(milliseconds) == words


def test_instants_from_now() -> None:
    assert compared(MIDNIGHT, MIDNIGHT + 720_000) == "12 min behind now"
    assert compared(MIDNIGHT + 90_000, MIDNIGHT) == "1 min 30 s ahead of now"
    assert compared(MIDNIGHT + 900, MIDNIGHT) == "now"


def test_instants() -> None:
    assert (iso(None), shown(None)) == (None, None)
    assert iso(MIDNIGHT + 5) == "2024-01-31T00:00:00.005+00:00"
    assert shown(MIDNIGHT + 5) == "2024-01-31 00:00:00"
    assert iso(-1) == "1969-12-31T23:59:59.999+00:00"
    assert shown(10**17) == str(10**17), "no date of ours"
