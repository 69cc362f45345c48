"""Partitions come back as they were stored: by every reading call, in every protocol, read anew and kept.

Their lists are put together out of stored bytes, in parts by Postgres, so values are odd on purpose.
"""

import itertools
import random
import socket
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, NamedTuple

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from lake.protocol.codec import binary, compact
from lake.protocol.codec.protocols import Protocol
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.formats.partition_names import make_name
from lake.protocol.hive import (
    GetPartitionsByFilterRequest,
    GetPartitionsByNamesRequest,
    GetPartitionsPsWithAuthRequest,
    GetPartitionsRequest,
    Order,
    Partition,
    PartitionSpec,
    PartitionsRequest,
    SerDeInfo,
    SkewedInfo,
    StorageDescriptor,
)
from lake.protocol.services import METHODS
from lake.protocol.struct import Struct
from metastore.store.partition.partitions import FIRST_PAGE, PAGE
from tests.metastore.cache.cluster import answers_of
from tests.support import builders
from tests.support.postgres import Postgres
from tests.support.redis import RedisServer
from tests.support.server import MetastoreServer

DB = "replies"
KEYS = ("ds", "hr")
ALL = -1
NUMBERS = itertools.count(1)
STATUS = "getStatus"  # its reply is known, and tells where the one before it ends
PROTOCOLS = [Protocol(framed=framed, compact=dense) for framed in (False, True) for dense in (False, True)]
UNLIMITED = (1 << 31) - 1
ADDED = {"transient_lastDdlTime", "numFiles", "totalSize"}  # to parameters, by the server


# -- what is stored ----------------------------------------------------------------------------------------------

# Any character that Postgres and UTF-8 can hold; those with a meaning in names, paths, COPY and SQL come often.
CHARACTERS = st.sampled_from("%/=\\\n\t\r'\"{}, \x01\x7f:ä\U0001f40d\ufffd") | st.characters(
    codec="utf-8", exclude_characters="\0"
)
VALUES = st.text(CHARACTERS, min_size=1, max_size=20)
PARAMETERS = st.none() | st.dictionaries(
    st.text(CHARACTERS, max_size=10),
    st.text(CHARACTERS | st.just("\0"), max_size=20) | st.just("v" * 70_000),
    max_size=3,
)
COLUMNS = [
    [],
    builders.columns("id:bigint#ä\n", "s:struct<a:int>"),
    builders.columns(*(f"c{number}:string" for number in range(40))),
]


def unknown(number: int, value: str) -> bytes:
    """A field that the IDL doesn't have."""
    encoded = value.encode()
    return b"\x0b" + (900 + number).to_bytes(2) + len(encoded).to_bytes(4) + encoded


@st.composite
def descriptors(draw: st.DrawFn) -> StorageDescriptor:
    columns = [field.replace() for field in draw(st.sampled_from(COLUMNS))]
    sd = StorageDescriptor(
        cols=columns,
        inputFormat=draw(st.sampled_from([None, "", "in"])),
        compressed=draw(st.sampled_from([None, False, True])),
        numBuckets=draw(st.sampled_from([None, -1, 0, 3])),
        serdeInfo=SerDeInfo(serializationLib=builders.SERDE, parameters=draw(PARAMETERS)),
        bucketCols=draw(st.sampled_from([None, [], ["id"]])),
        sortCols=draw(st.sampled_from([None, [], [Order("id", 1)]])),
        parameters=draw(PARAMETERS),
        skewedInfo=draw(st.sampled_from([None, SkewedInfo([], [], {}), SkewedInfo(["id"], [["1"], ["2"]], {})])),
        storedAsSubDirectories=draw(st.sampled_from([None, False, True])),
    )
    if draw(st.integers(0, 3)) == 0:
        sd.unknown = unknown(1, draw(VALUES))
    if columns and draw(st.integers(0, 3)) == 0:
        columns[0].unknown = unknown(2, draw(VALUES))
        sd.unknown = getattr(sd, "unknown", b"")
    return sd


