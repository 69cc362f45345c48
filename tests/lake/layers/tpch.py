"""Queries of TPC-H's kind: lists of tables with commas in any order, and subqueries of each form."""

# ruff: noqa: E501 - a condition is a line

import random
from collections.abc import Sequence

DECIMAL, DAY = "decimal(15,2)", "date"
TABLES: dict[str, tuple[dict[str, str], list[str]]] = {
    "region": ({"r_regionkey": "bigint", "r_name": "string"}, ["r_regionkey"]),
    "nation": ({"n_nationkey": "bigint", "n_name": "string", "n_regionkey": "bigint"}, ["n_nationkey"]),
    "supplier": (
        {"s_suppkey": "bigint", "s_name": "string", "s_nationkey": "bigint", "s_acctbal": DECIMAL},
        ["s_suppkey"],
    ),
    "part": (
        {"p_partkey": "bigint", "p_brand": "string", "p_type": "string", "p_size": "int", "p_container": "string"},
        ["p_partkey"],
    ),
    "partsupp": (
        {"ps_partkey": "bigint", "ps_suppkey": "bigint", "ps_availqty": "int", "ps_supplycost": DECIMAL},
        ["ps_partkey", "ps_suppkey"],
    ),
    "customer": (
        {
            "c_custkey": "bigint",
            "c_name": "string",
            "c_nationkey": "bigint",
            "c_phone": "string",
            "c_acctbal": DECIMAL,
            "c_mktsegment": "string",
        },
        ["c_custkey"],
    ),
    "orders": (
        {
            "o_orderkey": "bigint",
            "o_custkey": "bigint",
            "o_orderstatus": "string",
            "o_orderdate": DAY,
            "o_orderpriority": "string",
            "o_comment": "string",
        },
        ["o_orderkey"],
    ),
    "lineitem": (
        {
            "l_orderkey": "bigint",
            "l_linenumber": "int",
            "l_partkey": "bigint",
            "l_suppkey": "bigint",
            "l_quantity": DECIMAL,
            "l_extendedprice": DECIMAL,
            "l_discount": DECIMAL,
            "l_returnflag": "string",
            "l_shipmode": "string",
            "l_shipdate": DAY,
            "l_commitdate": DAY,
            "l_receiptdate": DAY,
        },
        ["l_orderkey", "l_linenumber"],
    ),
}
"""By name, the columns with their types, and the key."""

