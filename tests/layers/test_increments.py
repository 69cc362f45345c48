"""Increments against full computations, in DuckDB: random histories of tables under many queries."""

import random
from collections.abc import Mapping

import pytest

from tests.layers import random_queries
from tests.layers.duck import Row, Warehouse, check

TABLES: Mapping[str, tuple[str, tuple[str, ...] | None]] = {
    "orders": ("id BIGINT, cust BIGINT, amount BIGINT, city VARCHAR", ("id",)),
    "customers": ("id BIGINT, name VARCHAR, city VARCHAR", ("id",)),
    "items": ("ord BIGINT, nr BIGINT, price BIGINT", ("ord", "nr")),
    "visits": ("cust BIGINT, city VARCHAR", None),
}
CITIES = ["Oslo", "Rome", "", None]


def some(rng: random.Random, most: int) -> int | None:
    return None if rng.random() < 0.15 else rng.randint(0, most)


def random_rows(rng: random.Random, name: str) -> list[Row]:
    """Rows of a table, with small values, so that many are equal, and NULLs."""
    count = rng.choice([0, 1, 3, 8])
    match name:
        case "orders":
            keys = rng.sample(range(10), count)
            return [(key, some(rng, 4), some(rng, 5), rng.choice(CITIES)) for key in keys]
        case "customers":
            return [(key, rng.choice("ab"), rng.choice(CITIES)) for key in rng.sample(range(6), min(count, 6))]
        case "items":
            pairs = [(ord, nr) for ord in range(5) for nr in range(3)]
            return [(*pair, some(rng, 4)) for pair in rng.sample(pairs, count)]
    return [(some(rng, 4), rng.choice(CITIES)) for _ in range(count)]


def changed_rows(rng: random.Random, name: str, rows: list[Row]) -> list[Row]:
    """Some of the rows, with some others."""
    width = len(TABLES[name][1] or ())
    kept = [row for row in rows if rng.random() < 0.75]
    if not width:
        return [*kept, *rng.sample(more := random_rows(rng, name), min(2, len(more)))]
    keys = {row[:width] for row in kept}
    others = [row for row in random_rows(rng, name) if row[:width] not in keys]
    return [*kept, *others[:2]]


def run(queries: Mapping[str, str], seed: int, refreshes: int = 4) -> None:
    """A history of the tables, with all layers compared after each refresh."""
    rng = random.Random(seed)
    warehouse = Warehouse(TABLES)
    rows: dict[str, list[Row]] = {}
    for name in TABLES:
        rows[name] = random_rows(rng, name)
        warehouse.change(name, rows[name])
    layers = [warehouse.add(name, text) for name, text in queries.items()]
    for number in range(refreshes):
        before = {each.name.split(".")[1]: warehouse.rows(each.name.split(".")[1]) for each in layers}
        changes = warehouse.refresh(full=number > 0 and rng.random() < 0.1)
        for each in layers:
            name = each.name.split(".")[1]
            try:
                check(warehouse, each, before[name], changes[name])
            except AssertionError as error:
                raise AssertionError(f"refresh {number} of {name}, seed {seed}: {queries[name]}\n{error}") from error
        for name in TABLES:
            if rng.random() < 0.6:
                rows[name] = changed_rows(rng, name, rows[name])
                warehouse.change(name, rows[name])


