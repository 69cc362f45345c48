"""What a client gets, whatever comes of its call, against real worker processes."""

import struct
from collections.abc import Iterator

import pytest
from thrift.Thrift import TApplicationException

from lake.protocol.codec import binary
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    AbortTxnsRequest,
    FieldSchema,
    MetaException,
    NoSuchObjectException,
    StorageDescriptor,
    Table,
)
from tests.metastore.server.stand_in import StandIn, call, raised
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandIn]:
    with StandIn(tmp_path_factory.mktemp("dispatch") / "data") as server:
        yield server


@pytest.fixture
def client(server: StandIn) -> Iterator[ThriftClient]:
    """Whatever a call comes to, the connection is good for the next one."""
    with server.client() as client:
        yield client
        assert client.getVersion() == "stand-in"


def test_declared_exception(client: ThriftClient) -> None:
    with pytest.raises(NoSuchObjectException, match="no such database"):
        client.get_database("missing")


def test_undeclared_exception_becomes_a_meta_exception(client: ThriftClient) -> None:
    with pytest.raises(MetaException, match=r"^is there already$"):
        client.get_database("undeclared")
    with pytest.raises(MetaException, match=r"^no function$"):
        client.get_all_functions()


def test_exception_of_a_method_that_declares_none(client: ThriftClient) -> None:
    error = raised(client, "getStatusDetails")
    assert error.type == TApplicationException.INTERNAL_ERROR
    assert error.message == "Internal error processing getStatusDetails"


def test_unknown_methods(client: ThriftClient) -> None:
    """One that the IDL has but nobody answers; and, sent by hand, one that it doesn't have."""
    error = raised(client, "get_index_names", "db", "t", 1)
    assert error.type == TApplicationException.UNKNOWN_METHOD
    assert error.message == "Invalid method name: 'get_index_names'"


def test_method_that_the_idl_does_not_have(server: StandIn) -> None:
    with server.connect() as connection:
        arguments = binary.encode(Table(tableName="t", parameters={"a": "b"}))
        connection.sendall(binary.message_header("make_coffee", binary.CALL, 4) + arguments + call("getVersion"))
        expected = binary.message_header("make_coffee", binary.EXCEPTION, 4) + binary.encode_application_exception(
            TApplicationException.UNKNOWN_METHOD, "Invalid method name: 'make_coffee'"
        )
        received = b""
        while len(received) < len(expected):
            received += connection.recv(len(expected) - len(received))
        assert received == expected


def test_bug_is_told_with_a_reference_only(server: StandIn, client: ThriftClient) -> None:
    with pytest.raises(MetaException) as caught:
        client.get_database("bug")
    assert caught.value.message is not None
    before, _, rest = caught.value.message.partition("reference ")
    assert before == "internal error, "
    reference = rest.partition(";")[0]
    [line] = wait_until(lambda: [line for line in server.lines("internal error") if line["reference"] == reference])
    assert line["method"] == "get_database"
    assert "RuntimeError: a secret of the server" in line["exception"]


def test_result_that_cannot_be_encoded_is_a_bug_too(client: ThriftClient) -> None:
    with pytest.raises(MetaException, match="internal error, reference"):
        client.get_database("wrong")


def test_database_that_is_away_is_told_plainly(client: ThriftClient) -> None:
    with pytest.raises(MetaException, match=r"^the database is away$"):
        client.get_database("away")


def test_what_the_database_cannot_store_is_told_plainly(client: ThriftClient) -> None:
    with pytest.raises(MetaException, match=r"^a text must not contain the NUL character$"):
        client.get_database("nul")


def test_no_result(client: ThriftClient) -> None:
    """As from Hive's server where it returns null."""
    assert raised(client, "get_database", "none").type == TApplicationException.MISSING_RESULT


def test_application_exception_of_a_handler(client: ThriftClient) -> None:
    error = raised(client, "get_database", "application")
    assert (error.type, error.message) == (TApplicationException.INVALID_TRANSFORM, "not that way")


def test_streamed_reply_that_fails_at_once_is_a_proper_exception(client: ThriftClient) -> None:
    with pytest.raises(NoSuchObjectException, match="no such table"):
        client.get_partitions("missing", "t", 1)


def test_required_field_is_missing(client: ThriftClient) -> None:
    error = raised(client, "abort_txns", AbortTxnsRequest())
    assert error.type == TApplicationException.PROTOCOL_ERROR
    assert error.message == "Required field 'txn_ids' is unset! Struct:AbortTxnsRequest"
    assert client.abort_txns(AbortTxnsRequest(txn_ids=[])) is None


