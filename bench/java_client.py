"""The Java side of a comparison: clients that time calls, compiled here and driven through py4j.

What is timed is timed in Java: neither Python nor py4j is part of it.
"""

import array
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError

from lake.protocol.codec.binary import CALL, STOP, encode, encode_fields, message_header
from lake.protocol.errors import UserError
from lake.protocol.services import METHODS
from lake.protocol.struct import Struct
from tests.support import jvm
from tests.support.reference import missing

SOURCES = Path(__file__).with_name("java")


@dataclass(frozen=True)
class Call:
    """A call by its Thrift name and arguments, and for Hive's client by the name of its method.

    `arguments` are those of that method where they differ. Without a name it has no such method.
    """

    method: str
    values: Sequence[Any]
    hive: str | None = None
    arguments: Sequence[Any] | None = None

    def encoded(self) -> bytes:
        """The whole message in the binary protocol."""
        method = METHODS[self.method]
        arguments = method.args()
        for field, value in zip(method.argument_names, self.values, strict=False):
            setattr(arguments, field, value)
        return message_header(self.method, CALL, 1) + encode(arguments)


class CallFailed(Exception):
    """A call that was to be timed was refused."""


class ReplyChanged(CallFailed):
    """A reply of another length than the one before."""


class Java:
    """A virtual machine with Hive's classes and those of `bench/java`."""

    def __init__(self, jvm: Any) -> None:
        self._jvm = jvm

    def raw_client(self, host: str, port: int) -> "RawClient":
        return RawClient(lambda: self._jvm.bench.RawClient(host, port))

    def hive_client(self, host: str, port: int) -> "HiveClient":
        return HiveClient(self._jvm, self._jvm.bench.HiveClient(host, port))

    def load(self, host: str, port: int, call: Call, clients: int, seconds: float) -> list[float]:
        """So many clients make the same call as fast as they are answered; the seconds that each call took."""
        return _seconds(self._jvm.bench.Load.run(host, port, call.encoded(), clients, round(seconds * 1000)))

    def load_rounds(self, host: str, port: int, rounds: Sequence[Sequence[Call]], seconds: float) -> list[float]:
        """A client for each of `rounds` makes its calls again and again; the seconds that each call took."""
        lists = self._jvm.java.util.ArrayList
        encoded = lists()
        for calls in rounds:
            encoded.add(lists())
            for call in calls:
                encoded[-1].add(call.encoded())
        return _seconds(self._jvm.bench.Load.runRounds(host, port, encoded, round(seconds * 1000)))

    def echo(self, host: str, port: int, call: Call, length: int) -> Any:
        """A server that answers this call as that one does, in so many bytes; it has a `port()` and a `close()`."""
        return self._jvm.bench.Echo(host, port, call.encoded(), length)


def _seconds(times: bytes) -> list[float]:
    nanos = array.array("q", times)
    nanos.byteswap()
    return [number / 1e9 for number in nanos]


class RawClient:
    """A connection that times calls to the last byte of their replies and decodes nothing."""

    def __init__(self, connect: Callable[[], Any]) -> None:
        self._connect = connect
        self._client = connect()

    def walk(self, call: Call) -> tuple[float, int]:
        """The seconds that a call took, and its reply's length: for short replies, and to learn that of a long one."""
        nanos, length = self._checked(call, lambda request: self._client.walk(request))
        return nanos / 1e9, length

    def time(self, call: Call, length: int) -> float:
        """The seconds that a call took whose reply has this length. Raises ReplyChanged if it has another one."""
        nanos: int = self._checked(call, lambda request: self._client.time(request, length))
        return nanos / 1e9

    def _checked(self, call: Call, act: Any) -> Any:
        try:
            return act(call.encoded())
        except Py4JJavaError as error:
            message = f"{call.method}: {error.java_exception.getMessage()}"
            if error.java_exception.getClass().getSimpleName() != ReplyChanged.__name__:
                raise CallFailed(message) from None
        self.close()  # what is left of the reply would be taken for the next one
        self._client = self._connect()
        raise ReplyChanged(message)

    def close(self) -> None:
        self._client.close()


class HiveClient:
    """Hive's own client; a call takes until its result is decoded."""

    def __init__(self, jvm: Any, client: Any) -> None:
        self._jvm = jvm
        self._client = client

    def time(self, call: Call) -> float:
        """The seconds that a call took."""
        assert call.hive is not None
        arguments = self._to_java(list(call.values if call.arguments is None else call.arguments))
        try:
            nanos: int = self._client.time(call.hive, arguments)
        except Py4JJavaError as error:
            raise CallFailed(f"{call.hive}: {error.java_exception}") from None
        return nanos / 1e9

    def _to_java(self, value: Any) -> Any:
        """The Java value of structs, lists of them, strings and numbers."""
        if isinstance(value, Struct):
            made = getattr(self._jvm.org.apache.hadoop.hive.metastore.api, type(value).__name__)()
            self._jvm.org.apache.thrift.TDeserializer().deserialize(made, encode_fields(value) + STOP)
            return made
        if isinstance(value, list):
            made = self._jvm.java.util.ArrayList()
            for item in value:
                made.add(self._to_java(item))
            return made
        return value

    def close(self) -> None:
        self._client.close()


def why_not() -> str | None:
    """Why Java's part can't run on this machine, in one line, or None if it can."""
    if shutil.which("javac") is None:
        return (
            "the benchmark's Java client is compiled: it needs a JDK (Debian: apt-get install openjdk-17-jdk-headless)"
        )
    return missing()


def compiled(directory: Path) -> Path:
    """The classes of `bench/java`, compiled into `directory`. Raises UserError."""
    if (reason := why_not()) is not None:
        raise UserError(reason)
    command = ["javac", "-d", str(directory), "-classpath", str(jvm.pyspark_class_path())]
    run = subprocess.run([*command, *map(str, SOURCES.rglob("*.java"))], capture_output=True, text=True)
    if run.returncode != 0:
        raise UserError(f"javac can't compile {SOURCES}:\n{run.stderr}")
    return directory


@contextmanager
def running(classes: Path, directory: Path, *, memory: str = "3g") -> Iterator[Java]:
    """A virtual machine that works in `directory` and logs there."""
    directory.mkdir(exist_ok=True)
    (directory / "log4j2.properties").write_text("status = error\nrootLogger.level = error\n")
    with jvm.running([directory, classes, jvm.pyspark_class_path()], directory, options=[f"-Xmx{memory}"]) as gateway:
        yield Java(gateway.jvm)