REVENUE = "sum(l_extendedprice * (1 - l_discount))"
QUERIES: dict[str, tuple[str, str]] = {
    "q01": (
        f"SELECT l_returnflag, sum(l_quantity) AS quantity, {REVENUE} AS revenue, avg(l_discount) AS discount, count(*) AS n"
        " FROM lineitem WHERE l_shipdate <= DATE '1998-12-01' - INTERVAL '90' DAY GROUP BY l_returnflag",
        "by group",
    ),
    "q02": (
        "SELECT s_acctbal, s_name, n_name, p_partkey FROM part, supplier, partsupp, nation, region"
        " WHERE p_partkey = ps_partkey AND s_suppkey = ps_suppkey AND p_size = 15 AND p_type LIKE '%BRASS'"
        " AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'EUROPE' AND ps_supplycost = ("
        "SELECT min(ps_supplycost) FROM partsupp, supplier, nation, region WHERE p_partkey = ps_partkey"
        " AND s_suppkey = ps_suppkey AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'EUROPE')",
        "by group",
    ),
    "q03": (
        f"SELECT l_orderkey, {REVENUE} AS revenue, o_orderdate FROM customer, orders, lineitem"
        " WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey"
        " AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15' GROUP BY l_orderkey, o_orderdate",
        "by group",
    ),
    "q04": (
        "SELECT o_orderpriority, count(*) AS n FROM orders WHERE o_orderdate >= DATE '1993-07-01' AND EXISTS ("
        "SELECT * FROM lineitem WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate) GROUP BY o_orderpriority",
        "by group",
    ),
    "q05": (
        f"SELECT n_name, {REVENUE} AS revenue FROM customer, orders, lineitem, supplier, nation, region"
        " WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey AND c_nationkey = s_nationkey"
        " AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'ASIA' GROUP BY n_name",
        "by group",
    ),
    "q07": (
        "SELECT supp, cust, year, sum(volume) AS revenue FROM (SELECT n1.n_name AS supp, n2.n_name AS cust,"
        " extract(YEAR FROM l_shipdate) AS year, l_extendedprice * (1 - l_discount) AS volume"
        " FROM supplier, lineitem, orders, customer, nation n1, nation n2 WHERE s_suppkey = l_suppkey"
        " AND o_orderkey = l_orderkey AND c_custkey = o_custkey AND s_nationkey = n1.n_nationkey"
        " AND c_nationkey = n2.n_nationkey AND ((n1.n_name = 'FRANCE' AND n2.n_name = 'GERMANY')"
        " OR (n1.n_name = 'GERMANY' AND n2.n_name = 'FRANCE'))) AS shipping GROUP BY supp, cust, year",
        "by group",
    ),
    "q08": (
        "SELECT year, sum(CASE WHEN nation = 'BRAZIL' THEN volume ELSE 0 END) / sum(volume) AS share FROM ("
        "SELECT extract(YEAR FROM o_orderdate) AS year, l_extendedprice * (1 - l_discount) AS volume, n2.n_name AS nation"
        " FROM part, supplier, lineitem, orders, customer, nation n1, nation n2, region WHERE p_partkey = l_partkey"
        " AND s_suppkey = l_suppkey AND l_orderkey = o_orderkey AND o_custkey = c_custkey"
        " AND c_nationkey = n1.n_nationkey AND n1.n_regionkey = r_regionkey AND r_name = 'AMERICA'"
        " AND s_nationkey = n2.n_nationkey AND p_type = 'ECONOMY') AS nations GROUP BY year",
        "by group",
    ),
    "q11": (
        "SELECT ps_partkey, sum(ps_supplycost * ps_availqty) AS value FROM partsupp, supplier, nation"
        " WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = 'GERMANY' GROUP BY ps_partkey"
        " HAVING sum(ps_supplycost * ps_availqty) > (SELECT sum(ps_supplycost * ps_availqty) * 0.0001"
        " FROM partsupp, supplier, nation WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = 'GERMANY')",
        "full",
    ),
    "q13": (
        "SELECT c_count, count(*) AS n FROM (SELECT c_custkey, count(o_orderkey) FROM customer LEFT OUTER JOIN orders"
        " ON c_custkey = o_custkey AND o_comment NOT LIKE '%special%requests%' GROUP BY c_custkey)"
        " AS counted (c_custkey, c_count) GROUP BY c_count",
        "by group",
    ),
    "q15": (
        f"WITH revenue AS (SELECT l_suppkey AS supplier_no, {REVENUE} AS total FROM lineitem GROUP BY l_suppkey)"
        " SELECT s_suppkey, s_name, total FROM supplier, revenue WHERE s_suppkey = supplier_no"
        " AND total = (SELECT max(total) FROM revenue)",
        "full",
    ),
    "q16": (
        "SELECT p_brand, p_size, count(DISTINCT ps_suppkey) AS n FROM partsupp, part WHERE p_partkey = ps_partkey"
        " AND p_brand <> 'Brand#45' AND p_size IN (49, 14, 23) AND ps_suppkey NOT IN ("
        "SELECT s_suppkey FROM supplier WHERE s_name LIKE '%Complaints%') GROUP BY p_brand, p_size",
        "by group",
    ),
    "q17": (
        "SELECT p_brand, sum(l_extendedprice) / 7.0 AS yearly FROM lineitem, part WHERE p_partkey = l_partkey"
        " AND p_container = 'MED BOX' AND l_quantity < (SELECT 0.2 * avg(l_quantity) FROM lineitem"
        " WHERE l_partkey = p_partkey) GROUP BY p_brand",
        "by group",
    ),
    "q18": (
        "SELECT c_name, c_custkey, o_orderkey, o_orderdate, sum(l_quantity) AS quantity FROM customer, orders, lineitem"
        " WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING sum(l_quantity) > 30)"
        " AND c_custkey = o_custkey AND o_orderkey = l_orderkey GROUP BY c_name, c_custkey, o_orderkey, o_orderdate",
        "by group",
    ),
    "q19": (
        f"SELECT l_shipmode, {REVENUE} AS revenue FROM lineitem, part WHERE (p_partkey = l_partkey AND p_brand = 'Brand#12'"
        " AND l_quantity >= 1 AND p_size BETWEEN 1 AND 5) OR (p_partkey = l_partkey AND p_brand = 'Brand#23'"
        " AND l_quantity >= 10 AND p_size BETWEEN 1 AND 10) GROUP BY l_shipmode",
        "by group",
    ),
    "q20": (
        "SELECT s_name FROM supplier, nation WHERE s_suppkey IN (SELECT ps_suppkey FROM partsupp WHERE ps_partkey IN ("
        "SELECT p_partkey FROM part WHERE p_type LIKE 'forest%') AND ps_availqty > (SELECT 0.5 * sum(l_quantity)"
        " FROM lineitem WHERE l_partkey = ps_partkey AND l_suppkey = ps_suppkey AND l_shipdate >= DATE '1994-01-01'))"
        " AND s_nationkey = n_nationkey AND n_name = 'CANADA'",
        "by group",
    ),
    "q21": (
        "SELECT s_name, count(*) AS n FROM supplier, lineitem l1, orders, nation WHERE s_suppkey = l1.l_suppkey"
        " AND o_orderkey = l1.l_orderkey AND o_orderstatus = 'F' AND l1.l_receiptdate > l1.l_commitdate AND EXISTS ("
        "SELECT * FROM lineitem l2 WHERE l2.l_orderkey = l1.l_orderkey AND l2.l_suppkey <> l1.l_suppkey)"
        " AND NOT EXISTS (SELECT * FROM lineitem l3 WHERE l3.l_orderkey = l1.l_orderkey AND l3.l_suppkey <> l1.l_suppkey"
        " AND l3.l_receiptdate > l3.l_commitdate) AND s_nationkey = n_nationkey AND n_name = 'SAUDI ARABIA' GROUP BY s_name",
        "by group",
    ),
    "q22": (
        "SELECT code, count(*) AS n, sum(c_acctbal) AS balance FROM (SELECT substring(c_phone FROM 1 FOR 2) AS code,"
        " c_acctbal FROM customer WHERE substring(c_phone FROM 1 FOR 2) IN ('13', '31', '23') AND c_acctbal > ("
        "SELECT avg(c_acctbal) FROM customer WHERE c_acctbal > 0.00) AND NOT EXISTS ("
        "SELECT * FROM orders WHERE o_custkey = c_custkey)) AS sales GROUP BY code",
        "full",
    ),
}
"""By name, the query, and how it is refreshed."""

