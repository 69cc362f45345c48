"""An unmodified Spark uses a metastore for everything a data team does in a week, and checks every answer.

    python demo/spark_tour.py --uri thrift://HOST:PORT

runs against any metastore that speaks Hive's protocol. It makes two databases of its own (their names begin
with `--database`), under the warehouse directory the metastore itself names, and removes them again.
"""

import contextlib
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click
from ending import ending
from narrator import Narrator
from pyspark.sql import SparkSession
from rich.console import Console
from spark_session import plain_builder, spark_session
from stop_sign import StopSign

#: A permanent function needs a class on the class path; Hive's own are in Spark's jars.
FUNCTION_CLASS = "org.apache.hadoop.hive.ql.udf.generic.GenericUDFInitCap"
#: The name Hive gives to the partition of rows whose key is NULL.
NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"


@dataclass
class Tour:
    """What every chapter needs: the session, the voice, and where things are."""

    spark: SparkSession
    narrator: Narrator
    shop: str
    archive: str
    warehouse: str
    stop_sign: StopSign

    def sql(self, statement: str) -> list[tuple]:
        """Runs a statement; its rows as tuples."""
        self.stop_sign.check()
        self.narrator.statement(statement)
        return [tuple(row) for row in self.spark.sql(statement).collect()]

    def value(self, statement: str) -> object:
        """The single value a query answers."""
        return self.sql(statement)[0][0]

    def column(self, statement: str, index: int = 0) -> list:
        """One column of what a query answers."""
        return [row[index] for row in self.sql(statement)]

    def describe(self, table: str, partition: str = "") -> dict[str, str]:
        """DESCRIBE EXTENDED as a mapping from the first column to the second.

        Of a partition it tells the partition's facts first and the table's after them: the first one counts.
        """
        described: dict[str, str] = {}
        for row in self.sql(f"DESCRIBE TABLE EXTENDED {table} {partition}"):
            described.setdefault(row[0], row[1])
        return described

    def partitions(self, table: str, spec: str = "") -> list[str]:
        return self.column(f"SHOW PARTITIONS {table} {spec}")

    def properties(self, table: str) -> dict[str, str]:
        return dict(self.sql(f"SHOW TBLPROPERTIES {table}"))

    def partitions_read(self, query: str) -> int:
        """How many partitions' directories a query really opens."""
        self.narrator.statement(query)
        return len({file.rsplit("/", 1)[0] for file in self.spark.sql(query).inputFiles()})

    def exists(self, location: str) -> bool:
        """Whether a file or directory is there, on whatever file system it names."""
        path = self.spark._jvm.org.apache.hadoop.fs.Path(location)
        return path.getFileSystem(self.spark._jsc.hadoopConfiguration()).exists(path)


def databases(tour: Tour) -> None:
    say = tour.narrator
    say.section("Databases", "A shop's database and an archive beside it.")
    with say.step("CREATE DATABASE … WITH DBPROPERTIES, twice") as step:
        for name in (tour.shop, tour.archive):
            tour.sql(
                f"CREATE DATABASE {name} COMMENT 'a small shop' LOCATION '{tour.warehouse}/{name}.db' "
                "WITH DBPROPERTIES (team = 'web', tier = 'silver')"
            )
        found = tour.column(f"SHOW DATABASES LIKE '{tour.shop}*'")
        step.check("SHOW DATABASES", sorted(found), sorted([tour.shop, tour.archive]))
    with say.step("DESCRIBE DATABASE EXTENDED") as step:
        described = dict(tour.sql(f"DESCRIBE DATABASE EXTENDED {tour.shop}"))
        step.check("comment", described["Comment"], "a small shop")
        step.check_contains("location", described["Location"], f"/{tour.shop}.db")
        step.check_contains("properties", described["Properties"], "(tier,silver)")
        step.check("directory made", tour.exists(described["Location"]), True)
    with say.step("ALTER DATABASE SET DBPROPERTIES") as step:
        tour.sql(f"ALTER DATABASE {tour.shop} SET DBPROPERTIES (tier = 'gold')")
        described = dict(tour.sql(f"DESCRIBE DATABASE EXTENDED {tour.shop}"))
        step.check_contains("properties", described["Properties"], "(tier,gold)")
        step.check_contains("untouched property", described["Properties"], "(team,web)")
    tour.sql(f"USE {tour.shop}")


