"""Delegation tokens and master keys, as servers keep them that use the metastore as their token store."""

import pytest
from thrift.Thrift import TApplicationException

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import MetaException, NoSuchObjectException
from tests.support.expect import refused


class TestTokens:
    def test_kept_and_removed(self, client: ThriftClient, unused_name: str) -> None:
        identifier = f"AB/+={unused_name}"
        assert client.add_token(identifier, "the token é") is True
        assert client.get_token(identifier) == "the token é"
        assert identifier in client.get_all_token_identifiers()
        assert client.remove_token(identifier) is True
        assert identifier not in client.get_all_token_identifiers()

    def test_the_first_stays(self, client: ThriftClient, unused_name: str) -> None:
        client.add_token(unused_name, "first")
        assert client.add_token(unused_name, "second") is False
        assert client.get_token(unused_name) == "first"
        client.remove_token(unused_name)

    def test_missing(self, client: ThriftClient) -> None:
        assert client.remove_token("no such") is False
        with pytest.raises(TApplicationException) as caught:
            client.get_token("no such")
        assert caught.value.type == TApplicationException.MISSING_RESULT

    def test_none_are_issued_without_kerberos(self, client: ThriftClient) -> None:
        with refused(MetaException):
            client.get_delegation_token("alice", "bob")
        with refused(MetaException):
            client.renew_delegation_token("abc")
        with refused(MetaException):
            client.cancel_delegation_token("abc")


class TestMasterKeys:
    def test_kept_changed_and_removed(self, client: ThriftClient) -> None:
        first, second = client.add_master_key("key 1"), client.add_master_key("key 2")
        assert second > first
        assert client.get_master_keys() == ["key 1", "key 2"]
        client.update_master_key(first, "key 3")
        assert sorted(client.get_master_keys()) == ["key 2", "key 3"]
        assert client.remove_master_key(first) is True
        assert client.get_master_keys() == ["key 2"]
        client.remove_master_key(second)

    def test_missing(self, client: ThriftClient) -> None:
        assert client.remove_master_key(7_777_777) is False
        with refused(NoSuchObjectException, MetaException, message="No key found with keyId: 7777777"):
            client.update_master_key(7_777_777, "key")
