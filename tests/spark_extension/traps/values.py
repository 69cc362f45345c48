"""Values at the edges of their types, as keys and in conditions."""

from tests.spark_extension.traps.cases import ALL, Case, Do, Gives, Refused

CASES = [
    Case(
        name="values-nan-and-minus-zero",
        trap="Iceberg TestFilterPushDown: testFilterPushdownWithSpecialFloatingPointPartitionValues; Delta data "
        "skipping of NaN",
        columns="id INT, d DOUBLE, f FLOAT",
        on=ALL,
        rows="(1, CAST('NaN' AS DOUBLE), CAST('NaN' AS FLOAT)), (2, -0.0D, CAST(-0.0D AS FLOAT)), (3, 0.0D, 0), "
        "(4, CAST('-Infinity' AS DOUBLE), 1), (5, CAST('Infinity' AS DOUBLE), NULL)",
        steps=[
            Gives("SELECT id FROM {t} WHERE d = 0", [[2], [3]]),
            Gives("SELECT id FROM {t} WHERE d = -0.0D AND f = 0", [[2], [3]]),
            Gives("SELECT id FROM {t} WHERE d > 0", [[1], [5]]),
            Gives("SELECT id FROM {t} WHERE d >= CAST('Infinity' AS DOUBLE)", [[1], [5]]),
            Gives("SELECT id FROM {t} WHERE d = CAST('NaN' AS DOUBLE)", [[1]]),
            Gives("SELECT id FROM {t} WHERE NOT (d < 0)", [[1], [2], [3], [5]]),
            Gives("SELECT id FROM {t} WHERE d IN (0, 5) OR f > 100", [[1], [2], [3]]),
            Gives("SELECT count(*), count(DISTINCT d) FROM {t}", [[5, 4]]),
        ],
    ),
    Case(
        name="values-nan-and-minus-zero-changed",
        trap="Delta UpdateSuiteBase with NaN; Paimon: changes that only look like none",
        columns="id INT, d DOUBLE",
        rows="(1, CAST('NaN' AS DOUBLE)), (2, -0.0D), (3, 0.0D)",
        steps=[
            Do("UPDATE {t} SET d = d + 1 WHERE d = CAST('NaN' AS DOUBLE)"),
            Do(
                "MERGE INTO {t} t USING (SELECT 0.0D AS d) s ON t.d = s.d AND t.id = 2 WHEN MATCHED THEN UPDATE SET "
                "d = 5"
            ),
            Do("DELETE FROM {t} WHERE d = -0.0D"),
            Gives("SELECT id, string(d) FROM {t}", [[1, "NaN"], [2, "5.0"]]),
        ],
    ),
    Case(
        name="keys-of-odd-texts",
        trap="Delta DeltaSuite: empty string and special characters; Paimon: keys are compared by their bytes",
        columns="k STRING, v INT",
        key="k",
        properties={"bucket": "5"},
        steps=[
            Do(
                "INSERT INTO {t} VALUES ('', 1), (' ', 2), ('a', 3), ('A', 4), ('a ', 5), (concat('a', char(0)), "
                "6), (char(0), 7), "
                "('\u00e9', 8), ('e\u0301', 9), ('\U0001f600', 10), ('\uffff', 11), ('null', 12), ('\\\\', 13), "
                "('%', 14), (\"'\", 15), "
                "('\\n', 16), (repeat('long', 30000), 17)"
            ),
            Gives("SELECT count(*), count(DISTINCT k) FROM {t}", [[17, 17]]),
            Do("UPDATE {t} SET v = v + 100"),
            Gives("SELECT v FROM {t} WHERE k = ''", [[101]]),
            Gives("SELECT v FROM {t} WHERE k = 'a'", [[103]]),
            Gives("SELECT v FROM {t} WHERE k = concat('a', char(0))", [[106]]),
            Gives("SELECT v FROM {t} WHERE k IN ('\u00e9', '\U0001f600', char(0))", [[107], [108], [110]]),
            Gives("SELECT v FROM {t} WHERE k = repeat('long', 30000)", [[117]]),
            Gives("SELECT v FROM {t} WHERE k > '\U0001f5ff'", [[110]]),
            Gives("SELECT v FROM {t} WHERE k LIKE 'a%'", [[103], [105], [106]]),
            Do("DELETE FROM {t} WHERE k IN ('', 'A', '\\\\') OR length(k) > 1000"),
            Do("INSERT INTO {t} VALUES ('', NULL), ('a ', 0)"),
            Gives("SELECT count(*), count(v), sum(IF(k = 'a ', v, 0)) FROM {t}", [[14, 13, 0]]),
        ],
    ),
    Case(
        name="keys-of-several-columns-that-look-alike",
        trap="Paimon KeyPropertyCaseResolutionTest, bucket keys of several columns; composite keys joined by a "
        "separator",
        columns="a STRING, b STRING, v INT",
        key="a,b",
        properties={"bucket": "3"},
        rows="('x', 'yz', 1), ('xy', 'z', 2), (concat('x', char(31)), 'y', 3), ('x', concat(char(31), 'y'), 4), "
        "('', 'x', 5), ('x', '', 6)",
        steps=[
            Gives("SELECT count(*) FROM {t}", [[6]]),
            Gives("SELECT v FROM {t} WHERE a = 'x' AND b = concat(char(31), 'y')", [[4]]),
            Do(
                "MERGE INTO {t} t USING (SELECT * FROM VALUES ('x', 'yz'), ('', 'x') AS s(a, b)) s ON t.a = s.a AND "
                "t.b = s.b "
                "WHEN MATCHED THEN DELETE"
            ),
            Gives("SELECT v FROM {t}", [[2], [3], [4], [6]]),
            Gives("SELECT v FROM {t} WHERE a IN ('x', 'xy') AND b IN ('', 'z')", [[2], [6]]),
        ],
    ),
    Case(
        name="keys-of-bytes",
        trap="Iceberg TestSelect: testBinaryInFilter, testFixedInFilter",
        columns="k BINARY, v INT",
        key="k",
        rows="(X'', 1), (X'00', 2), (X'0000', 3), (X'7F', 4), (X'80', 5), (X'FF', 6), (X'FF00', 7)",
        steps=[
            Gives("SELECT v FROM {t} WHERE k = X''", [[1]]),
            Gives("SELECT v FROM {t} WHERE k = X'00'", [[2]]),
            Gives("SELECT v FROM {t} WHERE k > X'7F'", [[5], [6], [7]]),
            Gives("SELECT v FROM {t} WHERE k IN (X'0000', X'FF')", [[3], [6]]),
            Do("INSERT INTO {t} VALUES (X'FF', 60), (X'', 10)"),
            Do("DELETE FROM {t} WHERE k < X'7F' AND k > X''"),
            Gives("SELECT hex(k), v FROM {t}", [["", 10], ["7F", 4], ["80", 5], ["FF", 60], ["FF00", 7]]),
        ],
    ),
    Case(
        name="keys-of-other-types",
        trap="Paimon SparkWriteITCase: write table with timestamp3 bucket key; Paimon Write: AllTypes",
        columns="b BOOLEAN, y TINYINT, s SMALLINT, l BIGINT, d DATE, t TIMESTAMP, v INT",
        key="b,y,s,l,d,t",
        rows="(true, -128, -32768, -9223372036854775808, date'0001-01-01', timestamp'0001-01-01 00:00:00Z', 1), "
        "(false, 127, 32767, 9223372036854775807, date'9999-12-31', timestamp'9999-12-31 23:59:59.999999Z', 2), "
        "(false, 0, 0, 0, date'1969-12-31', timestamp'1969-12-31 23:59:59.999999Z', 3)",
        steps=[
            Gives("SELECT v FROM {t} WHERE b AND y = -128 AND s < 0 AND l < 0 AND d = '0001-01-01'", [[1]]),
            Gives(
                "SELECT v FROM {t} WHERE t = timestamp'1969-12-31 23:59:59.999999Z' AND d < date'1970-01-01' AND NOT b",
                [[3]],
            ),
            Gives(
                "SELECT v FROM {t} WHERE b = false AND y = 127 AND s = 32767 AND l = 9223372036854775807 AND d = "
                "date'9999-12-31' AND "
                "t = timestamp'9999-12-31 23:59:59.999999Z'",
                [[2]],
            ),
            Do("UPDATE {t} SET v = v * 10 WHERE d < date'1970-01-01'"),
            Do("UPDATE {t} SET t = t + INTERVAL 1 MICROSECOND, y = y + 1 WHERE v = 30"),
            Gives("SELECT v, y, unix_micros(t) FROM {t} WHERE v = 30", [[30, 1, 0]]),
            Gives("SELECT count(*) FROM {t}", [[3]]),
        ],
    ),
    Case(
        name="keys-of-times-when-clocks-change",
        trap="Delta DeltaInsertIntoTableSuite: timestamp values across time zones; Iceberg TestTimestampWithoutZone",
        columns="k TIMESTAMP, v INT",
        key="k",
        settings={"spark.sql.session.timeZone": "Europe/Berlin"},
        rows="(timestamp'2026-10-25 00:30:00Z', 1), (timestamp'2026-10-25 01:30:00Z', 2), (timestamp'2026-03-29 "
        "02:30:00', 3)",
        steps=[
            Gives(
                "SELECT string(k), v FROM {t}",
                [["2026-10-25 02:30:00", 1], ["2026-10-25 02:30:00", 2], ["2026-03-29 03:30:00", 3]],
            ),
            Gives("SELECT v FROM {t} WHERE k = timestamp'2026-10-25 01:30:00Z'", [[2]]),
            Do(
                "INSERT INTO {t} VALUES (timestamp'2026-10-25 02:30:00+01:00', 20), (timestamp'2026-03-29 "
                "03:30:00', 30)"
            ),
            Do("DELETE FROM {t} WHERE k = timestamp'2026-10-25 02:30:00+02:00'"),
            Gives("SELECT unix_seconds(k), v FROM {t}", [[1792891800, 20], [1774747800, 30]]),
        ],
    ),
    Case(
        name="values-of-38-digits",
        trap="Iceberg TestFilterPushDown: testFilterPushdownWithDecimalValues; Delta: decimals in stats",
        columns="id INT, d DECIMAL(38, 0), e DECIMAL(38, 38), f DECIMAL(10, 2)",
        on=ALL,
        steps=[
            Do(
                "INSERT INTO {t} SELECT 1, 99999999999999999999999999999999999999BD, "
                "0.99999999999999999999999999999999999999BD, 1.10"
            ),
            Do(
                "INSERT INTO {t} SELECT 2, -99999999999999999999999999999999999999BD, "
                "-0.00000000000000000000000000000000000001BD, 1.1"
            ),
            Do("INSERT INTO {t} SELECT 3, 0, CAST(0 AS DECIMAL(38, 38)), NULL"),
            Gives(
                "SELECT id, string(d), format_number(e, 38), string(f) FROM {t}",
                [
                    [1, "99999999999999999999999999999999999999", "0.99999999999999999999999999999999999999", "1.10"],
                    [2, "-99999999999999999999999999999999999999", "-0.00000000000000000000000000000000000001", "1.10"],
                    [3, "0", "0.00000000000000000000000000000000000000", None],
                ],
            ),
            Gives("SELECT id FROM {t} WHERE d = 99999999999999999999999999999999999999BD", [[1]]),
            Gives("SELECT id FROM {t} WHERE e < CAST(0 AS DECIMAL(38, 38))", [[2]]),
            Gives("SELECT id FROM {t} WHERE f = 1.1", [[1], [2]]),
            Gives("SELECT id FROM {t} WHERE f IN (1.1, 2) AND d > 0", [[1]]),
        ],
    ),
    Case(
        name="values-of-fixed-length-in-conditions",
        caught="c = 'a' held for no value of a CHAR(5): no row was found, updated or deleted",
        trap="Paimon UpdateTableTestBase: update table with char type; Spark's char comparisons fill up with spaces",
        columns="id INT, c CHAR(5), w VARCHAR(5)",
        rows="(1, 'a', 'a'), (2, 'ab', 'a  '), (3, NULL, NULL)",
        steps=[
            Gives("SELECT id FROM {t} WHERE c = 'a'", [[1]]),
            Gives("SELECT id FROM {t} WHERE c = 'a    '", [[1]]),
            Gives("SELECT id FROM {t} WHERE c IN ('ab', 'x')", [[2]]),
            Gives("SELECT id FROM {t} WHERE 'ab' = c", [[2]]),
            Gives("SELECT id FROM {t} WHERE c <> 'a'", [[2]]),
            Gives("SELECT id FROM {t} WHERE w = 'a'", [[1]]),
            Do("UPDATE {t} SET w = 'found' WHERE c = 'a'"),
            Do("DELETE FROM {t} WHERE c = 'ab'"),
            Gives("SELECT id, length(c), w FROM {t}", [[1, 5, "found"], [3, None, None]]),
            Do("MERGE INTO {t} t USING {t} s ON t.c = s.c AND s.c = 'a' WHEN MATCHED THEN UPDATE SET w = 'again'"),
            Gives("SELECT w FROM {t} WHERE id = 1", [["again"]]),
        ],
    ),
    Case(
        name="values-of-fixed-length-in-joins",
        caught="CHAR columns of different lengths were never equal",
        trap="Spark's char comparisons of columns with columns; Paimon DDLTestBase: write with char",
        columns="id INT, c CHAR(5)",
        rows="(1, 'a'), (2, 'b')",
        steps=[
            Do("CREATE TABLE {t}_s (c CHAR(3), n INT) USING parquet"),
            Do("INSERT INTO {t}_s VALUES ('a', 10)"),
            Gives("SELECT t.id, s.n FROM {t} t JOIN {t}_s s ON t.c = s.c", [[1, 10]]),
            Do("CREATE VIEW {t}_view AS SELECT id, c AS d FROM {t}"),
            Gives("SELECT id FROM {t}_view WHERE d = 'a'", [[1]]),
            Gives(
                "WITH q AS (SELECT c AS e, id FROM {t}) SELECT x.id FROM q x JOIN q y ON x.e = y.e AND y.e = 'b'", [[2]]
            ),
            Gives(
                "SELECT id FROM (SELECT id, c FROM {t} UNION ALL SELECT id + 10, c FROM {t}) WHERE 'b' = c", [[2], [12]]
            ),
            Gives("SELECT id FROM {t} t WHERE EXISTS (SELECT 1 FROM {t}_s s WHERE s.c = t.c AND t.c <> 'x')", [[1]]),
            Gives("SELECT id, _change_type FROM lake_changes('{t}', 0) WHERE c = 'b'", [[2, "insert"]]),
            Gives("SELECT id FROM {t} WHERE c IN (SELECT CAST(c AS CHAR(5)) FROM {t} WHERE c = 'b')", [[2]]),
        ],
    ),
    Case(
        name="keys-with-a-collation",
        trap="Delta: collated columns aren't skipped by statistics; Spark 4's collations",
        why="a key is its bytes, so that all readers agree; conditions go by the collation",
        columns="k STRING COLLATE UTF8_LCASE, v INT",
        key="k",
        lines=("4",),
        properties={"bucket": "4"},
        rows="('a', 1), ('A', 2), ('b', 3), ('C', 4)",
        steps=[
            Gives("SELECT v FROM {t} WHERE k = 'A'", [[1], [2]]),
            Gives("SELECT v FROM {t} WHERE k IN ('B', 'c')", [[3], [4]]),
            Do("UPDATE {t} SET v = v + 10 WHERE k = 'B'"),
            Gives("SELECT v FROM {t} WHERE k >= 'B'", [[13], [4]]),
            Do("DELETE FROM {t} WHERE k = 'a'"),
            Gives("SELECT v FROM {t}", [[13], [4]]),
        ],
    ),
    Case(
        name="values-of-nested-types",
        trap="Paimon InsertOverwriteTableTestBase: all data types, read and write struct with null; Delta: insert "
        "map type",
        columns="id INT, s STRUCT<a: INT, b: STRUCT<c: STRING>>, l ARRAY<ARRAY<INT>>, m MAP<INT, ARRAY<STRING>>",
        on=ALL,
        rows="(1, named_struct('a', NULL, 'b', named_struct('c', NULL)), array(array(1, NULL), NULL, array()), "
        "map(1, array('x', NULL), 2, NULL)), "
        "(2, named_struct('a', 1, 'b', NULL), array(), map()), (3, NULL, NULL, NULL)",
        steps=[
            Gives(
                "SELECT id, s IS NULL, s.a, s.b IS NULL, s.b.c, l, m[1], map_keys(m) FROM {t}",
                [
                    [1, False, None, False, None, [[1, None], None, []], ["x", None], [1, 2]],
                    [2, False, 1, True, None, [], None, []],
                    [3, True, None, True, None, None, None, None],
                ],
            ),
            Gives("SELECT id FROM {t} WHERE s.b.c IS NULL AND s.b IS NOT NULL", [[1]]),
            Gives("SELECT id FROM {t} WHERE size(l) = 0 AND s.a = 1", [[2]]),
        ],
    ),
    Case(
        name="values-of-open-types",
        trap="Delta MergeIntoSuiteBase, UpdateSuiteBase, DeltaInsertIntoTableSuite: Variant type",
        why="what not all readers know is refused, when the table is made",
        columns="",
        on=("copy-on-write",),
        lines=("4",),
        steps=[
            Refused(
                "CREATE TABLE {t} (id INT, v VARIANT) USING parquet TBLPROPERTIES ('primary-key' = 'id')",
                "Spark keeps the columns for itself",
            ),
        ],
    ),
    Case(
        name="versions-in-order",
        trap="Paimon BatchFileStoreITCase, sequence.field tests: an older version that comes later has no effect",
        columns="id INT, v STRING, at TIMESTAMP",
        properties={"sequence.field": "at"},
        rows="(1, 'b', timestamp'2026-01-02 00:00:00')",
        steps=[
            Do(
                "INSERT INTO {t} VALUES (1, 'a', timestamp'2026-01-01 00:00:00'), (2, 'x', timestamp'2026-01-01 "
                "00:00:00')"
            ),
            Gives("SELECT id, v FROM {t}", [[1, "b"], [2, "x"]]),
            Do(
                "INSERT INTO {t} VALUES (2, 'z', timestamp'2026-01-05 00:00:00'), (2, 'y', timestamp'2026-01-04 "
                "00:00:00')"
            ),
            Gives("SELECT id, v FROM {t}", [[1, "b"], [2, "z"]]),
            Refused("INSERT INTO {t} VALUES (3, 'n', NULL)", "null"),
            Refused("UPDATE {t} SET at = timestamp'2020-01-01 00:00:00' WHERE id = 1", "would have no effect"),
            Do("DELETE FROM {t} WHERE id = 1"),
            Do("INSERT INTO {t} VALUES (1, 'late', timestamp'2026-01-01 12:00:00')"),
            Gives("SELECT id, v FROM {t}", [[2, "z"]]),
            Do("INSERT INTO {t} VALUES (1, 'back', timestamp'2026-01-03 00:00:00')"),
            Gives("SELECT id, v FROM {t}", [[1, "back"], [2, "z"]]),
            Refused(
                "INSERT INTO {t} VALUES (5, 'p', timestamp'2026-01-05 00:00:00'), (5, 'q', timestamp'2026-01-05 "
                "00:00:00')",
                "rows of one at with different values",
            ),
        ],
    ),
]
