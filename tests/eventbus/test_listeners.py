"""Listeners in Python, called after a change or before it."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from thrift.Thrift import TApplicationException

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    Function,
    FunctionType,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
    PrincipalType,
)
from tests.eventbus.changes import log_of, make
from tests.eventbus.hooks import noted
from tests.support import builders
from tests.support.command import complaint
from tests.support.server import MetastoreServer, ServerDidNotStart
from tests.support.waiting import wait_until

HOOKS = "tests.eventbus.hooks"
LISTENERS = [f"{HOOKS}:{name}" for name in ("Slow", "Everything", "Poisoned", "Fatal", "creations")]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("noted")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, directory: Path) -> Iterator[MetastoreServer]:
    options = (
        *("--workers", "1", "--event-attempts", "2", "--pre-event-seconds", "0.5"),
        *("--event-listeners", ",".join(LISTENERS), "--pre-event-listeners", f"{HOOKS}:Police"),
    )
    environment = {"LISTENER_DIRECTORY": str(directory)}
    data = tmp_path_factory.mktemp("listeners") / "data"
    with MetastoreServer(data, *options, environment=environment) as server:
        yield server


@pytest.fixture
def client(server: MetastoreServer) -> Iterator[ThriftClient]:
    with ThriftClient(server.host, server.port) as client:
        client.set_ugi("ann", [])
        yield client


def test_each_is_told_although_one_hangs(client: ThriftClient, directory: Path) -> None:
    make(client, "known", 20)
    client.drop_table("known", "t0", True)
    committed = log_of(client)
    wait_until(lambda: len(noted(directory, "everything")) >= len(committed))
    assert [each["number"] for each in noted(directory, "everything")] == [each.number for each in committed]
    creations = [each.number for each in committed if each.type.startswith("CREATE_")]
    wait_until(lambda: len(noted(directory, "creations")) >= len(creations))
    assert [each["number"] for each in noted(directory, "creations")] == creations
    positions = {group.name: group.position for group in client.lake_event_groups()}
    assert positions[f"listener:{HOOKS}:Slow"] == 0


def test_poison_becomes_a_dead_letter(client: ThriftClient, directory: Path) -> None:
    outlet = f"listener:{HOOKS}:Poisoned"
    client.create_database(builders.database("poisons"))
    for name in ("water", "poison1", "poison2", "milk"):
        client.create_table(builders.table("poisons", name))
    wait_until(lambda: [each["table"] for each in noted(directory, "poisoned")][-2:] == ["water", "milk"])
    assert [each["table"] for each in noted(directory, "tried")][-6:] == [
        *("water", "poison1", "poison1", "poison2", "poison2", "milk")
    ]
    dead = client.lake_dead_events(outlet)
    assert [(each.table, each.error, each.attempts) for each in dead] == [
        ("poison1", "RuntimeError: can't swallow poison1", 2),
        ("poison2", "RuntimeError: can't swallow poison2", 2),
    ]
    (directory / "cured").touch()
    assert client.lake_resend_events(outlet, [dead[1].number]) == [dead[1].number]
    wait_until(lambda: len(client.lake_dead_events(outlet)) == 1)
    assert noted(directory, "poisoned")[-1]["table"] == "poison2"


def test_what_ends_the_process_becomes_a_dead_letter(client: ThriftClient, directory: Path) -> None:
    """Attempts are counted before they are made, so an event that nobody survives is not tried for ever."""
    outlet = f"listener:{HOOKS}:Fatal"
    client.create_database(builders.database("fatalities"))
    for name in ("tea", "fatal1", "coffee"):
        client.create_table(builders.table("fatalities", name))
    wait_until(lambda: [each["table"] for each in noted(directory, "survived")][-2:] == ["tea", "coffee"], 60)
    assert [each["table"] for each in noted(directory, "met")][-4:] == ["tea", "fatal1", "fatal1", "coffee"]
    [dead] = client.lake_dead_events(outlet)
    assert (dead.table, dead.attempts) == ("fatal1", 2)
    assert dead.error == "ProcessEnded: the process ended while the event was delivered, attempt 2"
    assert client.lake_resend_events(outlet, None) == [dead.number]
    wait_until(lambda: client.lake_dead_events(outlet)[0].attempts == 3)
    client.create_table(builders.table("fatalities", "water"))
    wait_until(lambda: [each["table"] for each in noted(directory, "survived")][-1:] == ["water"], 60)
    [dead] = client.lake_dead_events(outlet)
    assert (dead.resend, dead.attempts) == (False, 3)
    assert dead.error == "ProcessEnded: the process ended while the event was delivered again"


def test_a_veto_undoes_the_change(client: ThriftClient) -> None:
    client.create_database(builders.database("vetoed"))
    before = log_of(client)[-1].number
    with pytest.raises(InvalidOperationException, match="databases stay"):
        client.drop_database("vetoed", False, False)
    # create_table does not declare InvalidOperationException
    with pytest.raises(MetaException, match=r"^no table of this name, please"):
        client.create_table(builders.table("vetoed", "forbidden"))
    with pytest.raises(NoSuchObjectException):
        client.get_table("vetoed", "forbidden")
    location = Path(client.get_database("vetoed").locationUri.removeprefix("file:"))
    assert location.is_dir()
    assert not (location / "forbidden").exists()
    with pytest.raises((MetaException, TApplicationException), match="no functions"):
        made = Function("f", "vetoed", "C", ownerType=PrincipalType.USER, functionType=FunctionType.JAVA)
        client.create_function(made)
    assert log_of(client)[-1].number == before


def test_a_listener_that_fails_or_hangs_vetoes(client: ThriftClient) -> None:
    client.create_database(builders.database("faults"))
    with pytest.raises(MetaException, match="Police failed: RuntimeError: out of order"):
        client.create_table(builders.table("faults", "broken"))
    for _ in range(10):  # more than there are threads in the worker
        began = time.monotonic()
        with pytest.raises(MetaException, match=r"Police did not answer within 0\.5 s"):
            client.create_table(builders.table("faults", "hanging"))
        assert 0.4 < time.monotonic() - began < 3
    client.create_table(builders.table("faults", "fine"))


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("nonsense", "'nonsense' is no listener: expected package.module:object"),
        ("no.such.module:x", "can't load the listener no.such.module:x: ModuleNotFoundError"),
        ("os:sep", "os:sep is no listener"),
    ],
)
def test_what_is_no_listener(place: str, message: str) -> None:
    assert message in complaint("outlets", "run", "--event-listeners", place, "--database-url", "postgresql://x/y")


@pytest.mark.long
def test_a_server_does_not_start_without_its_listeners(tmp_path: Path) -> None:
    server = MetastoreServer(tmp_path / "data", "--workers", "1", "--pre-event-listeners", f"{HOOKS}:missing")
    with pytest.raises(ServerDidNotStart) as error:
        server.start()
    assert f"can't load the listener {HOOKS}:missing: AttributeError" in str(error.value)
    assert "Traceback" not in str(error.value)


@pytest.mark.long
def test_an_outlet_that_the_settings_do_not_name() -> None:
    said = complaint("outlets", "run", "--outlet", "webhook:nobody", "--database-url", "postgresql://x/y")
    assert said == "Error: the settings name no outlet 'webhook:nobody'; there are: none"
