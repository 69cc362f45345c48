"""What engines report of their scans and commits: sums for the table services, by the table's id."""

from typing import Any

import pytest
from sqlalchemy import NullPool, create_engine, text

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import InvalidOperationException
from lake.protocol.lake import EngineFigures, ServiceFactsRequest, TableReference
from metastore.iceberg.reports import figures
from metastore.store import Database
from metastore.store.table_services import reported
from tests.metastore.iceberg.conftest import Catalog
from tests.metastore.iceberg.test_http import create
from tests.metastore.iceberg.test_repeats import new_key, send

NONE = EngineFigures(scans=0, files=0, deleteFiles=0, bytes=0, planningMs=0, commits=0, attempts=0)


def scan(files: Any, **more: Any) -> dict[str, Any]:
    metrics = {"result-data-files": {"unit": "count", "value": files}, **more}
    return {"report-type": "scan-report", "table-name": "t", "snapshot-id": 1, "metrics": metrics}


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        (scan(3), NONE.replace(scans=1, files=3)),
        (scan(-3), NONE.replace(scans=1)),
        (scan(1 << 70), NONE.replace(scans=1, files=1 << 50)),
        (scan("3"), NONE.replace(scans=1)),
        (
            scan(
                1, **{"total-planning-duration": {"count": 1, "time-unit": "nanoseconds", "total-duration": 7_100_000}}
            ),
            NONE.replace(scans=1, files=1, planningMs=7),
        ),
        (
            scan(1, **{"total-planning-duration": {"time-unit": [], "total-duration": 1}}),
            NONE.replace(scans=1, files=1),
        ),
        ({"report-type": "commit-report", "metrics": {"attempts": {"value": 3}}}, NONE.replace(commits=1, attempts=3)),
        ({"report-type": "commit-report", "metrics": {}}, NONE.replace(commits=1, attempts=1)),
        ({"report-type": "other", "metrics": {}}, None),
        ({"report-type": ["scan-report"], "metrics": {}}, None),
        ({"report-type": "scan-report", "metrics": [1]}, None),
        ({}, None),
    ],
)
def test_figures_of_a_report(report: dict[str, Any], expected: EngineFigures | None) -> None:
    assert figures(report) == expected


def test_reports_add_up_and_go_with_the_table(rest: Catalog, client: ThriftClient) -> None:
    namespace = rest.namespace()
    create(rest, namespace)
    path = f"hive/namespaces/{namespace}/tables/t"

    def facts() -> EngineFigures | None:
        request = ServiceFactsRequest(TableReference(database=namespace, table="t"))
        return client.lake_service_facts(request).engines

    assert facts() is None
    for files in (3, 4):
        sizes = {"total-file-size-in-bytes": {"value": 10}, "result-delete-files": {"value": 1}}
        assert rest.send("POST", f"{path}/metrics", scan(files, **sizes)).status_code == 204
    commit = {"report-type": "commit-report", "metrics": {"attempts": {"value": 2}}}
    assert rest.send("POST", f"{path}/metrics", commit).status_code == 204
    assert facts() == EngineFigures(2, 7, 2, 20, 0, 1, 2)
    rest.ask("DELETE", path)
    assert rest.refused("POST", f"{path}/metrics", scan(1))[0] == 404
    create(rest, namespace)
    assert facts() is None
    with pytest.raises(InvalidOperationException):
        client.lake_report_figures(TableReference(database=namespace, table="t"), NONE.replace(files=-1))


def test_a_report_that_is_sent_again_counts_once(rest: Catalog, client: ThriftClient) -> None:
    namespace, key = rest.namespace(), new_key()
    create(rest, namespace)
    path = f"hive/namespaces/{namespace}/tables/t/metrics"
    for each in (key, key, new_key()):
        assert send(rest, each, "POST", path, scan(3)).status_code == 204
    assert send(rest, key, "POST", path, scan(4)).status_code == 422
    found = client.lake_service_facts(ServiceFactsRequest(TableReference(database=namespace, table="t"))).engines
    assert found is not None
    assert (found.scans, found.files) == (2, 6)


def test_sums_are_of_some_days_and_bounded(upgraded_url: str) -> None:
    engine, database = create_engine(upgraded_url, poolclass=NullPool), Database(upgraded_url)
    with engine.begin() as connection:  # it needs no table
        connection.execute(text("ALTER TABLE engine_figures DROP CONSTRAINT engine_figures_table_id_fkey"))
    number = 7
    most = reported.Reported(*[1 << 61] * 7)
    for _ in range(3):
        with database.write() as tx:
            reported.add(tx, number, most)
    with database.read() as tx:
        assert reported.sums(tx, number, 7) == reported.Reported(*[1 << 62] * 7)
    with engine.begin() as connection:
        connection.execute(text("UPDATE engine_figures SET day = day - :age"), {"age": 7})
    with database.read() as tx:
        assert reported.sums(tx, number, 7) is None
        assert reported.sums(tx, number, 8) is not None
    with database.write() as tx:
        reported.forget(tx, 8)
    with database.read() as tx:
        assert reported.sums(tx, number, 8) is not None
    with database.write() as tx:
        reported.forget(tx, 7)
    with database.read() as tx:
        assert reported.sums(tx, number, 1_000) is None
    database.close()
    engine.dispose()