@st.composite
def partitions(draw: st.DrawFn, table: str, place: str, *, of_view: bool) -> list[Partition]:
    """Of a table at `place`, some with descriptors that others have, too; those of a view lie nowhere."""
    some = draw(st.lists(descriptors(), min_size=1, max_size=3))
    found = []
    for number, values in enumerate(draw(st.lists(st.tuples(VALUES, VALUES), max_size=6, unique=True))):
        location = draw(st.sampled_from([None, place, f"{place}/in it/{number}", f"{place}-beside=%25\n\\/{number}"]))
        each = Partition(
            dbName=DB,
            tableName=table,
            values=list(values),
            createTime=draw(st.integers(1, (1 << 31) - 1)),
            lastAccessTime=draw(st.sampled_from([None, 0, 7])),
            sd=None if of_view else draw(st.sampled_from(some)).replace(location=location),
            parameters=draw(PARAMETERS),
            writeId=draw(st.sampled_from([None, 5])),
        )
        if draw(st.integers(0, 3)) == 0:
            each.unknown = unknown(3, draw(VALUES))
        elif hasattr(each.sd, "unknown"):
            each.unknown = b""  # contains such a struct
        found.append(each)
    return found


# -- who reads ---------------------------------------------------------------------------------------------------


class Reader:
    """A connection that speaks a protocol, and keeps what the IDL doesn't know."""

    def __init__(self, server: MetastoreServer, protocol: Protocol) -> None:
        self.protocol = protocol
        self._socket = socket.create_connection((server.host, server.port), timeout=60)
        self._buffer = b""
        self._sequence = 0

    def close(self) -> None:
        self._socket.close()

    def call(self, name: str, *arguments: Any) -> Any:
        """The method's result struct. Two calls are sent, before the first reply is read."""
        method = METHODS[name]
        values = method.args(**dict(zip(method.argument_names, arguments, strict=True)))
        self._sequence += 2
        first, second = self._sequence, self._sequence + 1
        asked = self._message(name, binary.CALL, first, binary.encode(values))
        self._socket.sendall(asked + self._message(STATUS, binary.CALL, second, binary.encode(METHODS[STATUS].args())))
        status = binary.encode_result("success", 2, METHODS[STATUS].result)
        end = self._message(STATUS, binary.REPLY, second, status)
        while not self._buffer.endswith(end):
            piece = self._socket.recv(1 << 20)
            assert piece, "the server closed the connection"
            self._buffer += piece
        reply, self._buffer = self._buffer[self.protocol.frame_header : -len(end)], b""
        header = (compact if self.protocol.compact else binary).read_message_header(reply)
        assert header[:3] == (name, binary.REPLY, first)
        body = compact.to_binary(reply, header.body, UNLIMITED) if self.protocol.compact else reply[header.body :]
        return binary.decode_preserving(method.result, body)

    def _message(self, name: str, kind: int, sequence: int, body: bytes) -> bytes:
        if self.protocol.compact:
            message = compact.message_header(name, kind, sequence) + compact.to_compact(body)
        else:
            message = binary.message_header(name, kind, sequence) + body
        return len(message).to_bytes(4) + message if self.protocol.framed else message


class Read(NamedTuple):
    """A call that answers with partitions. `limited`: it takes a limit."""

    method: str
    arguments: Callable[[str, list[str], int], tuple[Any, ...]]
    found: Callable[[Any], list[Partition]] = lambda success: list(success)
    limited: bool = True


def in_specs(specs: Sequence[PartitionSpec]) -> list[Partition]:
    [spec] = specs
    assert spec.partitionList is not None
    return spec.partitionList.partitions or []


def in_groups(specs: Any) -> list[tuple[Any, ...]]:
    """Values, parameters and locations of partitions that come in groups with one descriptor, by name."""
    found = []
    for each in specs:
        if each.partitionList is not None:
            found += [(one.values, one.parameters, one.sd.location) for one in each.partitionList.partitions]
        else:
            for part in each.sharedSDPartitionSpec.partitions:
                place = None if part.relativePath is None else each.rootPath + part.relativePath
                found.append((part.values, part.parameters, place))
    return sorted(found, key=lambda part: make_name(KEYS, part[0]))