@pytest.mark.parametrize(
    "body",
    [
        b"\x0b\x00\x01\x00\x00\x00\x02\xc3\x28\x00",  # no UTF-8
        b"\x0b\x00\x01\x00\x00\x00\x04\xf0\x90\x80x\x00",
    ],
)
def test_text_that_is_not_utf8(server: StandIn, body: bytes) -> None:
    with server.connect() as connection:
        connection.sendall(binary.message_header("get_database", binary.CALL, 1) + body)
        error = _exception(connection.recv(10_000))
    assert error == (TApplicationException.PROTOCOL_ERROR, "a text among the arguments is not UTF-8")


def test_items_of_a_wrong_type(server: StandIn) -> None:
    with server.connect() as connection:
        numbers_for_partitions = b"\x0f\x00\x01" + struct.pack(">bii", 8, 1, 5) + b"\x00"
        connection.sendall(binary.message_header("add_partitions", binary.CALL, 1) + numbers_for_partitions)
        kind, message = _exception(connection.recv(10_000))
        assert kind == TApplicationException.PROTOCOL_ERROR
        assert message.startswith("the arguments can't be decoded")
        connection.sendall(call("getVersion"))
        assert b"stand-in" in connection.recv(10_000)


def _exception(reply: bytes) -> tuple[int, str]:
    header = binary.read_message_header(reply)
    assert header.kind == binary.EXCEPTION
    length = int.from_bytes(reply[header.body + 3 : header.body + 7])
    text = reply[header.body + 7 : header.body + 7 + length].decode()
    assert reply[-1:] == b"\x00"
    return int.from_bytes(reply[-5:-1]), text


def test_partition_names_answer_in_the_ways_that_clients_know(server: StandIn) -> None:
    """Field 1 of the result was a MetaException in Hive 2.3; later it is a NoSuchObjectException, and 2 the other."""

    def result_of(table: str) -> bytes:
        connection.sendall(call("get_partition_names", "db", table, 1))
        header = binary.message_header("get_partition_names", binary.REPLY, 1)
        reply = connection.recv(10_000)
        assert reply.startswith(header)
        return reply[len(header) :]

    def exceptions(*fields: int, message: bytes) -> bytes:
        string = struct.pack(">bhi", 11, 1, len(message)) + message + b"\x00"
        return b"".join(struct.pack(">bh", 12, field) + string for field in fields) + b"\x00"

    with server.connect() as connection:
        assert result_of("missing") == exceptions(1, message=b"no such table")
        assert result_of("broken") == exceptions(1, 2, message=b"broken table")
        names = result_of("t")
        connection.sendall(call("get_catalogs"))  # a call that Hive 2.3 doesn't have
        connection.recv(10_000)
        assert result_of("missing") == exceptions(1, message=b"no such table")
        assert result_of("broken") == exceptions(2, message=b"broken table")
        assert result_of("t") == names


@pytest.mark.parametrize("known", [False, True], ids=["first call", "known to be of Hive 4"])
def test_our_client_reads_exceptions_of_partition_names(client: ThriftClient, known: bool) -> None:
    if known:
        with pytest.raises(MetaException, match="no catalogs"):
            client.get_catalogs()  # a call that Hive 2.3 doesn't have
    with pytest.raises(NoSuchObjectException, match="no such table"):
        client.get_partition_names("db", "missing", 1)
    with pytest.raises(MetaException, match="broken table"):
        client.get_partition_names("db", "broken", 1)
    with pytest.raises(MetaException, match="the database is away"):
        client.get_partition_names("db", "away", 1)


def test_fields_that_nobody_knows_reach_who_stores_them(server: StandIn) -> None:
    table = Table(tableName="kept", sd=StorageDescriptor(cols=[FieldSchema(name="c", type="int")]))
    table.unknown = b"\x0b\x03\xe8\x00\x00\x00\x03new"  # field 1000
    assert table.sd is not None
    table.sd.unknown = b"\x02\x03\xe9\x01"  # field 1001
    with server.connect() as connection:
        connection.sendall(call("create_table", table))
        assert connection.recv(1000)[-1:] == b"\x00"
        connection.sendall(call("get_table", "db", "kept"))
        reply = connection.recv(10_000)
    assert table.unknown in reply
    assert table.sd.unknown in reply
