"""`metastore grants` and `metastore roles`."""

import json
import uuid

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from tests.support import builders
from tests.support.called import complaint, output
from tests.support.server import MetastoreServer


@pytest.fixture
def name(metastore_server: MetastoreServer) -> str:
    """A database with a table `t`; a role of the same name."""
    name = f"grants_{uuid.uuid4().hex[:8]}"
    with ThriftClient.from_uri(metastore_server.uri) as client:
        client.create_database(builders.database(name))
        client.create_table(builders.table(name))
    output("roles", "create", name, "--uri", metastore_server.uri)
    return name


def test_privileges_are_given_shown_and_taken(metastore_server: MetastoreServer, name: str) -> None:
    uri = ("--uri", metastore_server.uri)
    output("grants", "grant", "select, READ UNCOMMITTED", "--on", f"{name}.t", "--to", "user:alice", *uri)
    output("grants", "grant", "ALL", "--on", name, "--to", f"role:{name}", "--grant-option", *uri)
    found = json.loads(output("grants", "list", "--on", f"{name}.t", "--json", *uri))
    assert [(each["principal"], each["privilege"], each["grant_option"]) for each in found] == [
        ("user:alice", "READ_UNCOMMITTED", False),
        ("user:alice", "SELECT", False),
    ]
    lines = output("grants", "list", "--of", f"role:{name}", *uri).splitlines()
    assert lines[1].split()[:4] == [name, f"role:{name}", "ALL", "yes"]
    output("grants", "revoke", "SELECT", "--on", f"{name}.t", "--from", "user:alice", *uri)
    assert "READ_UNCOMMITTED" in output("grants", "list", "--on", f"{name}.t", *uri)
    assert "No grant (SELECT) found" in complaint(
        "grants", "revoke", "SELECT", "--on", f"{name}.t", "--from", "user:alice", *uri
    )


def test_roles_have_members(metastore_server: MetastoreServer, name: str) -> None:
    uri = ("--uri", metastore_server.uri)
    assert name in json.loads(output("roles", "list", "--json", *uri))
    output("roles", "grant", name, "--to", "group:ops", "--grant-option", *uri)
    assert json.loads(output("roles", "members", name, "--json", *uri)) == [
        {"principal": "group:ops", "grant_option": True}
    ]
    output("roles", "revoke", name, "--from", "group:ops", *uri)
    assert output("roles", "members", name, *uri) == ""
    output("roles", "drop", name, *uri)
    assert name not in output("roles", "list", *uri).split()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("grant", "FLY", "--on", "a", "--to", "user:b"), "FLY is no privilege"),
        (("grant", "SELECT", "--on", "a.", "--to", "user:b"), "'a.' is no object"),
        (("grant", "SELECT", "--on", "a", "--to", "b"), "'b' is no principal"),
        (("list", "--of", "team:b"), "'team:b' is no principal"),
    ],
    ids=["privilege", "object", "principal", "kind"],
)
def test_what_is_written_wrongly(arguments: tuple[str, ...], said: str) -> None:
    assert said in complaint("grants", *arguments, code=2)


def test_a_missing_object(metastore_server: MetastoreServer, name: str) -> None:
    said = complaint("grants", "grant", "SELECT", "--on", f"{name}.x", "--to", "user:b", "--uri", metastore_server.uri)
    assert f"there is no table {name}.x" in said