READS = [
    Read("get_partitions", lambda t, names, limit: (DB, t, limit)),
    Read("get_partitions_with_auth", lambda t, names, limit: (DB, t, limit, "me", [])),
    Read(
        "get_partitions_req",
        lambda t, names, limit: (PartitionsRequest("hive", DB, t, limit),),
        lambda success: success.partitions,
    ),
    Read("get_partitions_ps", lambda t, names, limit: (DB, t, [""], limit)),
    Read("get_partitions_ps_with_auth", lambda t, names, limit: (DB, t, ["", ""], limit, "me", [])),
    Read(
        "get_partitions_ps_with_auth_req",
        lambda t, names, limit: (GetPartitionsPsWithAuthRequest("hive", DB, t, [""], limit),),
        lambda success: success.partitions,
    ),
    Read("get_partitions_by_filter", lambda t, names, limit: (DB, t, "ds > ''", limit)),
    Read(
        "get_partitions_by_filter_req",
        lambda t, names, limit: (GetPartitionsByFilterRequest("hive", DB, t, "hr != ''", limit),),
    ),
    Read("get_partitions_by_names", lambda t, names, limit: (DB, t, [*names, "ds=/hr="]), limited=False),
    Read(
        "get_partitions_by_names_req",
        lambda t, names, limit: (GetPartitionsByNamesRequest(DB, t, names),),
        lambda success: success.partitions,
        limited=False,
    ),
    Read(
        "get_partitions_by_names_req",
        lambda t, names, limit: (GetPartitionsByNamesRequest(DB, t, names, get_col_stats=True, engine="hive"),),
        lambda success: success.partitions,
        limited=False,
    ),
    Read("get_partitions_pspec", lambda t, names, limit: (DB, t, limit), in_specs),
    Read("get_part_specs_by_filter", lambda t, names, limit: (DB, t, "ds != ''", limit), in_specs),
]


@dataclass
class Servers:
    """Two, which share a Postgres and a Redis; of each a reader for each protocol."""

    one: MetastoreServer
    two: MetastoreServer
    client: ThriftClient
    readers: dict[str, list[Reader]]
    warehouse: str

    def answers(self) -> dict[str, int]:
        one, two = answers_of(self.one), answers_of(self.two)
        return {level: count + two[level] for level, count in one.items()}


