"""Queries: conditions on rows that are merged, versions side by side, views, caches, and changes between versions."""

from tests.spark_extension.traps.cases import ALL, Case, Do, Gives, Holds, Python, Refused

CASES = [
    Case(
        name="conditions-on-replaced-values",
        trap="Paimon PaimonPushDownTest; Hudi, Iceberg: conditions that are pushed into files of earlier versions",
        columns="id INT, v STRING, n INT",
        properties={"bucket": "1"},
        rows="(1, 'a', 1), (2, 'b', 2), (3, 'c', 3)",
        steps=[
            Do("UPDATE {t} SET v = 'z', n = NULL WHERE id = 1"),
            Do("DELETE FROM {t} WHERE id = 2"),
            Gives("SELECT id FROM {t} WHERE v = 'a'", []),
            Gives("SELECT id FROM {t} WHERE v = 'z'", [[1]]),
            Gives("SELECT id FROM {t} WHERE v = 'b' OR n = 2", []),
            Gives("SELECT id FROM {t} WHERE n IS NULL", [[1]]),
            Gives("SELECT id FROM {t} WHERE id = 2", []),
            Gives("SELECT id FROM {t} WHERE id > 1 AND v < 'd'", [[3]]),
            Gives("SELECT count(*) FROM {t} WHERE n = 1", [[0]]),
            Gives("SELECT 1 FROM {t} WHERE v = 'a' LIMIT 1", []),
        ],
    ),
    Case(
        name="counts-after-changes",
        trap="Paimon PushDownAggregatesTest; Iceberg: aggregates by statistics when there are deletes; limits",
        columns="id INT, v INT, p STRING",
        key="id,p",
        partitions="p",
        rows="(1, 10, 'x'), (2, 20, 'x'), (3, 30, 'y'), (4, NULL, 'y')",
        settings={"spark.sql.parquet.aggregatePushdown": "true"},
        steps=[
            Do("DELETE FROM {t} WHERE v = 30"),
            Do("UPDATE {t} SET v = 5 WHERE v = 20"),
            Gives("SELECT count(*), count(v), min(v), max(v), max(id) FROM {t}", [[3, 2, 5, 10, 4]]),
            Gives("SELECT p, count(*), max(v) FROM {t} GROUP BY p", [["x", 2, 10], ["y", 1, None]]),
            Gives("SELECT count(*) FROM {t} WHERE p = 'y'", [[1]]),
            Gives("SELECT count(*) FROM (SELECT * FROM {t} LIMIT 2)", [[2]]),
            Gives("SELECT DISTINCT p FROM {t}", [["x"], ["y"]]),
            Gives("SELECT max(p) FROM {t} WHERE v IS NULL", [["y"]]),
            Do("DELETE FROM {t} WHERE p = 'y'"),
            Gives("SELECT DISTINCT p FROM {t}", [["x"]]),
            Gives("SELECT EXISTS (SELECT 1 FROM {t} WHERE p = 'y'), count(*) FROM {t}", [[False, 2]]),
        ],
    ),
    Case(
        name="keys-in-all-kinds-of-conditions",
        trap="Paimon BucketedTableQueryTest; Delta: conditions with casts; buckets that conditions rule out",
        columns="id BIGINT, k STRING, v INT",
        key="id,k",
        properties={"bucket": "7"},
        rows="(1, 'a', 1), (2, 'a', 2), (2, 'b', 3), (3, 'c', 4), (1000000000000, 'd', 5)",
        steps=[
            Gives("SELECT v FROM {t} WHERE id = 2 AND k = 'a'", [[2]]),
            Gives("SELECT v FROM {t} WHERE id = '2' AND k = 'b'", [[3]]),
            Gives("SELECT v FROM {t} WHERE id = 2.0 AND k IN ('a', 'b')", [[2], [3]]),
            Gives("SELECT v FROM {t} WHERE id IN (1, 2, NULL) AND k IN ('a', NULL)", [[1], [2]]),
            Gives("SELECT v FROM {t} WHERE (id = 1 OR id = 3) AND (k = 'a' OR k = 'c')", [[1], [4]]),
            Gives("SELECT v FROM {t} WHERE (id = 1 AND k = 'a') OR (id = 3 AND k = 'c')", [[1], [4]]),
            Gives("SELECT v FROM {t} WHERE id = 1 AND id = 2 AND k = 'a'", []),
            Gives("SELECT v FROM {t} WHERE NOT (id = 2) AND k <> 'a'", [[4], [5]]),
            Gives("SELECT v FROM {t} WHERE id <=> 2 AND k <=> 'b'", [[3]]),
            Gives("SELECT v FROM {t} WHERE (id, k) IN ((2L, 'a'), (3L, 'c'), (3L, 'x'))", [[2], [4]]),
            Gives("SELECT v FROM {t} WHERE (id, k) IN (SELECT id + 1, k FROM {t})", [[2]]),
            Gives("SELECT v FROM {t} WHERE id = (SELECT max(id) FROM {t}) AND k = 'd'", [[5]]),
            Gives("SELECT v FROM {t} WHERE id = 1000000000000 AND k = 'd'", [[5]]),
            Gives("SELECT v FROM {t} WHERE id + 0 = 2 AND upper(k) = 'A'", [[2]]),
            Gives("SELECT a.v FROM {t} a JOIN {t} b ON a.id = b.id AND a.k = b.k WHERE b.id = 3", [[4]]),
        ],
    ),
    Case(
        name="fields-of-structs-in-queries",
        trap="Paimon PaimonQueryTest: query nested cols, nested array cols; Delta: nested schema pruning; Iceberg "
        "testComplexTypeFilter",
        columns="id INT, s STRUCT<a: INT, b: STRUCT<c: STRING, d: INT>>, l ARRAY<STRUCT<x: INT, y: INT>>",
        rows="(1, named_struct('a', 1, 'b', named_struct('c', 'p', 'd', 5)), array(named_struct('x', 1, 'y', 2))), "
        "(2, NULL, NULL)",
        steps=[
            Do("INSERT INTO {t} VALUES (3, named_struct('a', 3, 'b', NULL), array())"),
            Do("UPDATE {t} SET s.b.d = 6 WHERE id = 1"),
            Gives("SELECT s.b.d FROM {t}", [[6], [None], [None]]),
            Gives("SELECT l.y FROM {t} WHERE s.b.c = 'p'", [[[2]]]),
            Gives("SELECT id FROM {t} WHERE s.b.d = 5", []),
            Gives("SELECT id FROM {t} WHERE s.a > 2", [[3]]),
            Gives("SELECT s.b FROM {t} WHERE s IS NOT NULL", [[["p", 6]], [None]]),
            Gives("SELECT count(*) FROM {t} WHERE s.b IS NULL", [[2]]),
        ],
    ),
    Case(
        name="two-versions-in-a-query",
        trap="Delta DeltaTimeTravelSuite: scans on different versions of same table are executed correctly, "
        "SPARK-41154",
        columns="id INT, v STRING",
        rows="(1, 'a'), (2, 'b')",
        steps=[
            Do("UPDATE {t} SET v = 'B' WHERE id = 2"),
            Do("DELETE FROM {t} WHERE id = 1"),
            Gives(
                "SELECT o.id, o.v, n.v FROM {t} VERSION AS OF 1 o LEFT JOIN {t} n ON n.id = o.id",
                [[1, "a", None], [2, "b", "B"]],
            ),
            Gives("SELECT * FROM {t} VERSION AS OF 1 EXCEPT SELECT * FROM {t} VERSION AS OF 2", [[2, "b"]]),
            Gives(
                "SELECT * FROM {t} VERSION AS OF 2 UNION ALL SELECT * FROM {t} VERSION AS OF 2",
                [[1, "a"], [1, "a"], [2, "B"], [2, "B"]],
            ),
            Gives("SELECT count(*) FROM {t} a, {t} VERSION AS OF 1 b, {t} VERSION AS OF 2 c", [[4]]),
            Gives("SELECT id FROM {t} VERSION AS OF 1 WHERE id NOT IN (SELECT id FROM {t})", [[1]]),
            Gives(
                "WITH o AS (SELECT * FROM {t} VERSION AS OF 1) SELECT o.v FROM o JOIN o p ON o.id = p.id",
                [["a"], ["b"]],
            ),
            Gives("SELECT (SELECT max(v) FROM {t} VERSION AS OF 1), (SELECT max(v) FROM {t})", [["b", "B"]]),
        ],
    ),
    Case(
        name="versions-in-views",
        trap="Iceberg TestSelect: testVersionAsOf; Spark: time travel in views; Delta: temporary views of versions",
        columns="id INT, v STRING",
        rows="(1, 'a')",
        steps=[
            Do("CREATE VIEW {t}_old AS SELECT * FROM {t} VERSION AS OF 1"),
            Do(
                "CREATE TEMPORARY VIEW {v} AS SELECT o.id, o.v AS was, n.v AS is FROM {t} VERSION AS OF 1 o JOIN "
                "{t} n USING (id)"
            ),
            Do("UPDATE {t} SET v = 'b'"),
            Gives("SELECT * FROM {t}_old", [[1, "a"]]),
            Gives("SELECT * FROM {v}", [[1, "a", "b"]]),
            Do("UPDATE {t} SET v = 'c'"),
            Gives("SELECT * FROM {v}", [[1, "a", "c"]]),
            Gives("SELECT x.v, y.v FROM {t}_old x JOIN {t} y USING (id)", [["a", "c"]]),
        ],
    ),
    Case(
        name="versions-that-are-not-there",
        trap="Delta DeltaTimeTravelSuite: as of timestamp on invalid timestamp, as of exact timestamp after last "
        "commit should fail",
        why="a position before all rows has none. What hasn't been yet can't be known",
        columns="id INT, v STRING",
        rows="(1, 'a')",
        steps=[
            Gives("SELECT * FROM {t} VERSION AS OF 1", [[1, "a"]]),
            Refused("SELECT * FROM {t} VERSION AS OF 99", "."),
            Refused("SELECT * FROM {t} VERSION AS OF -1", "."),
            Refused("SELECT * FROM {t} VERSION AS OF 'tag'", "no completed instant or savepoint tag"),
            Refused("SELECT * FROM {t} VERSION AS OF '20260101000000000'", "."),
            Refused("SELECT * FROM {t} TIMESTAMP AS OF '2999-01-01'", "future"),
            Refused("SELECT * FROM {t} TIMESTAMP AS OF 'yesterday-ish'", "."),
            Refused("SELECT * FROM {t} TIMESTAMP AS OF NULL", "."),
        ],
    ),
    Case(
        name="versions-by-time",
        trap="Delta DeltaTimeTravelSuite: as of timestamp in between commits; Iceberg TestSelect: testTimestampAsOf",
        columns="id INT, v STRING",
        rows="(1, 'a')",
        steps=[
            Gives("SELECT * FROM {t} TIMESTAMP AS OF current_timestamp()", [[1, "a"]]),
            Python(
                "import time\n"
                "time.sleep(0.05)\n"
                "between = spark.sql('SELECT string(current_timestamp())').head()[0]\n"
                "time.sleep(0.05)\n"
                "spark.sql(f\"UPDATE {table} SET v = 'b'\")\n"
                "def at(text):\n"
                '    return [row.v for row in spark.sql(f"SELECT v FROM {table} TIMESTAMP AS OF {text}").collect()]\n'
                "assert at(f\"'{between}'\") == ['a']\n"
                "assert at(f\"(SELECT timestamp'{between}')\") == ['a']\n"
                "assert at(f\"timestamp'{between}' + INTERVAL 0 SECOND\") == ['a']\n"
                "first = spark.sql(f'SELECT max(string(committed_at)) FROM {table}.snapshots WHERE position = "
                "1').head()[0]\n"
                "assert at(f\"'{first}'\") == ['a'], first\n"
                "spark.conf.set('spark.sql.session.timeZone', 'Asia/Kolkata')\n"
                "try:\n"
                "    here = spark.sql(f'SELECT string(committed_at) FROM {table}.snapshots WHERE position = "
                "1').head()[0]\n"
                "    assert here != first and at(f\"'{here}'\") == ['a'], here\n"
                "finally:\n"
                "    spark.conf.unset('spark.sql.session.timeZone')\n"
            ),
        ],
    ),
    Case(
        name="versions-before-the-first",
        trap="Delta DeltaTimeTravelSuite: as of timestamp on invalid timestamp; Iceberg: no snapshot older than",
        why="Delta and Iceberg refuse a time before the first version. A keyed table had no rows then, whoever asks "
        "how",
        columns="id INT, v STRING",
        rows="(1, 'a')",
        steps=[
            Gives("SELECT * FROM {t} TIMESTAMP AS OF '2020-01-01'", []),
            Gives("SELECT count(*) FROM {t} TIMESTAMP AS OF current_timestamp() - INTERVAL 1 DAY", [[0]]),
            Gives("SELECT * FROM {t} VERSION AS OF 0", []),
        ],
    ),
    Case(
        name="versions-are-not-written",
        trap="Iceberg TestSelect: testInvalidTimeTravelAgainst…; Delta: writes with a version",
        columns="id INT, v STRING",
        rows="(1, 'a')",
        steps=[
            Refused("INSERT INTO {t} VERSION AS OF 1 VALUES (2, 'b')", "."),
            Refused("DELETE FROM {t} VERSION AS OF 1 WHERE id = 1", "."),
            Refused("UPDATE {t} VERSION AS OF 1 SET v = 'b'", "."),
            Refused("INSERT INTO {t}.snapshots VALUES (1)", "."),
            Refused("DELETE FROM {t}.instants", "."),
        ],
    ),
    Case(
        name="versions-without-key",
        trap="Iceberg TestSelect: testVersionAsOf, of a table that plain SQL reads by its directories",
        columns="id INT, v STRING",
        on=("plain",),
        rows="(1, 'a')",
        steps=[
            Refused("SELECT * FROM {t} VERSION AS OF 1", "no primary-key"),
            Refused("SELECT * FROM {t} TIMESTAMP AS OF '2020-01-01'", "no primary-key"),
        ],
    ),
    Case(
        name="cached-tables-and-changes",
        trap="Delta UpdateSuiteBase: update cached table; Iceberg: testUpdateRefreshesRelationCache, testDelete…, "
        "testMerge…",
        columns="id INT, v STRING",
        on=ALL,
        rows="(1, 'a'), (2, 'b')",
        steps=[
            Do("CACHE TABLE {t}"),
            Gives("SELECT count(*) FROM {t}", [[2]]),
            Do("INSERT INTO {t} VALUES (3, 'c')"),
            Gives("SELECT count(*) FROM {t}", [[3]]),
            Do("INSERT OVERWRITE {t} SELECT * FROM {t} WHERE id > 1"),
            Gives("SELECT * FROM {t}", [[2, "b"], [3, "c"]]),
            Do("TRUNCATE TABLE {t}"),
            Gives("SELECT * FROM {t}", []),
            Do("INSERT INTO {t} VALUES (4, 'd')"),
            Gives("SELECT * FROM {t}", [[4, "d"]]),
            Do("UNCACHE TABLE IF EXISTS {t}"),
            Holds([[4, "d"]]),
        ],
    ),
    Case(
        name="cached-queries-and-changes",
        trap="Iceberg TestMerge: testMergeRefreshesRelationCache, testSelfMergeWithCaching; Delta "
        "DeltaCacheTableRefreshTests",
        columns="id INT, v STRING",
        rows="(1, 'a'), (2, 'b')",
        steps=[
            Do("CACHE TABLE {v} AS SELECT id, upper(v) AS v FROM {t} WHERE id = 1"),
            Gives("SELECT * FROM {v}", [[1, "A"]]),
            Do("CACHE TABLE {t}"),
            Do("UPDATE {t} SET v = 'x' WHERE id = 1"),
            Gives("SELECT * FROM {t}", [[1, "x"], [2, "b"]]),
            Do("MERGE INTO {t} t USING {t} s ON t.id = s.id AND s.v = 'x' WHEN MATCHED THEN DELETE"),
            Gives("SELECT * FROM {t}", [[2, "b"]]),
            Do("DELETE FROM {t} WHERE id = 2"),
            Gives("SELECT * FROM {t}", []),
            Do("UNCACHE TABLE IF EXISTS {t}"),
            Do("INSERT INTO {t} VALUES (1, 'n')"),
            Holds([[1, "n"]]),
        ],
    ),
    Case(
        name="dataframes-and-changes",
        trap="Delta DeltaDatasetPinningTests; Iceberg TestRepeatedTableAccess, TestTempViewRefresh",
        columns="id INT, v STRING",
        rows="(1, 'a')",
        steps=[
            Python(
                "before = spark.table(table)\n"
                "joined = before.alias('x').join(spark.table(table).alias('y'), 'id')\n"
                "spark.sql(f\"INSERT INTO {table} VALUES (2, 'b')\")\n"
                "assert [row.id for row in before.collect()] == [1]\n"
                "assert joined.count() == 1\n"
                "assert spark.table(table).count() == 2\n"
                "assert before.union(spark.table(table)).count() == 3\n"
                "assert spark.table(table).join(before, 'id').count() == 1\n"
            ),
        ],
    ),
    Case(
        name="views-and-changes",
        caught="a subquery on the table that is filled was refused",
        trap="Iceberg PartitionedWritesTestBase: testViewsReturnRecentResults; Spark: columns of views when tables "
        "change",
        columns="id INT, v STRING",
        on=ALL,
        rows="(1, 'a')",
        steps=[
            Do("CREATE VIEW {t}_all AS SELECT * FROM {t}"),
            Do("CREATE TEMPORARY VIEW {v} AS SELECT count(*) AS n FROM {t}_all"),
            Do("INSERT INTO {t} VALUES (2, 'b')"),
            Gives("SELECT * FROM {v}", [[2]]),
            Do("ALTER TABLE {t} ADD COLUMNS (w INT)"),
            Do("INSERT INTO {t} VALUES (3, 'c', 3)"),
            Gives("SELECT * FROM {t}_all", [[1, "a"], [2, "b"], [3, "c"]]),
            Do("INSERT INTO {t} SELECT id + 10, v, 0 FROM {t}_all WHERE id NOT IN (SELECT id FROM {t} WHERE v = 'a')"),
            Gives("SELECT * FROM {v}", [[5]]),
        ],
    ),
    Case(
        name="explain-does-nothing",
        trap="Iceberg TestUpdate, TestDelete: testExplain; Delta: EXPLAIN of commands",
        columns="id INT, v STRING",
        on=ALL,
        rows="(1, 'a')",
        steps=[
            *(
                Do(f"EXPLAIN {mode} {statement}")
                for mode in ("", "EXTENDED", "COST")
                for statement in (
                    "INSERT INTO {t} VALUES (2, 'b')",
                    "INSERT OVERWRITE {t} SELECT * FROM {t} WHERE false",
                )
            ),
            Holds([[1, "a"]]),
            Do("INSERT INTO {t} VALUES (3, 'c')"),
            Holds([[1, "a"], [3, "c"]]),
        ],
    ),
    Case(
        name="explain-of-changes-does-nothing",
        trap="Iceberg TestMerge, TestUpdate, TestDelete: testExplain",
        columns="id INT, v STRING",
        rows="(1, 'a')",
        steps=[
            Do("EXPLAIN EXTENDED DELETE FROM {t}"),
            Do("EXPLAIN UPDATE {t} SET v = 'x'"),
            Do("EXPLAIN FORMATTED MERGE INTO {t} t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE"),
            Do("EXPLAIN TRUNCATE TABLE {t}"),
            Gives("SELECT count(*) FROM {t}.instants", [[1]]),
            Holds([[1, "a"]]),
        ],
    ),
    Case(
        name="changes-between-versions",
        trap="Delta DeltaCDCSQLSuite: use cdc query as a subquery, is not case sensitive; Paimon PaimonCDCSourceTest",
        columns="id INT, v STRING, p STRING",
        partitions="p",
        rows="(1, 'a', 'x'), (2, 'b', 'x'), (3, 'c', 'y')",
        steps=[
            Do("UPDATE {t} SET v = v WHERE id = 1"),
            Do("UPDATE {t} SET v = 'B' WHERE id = 2"),
            Do("UPDATE {t} SET p = 'z' WHERE id = 3"),
            Do("DELETE FROM {t} WHERE id = 1"),
            Do("INSERT INTO {t} VALUES (1, 'a', 'x'), (4, 'd', 'x')"),
            Do("DELETE FROM {t} WHERE id = 4"),
            Gives(
                "SELECT id, v, p, _change_type FROM LAKE_CHANGES('{t}', 1)",
                [
                    [2, "b", "x", "update_preimage"],
                    [2, "B", "x", "update_postimage"],
                    [3, "c", "y", "delete"],
                    [3, "c", "z", "insert"],
                ],
            ),
            Gives(
                "SELECT id, _change_type FROM lake_changes('{t}', 0, 1)", [[1, "insert"], [2, "insert"], [3, "insert"]]
            ),
            Gives("SELECT * FROM lake_changes('{t}', 3, 3)", []),
            Gives(
                "SELECT count(*) FROM {t} WHERE id IN (SELECT id FROM lake_changes('{t}', 1) WHERE _change_type "
                "LIKE 'update%')",
                [[1]],
            ),
            Refused("SELECT * FROM lake_changes('{t}', NULL)", "."),
            Refused("SELECT * FROM lake_changes('{t}', 5, 2)", "."),
            Refused("SELECT * FROM lake_changes('{t}', 99)", "."),
            Refused("SELECT * FROM lake_changes('{t}', -1)", "."),
            Refused("SELECT * FROM lake_changes('{t}')", "."),
            Refused("SELECT * FROM lake_changes('{db}.nothing', 0)", "nothing"),
        ],
    ),
    Case(
        name="keyed-and-other-tables-together",
        caught="a subquery on the table that is overwritten was refused",
        trap="Delta DeltaSuite: joins of tables of several kinds; Paimon: two paimon tables",
        columns="id INT, v STRING",
        rows="(1, 'a'), (2, 'b'), (3, 'c')",
        steps=[
            Do("CREATE TABLE {t}_plain (id INT, n INT) USING parquet TBLPROPERTIES ('timeline.archived-days' = '9')"),
            Do("INSERT INTO {t}_plain SELECT id, id * 10 FROM {t} WHERE id > 1"),
            Do("DELETE FROM {t} WHERE id IN (SELECT id FROM {t}_plain WHERE n = 20)"),
            Gives("SELECT t.id, n FROM {t} t FULL JOIN {t}_plain p ON t.id = p.id", [[1, None], [None, 20], [3, 30]]),
            Do("INSERT OVERWRITE {t}_plain SELECT id, 0 FROM {t} WHERE id NOT IN (SELECT id FROM {t}_plain)"),
            Gives("SELECT * FROM {t}_plain", [[1, 0]]),
        ],
    ),
]
