"""INSERT OVERWRITE and REPLACE WHERE: what they replace, without rows too, and when the query reads it."""

from typing import Any

from tests.spark_extension.traps.cases import ALL, Case, Do, Gives, Holds, Python, Refused

DAYS: dict[str, Any] = {
    "columns": "id INT, v STRING, p STRING, q INT",
    "key": "id,p,q",
    "partitions": "p, q",
    "on": ALL,
}
START = "(1, 'a', 'x', 1), (2, 'b', 'x', 2), (3, 'c', 'y', 1)"
STATIC = {"spark.sql.sources.partitionOverwriteMode": "static"}
DYNAMIC = {"spark.sql.sources.partitionOverwriteMode": "dynamic"}
NOTHING = "SELECT 1, 'x' WHERE rand() > 2"

CASES = [
    Case(
        name="overwrite-dynamic",
        trap="Paimon InsertOverwriteTableTestBase: dynamic insert overwrite partition; Iceberg "
        "PartitionedWritesTestBase",
        **DAYS,
        settings=DYNAMIC,
        rows=START,
        steps=[
            Do("INSERT OVERWRITE {t} VALUES (7, 'n', 'x', 2), (8, 'm', 'z', 1)"),
            Holds([[1, "a", "x", 1], [3, "c", "y", 1], [7, "n", "x", 2], [8, "m", "z", 1]]),
            Do("INSERT OVERWRITE {t} SELECT id, v, p, q FROM {t} WHERE false"),
            Holds([[1, "a", "x", 1], [3, "c", "y", 1], [7, "n", "x", 2], [8, "m", "z", 1]]),
            Do("INSERT OVERWRITE {t} PARTITION (p = 'x', q) SELECT 9, 'k', 1"),
            Holds([[9, "k", "x", 1], [3, "c", "y", 1], [7, "n", "x", 2], [8, "m", "z", 1]]),
        ],
    ),
    Case(
        name="overwrite-static",
        trap="Delta DeltaInsertIntoTableSuite: overwrite - mixed clause, static clause, implicit dynamic partition "
        "- static mode",
        **DAYS,
        settings=STATIC,
        rows=START,
        steps=[
            Do("INSERT OVERWRITE {t} PARTITION (p = 'x', q) SELECT 9, 'k', 3"),
            Holds([[9, "k", "x", 3], [3, "c", "y", 1]]),
            Do("INSERT OVERWRITE {t} PARTITION (p = 'y', q = 1) SELECT 4, 'd'"),
            Holds([[9, "k", "x", 3], [4, "d", "y", 1]]),
            Do("INSERT OVERWRITE {t} SELECT 5, 'e', 'z', 0"),
            Holds([[5, "e", "z", 0]]),
            Do("INSERT OVERWRITE {t} SELECT * FROM {t} WHERE false"),
            Holds([]),
        ],
    ),
    Case(
        name="overwrite-order-of-the-partition-clause",
        trap="Delta DeltaInsertIntoTableSuite: overwrite - mixed clause reordered; Paimon: dynamic partition "
        "follows table order",
        **DAYS,
        settings=STATIC,
        rows=START,
        steps=[
            Do("INSERT OVERWRITE {t} PARTITION (q, p = 'x') SELECT 9, 'k', 3"),
            Holds([[9, "k", "x", 3], [3, "c", "y", 1]]),
            Do("INSERT INTO {t} PARTITION (q = 5, p) SELECT 4, 'd', 'w'"),
            Do("INSERT INTO {t} PARTITION (q = 6, p = 'v') (v, id) VALUES ('e', 5)"),
            Holds([[9, "k", "x", 3], [3, "c", "y", 1], [4, "d", "w", 5], [5, "e", "v", 6]]),
            Refused("INSERT INTO {t} PARTITION (id = 5) SELECT 'e', 'w', 1", "."),
            Refused("INSERT INTO {t} PARTITION (p = 'x', p = 'y', q = 1) SELECT 1, 'e'", "."),
            Refused("INSERT INTO {t} PARTITION (p = 'x', q = 1) (id, p) VALUES (1, 'e')", "."),
            Refused("INSERT INTO {t} PARTITION (nothing = 1) SELECT 1, 'e', 'x', 1", "."),
        ],
    ),
    Case(
        name="overwrite-by-nothing",
        trap="Paimon InsertOverwriteTableTestBase: insert overwrite mutil-partitioned table; Spark: an empty static "
        "partition",
        **DAYS,
        settings=DYNAMIC,
        rows=START,
        steps=[
            Do(f"INSERT OVERWRITE {{t}} PARTITION (p = 'x', q = 2) {NOTHING}"),
            Holds([[1, "a", "x", 1], [3, "c", "y", 1]]),
            Do(f"INSERT OVERWRITE {{t}} PARTITION (p = 'y', q = '01') {NOTHING}"),
            Holds([[1, "a", "x", 1]]),
            Do(f"INSERT OVERWRITE {{t}} PARTITION (q = 1, P = 'x') {NOTHING}"),
            Holds([]),
        ],
    ),
    Case(
        name="overwrite-value-of-another-form",
        trap="Paimon InsertOverwriteTableTestBase: insert overwrite table using $dataType as the partition field type",
        columns="id INT, v STRING, n INT, d DATE",
        key="id,n,d",
        partitions="n, d",
        on=ALL,
        settings=DYNAMIC,
        rows="(1, 'a', 7, date'2026-01-02'), (2, 'b', 8, date'2026-01-02')",
        steps=[
            Do(f"INSERT OVERWRITE {{t}} PARTITION (n = '08', d = '2026-1-2') {NOTHING}"),
            Gives("SELECT id, v, n, string(d) FROM {t}", [[1, "a", 7, "2026-01-02"]]),
            Do("INSERT OVERWRITE {t} PARTITION (n = ' 7', d = '2026-1-2') SELECT 3, 'c'"),
            Gives("SELECT id, v, n, string(d) FROM {t}", [[3, "c", 7, "2026-01-02"]]),
            Do("INSERT OVERWRITE {t} PARTITION (n = 7L, d = date'2026-01-02') SELECT 4, 'd'"),
            Gives("SELECT id, v, n, string(d) FROM {t}", [[4, "d", 7, "2026-01-02"]]),
            Refused("INSERT OVERWRITE {t} PARTITION (n = 'seven', d = '2026-1-2') SELECT 4, 'd'", "."),
            Refused("INSERT OVERWRITE {t} PARTITION (n = 7, d = '2026-02-30') SELECT 4, 'd'", "."),
        ],
    ),
    Case(
        name="overwrite-of-what-is-read",
        caught="a subquery on the table that is overwritten was refused",
        trap="Paimon DDLTestBase: REPLACE TABLE AS SELECT from same table preserves data; Delta: insertInto: overwrite",
        **DAYS,
        settings=DYNAMIC,
        rows=START,
        steps=[
            Do(
                "INSERT OVERWRITE {t} SELECT id, upper(v), p, q FROM (SELECT *, row_number() OVER (PARTITION BY p "
                "ORDER BY id DESC) "
                "AS n FROM {t}) WHERE n = 1"
            ),
            Holds([[1, "a", "x", 1], [2, "B", "x", 2], [3, "C", "y", 1]]),
            Do("WITH q AS (SELECT * FROM {t} WHERE p = 'x') INSERT OVERWRITE {t} SELECT id + 10, v, p, q FROM q"),
            Holds([[11, "a", "x", 1], [12, "B", "x", 2], [3, "C", "y", 1]]),
            Do(
                "INSERT OVERWRITE {t} PARTITION (p = 'y', q = 1) SELECT id, v FROM {t} WHERE id IN (SELECT max(id) "
                "FROM {t})"
            ),
            Holds([[11, "a", "x", 1], [12, "B", "x", 2], [12, "B", "y", 1]]),
        ],
    ),
    Case(
        name="overwrite-of-a-whole-table-that-is-read",
        trap="Paimon DDLTestBase: self-referencing RTAS on an unpartitioned table replaces in place",
        columns="id INT, v STRING",
        on=ALL,
        settings=DYNAMIC,
        rows="(1, 'a'), (2, 'b')",
        steps=[
            Do("INSERT OVERWRITE {t} SELECT a.id + b.id, concat(a.v, b.v) FROM {t} a JOIN {t} b ON a.id < b.id"),
            Holds([[3, "ab"]]),
            Do("INSERT OVERWRITE {t} SELECT * FROM {t}"),
            Holds([[3, "ab"]]),
            Do("INSERT OVERWRITE {t} SELECT * FROM {t} WHERE id > 3"),
            Holds([]),
            Do("INSERT OVERWRITE {t} SELECT 1, 'constant'"),
            Holds([[1, "constant"]]),
        ],
    ),
    Case(
        name="overwrite-by-an-earlier-version",
        trap="Paimon DDLTestBase: REPLACE TABLE AS SELECT with time travel reads specified snapshot",
        columns="id INT, v STRING",
        rows="(1, 'a'), (2, 'b')",
        steps=[
            Do("DELETE FROM {t} WHERE id = 1"),
            Do("INSERT INTO {t} VALUES (3, 'c')"),
            Do("INSERT OVERWRITE {t} SELECT * FROM {t} VERSION AS OF 1"),
            Holds([[1, "a"], [2, "b"]]),
            Gives("SELECT * FROM {t} VERSION AS OF 3", [[2, "b"], [3, "c"]]),
        ],
    ),
    Case(
        name="overwrite-that-fails",
        trap="Iceberg TestWriteAborts; Delta: INSERT OVERWRITE with if not exists",
        **DAYS,
        settings=DYNAMIC,
        rows=START,
        steps=[
            Refused("INSERT OVERWRITE {t} SELECT id, raise_error('no luck'), 'x', 1 FROM range(5)", "no luck"),
            Refused(
                "INSERT OVERWRITE {t} PARTITION (p = 'x', q = 1) SELECT 1, raise_error('no luck') FROM range(3)",
                "no luck",
            ),
            Refused("INSERT OVERWRITE {t} PARTITION (p = 'x', q = 1) IF NOT EXISTS SELECT 1, 'z'", "."),
            Refused("INSERT OVERWRITE {t} SELECT 1, 'x', 'y'", "."),
        ],
    ),
    Case(
        name="overwrite-repeats-a-key",
        trap="Paimon InsertOverwriteTableTestBase: insert overwrite non-partitioned table: hasPk",
        why="Paimon keeps the row that comes last. Without an order none is right",
        columns="id INT, v STRING",
        rows="(1, 'a')",
        steps=[
            Refused("INSERT OVERWRITE {t} VALUES (2, 'x'), (2, 'y')", "nothing orders them"),
            Do("INSERT OVERWRITE {t} VALUES (2, 'x'), (2, 'x')"),
            Holds([[2, "x"]]),
        ],
    ),
    Case(
        name="overwrite-by-dataframes",
        trap="Delta DeltaDataFrameWriterV2Suite; Iceberg UnpartitionedWritesTestBase: testDataFrameV2DynamicOverwrite",
        **DAYS,
        rows=START,
        steps=[
            Python("spark.sql(\"SELECT 'n' v, 'x' p, 9 id, 2 q\").writeTo(table).overwritePartitions()"),
            Holds([[1, "a", "x", 1], [9, "n", "x", 2], [3, "c", "y", 1]]),
            Python(
                "from pyspark.sql.functions import col\n"
                "spark.sql(\"SELECT 8 id, 'm' v, 'x' p, 5 q\").writeTo(table).overwrite(col('p') == 'x')"
            ),
            Holds([[8, "m", "x", 5], [3, "c", "y", 1]]),
            Python(
                "from pyspark.sql.functions import col\n"
                "try:\n"
                "    spark.sql(\"SELECT 7 id, 'm' v, 'z' p, 5 q\").writeTo(table).overwrite(col('p') == 'x')\n"
                "    assert False\n"
                "except Exception as error:\n"
                "    assert 'outside of what is overwritten' in str(error), error\n"
            ),
            Holds([[8, "m", "x", 5], [3, "c", "y", 1]]),
        ],
    ),
    Case(
        name="overwrite-by-dataframes-without-partitions",
        trap="Iceberg UnpartitionedWritesTestBase: testDataFrameV2DynamicOverwrite",
        columns="id INT, v STRING",
        on=ALL,
        rows="(1, 'a'), (2, 'b')",
        steps=[
            Python("spark.sql(\"SELECT 'n' v, 9 id\").writeTo(table).overwritePartitions()"),
            Holds([[9, "n"]]),
            Python("spark.sql(\"SELECT 8 id, 'm' v\").write.insertInto(table, overwrite=True)"),
            Holds([[8, "m"]]),
        ],
    ),
    Case(
        name="replace-where",
        trap="Iceberg TestReplaceWhere; Delta DeltaSuite: replaceWhere, data outside of it",
        columns="id INT, v STRING, n INT",
        rows="(1, 'a', 1), (2, 'b', NULL), (3, 'c', 30)",
        steps=[
            Do("INSERT INTO {t} REPLACE WHERE n < 10 SELECT 4, 'd', 4"),
            Holds([[4, "d", 4], [2, "b", None], [3, "c", 30]]),
            Refused("INSERT INTO {t} REPLACE WHERE n < 10 SELECT 5, 'e', 50", "outside of what is replaced"),
            Refused("INSERT INTO {t} REPLACE WHERE n < 10 SELECT 5, 'e', NULL", "outside of what is replaced"),
            Do("INSERT INTO {t} REPLACE WHERE n IS NULL OR n = 30 SELECT id, upper(v), n FROM {t} WHERE n = 30"),
            Holds([[4, "d", 4], [3, "C", 30]]),
            Do("INSERT INTO {t} REPLACE WHERE v LIKE '%' SELECT * FROM {t} WHERE false"),
            Holds([]),
        ],
    ),
    Case(
        name="replace-where-of-partitions",
        trap="Delta DeltaBooleanReplaceWhereSuite; Iceberg TestReplaceWhere",
        **DAYS,
        rows=START,
        steps=[
            Do("INSERT INTO {t} REPLACE WHERE p = 'x' AND q >= 2 SELECT 9, 'n', 'x', 7"),
            Holds([[1, "a", "x", 1], [9, "n", "x", 7], [3, "c", "y", 1]]),
            Refused("INSERT INTO {t} REPLACE WHERE p = 'x' SELECT 9, 'n', 'z', 7", "outside of what is"),
            Do("INSERT INTO {t} REPLACE WHERE p IN ('x', 'nowhere') SELECT 1, 'N', 'x', 1 WHERE false"),
            Holds([[3, "c", "y", 1]]),
            Do("INSERT INTO {t} REPLACE WHERE q = 1 OR p = 'w' SELECT 5, 'e', 'w', 3"),
            Holds([[5, "e", "w", 3]]),
        ],
    ),
]
