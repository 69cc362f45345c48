"""Types that clients define by name."""

from collections.abc import Iterator

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    AlreadyExistsException,
    InvalidObjectException,
    MetaException,
    NoSuchObjectException,
    Type,
)
from tests.support.builders import columns
from tests.support.expect import refused


@pytest.fixture
def name(client: ThriftClient, unused_name: str) -> Iterator[str]:
    """The name of no type, dropped afterwards."""
    yield unused_name
    client.drop_type(unused_name)


def test_reads_back_as_sent(client: ThriftClient, name: str) -> None:
    value = Type(name=name, type1="int", type2="string", fields=columns("A:int#the first", "b:array<string>"))
    assert client.create_type(value) is True
    assert client.get_type(f" {name} ") == value


def test_fields_are_never_unset(client: ThriftClient, name: str) -> None:
    client.create_type(Type(name=name))
    assert client.get_type(name) == Type(name=name, fields=[])


def test_names_keep_their_case(client: ThriftClient, name: str) -> None:
    client.create_type(Type(name=name))
    with refused(NoSuchObjectException, message=f'Type "{name.upper()}" not found.'):
        client.get_type(name.upper())


def test_exists(client: ThriftClient, name: str) -> None:
    client.create_type(Type(name=name))
    with refused(AlreadyExistsException, message=f"Type {name} already exists"):
        client.create_type(Type(name=name, type1="int"))


@pytest.mark.parametrize("bad", ["", "a-b", " a", "a.b"])
def test_the_name_is_checked(client: ThriftClient, bad: str) -> None:
    with refused(InvalidObjectException, message="Invalid type name"):
        client.create_type(Type(name=bad))


def test_missing(client: ThriftClient) -> None:
    with refused(NoSuchObjectException, message='Type "no_such" not found.'):
        client.get_type("no_such")


def test_dropping_twice_is_fine(client: ThriftClient, name: str) -> None:
    client.create_type(Type(name=name))
    assert client.drop_type(name) is True
    assert client.drop_type(name) is True
    with refused(NoSuchObjectException):
        client.get_type(name)


def test_all_of_a_name_was_never_made(client: ThriftClient) -> None:
    with refused(MetaException, message="Not yet implemented"):
        client.get_type_all("int")
