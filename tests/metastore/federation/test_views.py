"""Texts of views: the names of databases are replaced where they stand, and nowhere else."""

import pytest

from lake.protocol.hive import Table
from metastore.federation import views
from metastore.federation.translation import to_front
from tests.metastore.federation.test_mapping import mapping

FRONT = mapping(main={}, eu={"prefix": "eu_"})


def eu(name: str) -> str:
    return f"eu_{name}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * FROM sales.t", "SELECT * FROM eu_sales.t"),
        ("select `t`.`a`  from `Sales`.`t`", "select `t`.`a`  from `eu_sales`.`t`"),
        (
            "SELECT 'sales.t', sales.t.x FROM sales . t JOIN hr.people p ON p.sales = t.sales -- sales.t",
            "SELECT 'sales.t', eu_sales.t.x FROM eu_sales . t JOIN eu_hr.people p ON p.sales = t.sales -- sales.t",
        ),
        (
            "WITH sales AS (SELECT 1 AS t) SELECT sales.t FROM sales",
            "WITH sales AS (SELECT 1 AS t) SELECT sales.t FROM sales",
        ),
        (
            "SELECT (SELECT max(x) FROM a.b) FROM (SELECT 1 UNION ALL SELECT x FROM c.d) e"
            " WHERE x IN (SELECT y FROM f.g)",
            "SELECT (SELECT max(x) FROM eu_a.b) FROM (SELECT 1 UNION ALL SELECT x FROM eu_c.d) e"
            " WHERE x IN (SELECT y FROM eu_f.g)",
        ),
        ("SELECT t.sales.x FROM t", "SELECT t.sales.x FROM t"),
        ("SELECT 'ä', x FROM sales.t", "SELECT 'ä', x FROM eu_sales.t"),
        (
            "SELECT sales.mask(x), s.a.b.c FROM t LATERAL VIEW `sales`.parts(y) p AS z WHERE x > hr.f(1).g",
            "SELECT eu_sales.mask(x), s.a.b.c FROM t LATERAL VIEW `eu_sales`.parts(y) p AS z WHERE x > eu_hr.f(1).g",
        ),
        ("SELECT 1", "SELECT 1"),
        ("", ""),
    ],
)
def test_names_are_replaced_at_their_places(text: str, expected: str) -> None:
    assert views.renamed(text, eu) == expected


@pytest.mark.parametrize(
    "text",
    [
        "SELECT FROM WHERE",
        "SELECT 1; SELECT 2",
        "/* Presto View: eyJ */",
        "SELECT sales.x.y FROM sales.t",  # a table's column, or a struct's field
        "SELECT sales.t.x FROM hr.a sales JOIN sales.t",
        "SELECT sales.t.x.y FROM sales.t",
        "SELECT x.sales.t.y FROM sales.t",
        "SELECT sales.t.x.y.z FROM sales.t",
        "SELECT region.sales.f(1)",
        "SELECT * FROM region.sales.t",
    ],
)
def test_what_isnt_certain_is_left_alone_and_marked(text: str) -> None:
    with pytest.raises(views.NotUnderstood):
        views.renamed(text, eu)
    table = Table(dbName="sales", tableName="v", viewExpandedText=text, viewOriginalText="SELECT * FROM sales.t")
    to_front(table, FRONT, "eu")
    assert (table.dbName, table.viewExpandedText) == ("eu_sales", text)
    assert table.viewOriginalText == "SELECT * FROM sales.t"
    assert views.UNMAPPED in (table.parameters or {})


def test_sparks_parameters() -> None:
    parameters = {
        "view.catalogAndNamespace.numParts": "2",
        "view.catalogAndNamespace.part.0": "spark_catalog",
        "view.catalogAndNamespace.part.1": "sales",
        "other": "sales",
    }
    table = Table(dbName="sales", tableName="v", viewOriginalText="SELECT * FROM t", parameters=parameters)
    to_front(table, FRONT, "eu")
    assert table.parameters == {**parameters, "view.catalogAndNamespace.part.1": "eu_sales"}
