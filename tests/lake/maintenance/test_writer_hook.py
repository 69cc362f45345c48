"""The requests of Hudi's writers: answered at once, and jobs afterwards."""

import socket
import threading
import time
from typing import Any

import pytest
import urllib3

from lake.cli.commands.table_services_run import _takes_over
from lake.maintenance import http, writer_hook
from lake.maintenance.decisions.policy import policy_of
from lake.maintenance.http import HttpPort
from lake.maintenance.service import Options, Service
from lake.maintenance.writer_hook import HandedOver, WriterHook, parse
from lake.protocol.hive import NoSuchObjectException
from lake.protocol.lake import JobRequest, ListJobsRequest, ServiceJob, TableReference
from lake.tables.lake import LakeClient
from tests.lake.maintenance.conftest import merge_on_read
from tests.support.server import MetastoreServer
from tests.support.waiting import wait_until

ASKED = (
    "/v1/hoodie/service/compact?action=REQUEST&basepath=file%3A%2Flake%2Forders&db_name=shop&table_name=orders"
    "&instant=20260101000000000%2C20260102000000000&username=default&queue=default&resource=spark&parallelism=100"
    "&extra_params=&execution_engine=spark"
)


def test_what_hudi_sends() -> None:
    table = TableReference(database="shop", table="orders")
    assert parse(ASKED) == HandedOver(table, "compaction", "20260101000000000,20260102000000000")
    assert parse(ASKED.replace("compact", "cluster")).action == "clustering"
    assert parse(ASKED.replace("compact", "clean")).action == "clean"
    without = ASKED.replace("db_name=shop", "db_name=")
    assert parse(without).table.database == "default"
    assert parse(f"{without}&database=lake").table.database == "lake", (
        "the address in the writer's configuration has it"
    )


@pytest.mark.parametrize(
    "asked",
    ["/v1/hoodie/service/index?table_name=t", "/v1/hoodie/service/compact", ASKED.replace("REQUEST", "CANCEL")],
    ids=["service", "table", "action"],
)
def test_what_it_does_not_send(asked: str) -> None:
    with pytest.raises(ValueError):
        parse(asked)


def test_a_request_is_answered_while_the_metastore_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer holds its table's lock meanwhile, and would fail. It asks again with each commit: that is one job."""
    monkeypatch.setattr(writer_hook, "RETRY_SECONDS", 0.05)
    away, stop = threading.Event(), threading.Event()
    submitted: list[tuple[str | None, JobRequest]] = []
    asked: list[None] = []

    def submit(table: TableReference, job: JobRequest) -> ServiceJob:
        asked.append(None)
        if not away.is_set():
            raise ConnectionRefusedError
        if table.table == "gone":
            raise NoSuchObjectException("no such table")
        submitted.append((table.table, job))
        return ServiceJob()

    hook = WriterHook(submit, lambda table: policy_of({"table-services.windows": "01:00-02:00"}), stop)
    port = HttpPort("127.0.0.1", 0, lambda: None, hook.accept)
    try:
        begun = time.monotonic()
        for table in ("orders", "gone", "items", "items"):
            answer = urllib3.request("GET", port.address + ASKED.replace("orders", table), retries=False)
            assert (answer.status, answer.data) == (200, b"true\n")
        assert time.monotonic() - begun < 3
        wait_until(lambda: len(asked) > 2, what="attempts")
        assert submitted == []
        away.set()
        wait_until(lambda: len(submitted) >= 2, what="the jobs")
        assert [table for table, _ in submitted] == ["orders", "items"]
        job: Any = submitted[0][1]
        assert (job.action, job.windows) == ("compaction", "01:00-02:00")
        assert "20260101000000000,20260102000000000" in job.reason
        assert urllib3.request("GET", f"{port.address}/v1/hoodie/service/compact", retries=False).status == 400
    finally:
        stop.set()
        port.close()


def test_a_service_that_takes_nothing_over() -> None:
    port = HttpPort("127.0.0.1", 0, lambda: None, None)
    try:
        answer = urllib3.request("GET", port.address + ASKED, retries=False)
        assert answer.status == 403 and b"--writer-hook" in answer.data
        assert urllib3.request("GET", f"{port.address}/ready", retries=False).status == 200
    finally:
        port.close()


def test_odd_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "_REQUEST_SECONDS", 1)
    accepted: list[str] = []
    port = HttpPort("127.0.0.1", 0, lambda: "no metastore", accepted.append)
    try:
        for method, path, status in (
            ("HEAD", ASKED, 404),
            ("POST", ASKED, 405),
            ("GET", "/nothing", 404),
            ("GET", "/health", 503),
            ("HEAD", "/metrics", 200),
        ):
            assert urllib3.request(method, port.address + path, retries=False).status == status
        assert accepted == []
        with socket.create_connection(("127.0.0.1", int(port.address.rpartition(":")[2])), timeout=20) as slow:
            slow.sendall(b"GET /ready HTT")
            assert slow.recv(100) == b"", "a head has a time limit"
    finally:
        port.close()


def test_who_logs_in_takes_nothing_over_from_just_anybody(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _takes_over("0.0.0.0")
    monkeypatch.setenv("METASTORE_USER", "services")
    monkeypatch.setenv("METASTORE_PASSWORD", "secret")
    assert not _takes_over("0.0.0.0")
    assert _takes_over("127.0.0.1")


def test_it_becomes_a_job(server: MetastoreServer, lake: LakeClient) -> None:
    table = merge_on_read(lake)
    service = Service(server.uri, None, Options())
    try:
        reference = table.reference
        service.accept(f"/v1/hoodie/service/clean?table_name={reference.table}&db_name={reference.database}&instant=1")
        request = ListJobsRequest(table=reference)

        def listed() -> list[ServiceJob]:
            return lake.call(lambda client: client.lake_list_jobs(request)).jobs or []

        wait_until(listed, what="the job")
        [job] = listed()
        assert (job.action, job.state, job.reason) == ("clean", "pending", "a writer handed the plans 1 over")
    finally:
        service.stop()
