"""Partitions whose values are odd in the names of directories, null, or of unusual types."""

from tests.spark_extension.traps.cases import ALL, Case, Do, Gives, Holds, Refused

ODD = [
    "a/b", "a:b", "a b", " lead", "trail ", "a=b", "100%", "a%2Fb", "ü€", "u\u0308", "日本", "it\\'s", 'a"b', "a\\\\b",
    "a#b?c", "a{b}[c]", "new\\nline", "tab\\t", "\U0001f600", ".", "..", "a*b", "null", "NULL", "A", "a", "~", "$x",
    "a,b", "-1", "1e3", "\\u007f", "+", "&amp;", "a;b", "_x", ".x", "a\\u0001b",
]  # fmt: skip
MEANT = [
    text.replace("\\'", "'").replace("\\\\", "\\").replace("\\n", "\n").replace("\\t", "\t").replace("\\u007f", "\x7f")
    .replace("\\u0001", "\x01")
    for text in ODD
]  # fmt: skip
LISTED = ", ".join(f"({number}, '{text}')" for number, text in enumerate(ODD))

CASES = [
    Case(
        name="partitions-of-odd-texts",
        trap="Delta UpdateSuiteBase: update on partitioned table with special chars; Paimon SpecialCharacterPathTest",
        columns="id INT, p STRING",
        key="id,p",
        partitions="p",
        on=ALL,
        steps=[
            Do(f"INSERT INTO {{t}} VALUES {LISTED}"),
            Holds([[number, text] for number, text in enumerate(MEANT)]),
            Gives("SELECT id FROM {t} WHERE p = 'a/b'", [[0]]),
            Gives("SELECT id FROM {t} WHERE p = 'a%2Fb'", [[7]]),
            Gives("SELECT count(*) FROM {t} WHERE p = 'a'", [[1]]),
            Gives("SELECT count(DISTINCT p) FROM {t}", [[len(ODD)]]),
            Do("DELETE FROM {t} WHERE p IN ('a:b', 'trail ', '100%', 'new\\nline', '..', 'NULL')"),
            Gives("SELECT count(*) FROM {t}", [[len(ODD) - 6]]),
            Do("INSERT OVERWRITE {t} PARTITION (p = 'a=b') SELECT 500"),
            Do("INSERT OVERWRITE {t} SELECT 501, ' lead'"),
            Gives("SELECT id, p FROM {t} WHERE id >= 500", [[500, "a=b"], [501, " lead"]]),
            Gives("SELECT count(*) FROM {t}", [[len(ODD) - 6]]),
        ],
    ),
    Case(
        name="partitions-of-odd-texts-by-changes",
        trap="Delta MergeIntoSuiteBase: merge on partitioned table with special chars, special character in path - "
        "matched delete",
        columns="id INT, v STRING, p STRING",
        key="id,p",
        partitions="p",
        rows="(1, 'a', 'x%20x'), (2, 'b', 'y:y'), (3, 'c', 'z z')",
        steps=[
            Do("UPDATE {t} SET v = 'A' WHERE p = 'x%20x'"),
            Do("UPDATE {t} SET p = 'w/w' WHERE p = 'y:y'"),
            Do(
                "MERGE INTO {t} t USING (SELECT 'z z' AS p, 'q=?' AS q) s ON t.p = s.p WHEN MATCHED THEN UPDATE SET "
                "p = s.q "
                "WHEN NOT MATCHED BY SOURCE AND t.p = 'w/w' THEN UPDATE SET v = 'n'"
            ),
            Holds([[1, "A", "x%20x"], [2, "n", "w/w"], [3, "c", "q=?"]]),
            Do("DELETE FROM {t} WHERE p LIKE '%?'"),
            Do("MERGE INTO {t} t USING (SELECT 'w/w' AS p) s ON t.p = s.p WHEN MATCHED THEN DELETE"),
            Holds([[1, "A", "x%20x"]]),
        ],
    ),
    Case(
        name="partitions-without-value-of-a-key",
        trap="Paimon DeleteFromTableTestBase: delete null partition with specified default partition name",
        why="what partitions a keyed table is part of its key or says where its row is: never null here",
        columns="id INT, p STRING",
        key="id,p",
        partitions="p",
        steps=[
            Refused("INSERT INTO {t} VALUES (1, NULL)", "null"),
            Refused("INSERT INTO {t} VALUES (1, '')", "is empty"),
            Refused("INSERT INTO {t} VALUES (1, '__HIVE_DEFAULT_PARTITION__')", "Hive's name for null"),
            Refused("INSERT INTO {t} PARTITION (p = NULL) SELECT 1", "null"),
        ],
    ),
    Case(
        name="partitions-without-value",
        trap="Delta DeltaInsertIntoTableSuite: __HIVE_DEFAULT_PARTITION__ results in null partition column",
        why="an empty text becomes null, which is Hive's and Spark's way of tables with directories",
        columns="id INT, p STRING, n INT",
        partitions="p, n",
        on=("plain",),
        rows="(1, NULL, 1), (2, '', 2), (3, 'x', NULL), (4, '__HIVE_DEFAULT_PARTITION__', 4)",
        steps=[
            Holds([[1, None, 1], [2, None, 2], [3, "x", None], [4, None, 4]]),
            Gives("SELECT id FROM {t} WHERE p IS NULL AND n > 1", [[2], [4]]),
            Gives("SELECT id FROM {t} WHERE p <> 'y'", [[3]]),
            Gives("SELECT id FROM {t} WHERE n <=> NULL", [[3]]),
            Do("INSERT OVERWRITE {t} SELECT 9, NULL, 1"),
            Do("INSERT OVERWRITE {t} PARTITION (p = NULL, n = 2) SELECT 8"),
            Holds([[9, None, 1], [8, None, 2], [3, "x", None], [4, None, 4]]),
            Do("DELETE FROM {t} WHERE p = 'x' OR n = 4"),
            Holds([[9, None, 1], [8, None, 2]]),
        ],
    ),
    Case(
        name="partitions-of-other-types",
        trap="Delta DeltaInsertIntoTableSuite: partition values round trip; Paimon: insert overwrite date type "
        "partition table",
        columns="id INT, d DATE, b BOOLEAN, n BIGINT, s SMALLINT",
        key="id,d,b,n,s",
        partitions="d, b, n, s",
        on=ALL,
        rows="(1, date'0001-01-01', true, -9223372036854775808, -1), (2, date'9999-12-31', false, "
        "9223372036854775807, 0), "
        "(3, date'1582-10-04', true, 0, 32767)",
        steps=[
            Gives(
                "SELECT id, string(d), b, n, s FROM {t}",
                [
                    [1, "0001-01-01", True, -9223372036854775808, -1],
                    [2, "9999-12-31", False, 9223372036854775807, 0],
                    [3, "1582-10-04", True, 0, 32767],
                ],
            ),
            Gives("SELECT id FROM {t} WHERE d < '1582-10-15' AND b", [[1], [3]]),
            Gives("SELECT id FROM {t} WHERE n = 9223372036854775807 AND NOT b AND s = 0", [[2]]),
            Do("DELETE FROM {t} WHERE d = '1582-10-04' AND b = true AND n = 0"),
            Do("DELETE FROM {t} WHERE n < -1"),
            Gives("SELECT id FROM {t}", [[2]]),
        ],
    ),
    Case(
        name="partitions-of-days-that-another-calendar-leaves-out",
        caught="the DELETE deleted nothing",
        trap="Delta, Paimon: dates before the Gregorian calendar; java.sql.Date has no days from 1582-10-05 to "
        "1582-10-14",
        columns="id INT, d DATE",
        partitions="d",
        on=("plain",),
        rows="(1, date'1582-10-10'), (2, date'1582-10-20'), (3, date'1500-02-28')",
        steps=[
            Gives("SELECT id FROM {t} WHERE d = date'1582-10-10'", [[1]]),
            Refused("DELETE FROM {t} WHERE d = date'1582-10-10'", "1582-10-10 can't be compared"),
            Refused(
                "INSERT INTO {t} REPLACE WHERE d < date'1582-10-14' SELECT 1, date'1582-10-10'", "can't be compared"
            ),
            Do("DELETE FROM {t} WHERE d < '1582-10-04'"),
            Do("INSERT OVERWRITE {t} PARTITION (d = '1582-10-10') SELECT 4"),
            Gives("SELECT id, string(d) FROM {t}", [[2, "1582-10-20"], [4, "1582-10-10"]]),
        ],
    ),
    Case(
        name="partitions-of-numbers-in-order",
        trap="Delta DeleteSuiteBase: data and partition columns; Iceberg testDeleteWithArbitraryPartitionPredicates",
        columns="id INT, n INT, d DECIMAL(6, 2)",
        partitions="n, d",
        on=("plain",),
        rows="(1, 9, 1.5), (2, 10, 10), (3, -5, -0.25), (4, 100, 1.50)",
        steps=[
            Do("DELETE FROM {t} WHERE n > 9 AND n < 100"),
            Gives("SELECT id, n, d FROM {t}", [[1, 9, "1.50"], [3, -5, "-0.25"], [4, 100, "1.50"]]),
            Do("DELETE FROM {t} WHERE d = 1.5 AND n = 100"),
            Do("DELETE FROM {t} WHERE d < 0.00"),
            Gives("SELECT id, n, d FROM {t}", [[1, 9, "1.50"]]),
        ],
    ),
    Case(
        name="partitions-of-padded-texts",
        caught="DELETE of a CHAR partition deleted nothing, and INSERT OVERWRITE of one was refused",
        trap="Paimon UpdateTableTestBase: update table with char type; Spark's char and varchar as partition columns",
        columns="id INT, c CHAR(4), w VARCHAR(4)",
        partitions="c, w",
        on=("plain",),
        rows="(1, 'a', 'b'), (2, 'ab', 'b '), (3, 'abcd', 'bcde')",
        steps=[
            Gives("SELECT id FROM {t} WHERE c = 'a'", [[1]]),
            Do("INSERT OVERWRITE {t} PARTITION (c = 'ab', w = 'b ') SELECT 9"),
            Gives("SELECT id, length(c), w FROM {t}", [[1, 4, "b"], [9, 4, "b "], [3, 4, "bcde"]]),
            Do("DELETE FROM {t} WHERE c = 'a'"),
            Gives("SELECT id FROM {t}", [[9], [3]]),
            Do("INSERT INTO {t} REPLACE WHERE c = 'ab' SELECT 10, 'ab', 'n'"),
            Gives("SELECT id, w FROM {t}", [[10, "n"], [3, "bcde"]]),
            Refused("INSERT INTO {t} VALUES (4, 'abcde', 'b')", "length|longer"),
        ],
    ),
    Case(
        name="partitions-of-times",
        trap="Delta DeltaInsertIntoTableSuite: UTC timestamp partition values round trip across different session TZ",
        why="Delta keeps instants. The name of a directory has no zone here, so such partitions are refused",
        columns="id INT, p TIMESTAMP",
        partitions="p",
        on=("plain",),
        steps=[Refused("INSERT INTO {t} VALUES (1, timestamp'2026-01-01 00:00:00')", "timestamp")],
    ),
    Case(
        name="partitions-whose-names-are-too-long",
        trap="Delta DeltaSuite: long partition values; a file system takes names of 255 bytes",
        columns="id INT, p STRING",
        key="id,p",
        partitions="p",
        on=ALL,
        rows="(1, 'short')",
        steps=[
            Refused("INSERT INTO {t} SELECT 2, repeat('x', 300)", "."),
            Refused("INSERT INTO {t} SELECT 2, concat('a', char(0), 'b')", "."),
            Do("INSERT INTO {t} SELECT 3, repeat('y', 200)"),
            Gives("SELECT id, length(p) FROM {t}", [[1, 5], [3, 200]]),
        ],
    ),
    Case(
        name="partitions-with-columns-of-odd-names",
        trap="Delta DeltaInsertIntoTableSuite: overwrite - dot in column names - static mode",
        columns="id INT, v STRING, `b c` STRING, `d.e` STRING",
        key="id,b c,d.e",
        partitions="`b c`, `d.e`",
        rows="(1, 'a', 'x', 'm/n'), (2, 'b', 'y', 'o')",
        steps=[
            Do("INSERT OVERWRITE {t} PARTITION (`b c` = 'x', `d.e` = 'm/n') SELECT 3, 'c'"),
            Gives("SELECT id FROM {t} WHERE `b c` = 'x' AND `d.e` > 'a'", [[3]]),
            Do("UPDATE {t} SET `d.e` = 'q' WHERE `d.e` = 'o'"),
            Do("DELETE FROM {t} WHERE `b c` = 'x'"),
            Holds([[2, "b", "y", "q"]]),
        ],
    ),
    Case(
        name="partitions-with-columns-in-capitals",
        trap="Paimon PaimonPartitionManagementTest, KeyPropertyCaseResolutionTest; Delta: dot in column names - "
        "static mode",
        columns="Id INT, V STRING, Dt STRING, B_c STRING",
        key="id,DT,b_c",
        partitions="Dt, B_c",
        on=ALL,
        rows="(1, 'a', 'x', 'm/n')",
        steps=[
            Do("INSERT INTO {t} PARTITION (DT = 'y', B_C = 'q') SELECT 2, 'b'"),
            Do("INSERT OVERWRITE {t} PARTITION (dt = 'x', b_c = 'm/n') SELECT 3, 'c'"),
            Holds([[2, "b", "y", "q"], [3, "c", "x", "m/n"]]),
            Gives("SELECT id FROM {t} WHERE B_C = 'm/n' AND DT = 'x'", [[3]]),
            Do("DELETE FROM {t} WHERE dt = 'y' AND b_C = 'q'"),
            Holds([[3, "c", "x", "m/n"]]),
        ],
    ),
]
