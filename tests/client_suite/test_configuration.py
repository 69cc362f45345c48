"""Configuration values, the connection's own settings, fb303, and what a server does not know."""

import time
import uuid

import pytest
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TApplicationException, TMessageType
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.generated.fb303_types import fb_status
from lake.protocol.hive import ConfigValSecurityException, MetaException
from tests.support.expect import refused
from tests.support.target import Target, local_path

DIRECT_SQL = "hive.metastore.try.direct.sql"


class TestConfigValues:
    def test_the_warehouse(self, client: ThriftClient) -> None:
        configured = client.get_config_value("hive.metastore.warehouse.dir", "unknown")
        path = local_path(configured) if configured.startswith("file:") else configured
        assert str(path) == str(local_path(client.get_database("default").locationUri))

    @pytest.mark.parametrize("name", ["hive.nosuch", "hdfs.nosuch", "mapred.nosuch"])
    def test_the_default_for_unknown_names(self, client: ThriftClient, name: str) -> None:
        assert client.get_config_value(name, "default") == "default"

    @pytest.mark.parametrize(
        "name", ["javax.jdo.option.ConnectionPassword", "javax.jdo.option.ConnectionURL", "fs.defaultFS", "x", ""]
    )
    def test_names_outside_of_hive_are_nobody_s_business(self, client: ThriftClient, name: str) -> None:
        message = f"For security reasons, the config key {name} cannot be accessed"
        with refused(ConfigValSecurityException, message=message):
            client.get_config_value(name, "default")


class TestMetaConf:
    def test_a_setting_lasts_as_long_as_the_connection(self, target: Target, client: ThriftClient) -> None:
        before = client.getMetaConf(DIRECT_SQL)
        with target.connect() as other:
            other.get_all_databases()  # Hive forgets to clean up after a connection that read nothing
            other.setMetaConf(DIRECT_SQL, "false")
            assert other.getMetaConf(DIRECT_SQL) == "false"
            assert client.getMetaConf(DIRECT_SQL) == before
        with target.connect() as later:
            assert later.getMetaConf(DIRECT_SQL) == before

    @pytest.mark.parametrize("name", ["hive.nosuch", "hive.metastore.warehouse.dir", ""])
    def test_other_names_are_refused(self, client: ThriftClient, name: str) -> None:
        with refused(MetaException, message=f"Invalid configuration key {name}"):
            client.getMetaConf(name)
        with refused(MetaException, message=f"Invalid configuration key {name}"):
            client.setMetaConf(name, "1")


class TestSession:
    def test_set_ugi_answers_the_groups(self, target: Target) -> None:
        with target.connect() as own:
            assert own.set_ugi("alice", ["staff", "users"]) == ["staff", "users"]
            assert "default" in own.get_all_databases()

    def test_flush_cache(self, client: ThriftClient) -> None:
        assert client.flushCache() is None


class TestFb303:
    def test_alive(self, client: ThriftClient) -> None:
        assert client.getStatus() == 2
        assert isinstance(client.getStatusDetails(), str)
        assert client.getName()
        assert client.getVersion()

    def test_alive_since(self, client: ThriftClient) -> None:
        assert 0 <= time.time() - client.aliveSince() < 24 * 3600

    def test_counters_and_options(self, client: ThriftClient) -> None:
        assert isinstance(client.getCounters(), dict)
        assert client.getCounter("nosuch") == 0
        assert isinstance(client.getOptions(), dict)

    def test_options_are_taken_without_effect(self, client: ThriftClient) -> None:
        client.setOption("an option", "a value")
        client.reinitialize()
        assert client.getCpuProfile(1) == ""
        assert client.getStatus() == fb_status.ALIVE

    @pytest.mark.hive4
    def test_the_database_has_a_name_of_its_own(self, client: ThriftClient) -> None:
        name = client.get_metastore_db_uuid()
        assert str(uuid.UUID(name)) == name == client.get_metastore_db_uuid()


def test_an_unknown_method_leaves_the_connection_alone(target: Target) -> None:
    transport = TBufferedTransport(TSocket(target.host, target.port))
    protocol = TBinaryProtocol(transport)
    transport.open()
    for sequence in (7, 8):
        protocol.writeMessageBegin("no_such_method", TMessageType.CALL, sequence)
        protocol.writeByte(0)  # no arguments
        protocol.writeMessageEnd()
        transport.flush()
        name, kind, answered = protocol.readMessageBegin()
        error = TApplicationException()
        error.read(protocol)
        protocol.readMessageEnd()
        assert (name, kind, answered) == ("no_such_method", TMessageType.EXCEPTION, sequence)
        assert error.type == TApplicationException.UNKNOWN_METHOD
        assert error.message == "Invalid method name: 'no_such_method'"
    transport.close()