QUERIES: dict[str, str] = {
    "filter": "SELECT id, amount + 1 AS more, CASE WHEN city IS NULL THEN '?' ELSE city END AS city FROM orders WHERE amount > 1 OR city = 'Rome'",
    "key dropped": "SELECT city, amount FROM orders",
    "inner join": "SELECT o.id, c.name, o.amount FROM orders o JOIN customers c ON o.cust = c.id WHERE c.city <> 'Rome'",
    "inner join of many": "SELECT o.id, o.city, c.id AS cid FROM orders o JOIN customers c ON o.city = c.city AND o.amount > c.id",
    "left join": "SELECT o.id, c.name, o.cust FROM orders o LEFT JOIN customers c ON o.cust = c.id AND c.name = 'a'",
    "left join of many": "SELECT c.id, o.id AS oid, o.amount FROM customers c LEFT JOIN orders o ON o.city = c.city",
    "right join": "SELECT o.id, c.name, c.id AS cid FROM orders o RIGHT JOIN customers c ON o.cust = c.id",
    "full join": "SELECT o.id, c.id AS cid, o.amount, c.name FROM orders o FULL JOIN customers c ON o.cust = c.id",
    "full join of many": "SELECT o.id, c.id AS cid FROM orders o FULL OUTER JOIN customers c ON o.city = c.city AND o.amount > 1",
    "full join of groups": "SELECT a.city AS one, b.city AS two, a.n, b.m FROM (SELECT city, count(*) AS n FROM orders GROUP BY city) a FULL JOIN (SELECT city, count(*) AS m FROM customers GROUP BY city) b ON a.city = b.city",
    "semi join": "SELECT id, amount FROM orders o LEFT SEMI JOIN customers c ON o.city = c.city",
    "anti join": "SELECT id, amount FROM orders o LEFT ANTI JOIN customers c ON o.cust = c.id AND c.name = 'a'",
    "in": "SELECT id, city FROM orders WHERE cust IN (SELECT id FROM customers WHERE name = 'a') AND amount > 0",
    "null-safe join": "SELECT o.id, c.id AS cid FROM orders o JOIN customers c ON o.city <=> c.city",
    "cross join": "SELECT o.id, c.id AS cid FROM orders o CROSS JOIN customers c",
    "inequality": "SELECT o.id, c.id AS cid FROM orders o LEFT JOIN customers c ON o.cust < c.id",
    "commas": "SELECT o.id, i.nr, c.name FROM orders o, customers c, items i WHERE o.cust = c.id AND i.ord = o.id AND i.price > 0",
    "using": "SELECT id, name, amount FROM orders JOIN customers USING (id)",
    "using grouped": "SELECT id, count(*) AS n FROM orders LEFT JOIN customers USING (id) GROUP BY id",
    "three tables": "SELECT o.id, i.nr, c.name, i.price * 2 AS price FROM orders o JOIN items i ON i.ord = o.id LEFT JOIN customers c ON o.cust = c.id",
    "self join": "SELECT a.id, b.id AS other FROM orders a JOIN orders b ON a.cust = b.cust AND a.id < b.id",
    "union all": "SELECT id, city FROM orders UNION ALL SELECT id, city FROM customers",
    "union all of three": "SELECT id, city FROM orders WHERE amount > 2 UNION ALL SELECT id, name FROM customers UNION ALL SELECT ord, city FROM items JOIN customers ON nr = id",
    "union": "SELECT city FROM orders UNION SELECT city FROM customers",
    "distinct": "SELECT DISTINCT city, amount > 2 AS big FROM orders",
    "group by": "SELECT city, count(*) AS n, sum(amount) AS total, min(amount) AS least, max(cust) AS most, count(DISTINCT cust) AS custs FROM orders GROUP BY city",
    "having": "SELECT city, count(*) AS n FROM orders GROUP BY city HAVING count(*) > 1 AND max(amount) > 2",
    "group by expression": "SELECT amount % 2 AS odd, sum(amount) + count(*) AS s FROM orders WHERE id > 1 GROUP BY amount % 2",
    "group by number": "SELECT coalesce(city, 'none') AS town, count(amount) AS n FROM orders GROUP BY 1",
    "group by all": "SELECT city, cust, sum(amount) AS s FROM orders GROUP BY ALL",
    "group of join": "SELECT c.city, sum(o.amount) AS s, count(*) AS n FROM orders o JOIN customers c ON o.cust = c.id GROUP BY c.city",
    "group of left join": "SELECT c.id, count(o.id) AS n, sum(o.amount) AS s FROM customers c LEFT JOIN orders o ON o.cust = c.id GROUP BY c.id",
    "group of union": "SELECT city, count(*) AS n FROM (SELECT city FROM orders UNION ALL SELECT city FROM customers) u GROUP BY city",
    "filtered aggregate": "SELECT cust, sum(amount) FILTER (WHERE city = 'Rome') AS s, sum(CASE WHEN id > 3 THEN 1 ELSE 0 END) AS n FROM orders GROUP BY cust",
    "group twice": "SELECT n, count(*) AS cities FROM (SELECT city, count(*) AS n FROM orders GROUP BY city) g GROUP BY n",
    "global": "SELECT count(*) AS n, sum(amount) AS s FROM orders WHERE city = 'Oslo'",
    "global joined": "SELECT o.id, o.amount, t.s FROM orders o CROSS JOIN (SELECT max(amount) AS s FROM orders) t WHERE o.amount = t.s",
    "global left": "SELECT t.n, c.id FROM (SELECT count(*) AS n FROM orders) t LEFT JOIN customers c ON c.id = t.n",
    "row number": "SELECT id, city, row_number() OVER (PARTITION BY city ORDER BY amount DESC, id) AS rn FROM orders",
    "latest": "SELECT id, cust, amount FROM (SELECT *, row_number() OVER (PARTITION BY cust ORDER BY amount DESC, id DESC) AS rn FROM orders) t WHERE rn = 1",
    "windows": "SELECT id, rank() OVER (PARTITION BY city ORDER BY amount) AS r, sum(amount) OVER (PARTITION BY cust) AS s, lag(amount) OVER (PARTITION BY city ORDER BY id) AS l FROM orders",
    "window by expression": "SELECT id, count(*) OVER (PARTITION BY amount % 2, city) AS n FROM orders",
    "window over all": "SELECT id, sum(amount) OVER (ORDER BY id) AS running FROM orders",
    "window of groups": "SELECT city, s, rank() OVER (PARTITION BY s % 2 ORDER BY s) AS r FROM (SELECT city, sum(amount) AS s FROM orders GROUP BY city) g",
    "window in groups": "SELECT city, cust, sum(sum(amount)) OVER (PARTITION BY city) AS s FROM orders GROUP BY city, cust",
    "cte": "WITH big AS (SELECT * FROM orders WHERE amount > 1), towns AS (SELECT city, count(*) AS n FROM big GROUP BY city) SELECT b.id, t.n FROM big b JOIN towns t ON b.city = t.city",
    "cte twice": "WITH t AS (SELECT cust, sum(amount) AS s FROM orders GROUP BY cust) SELECT a.cust, b.cust AS other FROM t a JOIN t b ON a.s = b.s AND a.cust < b.cust",
    "bag": "SELECT cust, city FROM visits WHERE city IS NOT NULL",
    "bag grouped": "SELECT city, count(*) AS n FROM visits GROUP BY city",
    "bag joined": "SELECT v.city, o.id FROM visits v JOIN orders o ON v.cust = o.cust",
    "bag left joined": "SELECT v.city, o.id FROM visits v LEFT JOIN orders o ON v.cust = o.cust",
    "left join with bag": "SELECT o.id, v.city FROM orders o LEFT JOIN visits v ON v.cust = o.cust",
    "anti join with bag": "SELECT o.id FROM orders o LEFT ANTI JOIN visits v ON v.cust = o.cust",
    "bag full joined": "SELECT v.city, o.id FROM visits v FULL JOIN orders o ON v.city = o.city",
    "union with bag": "SELECT city FROM visits UNION ALL SELECT city FROM orders",
    "limit": "SELECT id, amount FROM orders ORDER BY amount DESC, id LIMIT 3",
    "except": "SELECT city FROM orders EXCEPT SELECT city FROM customers",
    "rollup": "SELECT city, cust, count(*) AS n FROM orders GROUP BY ROLLUP (city, cust)",
    "exists": "SELECT id FROM orders o WHERE EXISTS (SELECT 1 FROM customers c WHERE c.id = o.cust AND c.name = 'b')",
    "not in": "SELECT id FROM orders WHERE cust NOT IN (SELECT id FROM customers WHERE name = 'a')",
    "scalar subquery": "SELECT id, amount - (SELECT min(amount) FROM orders) AS above FROM orders",
    "whole within": "SELECT t.city, count(*) AS n FROM (SELECT city, id FROM orders ORDER BY id LIMIT 4) t JOIN customers c ON t.id = c.id GROUP BY t.city",
    "whole with cte": "WITH big AS (SELECT * FROM orders WHERE amount > 1) SELECT id FROM big ORDER BY id DESC LIMIT 2",
}


@pytest.mark.parametrize("name", QUERIES)
def test_each_construct(name: str) -> None:
    run({"layer": QUERIES[name]}, seed=1)


def run_random(seed: int) -> None:
    """A chain of three random layers, of which the later ones may read the earlier ones."""
    rng = random.Random(seed)
    tables = dict(random_queries.TABLES)
    queries: dict[str, str] = {}
    for name in ("one", "two", "three"):
        made = random_queries.Queries(rng, tables).query(depth=rng.choice([0, 1, 1, 2]))
        queries[name] = made.text
        tables[name] = random_queries.Relation(name, made.columns)
    run(queries, seed)


@pytest.mark.parametrize("seed", range(12))
def test_random_layers(seed: int) -> None:
    run_random(seed)


@pytest.mark.long
@pytest.mark.parametrize("part", range(20))
def test_many_random_layers(part: int) -> None:
    for seed in range(100):
        run_random(1000 + part * 100 + seed)


@pytest.mark.long
@pytest.mark.parametrize("name", QUERIES)
def test_many_histories_of_each_construct(name: str) -> None:
    for seed in range(40):
        run({"layer": QUERIES[name]}, 100 + seed, refreshes=6)
