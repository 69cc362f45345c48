"""Constraints of one kind, as each kind's own method tells them. The kinds came after Hive 2.3."""

from typing import Any

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    AddCheckConstraintRequest,
    AddDefaultConstraintRequest,
    AddNotNullConstraintRequest,
    AddUniqueConstraintRequest,
    CheckConstraintsRequest,
    DefaultConstraintsRequest,
    NotNullConstraintsRequest,
    SQLCheckConstraint,
    SQLDefaultConstraint,
    SQLNotNullConstraint,
    SQLUniqueConstraint,
    UniqueConstraintsRequest,
)
from tests.support.builders import table

pytestmark = pytest.mark.hive4


def flags(kind: type[Any], db: str, **more: Any) -> Any:
    """A constraint that is enabled and neither validated nor relied upon."""
    return kind(
        catName="hive",
        table_db=db,
        table_name="t",
        column_name="id",
        enable_cstr=True,
        validate_cstr=False,
        rely_cstr=False,
        **more,
    )


def test_unique(client: ThriftClient, db: str) -> None:
    client.create_table(table(db))
    one = flags(SQLUniqueConstraint, db, key_seq=1, uk_name="uk")
    client.add_unique_constraint(AddUniqueConstraintRequest([one]))
    assert client.get_unique_constraints(UniqueConstraintsRequest("hive", db, "t")).uniqueConstraints == [one]


def test_not_null(client: ThriftClient, db: str) -> None:
    client.create_table(table(db))
    one = flags(SQLNotNullConstraint, db, nn_name="nn")
    client.add_not_null_constraint(AddNotNullConstraintRequest([one]))
    assert client.get_not_null_constraints(NotNullConstraintsRequest("hive", db, "t")).notNullConstraints == [one]


def test_default(client: ThriftClient, db: str) -> None:
    client.create_table(table(db))
    one = flags(SQLDefaultConstraint, db, default_value="1", dc_name="dc")
    client.add_default_constraint(AddDefaultConstraintRequest([one]))
    assert client.get_default_constraints(DefaultConstraintsRequest("hive", db, "t")).defaultConstraints == [one]


def test_check(client: ThriftClient, db: str) -> None:
    client.create_table(table(db))
    one = flags(SQLCheckConstraint, db, check_expression="id > 0", dc_name="cc")
    client.add_check_constraint(AddCheckConstraintRequest([one]))
    assert client.get_check_constraints(CheckConstraintsRequest("hive", db, "t")).checkConstraints == [one]


def test_none(client: ThriftClient, db: str) -> None:
    client.create_table(table(db))
    assert client.get_unique_constraints(UniqueConstraintsRequest("hive", db, "t")).uniqueConstraints == []
    assert client.get_not_null_constraints(NotNullConstraintsRequest("hive", db, "t")).notNullConstraints == []