@pytest.fixture(scope="module")
def servers(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    directory = tmp_path_factory.mktemp("replies")
    with postgres.fresh_database(upgraded=True) as url, RedisServer(directory / "redis") as redis, ExitStack() as stack:
        one, two = (
            MetastoreServer(
                directory / name,
                *("--database-url", url, "--warehouse-dir", str(directory / "warehouse"), "--workers", "1"),
                *("--cache-redis-url", redis.url, "--http-port", "0"),
            )
            for name in ("one", "two")
        )
        with ThreadPoolExecutor() as threads:
            for started in threads.map(MetastoreServer.start, (one, two)):
                stack.enter_context(started)
        client = stack.enter_context(ThriftClient(one.host, one.port))
        client.create_database(builders.database(DB))
        readers = {
            name: [Reader(server, protocol) for protocol in PROTOCOLS] for name, server in (("one", one), ("two", two))
        }
        for each in itertools.chain(*readers.values()):
            stack.callback(each.close)
        yield Servers(one, two, client, readers, f"file:{directory}/warehouse")


def expected(servers: Servers, table: str, stored: Sequence[Partition]) -> list[Partition]:
    """Partitions as they should come back, by name: as they were stored, and where nothing was said, with defaults."""
    names = servers.client.get_partition_names(DB, table, ALL)
    found = []
    for each in stored:
        one, other = (
            reader.call("get_partition", DB, table, each.values).success
            for reader in (servers.readers["one"][0], servers.readers["two"][-1])
        )
        assert one == other
        check_kept(each.replace(createTime=None), one)
        found.append(one)
    assert len(names) == len(found)
    return sorted(found, key=lambda each: names.index(name_of(each)))


def check_kept(given: Any, found: Any) -> None:
    """Whatever a struct says is there."""
    if isinstance(given, Struct):
        assert getattr(given, "unknown", b"") == getattr(found, "unknown", b"")
        for name in given.field_names():
            if getattr(given, name) is not None:
                check_kept(getattr(given, name), getattr(found, name))
    elif isinstance(given, dict):
        assert given == {key: value for key, value in found.items() if key not in ADDED}
    elif isinstance(given, list):
        assert len(given) == len(found)
        for one, other in zip(given, found, strict=True):
            check_kept(one, other)
    else:
        assert given == found


def name_of(partition: Partition) -> str:
    return make_name(KEYS, partition.values or [])


def compare(servers: Servers, table: str, right: list[Partition], limit: int, chance: random.Random) -> None:
    names = [name_of(each) for each in right]
    for read in READS:
        some = right if limit < 0 or not read.limited else right[:limit]
        arguments = read.arguments(table, names, limit)
        for server in ("one", "one", "two"):  # from the database, from memory, from Redis
            reader = chance.choice(servers.readers[server])
            result = reader.call(read.method, *arguments)
            assert read.found(result.success) == some, f"{read.method} of {limit} by {reader.protocol} of {server}"
    for server in ("two", "two"):
        request = GetPartitionsRequest("hive", DB, table)
        groups = chance.choice(servers.readers[server]).call("get_partitions_with_specs", request).success
        parts = [(each.values, each.parameters, each.sd and each.sd.location) for each in right]
        assert in_groups(groups.partitionSpec) == parts


def check(servers: Servers, data: st.DataObject) -> None:
    name = f"t{next(NUMBERS)}"
    place = f"{servers.warehouse}/{name}"
    of_view = data.draw(st.sampled_from([False, False, True]))
    table = builders.external_table(DB, name, keys=KEYS, sd=builders.storage(location=place))
    servers.client.create_table(builders.view(DB, name, keys=KEYS) if of_view else table)
    stored = data.draw(partitions(name, place, of_view=of_view))
    adding = data.draw(st.sampled_from(servers.readers["one"]))
    assert adding.call("add_partitions", stored).success == len(stored)
    right = expected(servers, name, stored)
    limit = data.draw(st.sampled_from([ALL, 0, 1, len(stored), len(stored) + 1, 32767]))
    compare(servers, name, right, limit, random.Random(data.draw(st.integers(0, 1 << 16))))


def run(servers: Servers, examples: int) -> None:
    rules = settings(
        max_examples=examples,
        phases=[Phase.generate],  # to make an example smaller would take minutes
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    rules(given(st.data())(lambda data: check(servers, data)))()
    answers = servers.answers()
    assert min(answers.values()) > 0, f"of each level there should have been replies: {answers}"


@pytest.mark.long
def test_odd_partitions(servers: Servers) -> None:
    run(servers, examples=5)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_many_odd_partitions(servers: Servers) -> None:
    run(servers, examples=150)


@pytest.mark.long
@pytest.mark.parametrize("count", [FIRST_PAGE, FIRST_PAGE + 1, FIRST_PAGE + PAGE, FIRST_PAGE + PAGE + 1])
def test_where_pages_end(servers: Servers, count: int) -> None:
    name = f"t{next(NUMBERS)}"
    servers.client.create_table(builders.view(DB, name, keys=KEYS))
    stored = [Partition(dbName=DB, tableName=name, values=[f"{number:05}", "%"]) for number in range(count)]
    servers.client.add_partitions(stored)
    request = GetPartitionsByNamesRequest(DB, name, [name_of(each) for each in stored], get_col_stats=True)
    right = servers.client.get_partitions_by_names_req(request).partitions  # put together one by one
    assert [each.values for each in right] == [each.values for each in stored]
    for limit in (ALL, FIRST_PAGE, FIRST_PAGE + 1, PAGE + FIRST_PAGE):
        compare(servers, name, right, limit, random.Random(count))