def tables(tour: Tour) -> None:
    say = tour.narrator
    say.section("Tables", "Spark's own tables, Hive's tables in Parquet and ORC, one outside the warehouse.")
    with say.step("CREATE TABLE customers … USING parquet, INSERT") as step:
        tour.sql("""CREATE TABLE customers (id BIGINT COMMENT 'our number', name STRING, since DATE,
            tags ARRAY<STRING>) USING parquet COMMENT 'who buys' TBLPROPERTIES (pii = 'yes')""")
        tour.sql("""INSERT INTO customers VALUES (1, 'Ada', DATE'2021-04-01', array('vip')),
            (2, 'Grace', DATE'2022-05-02', array()), (3, 'Linus', NULL, NULL)""")
        step.check("rows", tour.value("SELECT count(*) FROM customers"), 3)
        described = tour.describe("customers")
        step.check("type", described["Type"], "MANAGED")
        step.check("provider", described["Provider"].lower(), "parquet")
        step.check("comment", described["Comment"], "who buys")
        step.check("property", tour.properties("customers")["pii"], "yes")
        step.note("3 rows")
    with say.step("CREATE TABLE products … STORED AS PARQUET, INSERT") as step:
        tour.sql("""CREATE TABLE products (sku STRING, price DECIMAL(10,2), size STRUCT<w: INT, h: INT>,
            label MAP<STRING, STRING>) STORED AS PARQUET""")
        tour.sql("""INSERT INTO products
            SELECT 'lamp', 19.90, named_struct('w', 20, 'h', 40), map('en', 'Lamp') UNION ALL
            SELECT 'chair', 75.00, named_struct('w', 50, 'h', 90), map('en', 'Chair', 'de', 'Stuhl')""")
        step.check("a struct's field", tour.value("SELECT size.h FROM products WHERE sku = 'chair'"), 90)
        step.check("a map", tour.value("SELECT label['de'] FROM products WHERE sku = 'chair'"), "Stuhl")
        step.check_contains("serde", tour.describe("products")["Serde Library"], "ParquetHiveSerDe")
        step.note("2 rows")
    with say.step("CREATE TABLE reviews … STORED AS ORC, INSERT") as step:
        tour.sql("CREATE TABLE reviews (sku STRING, stars INT, said STRING) STORED AS ORC")
        tour.sql("INSERT INTO reviews VALUES ('lamp', 5, 'bright'), ('lamp', 3, 'small'), ('chair', 4, NULL)")
        step.check("average", tour.value("SELECT avg(stars) FROM reviews WHERE sku = 'lamp'"), 4.0)
        step.check_contains("serde", tour.describe("reviews")["Serde Library"], "OrcSerde")
        step.note("3 rows")
    with say.step("CREATE EXTERNAL TABLE imports … LOCATION") as step:
        location = f"{tour.warehouse}/{tour.shop}_imports"
        tour.sql(f"""CREATE EXTERNAL TABLE imports (sku STRING, pieces INT)
            STORED AS PARQUET LOCATION '{location}'""")
        tour.sql("INSERT INTO imports VALUES ('lamp', 100), ('chair', 40)")
        described = tour.describe("imports")
        step.check("type", described["Type"], "EXTERNAL")
        step.check_contains("location", described["Location"], f"/{tour.shop}_imports")
        step.check("pieces", tour.value("SELECT sum(pieces) FROM imports"), 140)
    with say.step("CREATE TABLE … AS SELECT, a join of three tables") as step:
        tour.sql("""CREATE TABLE stock USING parquet AS SELECT p.sku, p.price, i.pieces, avg(r.stars) AS stars
            FROM products p JOIN imports i ON p.sku = i.sku JOIN reviews r ON r.sku = p.sku
            GROUP BY p.sku, p.price, i.pieces""")
        rows = tour.sql("SELECT sku, cast(price AS STRING), pieces, stars FROM stock ORDER BY sku")
        step.check("rows", rows, [("chair", "75.00", 40, 4.0), ("lamp", "19.90", 100, 4.0)])
    say.rows(["sku", "price", "pieces", "stars"], rows, "stock")
    with say.step("INSERT OVERWRITE a table") as step:
        tour.sql("INSERT OVERWRITE TABLE reviews VALUES ('lamp', 5, 'bright'), ('chair', 4, 'good')")
        step.check("rows", tour.value("SELECT count(*) FROM reviews"), 2)


