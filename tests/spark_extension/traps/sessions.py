"""Settings of a session that change what statements mean: none of them may change what a table holds."""

from tests.spark_extension.traps.cases import ALL, Case, Do, Gives, Holds, Python, Refused

CHANGES = [
    Do("INSERT INTO {t} SELECT id, v, n FROM {t}_s"),
    Do("UPDATE {t} SET n = n + 1 WHERE id IN (SELECT id FROM {t}_s) AND v > ''"),
    Do("DELETE FROM {t} WHERE id % 10 = 3"),
    Do(
        "MERGE INTO {t} t USING (SELECT id + 5 AS id, v, n FROM {t}_s) s ON t.id = s.id "
        "WHEN MATCHED AND s.n % 2 = 0 THEN UPDATE SET v = s.v WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *"
    ),
]


def _expected() -> list[list[object]]:
    """What CHANGES make of the rows, by a plain model."""
    source = {i: (f"v{i}", i) for i in range(40)}
    table = {i: (v, n + 1) for i, (v, n) in source.items() if i % 10 != 3}
    for i, (v, n) in ((i + 5, row) for i, row in source.items()):
        if i not in table:
            table[i] = (v, n)
        elif n % 2 == 0:
            table[i] = (v, table[i][1])
        else:
            del table[i]
    texts = [v for v, _ in table.values()]
    return [[len(table), sum(table), sum(n for _, n in table.values()), len(set(texts)), max(texts)]]


def _under(name: str, trap: str, **settings: str) -> Case:
    """The same statements under some settings."""
    return Case(
        name=name,
        trap=trap,
        columns="id INT, v STRING, n INT",
        properties={"bucket": "3"},
        settings={f"spark.sql.{key.replace('_', '.')}": value for key, value in settings.items()},
        steps=[
            Do("CREATE TABLE {t}_s (id INT, v STRING, n INT) USING parquet"),
            Do("INSERT INTO {t}_s SELECT id, concat('v', id), id FROM range(40)"),
            *CHANGES,
            Gives("SELECT count(*), sum(id), sum(n), count(DISTINCT v), max(v) FROM {t}", _expected()),
        ],
    )