TEXTS: dict[str, Sequence[str]] = {
    "r_name": ("EUROPE", "ASIA", "AMERICA"),
    "n_name": ("FRANCE", "GERMANY", "BRAZIL", "CANADA", "SAUDI ARABIA"),
    "p_type": ("SMALL BRASS", "ECONOMY", "forest green"),
    "p_brand": ("Brand#12", "Brand#23", "Brand#45"),
    "p_container": ("MED BOX", "JAR"),
    "c_mktsegment": ("BUILDING", "MACHINERY"),
    "c_phone": ("13-1", "31-2", "99-3"),
    "o_orderstatus": ("F", "O"),
    "o_comment": ("plain", "a special of requests"),
    "s_name": ("Supplier 1", "Supplier 2", "Customer Complaints"),
}
SIZES = {
    "region": 3,
    "nation": 5,
    "supplier": 4,
    "part": 5,
    "partsupp": 12,
    "customer": 6,
    "orders": 12,
    "lineitem": 30,
}


def random_rows(rng: random.Random, table: str, count: int) -> str:
    """Rows of a table in SQL, with values of which many are equal; those of one key are one row."""
    columns, key = TABLES[table]
    rows = {}
    for _ in range(count):
        row = {name: _value(rng, name, kind) for name, kind in columns.items()}
        rows[tuple(row[each] for each in key)] = ", ".join(row.values())
    names = ", ".join(columns)
    return f"VALUES {', '.join(f'({each})' for each in rows.values())} AS t({names})"


def _value(rng: random.Random, name: str, kind: str) -> str:
    match kind:
        case "bigint":
            return f"{rng.randint(1, SIZES['orders'] if 'orderkey' in name else 4)}L"
        case "int":
            return str(rng.randint(1, 3) if name == "l_linenumber" else rng.choice([3, 14, 15, 23]))
        case "date":
            return f"DATE '{rng.choice(['1993-08-01', '1994-06-05', '1995-03-01', '1995-06-17'])}'"
        case "string":
            return repr(rng.choice(TEXTS.get(name, ("x", "y"))))
    return f"{rng.randint(0, 40) if 'quantity' in name else rng.randint(-3, 3)}.{rng.randint(0, 1)}0BD"