def partitions(tour: Tour) -> None:
    say = tour.narrator
    say.section("Partitions", "Two keys: named in the statement, taken from the rows, or one of each.")
    with say.step("CREATE TABLE orders … PARTITIONED BY (country, day)") as step:
        tour.sql("""CREATE TABLE orders (id BIGINT, amount DECIMAL(10,2), country STRING, day DATE)
            USING parquet PARTITIONED BY (country, day)""")
        step.check("none yet", tour.partitions("orders"), [])
    with say.step("INSERT … PARTITION (country = 'de', day = '2024-03-01')") as step:
        tour.sql("""INSERT INTO orders PARTITION (country = 'de', day = '2024-03-01')
            VALUES (1, 10.00), (2, 5.50)""")
        step.check("partitions", tour.partitions("orders"), ["country=de/day=2024-03-01"])
        step.check("sum", str(tour.value("SELECT sum(amount) FROM orders")), "15.50")
    with say.step("INSERT with both keys taken from the rows") as step:
        tour.sql("""INSERT INTO orders SELECT id + 100, cast(id AS DECIMAL(10,2)),
            element_at(array('de', 'fr', 'it'), cast(id % 3 AS INT) + 1),
            date_add(DATE'2024-03-01', cast(id % 4 AS INT)) FROM range(24)""")
        step.check("partitions", len(tour.partitions("orders")), 12)
        step.check("rows", tour.value("SELECT count(*) FROM orders"), 26)
        step.note("12 partitions")
    with say.step("INSERT with the country named, the day taken from the rows") as step:
        tour.sql("INSERT INTO orders PARTITION (country = 'es', day) SELECT 200, 7.00, DATE'2024-03-09'")
        names = tour.partitions("orders", "PARTITION (country = 'es')")
        step.check("partitions", names, ["country=es/day=2024-03-09"])
    with say.step("INSERT OVERWRITE one partition, the others stay") as step:
        tour.sql("INSERT OVERWRITE orders PARTITION (country = 'de', day = '2024-03-01') VALUES (1, 99.00)")
        one = tour.sql("SELECT id, amount FROM orders WHERE country = 'de' AND day = '2024-03-01'")
        step.check("the partition", [(row[0], str(row[1])) for row in one], [(1, "99.00")])
        step.check("rows of the table", tour.value("SELECT count(*) FROM orders"), 24)
    with say.step("INSERT OVERWRITE just the partitions the rows name") as step:
        tour.sql("INSERT OVERWRITE orders SELECT 300, 1.00, 'it', day FROM orders WHERE country = 'es'")
        step.check("partitions", len(tour.partitions("orders")), 14)
        step.check("rows", tour.value("SELECT count(*) FROM orders"), 25)
    with say.step("CREATE TABLE visits … STORED AS ORC, INSERT, both ways") as step:
        tour.sql("CREATE TABLE visits (page STRING) PARTITIONED BY (site STRING, hour INT) STORED AS ORC")
        tour.sql("INSERT INTO visits PARTITION (site = 'web', hour = 7) VALUES ('home')")
        tour.sql("""INSERT INTO visits PARTITION (site, hour)
            SELECT concat('p', id), if(id % 2 = 0, 'web', 'app'), cast(id AS INT) FROM range(12)""")
        step.check("partitions", len(tour.partitions("visits")), 13)
        step.check("integers compared as such", tour.value("SELECT count(*) FROM visits WHERE hour >= 9"), 3)
        step.note("13 partitions")
    with say.step("Keys with blanks, slashes, equal signs and NULL") as step:
        tour.sql("""INSERT INTO visits PARTITION (site, hour) SELECT * FROM VALUES
            ('x', 'a b', 1), ('x', 'c/d', 1), ('x', 'e=f', 1), ('x', NULL, 1) AS v(page, site, hour)""")
        odd = [name.split("/")[0] for name in tour.partitions("visits", "PARTITION (hour = 1)")]
        expected = ["site=a b", "site=app", "site=c%2Fd", "site=e%3Df", f"site={NULL_PARTITION}"]
        step.check("escaped names", sorted(odd), sorted(expected))
        step.check("read back", tour.value("SELECT count(*) FROM visits WHERE site = 'c/d'"), 1)
        step.check("NULL key", tour.value("SELECT count(*) FROM visits WHERE site IS NULL"), 1)


