"""Tables that lie in one another: what is done to one leaves the other's files alone."""

from pathlib import Path

import pytest

from metastore.services import Metastore
from metastore.wire.hive import MetaException, Table
from tests.support.builders import database, external_table, storage, table
from tests.support.target import local_path


def nested(metastore: Metastore, db: str) -> tuple[Table, Path]:
    """Managed table `outer`, external table `inner` in a directory of it, with a file; the outer, and the file."""
    metastore.tables.create(table(db, "outer"), {})
    outer = metastore.tables.get(db, "outer")
    assert outer.sd is not None
    place = local_path(outer.sd.location or "") / "inner"
    metastore.tables.create(external_table(db, "inner", sd=storage("id:bigint", location=f"file:{place}")), {})
    (place / "data").write_text("of the inner table")
    return outer, place / "data"


def test_truncating(metastore: Metastore, db: str) -> None:
    _, data = nested(metastore, db)
    with pytest.raises(MetaException, match="another table or a database lies there"):
        metastore.tables.truncate(db, "outer", None)
    assert data.exists()


def test_renaming(metastore: Metastore, db: str) -> None:
    outer, data = nested(metastore, db)
    with pytest.raises(MetaException, match="another table or a database lies there"):
        metastore.tables.alter(db, "outer", outer.replace(tableName="other"), {})
    assert data.exists()
    assert metastore.tables.get(db, "outer") == outer


def test_dropping(metastore: Metastore, db: str) -> None:
    _, data = nested(metastore, db)
    metastore.tables.drop(db, "outer", delete_data=True)
    assert data.exists()
    metastore.tables.truncate(db, "inner", None)
    assert not data.exists()


def test_dropping_a_database(metastore: Metastore, db: str) -> None:
    _, data = nested(metastore, db)
    other = f"{db}_other"
    metastore.databases.create(database(other))
    metastore.tables.create(
        external_table(other, "theirs", sd=storage("id:bigint", location=f"file:{data.parent}")), {}
    )
    metastore.databases.drop(db, delete_data=True, cascade=True)
    assert data.exists()