CASES = [
    _under(
        "plans-that-adapt",
        "Iceberg TestMerge, TestUpdate, TestDelete: testCoalesceMerge, testSkewUpdate",
        adaptive_enabled="true",
        adaptive_advisoryPartitionSizeInBytes="64",
        shuffle_partitions="9",
    ),
    _under(
        "plans-that-sort-and-merge",
        "Iceberg SparkRowLevelOperationsTestBase: joins without broadcasts, fanout of writers",
        adaptive_enabled="false",
        autoBroadcastJoinThreshold="-1",
        shuffle_partitions="1",
    ),
    _under(
        "plans-that-are-compiled",
        "Paimon MergeRowsCodegenTest; Iceberg testMergeWithVectorizedReads",
        codegen_wholeStage="true",
        parquet_enableVectorizedReader="false",
    ),
    _under(
        "plans-that-are-interpreted",
        "Paimon MergeRowsCodegenTest",
        codegen_wholeStage="false",
        codegen_factoryMode="NO_CODEGEN",
        parquet_filterPushdown="false",
    ),
    _under(
        "files-of-other-forms",
        "Delta: Parquet's settings of a session; Paimon: file formats",
        parquet_writeLegacyFormat="true",
        parquet_compression_codec="gzip",
        parquet_fieldId_read_enabled="true",
        parquet_mergeSchema="true",
        sources_useV1SourceList="",
    ),
    Case(
        name="names-in-the-case-that-they-have",
        caught="UPDATE, DELETE and MERGE didn't find the columns of the key",
        trap="Delta MergeIntoSuiteBase, Paimon InsertOverwriteTableTestBase under spark.sql.caseSensitive=true",
        columns="Id INT, First STRING, p STRING",
        key="ID,p",
        partitions="p",
        settings={"spark.sql.caseSensitive": "true"},
        rows="(1, 'a', 'x'), (2, 'b', 'y')",
        steps=[
            Do("UPDATE {t} SET First = 'A' WHERE Id = 1"),
            Refused("UPDATE {t} SET first = 'A'", "first"),
            Refused("SELECT FIRST FROM {t}", "FIRST"),
            Do(
                "MERGE INTO {t} t USING (SELECT 2 AS Id, 'B' AS First, 'y' AS p UNION ALL SELECT 3, 'c', 'y') s "
                "ON t.Id = s.Id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
            ),
            Do("INSERT INTO {t} (p, First, Id) VALUES ('z', 'd', 4)"),
            Do("INSERT OVERWRITE {t} PARTITION (p = 'z') SELECT 5, 'e'"),
            Do("DELETE FROM {t} WHERE First = 'A'"),
            Holds([[2, "B", "y"], [3, "c", "y"], [5, "e", "z"]]),
            Gives("SELECT First FROM {t} WHERE Id = 3 AND p = 'y'", [["c"]]),
            Gives("SELECT First FROM {t} VERSION AS OF 1 WHERE First IN ('a')", [["a"]]),
        ],
    ),
    Case(
        name="values-that-do-not-fit-without-ansi",
        trap="Delta ImplicitDMLCastingSuite: storeAssignmentPolicy and ANSI; Iceberg: "
        "testUpdateWithInvalidAssignmentsAnsi",
        columns="id INT, n INT, v VARCHAR(2)",
        on=ALL,
        settings={"spark.sql.ansi.enabled": "false"},
        rows="(1, 1, 'a')",
        steps=[
            Refused("INSERT INTO {t} VALUES (2, 3000000000, 'a')", "overflow"),
            Refused("INSERT INTO {t} SELECT 2, 1e20D, 'a'", "overflow"),
            Refused("INSERT INTO {t} VALUES (2, 'x', 'a')", "cannot safely cast|CANNOT_SAFELY_CAST"),
            Refused("INSERT INTO {t} VALUES (2, 2, 'abc')", "length|longer"),
            Do("INSERT INTO {t} VALUES (2, CAST('x' AS INT), 'b')"),
            Holds([[1, 1, "a"], [2, None, "b"]]),
        ],
    ),
    Case(
        name="changes-that-do-not-fit-without-ansi",
        trap="Iceberg TestUpdate: testUpdateWithInvalidAssignmentsAnsi; Delta UpdateSuiteBase: invalid implicit "
        "cast string…",
        columns="id INT, n INT, v VARCHAR(2)",
        settings={"spark.sql.ansi.enabled": "false"},
        rows="(1, 1, 'a')",
        steps=[
            Refused("UPDATE {t} SET n = 3000000000", "overflow"),
            Refused("UPDATE {t} SET n = 'x'", "cannot safely cast|CANNOT_SAFELY_CAST"),
            Refused("UPDATE {t} SET id = 3000000000", "overflow"),
            Refused("UPDATE {t} SET v = 'abc'", "length|longer"),
            Holds([[1, 1, "a"]]),
        ],
    ),
    Case(
        name="values-by-the-old-rules",
        trap="Delta ImplicitDMLCastingSuite: LEGACY store assignment; Iceberg: legacy policy",
        why="the old rules make nulls and other numbers of what doesn't fit: refused, or ANSI's",
        columns="id INT, n INT",
        on=ALL,
        settings={"spark.sql.storeAssignmentPolicy": "LEGACY"},
        rows="",
        steps=[
            Refused("INSERT INTO {t} VALUES (1, 'x')", "."),
            Refused("INSERT INTO {t} VALUES (1, 3000000000)", "."),
        ],
    ),
    Case(
        name="values-by-strict-rules",
        trap="Iceberg TestMerge: testMergeWithInvalidAssignmentsStrict; Delta: safe upcast under strict store "
        "assignment policy",
        columns="id INT, n BIGINT",
        settings={"spark.sql.storeAssignmentPolicy": "STRICT"},
        rows="(1, 1)",
        steps=[
            Do("INSERT INTO {t} SELECT 2, 2"),
            Refused("INSERT INTO {t} SELECT 3L, 3", "cannot safely cast|CANNOT_SAFELY_CAST"),
            Refused("UPDATE {t} SET n = 1.5", "cannot safely cast|CANNOT_SAFELY_CAST"),
            Refused(
                "MERGE INTO {t} t USING (SELECT 1 AS id, NULL AS n) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET "
                "id = 5L",
                "cannot safely cast|CANNOT_SAFELY_CAST",
            ),
            Holds([[1, 1], [2, 2]]),
        ],
    ),
    Case(
        name="texts-of-limited-length-without-checks",
        trap="Delta, Paimon: spark.sql.legacy.charVarcharAsString and spark.sql.charAsVarchar",
        columns="id INT, c CHAR(3), w VARCHAR(2)",
        settings={"spark.sql.legacy.charVarcharAsString": "false", "spark.sql.charAsVarchar": "true"},
        rows="(1, 'a', 'b')",
        steps=[
            Refused("INSERT INTO {t} VALUES (2, 'abcd', 'b')", "length|longer"),
            Refused("UPDATE {t} SET w = 'abc'", "length|longer"),
            Gives("SELECT id FROM {t} WHERE trim(c) = 'a'", [[1]]),
        ],
    ),
    Case(
        name="times-in-files-of-other-units",
        trap="Delta: spark.sql.parquet.outputTimestampType; Paimon: timestamp precisions; DataFrame-based … "
        "timestamp precisions",
        why="INT96 and milliseconds are Spark's settings for its own files. A key in milliseconds wouldn't be found "
        "again",
        columns="k TIMESTAMP, n TIMESTAMP, v INT",
        key="k",
        settings={"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MILLIS"},
        rows="(timestamp'2026-01-01 00:00:00.123456Z', timestamp'2026-01-01 00:00:00.123456Z', 1)",
        steps=[
            Do("INSERT INTO {t} VALUES (timestamp'2026-01-01 00:00:00.123457Z', NULL, 2)"),
            Do("UPDATE {t} SET v = 10 WHERE k = timestamp'2026-01-01 00:00:00.123456Z'"),
            Gives(
                "SELECT unix_micros(k) % 1000000, v, date_format(n, 'SSSSSS') FROM {t}",
                [[123456, 10, "123456"], [123457, 2, None]],
            ),
        ],
    ),
    Case(
        name="times-in-files-of-hive",
        trap="Delta: spark.sql.parquet.outputTimestampType=INT96; rebasing of old dates",
        columns="k TIMESTAMP, d DATE, v INT",
        key="k",
        settings={
            "spark.sql.parquet.outputTimestampType": "INT96",
            "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
            "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
        },
        rows="(timestamp'1500-01-01 00:00:00.000001Z', date'1500-01-01', 1)",
        steps=[
            Do("UPDATE {t} SET v = 2 WHERE k < timestamp'1582-01-01 00:00:00Z'"),
            Do("INSERT INTO {t} VALUES (timestamp'1500-01-01 00:00:00.000001Z', date'1500-01-02', 3)"),
            Gives("SELECT unix_micros(k), string(d), v FROM {t}", [[-14831769599999999, "1500-01-02", 3]]),
        ],
    ),
    Case(
        name="statements-of-one-session-see-each-other",
        caught="a session didn't see what another one wrote into a table without partitions",
        trap="Delta DeltaSuite, Iceberg PartitionedWritesTestBase: reads after writes of one session",
        columns="id INT, v STRING",
        on=ALL,
        rows="(0, 'start')",
        steps=[
            *(Do(f"INSERT INTO {{t}} SELECT max(id) + 1, 'n{number}' FROM {{t}}") for number in range(4)),
            Gives("SELECT count(*), max(id) FROM {t}", [[5, 4]]),
            Python(
                "other = spark.newSession()\n"
                "other.sql(f\"INSERT INTO {table} SELECT max(id) + 1, 'other' FROM {table}\")\n"
                "assert other.table(table).count() == 6\n"
                "assert spark.table(table).count() == 6\n"
            ),
            Do("INSERT OVERWRITE {t} SELECT max(id), 'last' FROM {t}"),
            Holds([[5, "last"]]),
        ],
    ),
]