def alterations(tour: Tour) -> None:
    say = tour.narrator
    say.section("ALTER TABLE", "Columns, names, properties, and partitions by hand.")
    with say.step("ADD COLUMNS: old rows answer NULL") as step:
        tour.sql("ALTER TABLE orders ADD COLUMNS (channel STRING COMMENT 'how it came in')")
        tour.sql("INSERT INTO orders SELECT 400, 3.00, 'app', 'pl', DATE'2024-03-01'")
        found = tour.sql("SELECT channel, count(*) FROM orders GROUP BY channel ORDER BY channel")
        step.check("rows by channel", found, [(None, 25), ("app", 1)])
        columns = tour.column("SHOW COLUMNS IN orders")
        step.check("columns", columns, ["id", "amount", "channel", "country", "day"])
    with say.step("CHANGE COLUMN … COMMENT") as step:
        tour.sql("ALTER TABLE orders CHANGE COLUMN amount amount DECIMAL(10,2) COMMENT 'in euros'")
        comments = {row[0]: row[2] for row in tour.sql("DESCRIBE orders")}
        step.check("comment", comments["amount"], "in euros")
        step.check("the other comment", comments["channel"], "how it came in")
    with say.step("SET and UNSET TBLPROPERTIES") as step:
        tour.sql("ALTER TABLE orders SET TBLPROPERTIES (retention = '400 days', steward = 'ada')")
        step.check("property", tour.properties("orders")["retention"], "400 days")
        tour.sql("ALTER TABLE orders UNSET TBLPROPERTIES (retention)")
        step.check("property gone", "retention" in tour.properties("orders"), False)
        step.check("property kept", tour.properties("orders")["steward"], "ada")
    with say.step("RENAME TO, data and partitions included") as step:
        before = tour.describe("visits")["Location"]
        tour.sql("ALTER TABLE visits RENAME TO page_views")
        after = tour.describe("page_views")["Location"]
        step.check("partitions", len(tour.partitions("page_views")), 17)
        step.check("rows", tour.value("SELECT count(*) FROM page_views"), 17)
        step.check("directory moved", (tour.exists(before), tour.exists(after)), (False, True))
    with say.step("ADD PARTITION, one with a location of its own") as step:
        elsewhere = f"{tour.warehouse}/{tour.shop}_elsewhere"
        tour.sql(f"""ALTER TABLE page_views ADD PARTITION (site = 'tv', hour = 20)
            PARTITION (site = 'tv', hour = 21) LOCATION '{elsewhere}'""")
        step.check("partitions", len(tour.partitions("page_views", "PARTITION (site = 'tv')")), 2)
        described = tour.describe("page_views", "PARTITION (site = 'tv', hour = 21)")
        step.check_contains("location", described["Location"], f"/{tour.shop}_elsewhere")
        tour.sql("ALTER TABLE page_views ADD IF NOT EXISTS PARTITION (site = 'tv', hour = 20)")
        step.check("IF NOT EXISTS", len(tour.partitions("page_views")), 19)
    with say.step("RENAME a partition: its rows follow") as step:
        tour.sql("""ALTER TABLE page_views PARTITION (site = 'web', hour = 7)
            RENAME TO PARTITION (site = 'web', hour = 23)""")
        names = tour.partitions("page_views", "PARTITION (site = 'web')")
        step.check("names", ("site=web/hour=7" in names, "site=web/hour=23" in names), (False, True))
        found = tour.sql("SELECT page, hour FROM page_views WHERE site = 'web' AND hour > 20")
        step.check("rows", found, [("home", 23)])
    with say.step("DROP PARTITION, one and several by one key") as step:
        tour.sql("ALTER TABLE page_views DROP PARTITION (site = 'tv', hour = 20)")
        step.check("one less", len(tour.partitions("page_views")), 18)
        tour.sql("ALTER TABLE page_views DROP PARTITION (site = 'app')")
        step.check("six less", len(tour.partitions("page_views")), 12)
        step.check("rows", tour.value("SELECT count(*) FROM page_views WHERE site = 'app'"), 0)


