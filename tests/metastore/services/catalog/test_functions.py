"""Functions, as Hive 2.3 answers (measured), save that a name's case never matters."""

import time
from collections.abc import Callable

import pytest

from lake.protocol.codec import binary
from lake.protocol.hive import (
    AlreadyExistsException,
    Function,
    FunctionType,
    InvalidObjectException,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
    PrincipalType,
    ResourceType,
    ResourceUri,
)
from metastore.services.catalog.functions import FunctionService
from metastore.services.wiring import Metastore
from tests.support import builders
from tests.support.expect import refused


@pytest.fixture(scope="module")
def functions(metastore: Metastore) -> FunctionService:
    return metastore.functions


@pytest.fixture
def function(db: str) -> Callable[..., Function]:
    """Makes functions of this test's database."""

    def make(name: str | None = "f", **fields: object) -> Function:
        usual = {"ownerType": PrincipalType.USER, "functionType": FunctionType.JAVA}
        return Function(**{"functionName": name, "dbName": db, "className": "a.B", **usual, **fields})

    return make


def test_what_is_kept(functions: FunctionService, db: str, function: Callable[..., Function]) -> None:
    jar = ResourceUri(ResourceType.JAR, "hdfs:/a.jar")
    before = int(time.time())
    functions.create(function("Full", ownerName="me", ownerType=PrincipalType.ROLE, createTime=5, resourceUris=[jar]))
    kept = functions.get(db.upper(), "FULL")
    assert before <= (kept.createTime or 0) <= time.time()
    assert kept == Function(
        functionName="full",
        dbName=db,
        className="a.B",
        ownerName="me",
        ownerType=PrincipalType.ROLE,
        createTime=kept.createTime,
        functionType=FunctionType.JAVA,
        resourceUris=[jar],
        catName="hive",
    )


def test_what_is_filled_in(functions: FunctionService, db: str, function: Callable[..., Function]) -> None:
    functions.create(function())
    kept = functions.get(db, "f")
    assert (kept.ownerName, kept.ownerType, kept.functionType, kept.resourceUris) == (
        None,
        PrincipalType.USER,
        FunctionType.JAVA,
        [],
    )


def test_fields_of_newer_clients_survive(
    functions: FunctionService, db: str, function: Callable[..., Function]
) -> None:
    newer = binary.encode(function())[:-1] + b"\x08\x00\x63\x00\x00\x00\x07" + b"\x00"
    functions.create(binary.decode_preserving(Function, newer))
    assert functions.get(db, "f").unknown == b"\x08\x00\x63\x00\x00\x00\x07"


@pytest.mark.parametrize("name", ["", "a-b", "a b", "ü", "a.b", " x "])
def test_a_name_that_is_none(functions: FunctionService, function: Callable[..., Function], name: str) -> None:
    with refused(InvalidObjectException, message=f"{name} is not a valid object name"):
        functions.create(function(name))


def test_what_can_not_be_made(functions: FunctionService, db: str, function: Callable[..., Function]) -> None:
    with refused(MetaException):
        functions.create(function(None))
    with refused(MetaException):
        functions.create(function("f" * 129))
    with refused(InvalidObjectException, message="Function class name cannot be null"):
        functions.create(function(className=None))
    with refused(NoSuchObjectException, message="Nowhere"):
        functions.create(function(dbName="Nowhere"))
    with refused(MetaException):
        functions.create(function(resourceUris=[ResourceUri(uri="x")]))
    assert functions.names(db, "*") == []


def test_it_is_there_already(functions: FunctionService, function: Callable[..., Function]) -> None:
    functions.create(function("f"))
    with refused(AlreadyExistsException, message="Function F already exists"):
        functions.create(function("F"))


def test_one_that_is_not_there(functions: FunctionService, db: str) -> None:
    for database in (db, "nowhere"):
        with refused(NoSuchObjectException, message=f"Function {database}.NoFn does not exist"):
            functions.get(database, "NoFn")
        with refused(NoSuchObjectException, message="Function NoFn does not exist"):
            functions.drop(database, "NoFn")
    with refused(MetaException):
        functions.get(db, None)


def test_lists(functions: FunctionService, db: str, function: Callable[..., Function]) -> None:
    for name in ("full3", "fn", "_x", "Full2", "1a"):
        functions.create(function(name))
    everything = ["1a", "_x", "fn", "full2", "full3"]
    assert functions.names(db, None) == functions.names(db, "*") == functions.names(db, ".*") == everything
    assert functions.names(db, "F*") == ["fn", "full2", "full3"]
    assert functions.names(db, "full2|fn") == ["fn", "full2"]
    assert functions.names(db, "full.") == ["full2", "full3"]
    assert functions.names(db, "") == functions.names(db, "fu%") == functions.names("nowhere", "*") == []
    assert [f.functionName for f in functions.all() if f.dbName == db] == everything


def test_alter(functions: FunctionService, db: str, function: Callable[..., Function]) -> None:
    jar = ResourceUri(ResourceType.JAR, "a")
    functions.create(function(resourceUris=[jar]))
    before = functions.get(db, "f")
    functions.alter(
        db.upper(),
        "F",
        function("G", className="c.D", ownerName="o", ownerType=PrincipalType.GROUP, createTime=7, resourceUris=[]),
    )
    assert functions.get(db, "g") == before.replace(
        functionName="g", className="c.D", ownerName="o", ownerType=PrincipalType.GROUP
    )
    assert functions.names(db, "*") == ["g"]


def test_alter_moves_to_another_database(
    metastore: Metastore, functions: FunctionService, db: str, function: Callable[..., Function]
) -> None:
    other = f"{db}_other"
    metastore.databases.create(builders.database(other))
    functions.create(function())
    functions.alter(db, "f", function(dbName=other))
    assert (functions.names(db, "*"), functions.names(other, "*")) == ([], ["f"])


def test_alterations_that_can_not_be(functions: FunctionService, db: str, function: Callable[..., Function]) -> None:
    functions.create(function("f"))
    functions.create(function("g"))
    with refused(MetaException, message="function none doesn't exist"):
        functions.alter(db, "none", function())
    for new in (function("a-b"), function(className=None), function("g"), function(dbName="nowhere")):
        with refused(MetaException):
            functions.alter(db, "f", new)
    assert functions.names(db, "*") == ["f", "g"]


def test_drop(metastore: Metastore, functions: FunctionService, db: str, function: Callable[..., Function]) -> None:
    functions.create(function("f"))
    functions.create(function("g"))
    functions.drop(db, "F")
    assert functions.names(db, "*") == ["g"]
    with refused(InvalidOperationException, message="One or more functions exist"):
        metastore.databases.drop(db, delete_data=True, cascade=False)
    metastore.databases.drop(db, delete_data=True, cascade=True)
    with refused(NoSuchObjectException):
        functions.get(db, "g")
