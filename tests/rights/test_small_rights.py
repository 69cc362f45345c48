"""What strangers learn of a server, and who owns what Hudi's clients make."""

import pytest
from thrift.Thrift import TApplicationException, TException

from lake.protocol import hudi
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    AddPackageRequest,
    GetPackageRequest,
    OpenTxnRequest,
    PrincipalType,
    StoredProcedure,
    StoredProcedureRequest,
)
from lake.protocol.lake import ImportRequest
from tests.rights.conftest import as_user
from tests.rights.world import grant
from tests.support import builders
from tests.support.server import MetastoreServer


@pytest.mark.parametrize("user", ["a_stranger", None])
def test_strangers_learn_little_of_the_server(guarded: MetastoreServer, user: str | None) -> None:
    with as_user(guarded, user) as stranger:
        for call in (stranger.getCounters, lambda: stranger.getCounter("tables")):
            with pytest.raises(TApplicationException, match="Permission denied"):
                call()
        assert stranger.getOptions().keys() == {"version", "authentication", "encryption"}
        assert stranger.getOption("warehouse") == stranger.getOption("leader") == ""
        assert stranger.getOption("version")
    with as_user(guarded, "root") as root:
        assert root.getOption("warehouse")
        assert root.getOptions()["warehouse"]
        assert root.getCounters()["databases"] == root.getCounter("databases") > 0


def test_whose_transactions_are_open(guarded: MetastoreServer) -> None:
    with as_user(guarded, "root") as root, as_user(guarded, "taker") as taker:
        root.create_database(builders.database("taking"))
        grant(root, "taker", "INSERT", "taking")
        root.open_txns(OpenTxnRequest(1, "boss", "a_secret_host"))
        taker.open_txns(OpenTxnRequest(1, "taker", "own_host"))

        def told(client: ThriftClient) -> set[tuple[str, str]]:
            return {(each.user, each.hostname) for each in client.get_open_txns_info().open_txns}

        assert told(root) >= {("boss", "a_secret_host"), ("taker", "own_host")}
        assert told(taker) == {("", ""), ("taker", "own_host")}


def test_who_makes_a_database_by_hudis_protocol_owns_it(guarded: MetastoreServer) -> None:
    with as_user(guarded, "root") as root, as_user(guarded, "maker") as maker:
        grant(root, "maker", "CREATE")
        maker.createDatabase("hudi_made")
        made = root.get_database("hudi_made")
        assert (made.ownerName, made.ownerType) == ("maker", PrincipalType.USER)
        maker.createTable(hudi.Table(dbName="hudi_made", tableName="t", owner="maker"))
        assert root.get_table("hudi_made", "t").owner == "maker"
        root.createDatabase("hudi_of_root")
        assert root.get_database("hudi_of_root").ownerName == "root"


def test_administrators_alone_import(guarded: MetastoreServer) -> None:
    """An import says who owns what, and who was granted it: not even who may do all with a database may import it."""
    with as_user(guarded, "root") as root, as_user(guarded, "owner") as owner:
        root.create_database(builders.database("brought_to", ownerName="owner"))
        grant(root, "owner", "ALL", "brought_to")
        request = ImportRequest(tables=[builders.table("brought_to", owner="somebody")])
        for each in (request, ImportRequest()):
            with pytest.raises(TException, match=r"Permission denied"):
                owner.lake_import(each)
        assert root.get_all_tables("brought_to") == []
        root.lake_import(request)
        assert root.get_table("brought_to", "t").owner == "somebody"


def test_procedures_and_packages_belong_to_their_makers(guarded: MetastoreServer) -> None:
    """Engines run them: another's is replaced only by callers that may alter the database."""
    with as_user(guarded, "root") as root, as_user(guarded, "coder") as coder:
        root.create_database(builders.database("coded", ownerName="somebody"))
        root.create_stored_procedure(StoredProcedure("theirs", "coded", "hive", "root", "good"))
        root.add_package(AddPackageRequest("hive", "coded", "theirs", "root", "good", "good"))
        grant(root, "coder", "CREATE", "coded")
        grant(root, "coder", "SELECT", "coded")
        for call in (
            lambda: coder.create_stored_procedure(StoredProcedure("theirs", "coded", "hive", "root", "bad")),
            lambda: coder.add_package(AddPackageRequest("hive", "coded", "theirs", "root", "bad", "bad")),
        ):
            with pytest.raises(TException, match=r"does not have \[ALTER\] privilege on \[coded\]"):
                call()
        assert root.get_stored_procedure(StoredProcedureRequest("hive", "coded", "theirs")).source == "good"
        coder.create_stored_procedure(StoredProcedure("own", "coded", "hive", "root", "text"))
        coder.add_package(AddPackageRequest("hive", "coded", "own", "root", "text", "text"))
        assert coder.get_stored_procedure(StoredProcedureRequest("hive", "coded", "own")).ownerName == "coder"
        assert coder.find_package(GetPackageRequest("hive", "coded", "own")).ownerName == "coder"