def repair(tour: Tour) -> None:
    say = tour.narrator
    say.section("MSCK REPAIR", "Another program wrote files into the table's directory.")
    with say.step("Write two partitions' files past the metastore") as step:
        location = tour.describe("orders")["Location"]
        for day in ("2024-04-01", "2024-04-02"):
            frame = tour.spark.sql("SELECT 500L AS id, cast(2 AS DECIMAL(10,2)) AS amount, 'web' AS channel")
            frame.write.parquet(f"{location}/country=at/day={day}")
        step.check("unseen", tour.value("SELECT count(*) FROM orders WHERE country = 'at'"), 0)
    with say.step("MSCK REPAIR TABLE") as step:
        tour.sql("MSCK REPAIR TABLE orders")
        names = tour.partitions("orders", "PARTITION (country = 'at')")
        step.check("found", names, ["country=at/day=2024-04-01", "country=at/day=2024-04-02"])
        step.check("rows", tour.value("SELECT count(*) FROM orders WHERE country = 'at'"), 2)
        step.note("2 partitions found")


def statistics(tour: Tour) -> None:
    say = tour.narrator
    say.section("ANALYZE", "Statistics of a table, a partition and columns, kept by the metastore.")
    with say.step("ANALYZE TABLE … COMPUTE STATISTICS") as step:
        tour.sql("ANALYZE TABLE orders COMPUTE STATISTICS")
        stated = tour.describe("orders")["Statistics"]
        step.check_contains("statistics", stated, "28 rows")
        step.note(stated)
    with say.step("ANALYZE TABLE … PARTITION (country = 'de')") as step:
        tour.sql("ANALYZE TABLE orders PARTITION (country = 'de', day) COMPUTE STATISTICS")
        described = tour.describe("orders", "PARTITION (country = 'de', day = '2024-03-01')")
        stated = described["Partition Statistics"]
        step.check_contains("statistics", stated, "1 rows")
        step.note(stated)
    with say.step("ANALYZE TABLE … FOR COLUMNS id, amount, channel") as step:
        tour.sql("ANALYZE TABLE orders COMPUTE STATISTICS FOR COLUMNS id, amount, channel")
        amount = dict(tour.sql("DESCRIBE EXTENDED orders amount"))
        step.check("range", (amount["min"], amount["max"]), ("1.00", "99.00"))
        channel = dict(tour.sql("DESCRIBE EXTENDED orders channel"))
        step.check("nulls", channel["num_nulls"], "25")
        step.check("distinct", channel["distinct_count"], "2")
    wanted = ("min", "max", "num_nulls", "distinct_count")
    found = {"amount": amount, "channel": channel}
    say.rows(["column", *wanted], [[name, *map(facts.get, wanted)] for name, facts in found.items()])


def pruning(tour: Tour) -> None:
    say = tour.narrator
    total = len(tour.partitions("orders"))
    say.section("Pruning", f"orders has {total} partitions; a query reads only those its filter can match.")
    queries = [
        ("country = 'fr' AND day = DATE'2024-03-01'", 1, 2),
        ("country = 'fr'", 4, 8),
        ("day >= DATE'2024-04-01'", 2, 2),
        ("country IN ('es', 'pl') OR country LIKE 'a%'", 4, 4),
        ("day BETWEEN DATE'2024-03-02' AND DATE'2024-03-03' AND country <> 'it'", 4, 8),
        ("country = 'nowhere'", 0, 0),
    ]
    read = []
    with say.step("Six filters on the keys") as step:
        for condition, partitions_expected, rows_expected in queries:
            query = f"SELECT * FROM orders WHERE {condition}"
            opened = tour.partitions_read(query)
            rows = tour.value(f"SELECT count(*) FROM ({query})")
            step.check(condition, (opened, rows), (partitions_expected, rows_expected))
            read.append((condition, f"{opened} of {total}", rows))
    say.rows(["WHERE", "partitions read", "rows"], read)


