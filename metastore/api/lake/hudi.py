"""Hudi's metaserver: the timelines of its tables. Its table and its exceptions are not Hive's."""

from collections.abc import Iterator
from contextlib import contextmanager

from lake.protocol import hive, hudi
from lake.protocol.hudi import HoodieInstantChangeResult, THoodieInstant
from lake.protocol.lake import InstantConflict
from metastore.api.methods import Call, answers
from metastore.store import DatabaseUnavailable, Unstorable
from metastore.warehouse import WarehouseError

_REJECTIONS = (
    hive.InvalidOperationException,
    hive.InvalidObjectException,
    hive.MetaException,
    hive.InvalidInputException,
    InstantConflict,
)


@answers("createDatabase", changes="CREATE everything", uncommitted="hudi")
def create_database(call: Call, db: str | None) -> None:
    with _as_hudi_errors():
        call.metastore.hudi_tables.create_database(db, call.owner)


@answers("createTable", changes="CREATE database table.dbName | new_table table", uncommitted="hudi")
def create_table(call: Call, table: hudi.Table) -> None:
    with _as_hudi_errors(hudi.MetaserverException):
        call.metastore.hudi_tables.create(table, call.owner)


@answers(
    "getTable",
    reads="SEE table db tb",
    uncommitted="hudi",
    differs="tells a table's type; Hudi's own takes all for COPY_ON_WRITE",
)
def get_table(call: Call, db: str | None, tb: str | None) -> hudi.Table:
    with _as_hudi_errors():
        return call.metastore.hudi_tables.get(db, tb)


@answers(
    "listInstants",
    reads="LIST table db tb",
    uncommitted="hudi",
    differs="as many as a reader needs to see the right rows",
)
def list_instants(call: Call, db: str | None, tb: str | None, num: int | None) -> list[THoodieInstant]:
    with _as_hudi_errors():
        return call.metastore.hudi_timeline.instants(db, tb, num or 0)


@answers("getInstantMetadata", reads="LIST table db tb", uncommitted="hudi")
def get_instant_metadata(call: Call, db: str | None, tb: str | None, instant: THoodieInstant) -> bytes:
    with _as_hudi_errors():
        return call.metastore.hudi_timeline.metadata(db, tb, instant)


@answers("createNewInstantTime", changes="RECORD table db tb", uncommitted="hudi")
def create_new_instant_time(call: Call, db: str | None, tb: str | None) -> str:
    with _as_hudi_errors():
        return call.metastore.hudi_timeline.new_timestamp(db, tb)


@answers("createNewInstantWithTime", changes="hudi_instant db tb instant=instant", uncommitted="hudi")
def create_new_instant_with_time(
    call: Call, db: str | None, tb: str | None, instant: THoodieInstant, content: bytes | None
) -> HoodieInstantChangeResult:
    with _as_hudi_errors():
        return call.metastore.hudi_timeline.begin(db, tb, instant, content)


@answers(
    "transitionInstantState",
    changes="hudi_instant db tb instant=fromInstant becomes=toInstant content=metadata",
    uncommitted="hudi",
    differs="what is refused is raised; metadata that can't be read is refused",
)
def transition_instant_state(
    call: Call,
    db: str | None,
    tb: str | None,
    from_instant: THoodieInstant,
    to_instant: THoodieInstant,
    metadata: bytes | None,
) -> HoodieInstantChangeResult:
    with _as_hudi_errors(hudi.MetaserverException):
        return call.metastore.hudi_timeline.transition(db, tb, from_instant, to_instant, metadata)


@answers(
    "deleteInstant",
    changes="hudi_instant db tb instant=instant",
    uncommitted="hudi",
    differs="takes one state back, as if its file were deleted",
)
def delete_instant(call: Call, db: str | None, tb: str | None, instant: THoodieInstant) -> HoodieInstantChangeResult:
    with _as_hudi_errors():
        return call.metastore.hudi_timeline.delete(db, tb, instant)


@contextmanager
def _as_hudi_errors(
    declared: type[hudi.MetaserverException | hudi.MetaserverStorageException] = hudi.MetaserverStorageException,
) -> Iterator[None]:
    """Raises Hudi's exceptions for ours. `declared`: the one that the method declares for what can't be done."""
    try:
        yield
    except hive.NoSuchObjectException as error:
        raise hudi.NoSuchObjectException(error.message) from error
    except hive.AlreadyExistsException as error:
        raise hudi.AlreadyExistException(error.message) from error
    except _REJECTIONS as error:
        raise declared(error.message) from error
    except (DatabaseUnavailable, Unstorable, WarehouseError) as error:
        raise hudi.MetaserverStorageException(str(error)) from error
