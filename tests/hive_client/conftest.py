"""Hive's own Java client, driven through py4j against a running server.

Its calls take and give the Python types of `lake.protocol.hive`, which travel as Thrift's bytes between here and the
JVM; its exceptions come as those of the same name.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from py4j.java_collections import JavaList, JavaMap, JavaSet
from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JJavaError
from thrift.Thrift import TException

from lake.protocol import hive
from lake.protocol.codec.binary import STOP, decode, encode_fields
from lake.protocol.struct import Struct
from tests.support.builders import database
from tests.support.jvm import pyspark_class_path, running
from tests.support.reference import missing
from tests.support.target import Target

API = "org.apache.hadoop.hive.metastore.api."
NUMBERS = itertools.count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.hive)


class JavaFailure(Exception):
    """An exception of Java's that is none of the metastore's: its class and message."""


class HiveClient:
    """A HiveMetaStoreClient. Every other attribute is a method of it."""

    def __init__(self, jvm: Any, host: str, port: int, settings: Mapping[str, str] | None = None) -> None:
        """`settings`: further ones of the client's."""
        self.jvm = jvm
        configuration = jvm.org.apache.hadoop.hive.conf.HiveConf()
        configuration.set("hive.metastore.uris", f"thrift://{host}:{port}")
        for name, value in (settings or {}).items():
            configuration.set(name, value)
        self._client = jvm.org.apache.hadoop.hive.metastore.HiveMetaStoreClient(configuration)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *arguments: self.call(self._client, name, *arguments)

    def call(self, target: Any, name: str, *arguments: Any) -> Any:
        """Calls a method of any Java object as those of the client are called."""
        try:
            return self.to_python(getattr(target, name)(*map(self.to_java, arguments)))
        except Py4JJavaError as error:
            raise self._exception(error.java_exception) from None

    def _exception(self, thrown: Any) -> Exception:
        name = thrown.getClass().getName()
        kind = getattr(hive, name.rpartition(".")[2], None) if name.startswith(API) else None
        if kind is None:
            return JavaFailure(f"{name}: {thrown.getMessage()}")
        assert issubclass(kind, TException)
        return self.to_python(thrown)

    def to_java(self, value: Any) -> Any:
        """The Java value of a Python one: Thrift's structs, lists and maps of them, strings, numbers."""
        if isinstance(value, Struct):
            made = getattr(self.jvm.org.apache.hadoop.hive.metastore.api, type(value).__name__)()
            self.jvm.org.apache.thrift.TDeserializer().deserialize(made, encode_fields(value) + STOP)
            return made
        if isinstance(value, Mapping):
            made = self.jvm.java.util.LinkedHashMap()
            for key, item in value.items():
                made.put(key, self.to_java(item))
            return made
        if isinstance(value, list):
            made = self.jvm.java.util.ArrayList()
            for item in value:
                made.add(self.to_java(item))
            return made
        return value

    def to_python(self, value: Any) -> Any:
        """The Python value of a Java one; an object that is neither struct nor collection stays what it is."""
        if isinstance(value, JavaList | JavaSet):
            return [self.to_python(item) for item in value]
        if isinstance(value, JavaMap):
            return {key: self.to_python(value[key]) for key in value}
        if isinstance(value, JavaObject):
            name = value.getClass().getName()
            if name.startswith(API) and not value.getClass().isEnum():
                return decode(getattr(hive, name.rpartition(".")[2]), self._serialised(value))
        return value

    def _serialised(self, value: Any) -> bytes:
        return bytes(self.jvm.org.apache.thrift.TSerializer().serialize(value))


@pytest.fixture(scope="session")
def jvm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A JVM with Hive's classes, shared by all tests; skips where it can't run."""
    if (reason := missing()) is not None:
        pytest.skip(reason)
    options = ["-Xmx256m", "-XX:+UseSerialGC"]
    with running([pyspark_class_path()], tmp_path_factory.mktemp("jvm"), options=options) as gateway:
        yield gateway.jvm


@pytest.fixture
def connect(jvm: Any, target: Target) -> Iterator[Callable[[], HiveClient]]:
    """Makes another client, closed when the test ends."""
    clients: list[HiveClient] = []

    def connected() -> HiveClient:
        clients.append(HiveClient(jvm, target.host, target.port))
        return clients[-1]

    yield connected
    for client in clients:
        client.close()


@pytest.fixture
def client(connect: Callable[[], HiveClient]) -> HiveClient:
    return connect()


@pytest.fixture(scope="session")
def warehouse(target: Target) -> Path:
    """The directory in which the server makes databases."""
    return target.warehouse()


@pytest.fixture
def db(client: HiveClient) -> Iterator[str]:
    """The name of an empty database in the default place, dropped afterwards."""
    name = f"java_{next(NUMBERS)}"
    client.createDatabase(database(name))
    yield name
    with suppress(hive.NoSuchObjectException, hive.InvalidOperationException):
        client.dropDatabase(name, True, True, True)


@pytest.fixture
def home(warehouse: Path, db: str) -> Path:
    """The directory of `db`."""
    return warehouse / f"{db}.db"