def views(tour: Tour) -> None:
    say = tour.narrator
    say.section("Views", "Made, read, replaced, renamed.")
    with say.step("CREATE VIEW over a partitioned table") as step:
        tour.sql("""CREATE VIEW sales (country COMMENT 'two letters', total) COMMENT 'per country'
            AS SELECT country, sum(amount) AS total FROM orders GROUP BY country""")
        rows = tour.sql("SELECT country, cast(total AS STRING) FROM sales ORDER BY country")
        step.check("rows", dict(rows)["es"], "7.00")
        step.check("type", tour.describe("sales")["Type"], "VIEW")
        step.check("SHOW VIEWS", tour.column("SHOW VIEWS", 1), ["sales"])
    say.rows(["country", "total"], rows, "sales")
    with say.step("ALTER VIEW … AS, CREATE OR REPLACE VIEW") as step:
        tour.sql("ALTER VIEW sales AS SELECT count(*) AS orders FROM orders")
        step.check("altered", tour.value("SELECT orders FROM sales"), 28)
        tour.sql("CREATE OR REPLACE VIEW sales AS SELECT max(id) AS last FROM orders")
        step.check("replaced", tour.value("SELECT last FROM sales"), 500)
    with say.step("ALTER VIEW … RENAME TO, DROP VIEW") as step:
        tour.sql("ALTER VIEW sales RENAME TO latest")
        step.check("renamed", tour.column("SHOW VIEWS", 1), ["latest"])
        tour.sql("DROP VIEW latest")
        step.check("dropped", tour.column("SHOW VIEWS", 1), [])


def listings(tour: Tour) -> None:
    say = tour.narrator
    say.section("SHOW and DESCRIBE", "What a person types first in a new place.")
    with say.step("SHOW TABLES, with and without a pattern") as step:
        names = tour.column("SHOW TABLES", 1)
        expected = ["customers", "imports", "orders", "page_views", "products", "reviews", "stock"]
        step.check("all", sorted(names), expected)
        step.check("pattern", sorted(tour.column("SHOW TABLES LIKE 'o*|*_v*'", 1)), ["orders", "page_views"])
    with say.step("SHOW CREATE TABLE, run again in the archive") as step:
        statement = str(tour.value("SHOW CREATE TABLE orders"))
        step.check_contains("partitioning", " ".join(statement.split()), "PARTITIONED BY (country, day)")
        tour.sql(statement.replace(f"{tour.shop}.orders", f"{tour.archive}.orders"))
        columns = tour.column(f"SHOW COLUMNS IN {tour.archive}.orders")
        step.check("columns", columns, tour.column("SHOW COLUMNS IN orders"))
    with say.step("DESCRIBE TABLE EXTENDED") as step:
        described = tour.describe("orders")
        step.check("type", described["Type"], "MANAGED")
        step.check("database", described["Database"], tour.shop)
    wanted = ("Database", "Table", "Owner", "Type", "Provider", "Statistics", "Partition Provider")
    say.rows(["orders", ""], [(key, described[key]) for key in wanted if key in described])


def functions(tour: Tour) -> None:
    say = tour.narrator
    say.section("Functions", "Permanent ones live in the metastore, for every session.")
    with say.step(f"CREATE FUNCTION title AS '{FUNCTION_CLASS.rsplit('.', 1)[1]}'") as step:
        tour.sql(f"CREATE FUNCTION title AS '{FUNCTION_CLASS}'")
        step.check("used", tour.value("SELECT title('round wooden table')"), "Round Wooden Table")
        listed = tour.column("SHOW USER FUNCTIONS")
        step.check("listed", [name for name in listed if name.endswith(f"{tour.shop}.title")], listed)
        described = tour.column("DESCRIBE FUNCTION EXTENDED title")
        step.check("class", any(FUNCTION_CLASS in line for line in described), True)
    with say.step("From another session") as step:
        answer = tour.spark.newSession().sql(f"SELECT {tour.shop}.title('a b')").first()[0]
        step.check("used", answer, "A B")
    with say.step("DROP FUNCTION") as step:
        tour.sql("DROP FUNCTION title")
        step.check("listed", tour.column("SHOW USER FUNCTIONS"), [])


