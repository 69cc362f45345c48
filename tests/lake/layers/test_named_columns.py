"""Which layers a change of a captured table's column concerns."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from lake.capture.schema_changes.model import Column, Difference, Kind, Position, SchemaChange
from lake.cli.captured_tables import layers_concerned
from tests.lake.layers.projects import write_project

SQL = """
CREATE CAPTURED TABLE orders FROM raw.shop TABLE 'public.orders';
CREATE CAPTURED TABLE customers FROM raw.shop TABLE 'public.customers';
CREATE CAPTURED TABLE others FROM raw.others TABLE 'public.orders';
CREATE CAPTURED TABLE ods.items FROM raw.shop TABLE 'public.items';
CREATE TEMPORARY VIEW large AS SELECT id, amount AS total, customer FROM orders WHERE Amount > 5;
CREATE MATERIALIZED VIEW by_customer AS SELECT customer, count(*) AS n FROM orders GROUP BY customer;
CREATE MATERIALIZED VIEW totals AS SELECT customer, sum(total) AS total FROM large GROUP BY customer;
CREATE MATERIALIZED VIEW copied AS SELECT o.* FROM orders o;
CREATE MATERIALIZED VIEW over_copied AS SELECT amount FROM copied;
CREATE MATERIALIZED VIEW renamed AS SELECT id, amount AS price FROM orders;
CREATE MATERIALIZED VIEW over_renamed AS SELECT max(price) AS price FROM renamed;
CREATE MATERIALIZED VIEW over_totals AS SELECT n FROM by_customer;
CREATE MATERIALIZED VIEW without AS SELECT * EXCEPT (note) FROM customers;
CREATE MATERIALIZED VIEW joined AS SELECT c.name FROM orders JOIN customers c USING (customer);
CREATE MATERIALIZED VIEW apart AS SELECT amount FROM others;
CREATE MATERIALIZED VIEW of_items AS SELECT sku FROM ods.items;
"""


def changed(kind: Kind, column: str | None, table: str = "public.orders") -> SchemaChange:
    old = None if column is None else Column(column, "int", "integer", in_key=False)
    return SchemaChange(table, Position(1, 2, 3), datetime.now(UTC), Difference(kind, "", old))


@pytest.mark.parametrize(
    ("change", "layers"),
    [
        (changed(Kind.RENAME, "Amount"), "copied over_copied over_renamed renamed totals"),
        (changed(Kind.DROP, "customer"), "by_customer copied joined totals"),
        (changed(Kind.DROP, "nothing"), "copied"),
        (changed(Kind.KEY, None), "by_customer copied joined renamed totals"),
        (changed(Kind.TYPE, "note", "public.customers"), "without"),
        (changed(Kind.DROP, "sku", "public.items"), "of_items"),
        (changed(Kind.ROWS, None), ""),
        (changed(Kind.DROP, "amount", "public.none"), ""),
    ],
)
def test_layers_that_a_change_concerns(tmp_path: Path, change: SchemaChange, layers: str) -> None:
    project = write_project(tmp_path, {"all.sql": SQL})
    assert sorted(layers_concerned(project, "RAW.shop")(change)) == [f"shop.{each}" for each in layers.split()]