def drops(tour: Tour) -> None:
    say = tour.narrator
    say.section("DROP", "What the metastore owns goes with its files; what it doesn't own stays.")
    with say.step("TRUNCATE TABLE, the partitions stay") as step:
        tour.sql("TRUNCATE TABLE orders PARTITION (country = 'fr')")
        step.check("rows left", tour.value("SELECT count(*) FROM orders"), 20)
        tour.sql("TRUNCATE TABLE orders")
        step.check("rows left", tour.value("SELECT count(*) FROM orders"), 0)
        step.check("partitions", len(tour.partitions("orders")), 17)
    with say.step("DROP PARTITION … PURGE") as step:
        directory = f"{tour.describe('orders')['Location']}/country=es/day=2024-03-09"
        step.check("directory before", tour.exists(directory), True)
        tour.sql("ALTER TABLE orders DROP PARTITION (country = 'es') PURGE")
        step.check("directory after", tour.exists(directory), False)
    with say.step("DROP TABLE … PURGE takes the files") as step:
        location = tour.describe("orders")["Location"]
        tour.sql("DROP TABLE orders PURGE")
        step.check("table", tour.spark.catalog.tableExists(f"{tour.shop}.orders"), False)
        step.check("directory", tour.exists(location), False)
    with say.step("DROP TABLE of an external table leaves them") as step:
        location = tour.describe("imports")["Location"]
        tour.sql("DROP TABLE imports PURGE")
        step.check("table", tour.spark.catalog.tableExists(f"{tour.shop}.imports"), False)
        step.check("directory", tour.exists(location), True)
    with say.step("DROP DATABASE … CASCADE") as step:
        for name in (tour.shop, tour.archive):
            location = dict(tour.sql(f"DESCRIBE DATABASE {name}"))["Location"]
            tour.sql(f"DROP DATABASE {name} CASCADE")
            step.check("directory", tour.exists(location), False)
        step.check("databases", tour.column(f"SHOW DATABASES LIKE '{tour.shop}*'"), [])


CHAPTERS: list[Callable[[Tour], None]] = [
    databases,
    tables,
    partitions,
    alterations,
    repair,
    statistics,
    pruning,
    views,
    listings,
    functions,
    drops,
]


def clean_up(tour: Tour) -> None:
    """Removes whatever of the tour is left: its databases, and the directories outside them."""
    for name in (tour.shop, tour.archive):
        tour.spark.sql(f"DROP DATABASE IF EXISTS {name} CASCADE")
    for name in ("imports", "elsewhere"):
        path = tour.spark._jvm.org.apache.hadoop.fs.Path(f"{tour.warehouse}/{tour.shop}_{name}")
        path.getFileSystem(tour.spark._jsc.hadoopConfiguration()).delete(path, True)


def walk(
    uri: str, database: str, warehouse: str | None, narrator: Narrator, stop_sign: StopSign, scratch: Path
) -> None:
    """The whole tour; raises at the first step that goes wrong, with nothing of the tour left behind."""
    narrator.section("Spark", f"An unmodified PySpark with hive.metastore.uris = {uri}")
    with contextlib.ExitStack() as stack:
        with narrator.step("Start a session") as step:
            spark = stack.enter_context(spark_session(plain_builder(uri, scratch), scratch))
            stop_sign.watch()
            step.note(f"Spark {spark.version}")
        with narrator.step("Connect to the metastore") as step:
            default = dict(tuple(row) for row in spark.sql("DESCRIBE DATABASE default").collect())
            root = (warehouse or default["Location"]).rstrip("/")
            tour = Tour(spark, narrator, database, f"{database}_archive", root, stop_sign)
            taken = {tour.shop, tour.archive}.intersection(tour.column(f"SHOW DATABASES LIKE '{database}*'"))
            if taken:
                raise click.UsageError(f"the database {min(taken)} exists already; choose with --database")
            step.note(f"warehouse {tour.warehouse}")
        try:
            for chapter in CHAPTERS:
                chapter(tour)
        except Exception:
            with contextlib.suppress(Exception):  # the first failure is the one to tell
                clean_up(tour)
            raise
        clean_up(tour)


@click.command(context_settings={"max_content_width": 100})
@click.option("--uri", required=True, metavar="thrift://HOST:PORT", help="The metastore to use.")
@click.option("--database", default="lake_tour", show_default=True, help="Name of the database to make.")
@click.option("--warehouse", metavar="URI", help="Where its files go. [default: where `default` has its own]")
@click.option("--sql", "show_sql", is_flag=True, help="Show every statement.")
def main(uri: str, database: str, warehouse: str | None, show_sql: bool) -> None:
    """Have Spark use a metastore for everything a data team does, and check every answer."""
    narrator = Narrator(Console(highlight=False), show_sql)
    stop_sign = StopSign()
    stop_sign.watch()
    with tempfile.TemporaryDirectory(prefix="spark-tour-") as scratch, ending(narrator, stop_sign):
        walk(uri, database, warehouse, narrator, stop_sign, Path(scratch))
    narrator.summary("Every answer was right.")


if __name__ == "__main__":
    main()
